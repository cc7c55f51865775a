"""Episodes as MineStudio's inference workers write them, read without unpickling what they hold."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rllib_minestudio.demonstrations import WindowOptions, find_episodes, open_episode, windows
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.recordings import EpisodeWriter
from rllib_minestudio.recordings.minestudio_formats import InferenceLayout
from rllib_minestudio.recordings.video import VideoWriter

BUTTONS, CAMERA = [5, 8639, 0], [60, 61, 120]


def frames(count):
    return [np.full((32, 64, 3), 40 * (t + 1), np.uint8) for t in range(count)]


def write(folder, actions, pictures=False):
    """What `Worker.save_to_file` does."""
    with open(folder / "action_1f.pkl", "wb") as file:
        pickle.dump(actions, file)
    if pictures:
        (folder / "images_1f").mkdir()
        for t, frame in enumerate(frames(len(actions) + 1)):
            Image.fromarray(frame).save(folder / "images_1f" / f"{t}.jpeg")
        return
    with VideoWriter(folder / "video_1f.mp4", 30) as video:
        for frame in frames(len(actions) + 1):
            video.add(frame)


def tensors():
    """Slices, as a policy's outputs are: their storage holds more than they show."""
    table = torch.tensor([BUTTONS, CAMERA])
    return [{"buttons": b.unsqueeze(0), "camera": c.unsqueeze(0)} for b, c in table.T]


@pytest.mark.parametrize("pictures", [False, True], ids=["video", "pictures"])
def test_torch_tokens_and_frames_become_windows(tmp_path, pictures):
    write(tmp_path, tensors(), pictures)
    (path,) = find_episodes(tmp_path)
    (window,) = windows(open_episode(path), WindowOptions(4, 0, size=(16, 16)))
    assert window.buttons[:3].tolist() == BUTTONS
    assert window.camera[:3].tolist() == CAMERA
    assert window.weight.tolist() == [1, 1, 1, 0]
    brightness = window.image[:3].mean(axis=(1, 2, 3))
    np.testing.assert_allclose(brightness, [40, 80, 120], atol=3)


def test_what_our_own_recorder_writes_for_minestudio_is_read(tmp_path):
    writer = EpisodeWriter(tmp_path / "first", InferenceLayout)
    shown = frames(4)
    writer.begin(shown[0], {})
    for t, (buttons, camera) in enumerate(zip(BUTTONS, CAMERA, strict=True)):
        action = {"buttons": buttons, "camera": camera}
        writer.add(action, 0.0, False, t == 2, frame=shown[t + 1], info={})
    writer.finish({})
    episode = open_episode(*find_episodes(tmp_path))
    assert episode.steps["buttons"].tolist() == BUTTONS
    assert len(list(episode.frames())) == len(episode) + 1 == 4


def test_a_real_one_holds_keys_and_degrees():
    """Written by MineStudio's own MineGenerator; see the README beside it."""
    (path,) = find_episodes(Path(__file__).parent / "minestudio")
    episode = open_episode(path)
    with open(path, "rb") as file:
        real = pickle.load(file)  # we made it ourselves
    assert len(episode) == len(real) == 12
    keys = episode.meta["keys"]
    assert {*keys, "camera"} == set(real[0])
    for row, action in enumerate(real):
        assert episode.steps["keys"][row].tolist() == [action[key].item() for key in keys]
        np.testing.assert_allclose(episode.steps["degrees"][row], action["camera"], rtol=1e-6)
    (window,) = windows(episode, WindowOptions(12, 0, size=(64, 64)))
    assert window.weight.sum() == 12
    assert len(set(window.buttons.tolist())) > 1
    mapper = ActionMapper()
    for buttons, camera, action in zip(window.buttons, window.camera, real, strict=True):
        told = mapper.to_env(int(buttons), int(camera))
        np.testing.assert_allclose(told["camera"], action["camera"], rtol=1e-6)
        assert [told[key] for key in keys] == [action[key].item() for key in keys]
    assert 20 < window.image.mean() < 235


def test_what_callbacks_asked_the_game_for_is_passed_over(tmp_path):
    action = {"attack": np.array(1), "camera": np.array([[0.0, 10.0]]), "voxels": [-1, 1] * 3}
    write(tmp_path, [action, {**action, "chat": "/kill", "forward": 1}])
    episode = open_episode(*find_episodes(tmp_path))
    assert episode.steps["keys"].sum(axis=1).tolist() == [1, 2]
    assert episode.steps["degrees"].tolist() == [[0.0, 10.0]] * 2


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"attack": 2}, "the key attack is 2"),
        ({"camera": [0.0, float("nan")]}, "no finite number"),
        ({"camera": [0.0]}, "holds no list"),
        ({"camera": "east"}, "holds no list"),
        ({"attack": float("inf")}, "holds no list"),
    ],
)
def test_keys_that_are_none_are_refused(tmp_path, change, complaint):
    write(tmp_path, [{"attack": 1, "camera": [0.0, 1.0], **change}])
    with pytest.raises(RecordingError, match=complaint):
        open_episode(*find_episodes(tmp_path)).steps  # noqa: B018


class Harmful:
    def __reduce__(self):
        return eval, ("1 / 0",)


def test_nothing_in_the_file_is_run(tmp_path):
    write(tmp_path, [{"buttons": Harmful(), "camera": 0}])
    with pytest.raises(RecordingError, match="wants to import"):
        open_episode(*find_episodes(tmp_path)).steps  # noqa: B018


def test_damage_is_named(tmp_path):
    write(tmp_path, tensors())
    path = tmp_path / "action_1f.pkl"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(RecordingError, match="holds no list of MineStudio's actions"):
        len(open_episode(path))
    (tmp_path / "video_1f.mp4").unlink()
    with pytest.raises(RecordingError, match="has neither video_1f"):
        open_episode(path)


def test_missing_frames_are_counted(tmp_path):
    write(tmp_path, tensors(), pictures=True)
    (tmp_path / "images_1f" / "3.jpeg").unlink()
    with pytest.raises(RecordingError, match="3 actions, but only 3 frames"):
        list(open_episode(tmp_path / "action_1f.pkl").frames())
