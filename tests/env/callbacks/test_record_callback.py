"""Record: the files that MineStudio's RecordCallback writes, from an environment of our own."""

import json
import logging

import av
import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.callbacks import build_callbacks
from rllib_minestudio.errors import InvalidOptionsError

STEPS = 4
IDLE = {"buttons": 0, "camera": 60}


def make_env(folder, *others, options=None, **arguments):
    arguments = {"record_path": str(folder), **arguments}
    options = {"obs_size": [32, 48], "render_size": [64, 36], "num_empty_frames": 1} | (
        options or {}
    )
    return MineStudioEnv(options, callbacks=[*others, {"Record": arguments}])


def play(env, episodes=1):
    """Play, and return every observation."""
    env.action_space.seed(1)
    seen = []
    for episode in range(episodes):
        seen.append(env.reset(seed=episode)[0]["image"])
        for _ in range(STEPS):
            seen.append(env.step(env.action_space.sample())[0]["image"])
    env.close()
    return np.stack(seen)


def names(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def video(file):
    with av.open(str(file)) as container:
        rate = container.streams.video[0].average_rate
        return rate, np.stack(
            [each.to_ndarray(format="rgb24") for each in container.decode(video=0)]
        )


def test_everything_that_it_can_write(tmp_path):
    env = make_env(
        tmp_path,
        {"MaskActions": {"jump": 0}},
        frame_type="obs",
        fps=30,
        record_actions=True,
        record_infos=True,
        record_origin_observation=True,
    )
    assert names(tmp_path) == [], "a constructor writes nothing"
    seen = play(env, episodes=2)
    suffixes = (".mp4", ".npy", "_action.json", "_info.json")
    assert names(tmp_path) == sorted(f"episode_{i}{suffix}" for i in (1, 2) for suffix in suffixes)
    frames = np.load(tmp_path / "episode_2.npy")
    np.testing.assert_array_equal(frames, seen[STEPS + 1 :])
    rate, shown = video(tmp_path / "episode_2.mp4")
    assert rate == 30 and shown.shape == frames.shape == (STEPS + 1, 48, 32, 3)
    assert np.abs(shown.astype(float) - frames).mean() < 8
    actions = json.loads((tmp_path / "episode_1_action.json").read_text())
    assert actions[0] == {} and len(actions) == STEPS + 1
    assert all(action["jump"] == 0 and len(action["camera"]) == 2 for action in actions[1:])
    infos = json.loads((tmp_path / "episode_1_info.json").read_text())
    assert len(infos) == STEPS + 1
    assert infos[0]["inventory"]["0"] == {"type": "none", "quantity": 0}
    assert [info["message"]["RecordCallback"] for info in infos] == [
        f"Recording: On, Recording Time: {i}" for i in (0, 2, 3, 4, 5)
    ]
    assert not {"pov", "image"} & set(infos[0])


def test_pov_is_the_view_at_render_size(tmp_path):
    env = make_env(tmp_path, record_origin_observation=True)
    env.reset(seed=3)
    first = env.render()
    env.step(IDLE)
    env.close()
    frames = np.load(tmp_path / "episode_1.npy")
    assert frames.shape == (2, 36, 64, 3)
    np.testing.assert_array_equal(frames[0], first)


def test_actions_stand_beneath_the_frames_of_the_video_only(tmp_path):
    env = make_env(tmp_path, frame_type="obs", show_actions=True, record_origin_observation=True)
    seen = play(env)
    np.testing.assert_array_equal(np.load(tmp_path / "episode_1.npy"), seen)
    _, shown = video(tmp_path / "episode_1.mp4")
    factor = shown.shape[2] // 32
    assert shown.shape[2] == factor * 32 and shown.shape[1] > factor * 48
    enlarged = seen.repeat(factor, axis=1).repeat(factor, axis=2).astype(float)
    assert np.abs(shown[:, : factor * 48] - enlarged).mean() < 8
    strips = shown[:, factor * 48 :].astype(float)
    assert strips.mean() < 80 and np.abs(strips[0] - strips[1:]).max() > 100  # keys light up


def test_numbers_go_on_and_environments_keep_apart(tmp_path):
    play(make_env(tmp_path), episodes=2)
    play(make_env(tmp_path))
    play(make_env(tmp_path, options={"worker_index": 2, "vector_index": 1}))
    assert names(tmp_path) == [
        "env-2-1/episode_1.mp4",
        "episode_1.mp4",
        "episode_2.mp4",
        "episode_3.mp4",
    ]


def test_environments_of_one_folder_do_not_take_each_others_numbers(tmp_path):
    envs = [make_env(tmp_path, frame_type="obs") for _ in range(3)]
    for env in envs:
        env.reset()
    for env in envs:
        env.step(IDLE)
        env.close()
    assert names(tmp_path) == ["episode_1.mp4", "episode_2.mp4", "episode_3.mp4"]


class Keyboard:
    """Presses R in some steps, as MineStudio's Play tells it."""

    def __init__(self, **presses):
        self.presses, self.step = presses, 0

    def after_step(self, sim, obs, reward, terminated, truncated, info):
        self.step += 1
        name = f"step_{self.step}"
        if name in self.presses:
            info = {**info, "R": self.presses[name]}
        return obs, reward, terminated, truncated, info


def test_a_key_starts_and_stops_it(tmp_path):
    keys = Keyboard(step_2=True, step_4=False)
    env = make_env(tmp_path, keys, recording=False, frame_type="obs", record_actions=True)
    env.reset()
    told = [env.step(IDLE)[-1]["message"]["RecordCallback"] for _ in range(5)]
    assert told == [
        "Recording: Off, Recording Time: 0",
        "Recording: On, Recording Time: 1",
        "Recording: On, Recording Time: 2",
        "Recording: Off, Recording Time: 0",
        "Recording: Off, Recording Time: 0",
    ]
    assert env.sim.callback_messages == {"Press 'R' to start/stop recording."}
    assert names(tmp_path) == ["episode_0.mp4", "episode_0_action.json"]
    assert len(json.loads((tmp_path / "episode_0_action.json").read_text())) == 2
    env.close()


def test_a_folder_that_cannot_be_written_costs_the_recording_only(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    env = make_env(tmp_path / "file" / "folder", frame_type="obs")
    with caplog.at_level(logging.ERROR):
        env.reset()
        *_, info = env.step(IDLE)
        env.close()
    assert "engine_error" not in info
    (record,) = caplog.records
    assert "cannot be recorded" in record.getMessage()


def test_nothing_half_written_is_left(tmp_path):
    env = make_env(tmp_path, frame_type="obs", record_infos=True)
    env.reset()
    assert {name.split("/")[0] for name in names(tmp_path)} == {".episode_1.partial"}
    env.close()
    assert names(tmp_path) == ["episode_1.mp4", "episode_1_info.json"]
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"record_path": ""}, r"record_path must be the path of a folder"),
        ({"record_path": "x", "fps": 0}, r"fps must be an integer from 1 to 240"),
        (
            {"record_path": "x", "frame_type": "pvo"},
            r"frame_type must be one of.*Did you mean 'pov'",
        ),
        ({"record_path": "x", "record_info": True}, r"Did you mean 'record_infos'"),
        ({"record_path": "x", "recording": 1}, r"recording must be true or false"),
        ({}, r"argument 'record_path' is missing"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(InvalidOptionsError, match=message):
        build_callbacks([{"Record": arguments}])


def test_odd_sizes_are_refused(tmp_path):
    env = make_env(tmp_path, options={"render_size": [65, 36]})
    with pytest.raises(InvalidOptionsError, match=r"got 65x36\. Change render_size"):
        env.reset()
