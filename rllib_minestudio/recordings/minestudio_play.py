"""Writes what MineStudio's RecordCallback writes of an episode.

The layout is that of minestudio 1.1.6 (simulator/callbacks/record.py), N + 1 entries for N steps:

    episode_<number>.mp4           frames
    episode_<number>_action.json   [{}, {"attack": 0, ..., "camera": [0.0, 1.6]}, ...]
    episode_<number>_info.json     infos, without frames
    episode_<number>.npy           the same frames, uint8 (N + 1, height, width, 3)

Theirs holds everything in memory until the end of the episode; this one streams.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.recordings.failures import attempt, reporting
from rllib_minestudio.recordings.layout import to_json
from rllib_minestudio.recordings.video import Frame, VideoWriter
from rllib_minestudio.whole_file import put_in_place

_CRF = 23
"""x264's own default, with which MineStudio encodes."""

_FRAMES = ("pov", "image")
"""Entries of an info that are pictures."""

_TAKEN = re.compile(r"\.?episode_(\d{1,9})\.(?:mp4|partial)")
"""Videos, and what claims their names until they are complete."""


@dataclass(frozen=True)
class Contents:
    """What is written besides the video.

    Attributes:
        actions: The actions, as JSON.
        infos: The infos, as JSON.
        frames: The frames, as a NumPy array.
    """

    actions: bool = False
    infos: bool = False
    frames: bool = False


class _JsonList:
    """A JSON list that is written element by element."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._before = "["

    def append(self, element: Any) -> None:
        self._file.write(f"{self._before}{to_json(element)}")
        self._before = ",\n"

    def close(self) -> None:
        if not self._file.closed:
            self._file.write("[]" if self._before == "[" else "]")
            self._file.close()


class _FrameArray:
    """A `.npy` file of frames that is written frame by frame.

    Its header says how many there are, so it is written twice, with room for the number to grow.
    """

    _HEADER_BYTES = 128
    _MAGIC = b"\x93NUMPY\x01\x00"

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._shape: tuple[int, ...] = ()
        self._count = 0

    def append(self, frame: Frame) -> None:
        if not self._count:
            self._shape = frame.shape
            self._write_header()
        self._file.write(np.ascontiguousarray(frame).tobytes())
        self._count += 1

    def close(self) -> None:
        if not self._file.closed:
            self._file.seek(0)
            self._write_header()
            self._file.close()

    def _write_header(self) -> None:
        """Write the header of NumPy's format 1.0 (numpy.lib.format)."""
        shape = (self._count, *self._shape)
        told = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
        length = self._HEADER_BYTES - len(self._MAGIC) - 2
        text = f"{told:<{length - 1}}\n".encode("latin1")
        self._file.write(self._MAGIC + length.to_bytes(2, "little") + text)


class MineStudioPlayWriter:
    """Takes an episode step by step; its files appear when it is complete, the video last.

    Attributes:
        number: Of the episode, in the files' names.
    """

    def __init__(self, folder: Path, at_least: int, fps: int, contents: Contents) -> None:
        """Begin the files.

        Args:
            folder: Where they will be; it is created.
            at_least: The episode's number, in the files' names, unless the folder has, or some
                process is about to write, a video with this number or a higher one.
            fps: Frames per second of playback.
            contents: What is written besides the video.

        Raises:
            RecordingError: Nothing can be written there.
        """
        self._folder = folder
        self._actions: _JsonList | None = None
        self._infos: _JsonList | None = None
        self._array: _FrameArray | None = None
        with reporting(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self.number, self._partial = _claimed(folder, at_least)
            name = f"episode_{self.number}"
            if contents.actions:
                self._actions = _JsonList(self._partial / f"{name}_action.json")
            if contents.infos:
                self._infos = _JsonList(self._partial / f"{name}_info.json")
            if contents.frames:
                self._array = _FrameArray(self._partial / f"{name}.npy")
        self._video = VideoWriter(self._partial / f"{name}.mp4", fps, crf=_CRF)

    def add(
        self, frame: Frame, shown: Frame, action: Mapping[str, Any], info: Mapping[str, Any]
    ) -> None:
        """Write what was seen.

        Args:
            frame: What was seen, (height, width, 3) uint8 RGB.
            shown: The same as the video is to show it, perhaps with something written on it.
            action: What led to it; empty for the first frame.
            info: What was known then.

        Raises:
            RecordingError: The disk is full, or the folder has gone.
        """
        with reporting(self._folder, self.discard):
            self._video.add(shown)
            if self._array is not None:
                self._array.append(frame)
            if self._actions is not None:
                self._actions.append(action)
            if self._infos is not None:
                self._infos.append({key: info[key] for key in info if key not in _FRAMES})

    def finish(self) -> Path:
        """Complete the files.

        Returns:
            The video.

        Raises:
            RecordingError: They cannot be completed; nothing is left of them.
        """
        with reporting(self._folder, self.discard):
            for part in (self._actions, self._infos, self._array, self._video):
                if part is not None:
                    part.close()
            video = self._video.path.name
            for name in sorted(os.listdir(self._partial), key=lambda name: name == video):
                put_in_place(self._partial / name, self._folder / name)
            self._partial.rmdir()
        return self._folder / video

    def discard(self) -> None:
        """Stop without leaving anything."""
        parts = (self._actions, self._infos, self._array)
        attempt(self._video.discard, *(part.close for part in parts if part is not None))
        shutil.rmtree(self._partial, ignore_errors=True)


def _claimed(folder: Path, at_least: int) -> tuple[int, Path]:
    """Return a number that is higher than all others, and a hidden folder that claims it."""
    taken = [int(match[1]) for match in map(_TAKEN.fullmatch, os.listdir(folder)) if match]
    number = max([at_least, *(other + 1 for other in taken)])
    while True:
        partial = folder / f".episode_{number}.partial"
        try:
            partial.mkdir()
        except FileExistsError:  # another process was faster
            number += 1
        else:
            return number, partial
