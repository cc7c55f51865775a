"""Streams frames into an mp4 file that exists only once it is complete."""

import os
from fractions import Fraction
from pathlib import Path
from types import TracebackType

import av
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import InvalidOptionsError

FRAMES_PER_SECOND = 20
"""Minecraft's ticks per second: the video plays at the game's speed."""

ENCODER_OPTIONS = {"preset": "veryfast", "crf": "28"}
"""x264's speed and quality; about 5 kB a frame at 640x360."""


class VideoWriter:
    """Encodes RGB frames as H.264, one by one; nothing but the current frame is in memory.

    The stream goes to a hidden file beside `path`, which takes its name when the writer is
    closed. A crash or an exception therefore never leaves a broken video under `path`.

        with VideoWriter("agent.mp4") as video:
            video.add(frame)
    """

    def __init__(self, path: str | os.PathLike[str], fps: int = FRAMES_PER_SECOND) -> None:
        """Prepare to write; the file is opened with the first frame, which sets its size.

        Args:
            path: Where the finished video will be; its folder is created.
            fps: Frames per second of playback.
        """
        self.path = Path(path)
        self.frame_count = 0
        self._partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        self._fps = fps
        self._container: av.container.OutputContainer | None = None
        self._stream: av.VideoStream | None = None

    def __enter__(self) -> "VideoWriter":
        """Return the writer itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the video, or throw it away if the block raised."""
        if kind is None:
            self.close()
        else:
            self.discard()

    def add(self, frame: NDArray[np.uint8]) -> None:
        """Append one frame.

        Args:
            frame: (height, width, 3) RGB, uint8; both sides even, as H.264 needs.

        Raises:
            InvalidOptionsError: The frame's shape is not encodable, or differs from the first's.
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
        """Write what the encoder still holds and give the file its name; no frames, no file."""
        if self._container is None or self._stream is None:
            return
        for packet in self._stream.encode(None):
            self._container.mux(packet)
        self._container.close()
        self._container = self._stream = None
        os.replace(self._partial, self.path)

    def discard(self) -> None:
        """Close without leaving a file."""
        if self._container is not None:
            self._container.close()
            self._container = self._stream = None
            self._partial.unlink(missing_ok=True)

    def _open(self, frame: NDArray[np.uint8]) -> None:
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.shape[0] % 2 or frame.shape[1] % 2:
            raise InvalidOptionsError(
                f"a video frame is (height, width, 3) with even height and width, "
                f"got {frame.shape}."
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._container = av.open(str(self._partial), "w", format="mp4")
        self._stream = self._container.add_stream(
            "libx264", rate=Fraction(self._fps), options=ENCODER_OPTIONS
        )
        self._stream.height, self._stream.width = frame.shape[:2]
        self._stream.pix_fmt = "yuv420p"
        self._stream.thread_count = 1
