"""Writes one episode as it is played; the folder appears when the episode is complete."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.errors import RecordingError
from rllib_minestudio.plain_values import plain
from rllib_minestudio.recording_form import RecordingForm
from rllib_minestudio.recordings.columns import Columns
from rllib_minestudio.recordings.failures import attempt, reporting
from rllib_minestudio.recordings.infos import InfoLines
from rllib_minestudio.recordings.layout import (
    EPISODE_FILE,
    FORMAT,
    FRAME_NAME,
    FRAMES_FOLDER,
    INFOS_FILE,
    OBSERVATIONS,
    STEPS_FILE,
    VERSION,
    VIDEO_FILE,
)
from rllib_minestudio.recordings.observations import ObservationColumns
from rllib_minestudio.recordings.video import (
    Frame,
    FrameSink,
    PictureFolder,
    VideoWriter,
)
from rllib_minestudio.whole_file import Unfinished


@dataclass(frozen=True)
class VideoOptions:
    """How frames are stored.

    Attributes:
        media: `h264`, one mp4 file, or `jpeg`, a folder of pictures.
        fps: Frames per second of playback.
        crf: x264's constant rate factor; 0 is lossless.
        preset: x264's trade of speed for size. The default costs a quarter of what `veryfast`
            costs, and files a half larger.
    """

    media: str = RecordingForm.media
    fps: int = RecordingForm.fps
    crf: int = RecordingForm.crf
    preset: str = RecordingForm.preset

    def sink(self, folder: Path) -> FrameSink:
        """Return what writes frames into `folder`."""
        if self.media == "jpeg":
            return PictureFolder(folder / FRAMES_FOLDER, FRAME_NAME)
        return VideoWriter(folder / VIDEO_FILE, self.fps, crf=self.crf, preset=self.preset)


class RecordingWriter:
    """Streams an episode into a hidden folder beside `path`, and renames it at the end.

    In memory are the present frame, the last info, and per step 13 to 17 bytes and what was
    observed besides the frame. Whatever kills the
    process leaves a hidden folder, which readers pass over, and never half a recording.

    Example:
        >>> writer = RecordingWriter(Path("out/episode-00003"))
        >>> writer.begin(first_frame, first_info)
        >>> writer.add(action, reward, terminated, truncated, frame=next_frame, info=next_info)
        >>> writer.finish({"seed": 3, "success": True})
    """

    def __init__(self, path: Path, video: VideoOptions | None = None) -> None:
        """Create the hidden folder.

        Args:
            path: The recording's folder; one of the same name is replaced in the end.
            video: How frames are stored.

        Raises:
            RecordingError: Nothing can be written there.
        """
        self.path = path
        self._video = video or VideoOptions()
        self._folder = Unfinished(path)
        self._columns = Columns()
        self._observations = ObservationColumns()
        self._return = 0.0
        self._size: tuple[int, int] | None = None
        with reporting(path):
            self._folder.remove_abandoned()
            self._folder.partial.mkdir(parents=True)
            self._infos = InfoLines(self._folder.partial / INFOS_FILE)
        self._frames = self._video.sink(self._folder.partial)

    def begin(self, frame: Frame, info: Mapping[str, Any]) -> None:
        """Write what the reset showed: a (height, width, 3) uint8 RGB frame and its info."""
        with reporting(self.path, self.discard):
            self._size = (frame.shape[1], frame.shape[0])
            self._frames.add(frame)
            self._infos.add(info)

    def add(
        self,
        action: Mapping[str, Any],
        reward: float,
        terminated: bool,
        truncated: bool,
        *,
        frame: Frame,
        info: Mapping[str, Any],
        value: float = math.nan,
        kl: float | None = None,
        seen: Mapping[str, Any] | None = None,
    ) -> None:
        """Write one step.

        Args:
            action: What was done, tokens or keys (see `Columns.add`).
            reward: What it earned.
            terminated: Whether it ended the episode.
            truncated: Whether it cut the episode off.
            frame: What was seen after it.
            info: What was known after it.
            value: The policy's value of the frame before; NaN if not told.
            kl: Its divergence from a prior there; None if there is no prior.
            seen: What was observed before the action besides the frame, name -> array; of the
                same names, shapes and dtypes in every step.

        Raises:
            RecordingError: The disk is full, the folder has gone, or an observation is not like
                the first, or all are too large; nothing is left of the recording.
        """
        try:
            self._observations.add(seen or {})
        except ValueError as error:
            self.discard()
            raise RecordingError(f"{str(self.path)!r} cannot be recorded: {error}.") from error
        with reporting(self.path, self.discard):
            self._columns.add(action, reward, terminated, truncated, value, kl)
            self._frames.add(frame)
            self._infos.add(info)
        self._return += reward

    def finish(self, facts: Mapping[str, Any]) -> Path:
        """Complete the recording and give it its name.

        Args:
            facts: What `EPISODE_FILE` is to say besides length, return and the video's size.

        Returns:
            The recording's folder.

        Raises:
            RecordingError: It cannot be completed; nothing is left of it.
        """
        with reporting(self.path, self.discard):
            self._frames.close()
            self._infos.close()
            columns = {**self._columns.arrays(), **self._observations.arrays()}
            np.savez_compressed(self._folder.partial / STEPS_FILE, **columns)  # type: ignore[arg-type]
            text = json.dumps(plain(self._facts(facts)), indent=2)
            (self._folder.partial / EPISODE_FILE).write_text(text + "\n")
            self._folder.complete()
        return self.path

    def discard(self) -> None:
        """Stop without leaving anything."""
        attempt(self._frames.discard, self._infos.close)
        self._folder.discard()

    def _facts(self, given: Mapping[str, Any]) -> dict[str, Any]:
        width, height = self._size or (0, 0)
        return {
            "format": FORMAT,
            "version": VERSION,
            "length": len(self._columns),
            "return": self._return,
            **given,
            "keys": self._columns.keys,
            OBSERVATIONS: self._observations.description(),
            "video": {
                **given.get("video", {}),
                "media": self._video.media,
                "width": width,
                "height": height,
                "fps": self._video.fps,
                "crf": self._video.crf,
            },
        }
