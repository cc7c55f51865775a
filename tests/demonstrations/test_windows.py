"""Windows hold every step once, with the frames before it, whatever the lengths."""

import json
import re
from itertools import islice

import numpy as np
import pytest

from rllib_minestudio.demonstrations import WindowOptions, stack, stream, windows
from rllib_minestudio.demonstrations.windows import filled
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import InvalidOptionsError, RecordingError
from rllib_minestudio.recordings import EpisodeWriter, Recording
from rllib_minestudio.recordings.video import VideoOptions


@pytest.mark.parametrize(("length", "burn_in"), [(32, 48), (50, 16), (100, 0), (128, 64)])
def test_every_step_is_imitated_once_after_the_frames_before_it(recordings, length, burn_in):
    recording = recordings[0]
    frames = np.stack(list(recording.frames(stop=len(recording))))
    steps = 0
    for window in windows(recording, WindowOptions(length, burn_in)):
        assert len(window.image) == len(window.weight) == burn_in + length
        ours = np.flatnonzero(window.weight)
        assert ours[0] == burn_in
        past = min(burn_in, steps)
        rows = slice(burn_in - past, ours[-1] + 1)
        episode = slice(steps - past, steps + len(ours))
        np.testing.assert_array_equal(window.image[rows], frames[episode])
        np.testing.assert_array_equal(window.buttons[rows], recording.steps["buttons"][episode])
        np.testing.assert_array_equal(window.camera[rows], recording.steps["camera"][episode])
        starts = np.flatnonzero(window.first)
        assert starts.tolist() == ([burn_in - past] if past == steps else [])
        steps += len(ours)
    assert steps == len(recording)


@pytest.mark.parametrize(
    ("longest", "left"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        (2, [0, 1, 3, 4, 5, 7, 8, 9, 10]),
        (1, [0, 3, 4, 7, 8, 9]),
        (0, [3, 7, 8]),
    ],
)
def test_of_null_actions_in_succession_so_many_are_kept(tmp_path, longest, left):
    null, attack = 0, 16
    acts = [null] * 3 + [attack] + [null] * 3 + [attack] * 2 + [null] * 3
    recording = _numbered(tmp_path / "numbered", buttons=acts, meta={"imitated_from": 5})
    options = WindowOptions(4, 3, observation_names=("step",), max_null_run=longest)
    cut = list(windows(recording, options))
    assert len(cut) == -(-len(left) // 4)
    for i, window in enumerate(cut):
        steps = left[max(0, 4 * i - 3) : 4 * i + 4]
        shown = slice(3 - min(3, 4 * i), 3 - min(3, 4 * i) + len(steps))
        assert window.observations["step"][shown].tolist() == steps
        np.testing.assert_allclose(
            window.image[shown].mean((1, 2, 3)), np.multiply(3, steps), atol=2
        )
        assert window.buttons[shown].tolist() == [acts[step] for step in steps]
        imitated = [step >= 5 and step in left[4 * i :] for step in steps]
        assert window.weight[shown].tolist() == imitated and window.weight.sum() == sum(imitated)


def test_an_episode_of_null_actions_alone_may_leave_no_window(tmp_path):
    recording = _numbered(tmp_path / "numbered", buttons=[0] * 5)
    assert list(windows(recording, WindowOptions(4, 3, max_null_run=0))) == []


def _numbered(path, buttons=range(70), meta=None):
    """An episode whose observations and frames, and if not given its tokens, tell the step."""
    steps = len(buttons)
    writer = EpisodeWriter(path, video=VideoOptions(media="jpeg"))
    writer.begin(np.full((16, 16, 3), 0, np.uint8), {})
    for t in range(steps):
        writer.add(
            {"buttons": buttons[t], "camera": 60},
            0.0,
            False,
            t == steps - 1,
            frame=np.full((16, 16, 3), 3 * (t + 1), np.uint8),
            info={},
            seen={"step": np.int64(t), "own.pair": np.array([t, -t], np.float32)},
        )
    return Recording(writer.finish(meta or {}))


@pytest.mark.parametrize(("length", "burn_in"), [(32, 48), (50, 16), (100, 0)])
def test_observations_line_up_with_frames_and_actions(tmp_path, length, burn_in):
    recording = _numbered(tmp_path / "numbered")
    options = WindowOptions(length, burn_in, observation_names=("own.pair", "step"))
    for window in windows(recording, options):
        played = np.flatnonzero(window.image.any((1, 2, 3)) | window.first | (window.weight > 0))
        step = window.observations["step"]
        assert step.shape == (burn_in + length,) and step.dtype == np.int64
        np.testing.assert_array_equal(step, window.buttons)
        np.testing.assert_allclose(window.image.mean((1, 2, 3))[played], 3 * step[played], atol=2)
        pair = window.observations["own.pair"]
        assert pair.dtype == np.float32
        np.testing.assert_array_equal(pair, np.stack([step, -step], axis=1))
        assert not np.delete(step, played).any()


def test_a_batch_holds_them_beside_the_fields(tmp_path):
    options = WindowOptions(32, 8, observation_names=("own.pair",))
    batch = stack(list(windows(_numbered(tmp_path / "numbered"), options)))
    assert set(batch) == {"image", "buttons", "camera", "first", "weight", "own.pair"}
    assert batch["own.pair"].shape == (3, 40, 2)


def test_what_was_not_recorded_is_named_and_so_is_what_was(tmp_path, recordings):
    options = WindowOptions(8, 0, observation_names=("stepp",))
    with pytest.raises(RecordingError, match=r"numbered.*'stepp'.*Did you mean 'step'.*own\.pair"):
        next(windows(_numbered(tmp_path / "numbered"), options))
    with pytest.raises(RecordingError, match=r"besides frames it has none. Record again"):
        next(windows(recordings[0], options))


@pytest.mark.parametrize("name", ["image", "camera", "weight", "observations"])
def test_names_of_fields_are_refused(name):
    with pytest.raises(InvalidOptionsError, match=f"observation_names .* got '{name}'"):
        WindowOptions(8, 0, observation_names=("step", name))


def test_an_epoch_of_the_stream_holds_each_window_once(recordings):
    options = WindowOptions(length=40, burn_in=8)
    epoch = [window for recording in recordings for window in windows(recording, options)]
    endless = stream(recordings, options, seed=0, shuffle_among=4)
    drawn = list(islice(endless, 2 * len(epoch)))

    def identities(some):
        return sorted(window.image.tobytes() + window.buttons.tobytes() for window in some)

    assert identities(drawn[: len(epoch)]) == identities(epoch)
    assert identities(drawn[len(epoch) :]) == identities(epoch)
    again = list(islice(stream(recordings, options, seed=0, shuffle_among=4), len(epoch)))
    np.testing.assert_array_equal(stack(drawn[: len(epoch)])["image"], stack(again)["image"])


def test_frames_are_scaled_to_what_the_network_sees(recordings):
    window = next(windows(recordings[0], WindowOptions(8, 0, size=(32, 16))))
    assert window.image.shape == (8, 16, 32, 3)


def _write(path, action, **facts):
    writer = EpisodeWriter(path)
    frame = np.zeros((16, 16, 3), np.uint8)
    writer.begin(frame, {})
    writer.add(action, 0.0, False, True, frame=frame, info={})
    return Recording(writer.finish(facts))


def test_recorded_keys_become_the_nearest_tokens(tmp_path):
    action = {"forward": 1, "attack": 1, "camera": (0.0, 3.3)}
    window = next(windows(_write(tmp_path / "keys", action), WindowOptions(1, 0)))
    assert (window.buttons[0], window.camera[0]) == ActionMapper().from_env(action)


def test_tokens_of_another_action_space_are_refused(tmp_path):
    recording = _write(tmp_path / "large", {"buttons": 3, "camera": 121})
    with pytest.raises(RecordingError, match="camera token 121"):
        next(windows(recording, WindowOptions(1, 0)))


def test_frames_with_text_on_them_are_refused(tmp_path):
    recording = _write(tmp_path / "text", {"buttons": 3, "camera": 60}, video={"overlay": True})
    with pytest.raises(RecordingError, match="without overlay"):
        next(windows(recording, WindowOptions(1, 0)))


@pytest.mark.parametrize("start", ["soon", -1, 2.5, None])
def test_a_damaged_beginning_is_named(tmp_path, start):
    recording = _numbered(tmp_path / "numbered", buttons=range(9))
    file = recording.path / "episode.json"
    file.write_text(json.dumps({**recording.meta, "imitated_from": start}))
    with pytest.raises(
        RecordingError, match=rf"numbered.*imitated_from .*{re.escape(repr(start))}"
    ):
        Recording(recording.path)


def test_frames_are_written_into_their_rows_and_none_may_be_missing():
    frames = [np.full((2, 2, 3), number, np.uint8) for number in (1, 2)]
    image = filled(iter(frames), length=4, begin=1, end=3, episode="one")
    assert image[:, 0, 0, 0].tolist() == [0, 1, 2, 0]
    with pytest.raises(RecordingError, match="'one' ends before its actions do: 1 of 2"):
        filled(iter(frames[:1]), length=4, begin=1, end=3, episode="one")
