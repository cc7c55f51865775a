"""Writes an episode as MineStudio's dataset tools want their source files.

The layout is what the converters of MineStudio 1.1.6 (data/minecraft/callbacks) search for and
what its KernelManager then reads out of the lmdb files that they make:

    videos/<id>-0.mp4       N frames of 640x360, what was seen before each action
    actions/<id>-0.pkl      {key: (N,) uint8, ..., "camera": (N, 2) float32}, a dict of columns
    meta_info/<id>-0.pkl    list of N infos, one beside each frame

Its converters take a file's name for an episode's name and a part's number, hence the "-0", and
count frames and actions in whole chunks: an episode whose last frame had no action would be left
out in silence whenever that frame fills a chunk.
"""

from __future__ import annotations

import math
import pickle
import uuid
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.recordings.failures import attempt, reporting
from rllib_minestudio.recordings.minestudio import PROTOCOL, PickledList
from rllib_minestudio.recordings.video import FRAMES_PER_SECOND, Frame, VideoWriter
from rllib_minestudio.whole_file import Unfinished, put_in_place

FRAME_SIZE = (640, 360)
"""Width and height of the only frames that MineStudio's converter does not skip."""

VIDEOS, ACTIONS, INFOS = "videos", "actions", "meta_info"
_CAMERA = "camera"


class MineStudioDatasetWriter:
    """Takes an episode as `RecordingWriter` does, and writes source files for MineStudio's dataset.

    They appear when the episode is complete, infos last. Actions are environment actions, all
    with the same keys.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Begin the files.

        Args:
            folder: Where the three folders will be.
            name: What the id in the files' names derives from.

        Raises:
            RecordingError: Nothing can be written there.
        """
        self.episode_id = f"{uuid.uuid5(uuid.NAMESPACE_OID, name)}-0"
        self._folder = folder
        self._files = Unfinished(folder / self.episode_id)
        with reporting(self._files.partial):
            self._files.partial.mkdir(parents=True, exist_ok=True)
            self._infos = PickledList(self._files.partial / INFOS)
        self._frames = VideoWriter(self._files.partial / f"{VIDEOS}.mp4", FRAMES_PER_SECOND)
        self._keys: dict[str, array] = {}
        self._degrees = array("f")
        self._seen: tuple[Frame, dict[str, Any]] | None = None

    def begin(self, frame: Frame, info: Mapping[str, Any]) -> None:
        """Remember what the reset showed, until it is known what was done then."""
        self._seen = (frame, dict(info))

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
        """Write one step; MineStudio keeps only what was shown and done.

        Args:
            action: Keys, 0 or 1, and `camera`, (pitch, yaw) in degrees.
            reward: Not kept.
            terminated: Not kept.
            truncated: Not kept.
            frame: What was seen after it.
            info: What was known after it.
            value: Not kept.
            kl: Not kept.
            seen: Not kept.
        """
        assert self._seen is not None
        with reporting(self._folder, self.discard):
            self._frames.add(self._seen[0])
            self._infos.append(self._seen[1])
            for key, pressed in action.items():
                if key != _CAMERA:
                    self._keys.setdefault(key, array("B")).append(int(np.asarray(pressed).item()))
            self._degrees.extend(float(angle) for angle in action[_CAMERA])
        self._seen = (frame, dict(info))

    def finish(self, facts: Mapping[str, Any]) -> Path:
        """Complete the files.

        Args:
            facts: Not kept by this format.

        Returns:
            The pickle of the infos.
        """
        with reporting(self._folder, self.discard):
            self._frames.close()
            self._infos.close()
            columns = {key: np.asarray(column) for key, column in self._keys.items()}
            columns[_CAMERA] = np.reshape(np.asarray(self._degrees), (-1, 2))
            (self._files.partial / ACTIONS).write_bytes(pickle.dumps(columns, PROTOCOL))
            for source, target in zip(
                (f"{VIDEOS}.mp4", ACTIONS, INFOS), self._targets, strict=True
            ):
                target.parent.mkdir(exist_ok=True)
                put_in_place(self._files.partial / source, target)
            self._files.discard()
        return self._targets[-1]

    def discard(self) -> None:
        """Stop without leaving anything."""
        attempt(self._frames.discard, self._infos.close)
        self._files.discard()

    @property
    def _targets(self) -> tuple[Path, Path, Path]:
        return (
            self._folder / VIDEOS / f"{self.episode_id}.mp4",
            self._folder / ACTIONS / f"{self.episode_id}.pkl",
            self._folder / INFOS / f"{self.episode_id}.pkl",
        )
