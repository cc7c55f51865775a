"""Windows hold every step once, with the frames before it, whatever the lengths."""

from itertools import islice

import numpy as np
import pytest

from rllib_minestudio.demonstrations import WindowOptions, stack, stream, windows
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.recordings import Recording, RecordingWriter


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
    writer = RecordingWriter(path)
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
