"""Videos appear whole or not at all."""

import av
import numpy as np
import pytest

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.recordings.video import VideoWriter, read_video


def frames(count, height=36, width=64):
    for i in range(count):
        yield np.full((height, width, 3), 20 * i, np.uint8)


def test_a_video_holds_every_frame_in_order_and_at_the_games_speed(tmp_path):
    path = tmp_path / "new" / "agent.mp4"
    with VideoWriter(path) as video:
        for frame in frames(10):
            video.add(frame)
        assert not path.exists()
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, stream.average_rate) == (64, 36, 20)
        means = [frame.to_ndarray(format="rgb24").mean() for frame in container.decode(stream)]
    assert means == pytest.approx([20 * i for i in range(10)], abs=4)


def test_an_exception_leaves_no_file_behind(tmp_path):
    with pytest.raises(KeyError), VideoWriter(tmp_path / "agent.mp4") as video:
        video.add(next(frames(1)))
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_an_existing_video_is_replaced_only_by_a_finished_one(tmp_path):
    path = tmp_path / "agent.mp4"
    path.write_text("older")
    video = VideoWriter(path)
    video.add(next(frames(1)))
    assert path.read_text() == "older"
    video.close()
    assert path.read_bytes() != b"older"


def test_no_frames_no_file(tmp_path):
    with VideoWriter(tmp_path / "agent.mp4"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(35, 64, 3), (36, 64), (36, 64, 4)])
def test_frames_that_cannot_be_encoded_are_refused(tmp_path, shape):
    with pytest.raises(InvalidOptionsError, match="even height and width"):
        VideoWriter(tmp_path / "agent.mp4").add(np.zeros(shape, np.uint8))


def test_frames_of_another_size_are_refused(tmp_path):
    video = VideoWriter(tmp_path / "agent.mp4")
    video.add(np.zeros((36, 64, 3), np.uint8))
    with pytest.raises(InvalidOptionsError, match="got 32x36 after 64x36"):
        video.add(np.zeros((36, 32, 3), np.uint8))
    video.discard()


@pytest.mark.parametrize("groups", ["closed", "open"])
def test_a_frame_is_reached_from_the_key_frame_before_it_or_by_counting(tmp_path, groups):
    path = tmp_path / "film.mp4"
    parts = (
        f"keyint=20:min-keyint=20:scenecut=0:bframes=3:b-adapt=0:open-gop={int(groups == 'open')}"
    )
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=20, options={"x264-params": parts})
        stream.width, stream.height, stream.pix_fmt = 64, 36, "yuv420p"
        for i in range(100):
            shown = np.roll(np.arange(64 * 36 * 3, dtype=np.uint8), 97 * i).reshape(36, 64, 3)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(shown, format="rgb24")))
        container.mux(stream.encode(None))
    whole = list(read_video(path))
    assert len(whole) == 100
    for start in (1, 19, 20, 21, 39, 40, 60, 77, 99):
        np.testing.assert_array_equal(list(read_video(path, start=start)), whole[start:])
    np.testing.assert_array_equal(list(read_video(path, None, 33, 7)), whole[33::7])
