"""What a recording consists of: in every format, and the names, columns and version of ours.

In ours, one finished episode is one folder. With N steps it holds N + 1 frames and N + 1 infos:
frame t was seen, row t of the columns says what was done then and what came of it, frame t + 1 was
seen after.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings.video import Frame, FrameSink

FORMAT = "rllib_minestudio.episode"
VERSION = 1

EPISODE_FILE = "episode.json"
"""Identity and outcome, plain JSON."""

STEPS_FILE = "steps.npz"
"""The columns, compressed; loads with `allow_pickle=False`."""

INFOS_FILE = "infos.jsonl.gz"
"""One JSON object per line; line 0 is the reset's. See `InfoDeltas` for what a line holds."""

VIDEO_FILE = "video.mp4"
FRAMES_FOLDER = "frames"
FRAME_NAME = "{:06d}.jpg"

TOKEN_COLUMNS: dict[str, type] = {"buttons": np.uint16, "camera": np.uint16}
"""The agent's exact action tokens, where the environment takes tokens."""

KEY_COLUMNS: dict[str, type] = {"keys": np.uint8, "degrees": np.float32}
"""Keys pressed (N, K), in the order of `keys` in `EPISODE_FILE`, and (pitch, yaw) (N, 2) in
degrees, where the environment takes keys instead."""

OUTCOME_COLUMNS: dict[str, type] = {
    "reward": np.float32,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "value": np.float32,
}
"""What came of each step, and the policy's value of the frame before it (NaN: not told)."""

KL_COLUMN: dict[str, type] = {"kl": np.float32}
"""KL(policy || prior) in nats before each step, where there was a prior to compare with."""

OBSERVATIONS = "observations"
"""Key in `EPISODE_FILE` of what was observed besides the frame; see `observations`."""

REMOVED = "-"
"""Key of an info line that lists the keys which the info before had and this one has not."""


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=plain)


def to_json(value: Any) -> str:
    """Write `plain(value)` as JSON, without spaces."""
    try:
        return _ENCODER.encode(value)  # in C; an info is written every step
    except TypeError:  # a key that is neither a string nor a number
        return _ENCODER.encode(plain(value))


@dataclass(frozen=True)
class Sight:
    """What was seen and known: after the reset, or after a step.

    Attributes:
        frame: (height, width, 3) uint8 RGB.
        shown: The same as a video shows it, perhaps enlarged, with a strip beneath it.
        info: The info.
    """

    frame: Frame
    shown: Frame
    info: Mapping[str, Any]


@dataclass(frozen=True)
class RecordedStep:
    """What was done, and what came of it.

    Attributes:
        action: Tokens or keys (see `Columns.add`).
        reward: What it earned.
        terminated: Whether it ended the episode.
        truncated: Whether it cut the episode off.
        value: The policy's value of the frame before; NaN if not told.
        kl: Its divergence from a prior there; None if there is no prior.
        seen: What was observed before the action besides the frame, name -> array.
    """

    action: Mapping[str, Any]
    reward: float
    terminated: bool
    truncated: bool
    value: float
    kl: float | None
    seen: Mapping[str, Any]


class OpenFile(Protocol):
    """A file that is written piece by piece."""

    def close(self) -> None:
        """Write what is buffered, and what ends the file; closing it again does nothing."""


class Layout(ABC):
    """The files of one format for one episode, while they grow in a hidden folder.

    A layout knows names and contents; `EpisodeWriter` asks it for them, closes its files, puts
    them in their places, and removes them if something fails. Its constructor takes the
    recording's path and the options of its video, creates the hidden folder, and opens the files.

    Attributes:
        takes_keys: Whether actions must be keys and degrees, whatever the agent gives.
        path: The recording's; what its files are called derives from it.
        partial: The hidden folder.
        frames: What stores the frames that are shown.
        files: All else that is open.
    """

    takes_keys: ClassVar[bool] = False
    path: Path
    partial: Path
    frames: FrameSink
    files: Sequence[OpenFile]

    @abstractmethod
    def see(self, sight: Sight) -> None:
        """Write what the reset or a step showed."""

    @abstractmethod
    def act(self, step: RecordedStep) -> None:
        """Write a step, before what it showed."""

    @abstractmethod
    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Write what is known only at the end, when everything else is closed.

        Args:
            facts: About the whole episode; its length and return come first.

        Returns:
            Each hidden file or folder and its place, in the order in which they are to appear.
            The last one is what the recording is known by.
        """


def recording_name(index: int) -> str:
    """Return the name of the recording of a numbered episode."""
    return f"episode-{index:05d}"
