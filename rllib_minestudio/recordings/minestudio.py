"""Writes an episode the way MineStudio's inference worker does, for MineStudio's own tools.

The layout is that of `Worker.save_to_file` in MineStudio 1.1.6 (inference/generator):

    info_<id>.pkl     list of N + 1 infos, without the frame
    action_<id>.pkl   list of N environment actions, {"attack": (), ..., "camera": (2,)}
    video_<id>.mp4    N + 1 frames at 30 a second, or images_<id>/0.jpeg, 1.jpeg, ...

The actions are keys and degrees whatever the agent gave: MineStudio's simulator writes them over
the tokens in the agent's own dict, before its worker saves that. Theirs holds everything in memory
until the end; this one streams. Pickle is MineStudio's choice: load such files only if you trust
where they come from. What MineStudio's dataset tools read is in `minestudio_dataset`.
"""

from __future__ import annotations

import math
import pickle
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.recordings.failures import attempt, reporting
from rllib_minestudio.recordings.video import Frame, FrameSink, PictureFolder, VideoWriter
from rllib_minestudio.whole_file import Unfinished, put_in_place

FRAMES_PER_SECOND = 30
PROTOCOL = 2
"""The newest pickle protocol whose memo is addressed by number: an object pickled alone can be
put into a list under way, where it numbers its memo from 0 again."""

_POV = "pov"
"""What infos call a frame; MineStudio's worker takes it out of them and into the video."""

_HEADER = pickle.PROTO + bytes([PROTOCOL])


class PickledList:
    """A pickle of a list that is written element by element.

    `pickle.load` gives the list; nothing of it is held in memory here.
    """

    def __init__(self, path: Path) -> None:
        """Open `path` and begin an empty list."""
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


class MineStudioWriter:
    """Takes an episode as `RecordingWriter` does, and writes MineStudio's files into a folder.

    They appear when the episode is complete, infos last.
    """

    def __init__(self, folder: Path, name: str, media: str = "h264") -> None:
        """Begin the files.

        Args:
            folder: Where they will be.
            name: What the id in their names derives from.
            media: `h264` or `jpeg`.

        Raises:
            RecordingError: Nothing can be written there.
        """
        self.episode_id = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
        self._folder = folder
        self._files = Unfinished(folder / self.episode_id)
        with reporting(self._files.partial):
            self._files.partial.mkdir(parents=True, exist_ok=True)
            self._infos = PickledList(self._files.partial / f"info_{self.episode_id}.pkl")
            self._actions = PickledList(self._files.partial / f"action_{self.episode_id}.pkl")
        self._frames: FrameSink
        if media == "jpeg":
            self._picture = f"images_{self.episode_id}"
            self._frames = PictureFolder(self._files.partial / self._picture, "{}.jpeg")
        else:
            self._picture = f"video_{self.episode_id}.mp4"
            self._frames = VideoWriter(self._files.partial / self._picture, FRAMES_PER_SECOND)

    def begin(self, frame: Frame, info: Mapping[str, Any]) -> None:
        """Write what the reset showed."""
        with reporting(self._folder, self.discard):
            self._frames.add(frame)
            self._infos.append(_without_frame(info))

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
        """Write one step; MineStudio keeps only what was shown and done."""
        with reporting(self._folder, self.discard):
            self._actions.append({name: np.asarray(value) for name, value in action.items()})
            self._frames.add(frame)
            self._infos.append(_without_frame(info))

    def finish(self, facts: Mapping[str, Any]) -> Path:
        """Complete the files.

        Args:
            facts: Not kept by this format.

        Returns:
            The pickle of the infos, which MineStudio's filters read.
        """
        with reporting(self._folder, self.discard):
            self._frames.close()
            self._actions.close()
            self._infos.close()
            names = (self._picture, f"action_{self.episode_id}.pkl", f"info_{self.episode_id}.pkl")
            for name in names:
                target = self._folder / name
                put_in_place(self._files.partial / name, target)
            self._files.discard()
        return target

    def discard(self) -> None:
        """Stop without leaving anything."""
        attempt(self._frames.discard, self._actions.close, self._infos.close)
        self._files.discard()


def files_of(info_file: Path) -> list[Path]:
    """Return the existing files of the episode whose infos are in `info_file`, that included."""
    if info_file.stem.startswith("info_"):
        episode_id = info_file.stem.removeprefix("info_")
        return sorted(info_file.parent.glob(f"*_{episode_id}*"))
    return sorted(info_file.parents[1].glob(f"*/{info_file.stem}.*"))  # of a dataset


def _without_frame(info: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in info.items() if name != _POV}
