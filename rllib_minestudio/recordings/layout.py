"""The contents of a recording: the interface of all formats, and the files and columns of our own.

In our own format, a finished episode is a folder. With N steps it has N + 1 frames, N + 1 infos,
and columns of N rows: row t holds the action after frame t and its outcome; frame t + 1 follows.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import av
import numpy as np

from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings.video import Frame, FrameSink

FORMAT = "rllib_minestudio.episode"
VERSION = 1

EPISODE_FILE = "episode.json"
"""Identity and outcome, as JSON."""

STEPS_FILE = "steps.npz"
"""The columns, compressed; can be loaded with `allow_pickle=False`."""

INFOS_FILE = "infos.jsonl.gz"
"""One JSON object per line, line 0 from the reset; `InfoLines` describes a line."""

VIDEO_FILE = "video.mp4"
FRAMES_FOLDER = "frames"
BESIDE_FILE = "beside.mp4"
BESIDE_FOLDER = "beside"
"""The other picture of each step, if it is stored."""
FRAME_NAME = "{:06d}.jpg"
SNAPSHOTS_FOLDER = "snapshots"
SNAPSHOT_NAME = "{:08d}.game"
"""The whole game after so many steps, as `MineStudioEnv.snapshot` returns it."""

TOKEN_COLUMNS: dict[str, type] = {"buttons": np.uint16, "camera": np.uint16}
"""The agent's action tokens, if the environment takes tokens."""

KEY_COLUMNS: dict[str, type] = {"keys": np.uint8, "degrees": np.float32}
"""Pressed keys (N, K), in the order of `keys` in `EPISODE_FILE`, and pitch and yaw (N, 2) in
degrees, if the environment takes keys. A recording of keys may hold `TOKEN_COLUMNS` as well."""

OUTCOME_COLUMNS: dict[str, type] = {
    "reward": np.float32,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "value": np.float32,
}
"""The outcome of each step, and the policy's value of the frame before it (NaN if unknown)."""

KL_COLUMN: dict[str, type] = {"kl": np.float32}
"""KL(policy || prior) in nats before each step, if there was a prior."""

OBSERVATIONS = "observations"
"""Key in `EPISODE_FILE` of the observations besides the frame; see `columns`."""

REMOVED = "-"
"""Key in a line of infos that lists the keys that the previous info had and this one lacks."""


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=plain)


def to_json(value: Any) -> str:
    """Return `plain(value)` as JSON, without spaces."""
    try:
        return _ENCODER.encode(value)  # in C, which matters because an info is written every step
    except TypeError:  # a key that is neither a string nor a number
        return _ENCODER.encode(plain(value))


@dataclass(frozen=True)
class Sight:
    """The frame and info after the reset or after a step.

    Attributes:
        frame: (height, width, 3) uint8 RGB.
        shown: The frame as the video shows it, perhaps enlarged and with a strip below.
        info: The info.
        beside: The other picture of the moment; None if it is not stored.
        snapshot: The whole game; None if it is not saved at this moment.
    """

    frame: Frame
    shown: Frame
    info: Mapping[str, Any]
    beside: Frame | None = None
    snapshot: bytes | None = None


@dataclass(frozen=True)
class RecordedStep:
    """An action and its outcome.

    Attributes:
        action: Tokens or keys (see `Columns.add`).
        reward: The reward.
        terminated: Whether the step terminated the episode.
        truncated: Whether the step truncated the episode.
        value: The policy's value of the frame before; NaN if unknown.
        kl: KL(policy || prior) in nats at that frame; None if there is no prior.
        seen: The observation before the action, without the frame: name -> array.
        tokens: The tokens (buttons, camera) nearest to an action of keys; None if not recorded.
    """

    action: Mapping[str, Any]
    reward: float
    terminated: bool
    truncated: bool
    value: float
    kl: float | None
    seen: Mapping[str, Any]
    tokens: tuple[int, int] | None = None


class OpenFile(Protocol):
    """A file that is written piece by piece."""

    def close(self) -> None:
        """Write what is buffered and finish the file; closing it again has no effect."""


class Layout(ABC):
    """The files of one episode in one format, which are written in a hidden folder.

    A layout decides on names and contents. `EpisodeWriter` closes the files, moves them to their
    final paths, and removes them if something fails. The constructor takes the recording's path and
    the video options, creates the hidden folder, and opens the files.

    Attributes:
        takes_keys: Whether the format needs keys and degrees, whatever the agent's actions are.
        path: The recording's path, from which the names of its files are derived.
        partial: The hidden folder.
        frames: Stores the frames that are shown.
        files: All other open files.
    """

    takes_keys: ClassVar[bool] = False

    @staticmethod
    def place_of(path: Path) -> Path:
        """Return the last of the final paths of `complete`: it exists if the episode does."""
        return path

    path: Path
    partial: Path
    frames: FrameSink
    files: Sequence[OpenFile]

    @abstractmethod
    def see(self, sight: Sight) -> None:
        """Write the frame and info after the reset or a step."""

    @abstractmethod
    def act(self, step: RecordedStep) -> None:
        """Write a step, before the frame and info that follow it."""

    @abstractmethod
    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Write what is known only at the end, after all other files are closed.

        Args:
            facts: Facts about the whole episode, beginning with its length and return.

        Returns:
            Pairs of a hidden file or folder and its final path, in the order in which to move them.
            The last path identifies the recording.
        """


def recording_name(index: int) -> str:
    """Return the name of the recording of the episode with this number."""
    return f"episode-{index:05d}"


# ---------------------------------- errors of the disk and the encoder, turned into one clear error

FAILURES = (OSError, av.error.FFmpegError)
"""Exceptions that writing raises if the disk is full, read-only or gone."""

DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, av.error.FFmpegError),
)
"""Exceptions that reading raises if a file is truncated, or is something else."""


@contextmanager
def reporting(path: Path, discard: Callable[[], None] | None = None) -> Iterator[None]:
    """Turn a failure within the block into a `RecordingError` about `path`.

    Args:
        path: The recording being written.
        discard: Removes what has been written; None if there is nothing yet.
    """
    try:
        yield
    except RecordingError:
        if discard is not None:
            discard()
        raise
    except FAILURES as error:
        if discard is not None:
            discard()
        raise RecordingError(
            f"{str(path)!r} cannot be recorded: {getattr(error, 'strerror', None) or error}. "
            "Free space there, or record to another folder."
        ) from error


def attempt(*actions: Callable[[], object]) -> None:
    """Call each action, even if earlier ones fail with one of `FAILURES`."""
    for action in actions:
        with suppress(*FAILURES):
            action()
