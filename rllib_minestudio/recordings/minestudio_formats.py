"""Two of MineStudio's episode formats, for its own tools; `minestudio_dataset` has the third.

The layouts are those of MineStudio 1.1.6, which holds an episode in memory until its end; here the
files are streamed. Pickle is MineStudio's choice: load such files only if you trust their source.
"""

from __future__ import annotations

import os
import pickle
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.foundation.episode_info import POV
from rllib_minestudio.foundation.files import Unfinished
from rllib_minestudio.foundation.observations import IMAGE
from rllib_minestudio.recordings.layout import Layout, RecordedStep, Sight, to_json
from rllib_minestudio.recordings.video import (
    Frame,
    VideoOptions,
    VideoWriter,
)

PROTOCOL = 2
"""The newest protocol whose memo is addressed by explicit numbers: a separately pickled object,
whose numbers start from 0 again, can be inserted into a list that is being written."""

_HEADER = pickle.PROTO + bytes([PROTOCOL])
_CAMERA = "camera"


class PickledList:
    """A pickled list that is written element by element, without keeping it in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._file.write(_HEADER + pickle.EMPTY_LIST)

    def append(self, element: Any) -> None:
        """Append one element."""
        pickled = pickle.dumps(element, PROTOCOL)
        self._file.write(pickled[len(_HEADER) : -len(pickle.STOP)] + pickle.APPEND)

    def close(self) -> None:
        """Finish the list; closing it again has no effect."""
        if not self._file.closed:
            self._file.write(pickle.STOP)
            self._file.close()


# ---------------------------------------------------------------- inference


class InferenceLayout(Layout):
    """The files of MineStudio's inference worker (`Worker.save_to_file` in inference/generator).

        info_<id>.pkl     list of N + 1 infos, without the frame
        action_<id>.pkl   list of N environment actions, {"attack": (), ..., "camera": (2,)}
        video_<id>.mp4    N + 1 frames at 30 a second, or images_<id>/0.jpeg, 1.jpeg, ...

    The id is derived from the recording's name; the infos are moved last. Actions are keys and
    degrees whatever the agent's actions are: MineStudio's simulator overwrites the tokens in the
    agent's own dict before its worker saves it.
    """

    takes_keys = True

    @staticmethod
    def place_of(path: Path) -> Path:
        """Return the file of infos."""
        return path.with_name(f"info_{uuid.uuid5(uuid.NAMESPACE_OID, path.name)}.pkl")

    _VIDEO = VideoOptions(fps=30, crf=28, preset="veryfast")

    def __init__(self, path: Path, video: VideoOptions) -> None:
        self.path = path
        name = uuid.uuid5(uuid.NAMESPACE_OID, path.name)
        self.partial = Unfinished(path.with_name(str(name))).partial
        self.partial.mkdir(parents=True, exist_ok=True)
        self._infos = PickledList(self.partial / f"info_{name}.pkl")
        self._actions = PickledList(self.partial / f"action_{name}.pkl")
        self.files = (self._actions, self._infos)
        self.frames = replace(self._VIDEO, media=video.media).sink(
            self.partial / f"video_{name}.mp4", self.partial / f"images_{name}", "{}.jpeg"
        )

    def see(self, sight: Sight) -> None:
        """Write the frame that is shown, and the info without its frame."""
        self.frames.add(sight.shown)
        self._infos.append({name: value for name, value in sight.info.items() if name != POV})

    def act(self, step: RecordedStep) -> None:
        """Write the action."""
        self._actions.append({name: np.asarray(value) for name, value in step.action.items()})

    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Return the files and their final paths; the format has no place for facts."""
        parts = (self.frames, self._actions, self._infos)
        return [(part.path, self.path.with_name(part.path.name)) for part in parts]


# ---------------------------------------------------------------- play

_CRF = 23
"""x264's default, which MineStudio's RecordCallback uses."""

_FRAMES = (POV, IMAGE)
"""Entries of an info that are frames."""

_TAKEN = re.compile(r"\.?episode_(\d{1,9})\.(?:mp4|partial)")
"""Videos, and hidden folders that reserve the names of unfinished ones."""


@dataclass(frozen=True)
class Contents:
    """What is written besides the video.

    Attributes:
        actions: Whether to write the actions, as JSON.
        infos: Whether to write the infos, as JSON.
        frames: Whether to write the frames, as a NumPy array.
    """

    actions: bool = False
    infos: bool = False
    frames: bool = False


class PlayLayout(Layout):
    """The files of MineStudio's RecordCallback (simulator/callbacks/record.py).

    For N steps, each has N + 1 entries:

        episode_<number>.mp4           frames
        episode_<number>_action.json   [{}, {"attack": 0, ..., "camera": [0.0, 1.6]}, ...]
        episode_<number>_info.json     infos, without frames
        episode_<number>.npy           the same frames, uint8 (N + 1, height, width, 3)

    The video is moved last.
    """

    takes_keys = True

    def __init__(self, path: Path, video: VideoOptions, contents: Contents) -> None:
        """Create the folder of `path`, and open the files.

        Args:
            path: A path whose name is `play_name(number)`. A higher number is used if the folder
                has a video with this or a higher one, or another process is writing one.
            video: Only `fps` is used.
            contents: What is written besides the video.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.partial = _claimed(path.parent, play_number(path))
        hidden = str(self.partial / self.path.name)
        self.frames = VideoWriter(f"{hidden}.mp4", video.fps, crf=_CRF)
        self._actions = _JsonList(Path(f"{hidden}_action.json")) if contents.actions else None
        self._infos = _JsonList(Path(f"{hidden}_info.json")) if contents.infos else None
        self._array = _FrameArray(Path(f"{hidden}.npy")) if contents.frames else None
        parts = (self._actions, self._infos, self._array)
        self.files = tuple(part for part in parts if part is not None)
        if self._actions is not None:
            self._actions.append({})  # no action precedes the first frame

    def see(self, sight: Sight) -> None:
        """Write the frame, for the array and for the video, and the info without frames."""
        self.frames.add(sight.shown)
        if self._array is not None:
            self._array.append(sight.frame)
        if self._infos is not None:
            info = {key: value for key, value in sight.info.items() if key not in _FRAMES}
            self._infos.append(info)

    def act(self, step: RecordedStep) -> None:
        """Write the action."""
        if self._actions is not None:
            self._actions.append(step.action)

    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Return the files and their final paths; the format has no place for facts."""
        files = sorted(self.partial.iterdir(), key=lambda file: file == self.frames.path)
        return [(file, self.path.with_name(file.name)) for file in files]


def play_name(number: int) -> str:
    """Return the stem of the names of an episode's files."""
    return f"episode_{number}"


def play_number(path: Path) -> int:
    """Return the number in a path whose name is from `play_name`."""
    return int(path.name.removeprefix("episode_"))


def _claimed(folder: Path, at_least: int) -> tuple[Path, Path]:
    """Return a path with an unused higher number, and the hidden folder that reserves it."""
    taken = [int(match[1]) for match in map(_TAKEN.fullmatch, os.listdir(folder)) if match]
    number = max([at_least, *(other + 1 for other in taken)])
    while True:
        partial = folder / f".{play_name(number)}.partial"
        try:
            partial.mkdir()
        except FileExistsError:  # another process was faster
            number += 1
        else:
            return folder / play_name(number), partial


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

    The header states the number of frames, so it is written again at the end, in the same size.
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
