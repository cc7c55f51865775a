"""MineStudio's three formats of episodes, for MineStudio's own tools.

The layouts are those of MineStudio 1.1.6. Theirs hold everything in memory until the end; these
stream. Pickle is MineStudio's choice: load such files only if you trust where they come from.
"""

from __future__ import annotations

import os
import pickle
import re
import uuid
from array import array
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
    FRAMES_PER_SECOND,
    Frame,
    VideoOptions,
    VideoWriter,
)

PROTOCOL = 2
"""The newest pickle protocol whose memo is addressed by number: an object pickled alone can be
put into a list under way, where it numbers its memo from 0 again."""

_HEADER = pickle.PROTO + bytes([PROTOCOL])
_CAMERA = "camera"


class PickledList:
    """A pickle of a list that is written element by element.

    `pickle.load` gives the list; nothing of it is held in memory here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._file.write(_HEADER + pickle.EMPTY_LIST)

    def append(self, element: Any) -> None:
        """Append one element."""
        pickled = pickle.dumps(element, PROTOCOL)
        self._file.write(pickled[len(_HEADER) : -len(pickle.STOP)] + pickle.APPEND)

    def close(self) -> None:
        """End the list."""
        if not self._file.closed:
            self._file.write(pickle.STOP)
            self._file.close()


# ---------------------------------------------------------------- inference


class InferenceLayout(Layout):
    """What MineStudio's inference worker writes (`Worker.save_to_file` in inference/generator).

        info_<id>.pkl     list of N + 1 infos, without the frame
        action_<id>.pkl   list of N environment actions, {"attack": (), ..., "camera": (2,)}
        video_<id>.mp4    N + 1 frames at 30 a second, or images_<id>/0.jpeg, 1.jpeg, ...

    The id derives from the recording's name; infos appear last. Actions are keys and degrees
    whatever the agent gave: MineStudio's simulator writes them over the tokens in the agent's own
    dict, before its worker saves that.
    """

    takes_keys = True
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
        """Write the frame that is shown, and the info without one."""
        self.frames.add(sight.shown)
        self._infos.append({name: value for name, value in sight.info.items() if name != POV})

    def act(self, step: RecordedStep) -> None:
        """Write the action."""
        self._actions.append({name: np.asarray(value) for name, value in step.action.items()})

    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Put everything into one folder; there is no room for facts."""
        parts = (self.frames, self._actions, self._infos)
        return [(part.path, self.path.with_name(part.path.name)) for part in parts]


# ---------------------------------------------------------------- datasets

FRAME_SIZE = (640, 360)
"""Width and height of the only frames that MineStudio's converter of datasets does not skip."""


class DatasetLayout(Layout):
    """What MineStudio's dataset tools take as their source files.

    The converters (data/minecraft/callbacks) search for these, and its KernelManager then reads
    the lmdb files that they make:

        videos/<id>-0.mp4       N frames of 640x360, what was seen before each action
        actions/<id>-0.pkl      {key: (N,) uint8, ..., "camera": (N, 2) float32}, a dict of columns
        meta_info/<id>-0.pkl    list of N infos, one beside each frame

    The id derives from the recording's name; infos appear last. The converters take a file's name
    for an episode's name and a part's number, hence the "-0", and count frames and actions in
    whole chunks: an episode whose last frame had no action would be left out in silence whenever
    that frame fills a chunk.
    """

    takes_keys = True

    def __init__(self, path: Path, video: VideoOptions) -> None:
        self.path = path
        self._name = f"{uuid.uuid5(uuid.NAMESPACE_OID, path.name)}-0"
        self.partial = Unfinished(path.with_name(self._name)).partial
        self.partial.mkdir(parents=True, exist_ok=True)
        self.frames = VideoWriter(self.partial / "videos.mp4", FRAMES_PER_SECOND)
        self._infos = PickledList(self.partial / "meta_info.pkl")
        self.files = (self._infos,)
        self._keys: dict[str, array] = {}
        self._degrees = array("f")
        self._sight: Sight | None = None

    def see(self, sight: Sight) -> None:
        """Remember it until it is known what was done then."""
        self._sight = replace(sight, info=dict(sight.info))

    def act(self, step: RecordedStep) -> None:
        """Write what was seen before, and remember the action."""
        assert self._sight is not None
        self.frames.add(self._sight.shown)
        self._infos.append(self._sight.info)
        for key, pressed in step.action.items():
            if key != _CAMERA:
                self._keys.setdefault(key, array("B")).append(int(np.asarray(pressed).item()))
        self._degrees.extend(float(angle) for angle in step.action[_CAMERA])

    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Write the actions; there is no room for facts."""
        columns = {key: np.asarray(column) for key, column in self._keys.items()}
        columns[_CAMERA] = np.reshape(np.asarray(self._degrees), (-1, 2))
        (self.partial / "actions.pkl").write_bytes(pickle.dumps(columns, PROTOCOL))
        folder = self.path.parent
        return [
            (self.partial / f"{kind}{suffix}", folder / kind / f"{self._name}{suffix}")
            for kind, suffix in (("videos", ".mp4"), ("actions", ".pkl"), ("meta_info", ".pkl"))
        ]


def files_of(info_file: Path) -> list[Path]:
    """Return the existing files of the episode whose infos are in `info_file`, that included."""
    if info_file.stem.startswith("info_"):
        episode_id = info_file.stem.removeprefix("info_")
        return sorted(info_file.parent.glob(f"*_{episode_id}*"))
    return sorted(info_file.parents[1].glob(f"*/{info_file.stem}.*"))  # of a dataset


# ---------------------------------------------------------------- play

_CRF = 23
"""x264's own default, with which MineStudio encodes what its RecordCallback sees."""

_FRAMES = (POV, IMAGE)
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


class PlayLayout(Layout):
    """What MineStudio's RecordCallback writes (simulator/callbacks/record.py).

    There are N + 1 entries for N steps:

        episode_<number>.mp4           frames
        episode_<number>_action.json   [{}, {"attack": 0, ..., "camera": [0.0, 1.6]}, ...]
        episode_<number>_info.json     infos, without frames
        episode_<number>.npy           the same frames, uint8 (N + 1, height, width, 3)

    The video appears last.
    """

    takes_keys = True

    def __init__(self, path: Path, video: VideoOptions, contents: Contents) -> None:
        """Open the files in the folder of `path`, which is created.

        Args:
            path: Its name is `play_name(number)`; the number becomes a higher one if the folder
                has, or some process is about to write, a video with this or a higher one.
            video: Of these options, `fps` counts.
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
            self._actions.append({})  # nothing was done before the first frame

    def see(self, sight: Sight) -> None:
        """Write the frame, as it is and as it is shown, and the info without one."""
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
        """Put everything into one folder; there is no room for facts."""
        files = sorted(self.partial.iterdir(), key=lambda file: file == self.frames.path)
        return [(file, self.path.with_name(file.name)) for file in files]


def play_name(number: int) -> str:
    """Return what the files of an episode are called, before their suffixes."""
    return f"episode_{number}"


def play_number(path: Path) -> int:
    """Return the number in what `play_name` gave."""
    return int(path.name.removeprefix("episode_"))


def _claimed(folder: Path, at_least: int) -> tuple[Path, Path]:
    """Return a name with a number higher than all others, and a hidden folder that claims it."""
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
