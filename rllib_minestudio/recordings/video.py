"""Writing frames to a video or a folder of pictures, one by one, and reading them back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Protocol

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.files import Unfinished
from rllib_minestudio.foundation.recording_options import RecordingForm

FRAMES_PER_SECOND = 20
"""Minecraft's ticks per second, at which a video plays at the game's speed."""

LOSSLESS = 0
"""The `crf` that preserves every bit (in RGB, which browsers do not play)."""

_HALF_A_FRAME = 0.002
"""Seconds, at the most frames per second that are written."""

_SMPTE170M, _BT709, _LIMITED_RANGE = 6, 1, 1
"""ISO/IEC 23091-2 code points. The matrix is the one with which swscale converts RGB; if it is not
given, players guess it from the picture's height."""

LARGEST_SIDE = 4096
"""Limit on the sides of frames that are read, in pixels: the largest that the environment renders.
A file of a few bytes can claim any size."""

Frame = NDArray[np.uint8]
"""(height, width, 3) RGB."""


class UnreadableFramesError(OSError):
    """A file is not a video or picture, is damaged, or claims to be too large."""


class FrameSink(Protocol):
    """Stores the frames of an episode.

    Attributes:
        path: The file or folder that holds the frames after `close`.
    """

    path: Path

    def add(self, frame: Frame) -> None:
        """Append one frame."""

    def close(self) -> None:
        """Finish what was written."""

    def discard(self) -> None:
        """Close without leaving anything."""


@dataclass(frozen=True)
class VideoOptions:
    """How frames are shown and stored.

    Attributes:
        media: `h264`, one mp4 file, or `jpeg`, a folder of pictures.
        fps: Frames per second of playback.
        crf: x264's constant rate factor; 0 is lossless.
        preset: x264's trade-off between speed and size. The default takes a quarter of the time of
            `veryfast`, for files that are half as large again.
        overlay: Whether to add a strip of keys and numbers below each frame.
    """

    media: str = RecordingForm.media
    fps: int = RecordingForm.fps
    crf: int = RecordingForm.crf
    preset: str = RecordingForm.preset
    overlay: bool = RecordingForm.overlay

    def sink(self, video: Path, pictures: Path, picture: str) -> FrameSink:
        """Return a sink that stores frames according to these options.

        Args:
            video: Path of the file, if it is a video.
            pictures: Path of the folder, if it is one of pictures.
            picture: Format of a picture's name, with a field for its number.
        """
        if self.media == "jpeg":
            return PictureFolder(pictures, picture)
        return VideoWriter(video, self.fps, crf=self.crf, preset=self.preset)


class VideoWriter:
    """Encodes RGB frames as H.264, one by one, with only the current frame in memory.

    The video is written to a hidden file in the same folder, which is renamed to `path` when the
    writer is closed. A crash or an exception therefore never leaves a broken video at `path`.

        with VideoWriter("agent.mp4") as video:
            video.add(frame)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fps: int = FRAMES_PER_SECOND,
        *,
        crf: int = 28,
        preset: str = "veryfast",
    ) -> None:
        """Prepare to write; the file is opened with the first frame, which sets its size.

        Args:
            path: Path of the finished video; its folder is created.
            fps: Frames per second of playback.
            crf: x264's constant rate factor: 0 is lossless, 18 hardly distinguishable, 28 small
                (about 5 kB per frame at 640x360), 51 worst.
            preset: x264's trade-off between speed and size, from `ultrafast` to `veryslow`.
        """
        self.path = Path(path)
        self.frame_count = 0
        self._file = Unfinished(self.path)
        self._fps = fps
        self._crf = crf
        self._preset = preset
        self._container: av.container.OutputContainer | None = None
        self._stream: av.VideoStream | None = None

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the video, or discard it if the block raised an exception."""
        if kind is None:
            self.close()
        else:
            self.discard()

    def add(self, frame: Frame) -> None:
        """Append one frame.

        Args:
            frame: (height, width, 3) uint8 RGB; both sides even, as H.264 requires.

        Raises:
            InvalidOptionsError: The frame's shape cannot be encoded, or differs from the first's.
        """
        if self._container is None:
            self._open(frame)
        assert self._container is not None and self._stream is not None
        height, width = frame.shape[:2]
        if (width, height) != (self._stream.width, self._stream.height):
            raise InvalidOptionsError(
                f"every frame of a video has one size: got {width}x{height} after "
                f"{self._stream.width}x{self._stream.height}."
            )
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        for packet in self._stream.encode(picture):
            self._container.mux(packet)
        self.frame_count += 1

    def close(self) -> None:
        """Flush the encoder and rename the file to `path`; without frames there is no file."""
        if self._container is None or self._stream is None:
            return
        for packet in self._stream.encode(None):
            self._container.mux(packet)
        self._container.close()
        self._container = self._stream = None
        self._file.complete()

    def discard(self) -> None:
        """Close without leaving a file."""
        if self._container is not None:
            try:
                self._container.close()
            finally:  # a full disk makes closing fail, too
                self._container = self._stream = None
                self._file.discard()

    def _open(self, frame: Frame) -> None:
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.shape[0] % 2 or frame.shape[1] % 2:
            raise InvalidOptionsError(
                f"a video frame is (height, width, 3) with even height and width, "
                f"got {frame.shape}."
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._container = av.open(str(self._file.partial), "w", format="mp4")
        if self._crf == LOSSLESS:
            stream = self._container.add_stream(
                "libx264rgb",
                rate=Fraction(self._fps),
                options={"preset": self._preset, "qp": "0"},
            )
            stream.pix_fmt = "rgb24"
        else:
            stream = self._container.add_stream(
                "libx264",
                rate=Fraction(self._fps),
                options={"preset": self._preset, "crf": str(self._crf)},
            )
            stream.pix_fmt = "yuv420p"
            context = stream.codec_context
            context.colorspace = _SMPTE170M
            context.color_primaries = context.color_trc = _BT709
            context.color_range = _LIMITED_RANGE
        stream.height, stream.width = frame.shape[:2]
        stream.thread_count = 1
        self._stream = stream


class PictureFolder:
    """Writes each frame as a JPEG file, in a folder that is renamed to `path` when complete.

    Args:
        path: Path of the finished folder.
        name: Format of the files' names, with a field for the frame's number.
    """

    QUALITY = 90

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.frame_count = 0
        self._name = name
        self._folder = Unfinished(path)

    def add(self, frame: Frame) -> None:
        """Append one frame, (height, width, 3) uint8 RGB of any size."""
        from PIL import Image  # imported here because videos do not need it

        if not self.frame_count:
            self._folder.partial.mkdir(parents=True)
        file = self._folder.partial / self._name.format(self.frame_count)
        Image.fromarray(frame).save(file, quality=self.QUALITY, subsampling=0)
        self.frame_count += 1

    def close(self) -> None:
        """Rename the folder to `path`; without frames there is no folder."""
        if self.frame_count:
            self._folder.complete()

    def discard(self) -> None:
        """Remove what was written."""
        self._folder.discard()


def read_video(path: Path, size: tuple[int, int] | None = None, start: int = 0) -> Iterator[Frame]:
    """Decode a video frame by frame.

    Args:
        path: The file.
        size: (width, height) to scale to; None keeps the video's.
        start: Number of the first frame to yield. Decoding begins at the key frame before it.

    Yields:
        (height, width, 3) uint8 RGB.
    """
    # `file:` keeps FFmpeg from reading a name as a protocol, or as a list of other files.
    with av.open(f"file:{path}", format="mp4") as container:
        if not container.streams.video:
            raise UnreadableFramesError("it holds no video")
        stream = container.streams.video[0]
        codec = stream.codec_context
        if codec is None:
            raise UnreadableFramesError("its codec is unknown")
        _check_size(codec.width, codec.height)
        # Shared by all pictures: setting one up takes longer than converting a small picture.
        reformatter = VideoReformatter()
        seconds = Fraction(start) / (stream.average_rate or FRAMES_PER_SECOND)
        if start and stream.time_base:
            container.seek(int(seconds / stream.time_base), stream=stream)
        for picture in container.decode(stream):
            if start and (picture.time or 0.0) < float(seconds) - _HALF_A_FRAME:
                continue
            _check_size(picture.width, picture.height)
            width, height = size or (picture.width, picture.height)
            rgb = reformatter.reformat(picture, width=width, height=height, format="rgb24")
            yield np.asarray(rgb.to_ndarray(), np.uint8)


FILM_WIDTH, FILM_CRF = 426, 30
"""Of a film to be sent: about a megabyte for half a minute."""


def small_film(path: Path) -> bytes:
    """Return an mp4 file of a video in at most `FILM_WIDTH` columns, to be embedded or sent.

    Args:
        path: The video, an mp4 file.

    Returns:
        The file's bytes: its own if it is small already.
    """
    with av.open(f"file:{path}", format="mp4") as container:
        stream = container.streams.video[0]
        width, height = stream.codec_context.width, stream.codec_context.height
        fps = round(float(stream.average_rate or FRAMES_PER_SECOND))
    if width <= FILM_WIDTH:
        return path.read_bytes()
    size = FILM_WIDTH, round(height * FILM_WIDTH / width / 2) * 2
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder, path.name)
        with VideoWriter(film, fps, crf=FILM_CRF) as writer:
            for frame in read_video(path, size):
                writer.add(frame)
        return film.read_bytes()


def read_pictures(files: Iterable[Path], size: tuple[int, int] | None = None) -> Iterator[Frame]:
    """Decode pictures in the given order; like `read_video`."""
    from PIL import Image

    for file in files:
        if not file.is_file():
            raise UnreadableFramesError(f"{file.name} is not a regular file")
        try:
            with Image.open(file, formats=("JPEG", "PNG")) as picture:
                _check_size(*picture.size)
                rgb = picture.convert("RGB")
                frame = np.asarray(rgb if size in (None, rgb.size) else rgb.resize(size))
        # A damaged picture makes PIL raise nearly anything.
        except Exception as error:
            raise UnreadableFramesError(f"{file.name} cannot be decoded: {error}") from error
        yield frame


def _check_size(width: int, height: int) -> None:
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE):
        raise UnreadableFramesError(
            f"its frames are {width}x{height}; they may have {LARGEST_SIDE} pixels a side"
        )
