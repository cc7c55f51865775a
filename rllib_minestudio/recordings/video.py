"""Writing frames to a video or a folder of pictures, one by one, and reading them back."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from io import BytesIO
from itertools import chain, count, islice, takewhile
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Literal, NamedTuple, Protocol

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.files import Unfinished
from rllib_minestudio.foundation.recording_options import RecordingForm

FRAMES_PER_SECOND = 20
"""Minecraft's ticks per second, at which a video plays at the game's speed."""

LOSSLESS = 0
"""The `crf` that preserves every bit (in RGB, which browsers do not play)."""

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


_MOST_REORDERED = 16
"""Frames by which H.264's order of decoding is ahead of that of showing, at most."""

Draw = Callable[[int, Frame], None]
"""Changes the frame of a number in place, (height, width, 3 or 4), of which three are RGB."""


def read_video(
    source: Path | BytesIO,
    size: tuple[int, int] | None = None,
    start: int = 0,
    step: int = 1,
    draw: Draw | None = None,
) -> Iterator[Frame]:
    """Decode a video frame by frame.

    Args:
        source: An mp4 file, or its bytes.
        size: (width, height) to scale to, see `scaled`; None keeps the video's.
        start: Number of the first frame, which is reached from the key frame before it.
        step: Distance between frames; those between are decoded, and neither converted nor scaled.
        draw: Called for each frame before it is scaled.

    Yields:
        (height, width, 3) uint8 RGB.

    Raises:
        UnreadableFramesError: It holds no video, or too large frames.
        OSError, av.error.FFmpegError: It cannot be opened, or is damaged.
    """
    with _opened(source) as container:
        # One video at a time is decoded per process: threads would only add their start to it.
        container.streams.video[0].thread_type = "NONE"
        pictures = islice(_pictures(container, start), 0, None, step)
        for number, picture in zip(count(start, step), pictures):
            _check_size(picture.width, picture.height)
            is_scaled = size not in (None, (picture.width, picture.height))
            frame = _pixels(picture, "rgba" if is_scaled else "rgb24")
            if draw is not None:
                draw(number, frame)
            yield scaled(frame, size) if is_scaled else frame


class _Converters(threading.local):
    """A thread's converters, shared by all videos that it decodes.

    Setting one up takes as long as converting a hundred small pictures, and the videos of a dataset
    are as short as 32.
    """

    MOST = 8

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, str], VideoReformatter] = {}

    def get(self, width: int, height: int, form: str) -> VideoReformatter:
        """Return the one for pictures of a size; another size would have it set up again."""
        kind = width, height, form
        if kind not in self._known:
            if len(self._known) == self.MOST:
                self._known.clear()
            self._known[kind] = VideoReformatter()
        return self._known[kind]


_converters = _Converters()


def _pixels(picture: av.VideoFrame, form: Literal["rgb24", "rgba"]) -> Frame:
    """Return a picture's pixels; as `rgba` it is converted faster, and not copied."""
    converter = _converters.get(picture.width, picture.height, form)
    rgb = converter.reformat(picture, format=form)
    if form == "rgb24":
        return np.asarray(rgb.to_ndarray(), np.uint8)
    lines = np.frombuffer(memoryview(rgb.planes[0]), np.uint8).reshape(rgb.height, -1, 4)
    return lines[:, : rgb.width]


class VideoFacts(NamedTuple):
    """What the header of an mp4 file tells.

    Attributes:
        frames: Number of frames that can be decoded.
        promised: Number of frames that the header lists; more, if the file is cut off.
        width: Their width.
        height: Their height.
        fps: Frames per second.
    """

    frames: int
    promised: int
    width: int
    height: int
    fps: float


def read_facts(path: Path) -> VideoFacts:
    """Read the header of an mp4 file, and none of its frames.

    Raises:
        UnreadableFramesError, OSError, av.error.FFmpegError: As `read_video`.
    """
    with _opened(path) as container:
        stream = container.streams.video[0]
        length, entries = path.stat().st_size, stream.index_entries
        whole = sum(1 for _ in takewhile(lambda e: e.pos + e.size <= length, entries))
        if whole < len(entries):
            whole = max(0, whole - _MOST_REORDERED)
        context = stream.codec_context
        fps = float(stream.average_rate or FRAMES_PER_SECOND)
        return VideoFacts(whole, len(entries), context.width, context.height, fps)


@contextmanager
def _opened(source: Path | BytesIO) -> Iterator[av.container.InputContainer]:
    # `file:` keeps FFmpeg from reading a name as a protocol, or as a list of other files.
    file = f"file:{source}" if isinstance(source, Path) else source
    with av.open(file, format="mp4") as container:
        if not container.streams.video:
            raise UnreadableFramesError("it holds no video")
        stream = container.streams.video[0]
        codec = stream.codec_context
        if codec is None:
            raise UnreadableFramesError("its codec is unknown")
        _check_size(codec.width, codec.height)
        yield container


def _pictures(container: av.container.InputContainer, start: int) -> Iterator[av.VideoFrame]:
    """Decode from frame `start` on, beginning with a key frame before it, if its number is known.

    Frames are numbered as they are shown, and the index lists the times of decoding. These are the
    same ascending times, but for a delay: if frame 0 is shown when frame d is decoded, then frame n
    is shown when frame n + d is decoded.
    """
    stream = container.streams.video[0]
    entries = stream.index_entries

    def decoded_at(time: int | None) -> int | None:
        place = -1 if time is None else entries.search_timestamp(time, any_frame=True)
        return place if place >= 0 and entries[place].timestamp == time else None

    first, frames = 0, container.decode(stream)
    if 0 < start < len(entries):
        container.seek(entries[start].timestamp, stream=stream)
        earliest = next(frames, None)
        delay = decoded_at(stream.start_time)
        place = decoded_at(earliest.pts) if earliest is not None else None
        if earliest and place is not None and delay is not None and place - delay <= start:
            first, frames = place - delay, chain([earliest], frames)
        else:
            container.seek(entries[0].timestamp, stream=stream)
            first, frames = 0, container.decode(stream)
    yield from islice(frames, start - first, None)


FILM_WIDTH, FILM_CRF = 426, 30
"""Of a film to be sent: about a megabyte for half a minute."""


def small_film(path: Path) -> bytes:
    """Return an mp4 file of a video in at most `FILM_WIDTH` columns, to be embedded or sent.

    Args:
        path: The video, an mp4 file.

    Returns:
        The file's bytes: its own if it is small already.
    """
    facts = read_facts(path)
    if facts.width <= FILM_WIDTH:
        return path.read_bytes()
    size = FILM_WIDTH, round(facts.height * FILM_WIDTH / facts.width / 2) * 2
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder, path.name)
        with VideoWriter(film, round(facts.fps), crf=FILM_CRF) as writer:
            for frame in read_video(path, size):
                writer.add(frame)
        return film.read_bytes()


def scaled(frame: Frame, size: tuple[int, int] | None) -> Frame:
    """Return a frame scaled by OpenCV's INTER_LINEAR, which made the frames that VPT saw.

    `resize_image` in OpenAI's agent.py, MineStudio's simulator and its `ImageKernelCallback` scale
    with it. It mixes the pixels next to each sampling point, without averaging: a frame scaled in
    another way looks smoother than those that a policy was trained on.

    Args:
        frame: (height, width, 3) uint8 RGB, or with a fourth channel, which is left out.
        size: (width, height); None, or the frame's own, returns it as it is.
    """
    height, width, channels = frame.shape
    if size in (None, (width, height)):
        return frame
    cv2 = _opencv()
    small: Frame = cv2.resize(frame, size, interpolation=cv2.INTER_LINEAR)
    return small if channels == 3 else cv2.cvtColor(small, cv2.COLOR_RGBA2RGB)


@cache
def _opencv() -> ModuleType:
    """Import OpenCV, which takes a while, and let it use one thread.

    A pool of threads would compete with other readers, and does not survive a fork.
    """
    import cv2

    cv2.setNumThreads(1)
    return cv2


def read_pictures(files: Iterable[Path], size: tuple[int, int] | None = None) -> Iterator[Frame]:
    """Decode pictures in the given order; like `read_video`."""
    from PIL import Image

    for file in files:
        if not file.is_file():
            raise UnreadableFramesError(f"{file.name} is not a regular file")
        try:
            with Image.open(file, formats=("JPEG", "PNG")) as picture:
                _check_size(*picture.size)
                frame = scaled(np.asarray(picture.convert("RGB")), size)
        # A damaged picture makes PIL raise nearly anything.
        except Exception as error:
            raise UnreadableFramesError(f"{file.name} cannot be decoded: {error}") from error
        yield frame


def _check_size(width: int, height: int) -> None:
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE):
        raise UnreadableFramesError(
            f"its frames are {width}x{height}; they may have {LARGEST_SIDE} pixels a side"
        )


# ---------------- a strip below a frame that shows the pressed keys, the camera's turn, and numbers
# This is the only overlay of this package's videos; it never covers the game's frame.

LEAST_WIDTH = 384
"""Narrower frames are enlarged by a whole factor, so that the strip is legible."""

_HEIGHT = 44
"""Height of the strip. This and all positions below are in pixels of a strip that is `LEAST_WIDTH`
wide; wider ones are scaled."""

_KEYS: dict[str, tuple[str, int, int, int]] = {
    "forward": ("W", 22, 4, 16),
    "left": ("A", 4, 23, 16),
    "back": ("S", 22, 23, 16),
    "right": ("D", 40, 23, 16),
    "jump": ("jump", 61, 4, 32),
    "sneak": ("sneak", 61, 23, 32),
    "sprint": ("sprint", 95, 4, 32),
    "inventory": ("inv", 95, 23, 32),
    "attack": ("attack", 132, 4, 32),
    "use": ("use", 132, 23, 32),
    "hotbar": ("1-9", 169, 4, 26),
    "drop": ("drop", 169, 23, 26),
}
"""Key -> (label, left, top, width). The nine hotbar keys share one place."""

_KEY_HEIGHT = 17
_ROUNDING = 3
_DIAL = (200, 4, 236, 40)
"""The camera's square: left, top, right, bottom."""
_DIAL_DEGREES = 10.0
"""Degrees of a turn that reaches the dial's edge."""
_KNOB, _NEEDLE = 2.5, 2
"""Radius of the knob, and width of the needle, that point in the direction of the turn."""

_COLUMNS = ((244, 313), (321, 380))
"""Left and right edge of each column of three numbers: names are left-aligned, values
right-aligned."""
_FIRST_LINE, _LINE = 9, 13
"""Vertical centre of a column's first number, and the distance to the next."""

_GROUND, _IDLE, _PRESSED = (24, 26, 30), (52, 56, 62), (255, 196, 61)
_LABEL, _PRESSED_LABEL, _VALUE = (150, 155, 162), (24, 26, 30), (255, 255, 255)
_FONT_SIZE = 10


def with_key_strip(frame: Frame, keys: Mapping[str, Any], numbers: Mapping[str, float]) -> Frame:
    """Return a frame with a strip below it.

    Args:
        frame: (height, width, 3) uint8 RGB.
        keys: Keys, 0 or 1, and `camera`, (pitch, yaw) in degrees; missing ones count as 0.
        numbers: Name -> value, at most six, such as the return and the value.

    Returns:
        A new frame with even sides, as H.264 requires: the frame, perhaps enlarged by a whole
        factor, with the strip below.
    """
    factor = -(-LEAST_WIDTH // frame.shape[1])
    if factor % 2 and (frame.shape[0] % 2 or frame.shape[1] % 2):
        factor += 1
    enlarged = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    return np.concatenate([enlarged, _strip(enlarged.shape[1], keys, numbers)])


def _strip(width: int, keys: Mapping[str, Any], numbers: Mapping[str, float]) -> Frame:
    strip = _idle(width).copy()
    pen = _Pen(strip)
    slots = [slot for slot in range(1, 10) if keys.get(f"hotbar.{slot}")]
    for key, (label, *_) in _KEYS.items():
        if keys.get(key):
            pen.key(key, label, pressed=True)
    if slots:
        pen.key("hotbar", str(slots[-1]), pressed=True)
    _draw_dial(pen, *map(float, keys.get("camera", (0.0, 0.0))))
    for place, (name, value) in enumerate(numbers.items()):
        (left, right), middle_y = _COLUMNS[place // 3], _FIRST_LINE + _LINE * (place % 3)
        pen.text((left, middle_y), name, _LABEL, "lm")
        pen.text((right, middle_y), _short(value), _VALUE, "rm")
    return np.asarray(strip)


@cache
def _idle(width: int) -> Image.Image:
    """Draw the background of all strips, with no key pressed."""
    strip = Image.new("RGB", (width, 2 * round(_HEIGHT * width / LEAST_WIDTH / 2)), _GROUND)
    pen = _Pen(strip)
    for key, (label, *_) in _KEYS.items():
        pen.key(key, label, pressed=False)
    pen.box(_DIAL, _IDLE)
    return strip


def _draw_dial(pen: _Pen, pitch: float, yaw: float) -> None:
    """Draw the camera's turn: yaw to the right points right, pitch down points down."""
    left, top, right, bottom = _DIAL
    middle = ((left + right) / 2, (top + bottom) / 2)
    reach = (right - left) / 2 - _KNOB - 1
    x, y = (
        centre + reach * max(-1.0, min(1.0, turn / _DIAL_DEGREES))
        for centre, turn in zip(middle, (yaw, pitch), strict=True)
    )
    pen.needle(middle, (x, y), _PRESSED if pitch or yaw else _LABEL)


class _Pen:
    """Draws shapes and text, scaled to the strip's width."""

    def __init__(self, strip: Image.Image) -> None:
        self._draw = ImageDraw.Draw(strip)
        self._scale = strip.width / LEAST_WIDTH
        self._font = _font(_FONT_SIZE * self._scale)

    def key(self, key: str, label: str, pressed: bool) -> None:
        _, left, top, width = _KEYS[key]
        self.box((left, top, left + width, top + _KEY_HEIGHT), _PRESSED if pressed else _IDLE)
        middle = (left + width / 2, top + _KEY_HEIGHT / 2)
        self.text(middle, label, _PRESSED_LABEL if pressed else _LABEL, "mm")

    def box(self, corners: tuple[float, ...], colour: tuple[int, int, int]) -> None:
        self._draw.rounded_rectangle(self._scaled(corners), _ROUNDING * self._scale, fill=colour)

    def text(
        self, place: tuple[float, float], text: str, colour: tuple[int, int, int], anchor: str
    ) -> None:
        x, y = self._scaled(place)
        self._draw.text((x, y), text, fill=colour, font=self._font, anchor=anchor)

    def needle(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        colour: tuple[int, int, int],
    ) -> None:
        x, y = end
        self._draw.line(self._scaled((*start, x, y)), colour, round(_NEEDLE * self._scale))
        knob = (x - _KNOB, y - _KNOB, x + _KNOB, y + _KNOB)
        self._draw.ellipse(self._scaled(knob), fill=colour)

    def _scaled(self, places: tuple[float, ...]) -> list[float]:
        return [place * self._scale for place in places]


@cache
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _short(number: float) -> str:
    """Format a number in about five characters."""
    if abs(number) >= 100:
        return f"{number:.0f}"
    return f"{round(number, 2 if abs(number) >= 1 else 3):g}"
