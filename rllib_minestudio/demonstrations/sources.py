"""Finds recorded episodes, whoever recorded them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from rllib_minestudio.demonstrations.minestudio import PREFIX, SUFFIX, MineStudioRecording
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.option_checks import is_integer
from rllib_minestudio.recordings import Recording, find_recordings
from rllib_minestudio.recordings.video import Frame

TAKEOVER = "takeover"
"""Key of what was recorded: how many steps a novice played, which are not to be imitated."""
IMITATED_FROM = "imitated_from"
"""Key of what was recorded: the first step to imitate, at `TAKEOVER` or later."""


class RecordedEpisode(Protocol):
    """What windows are cut from: `Recording`, or `MineStudioRecording`."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """What was recorded; `keys`, `video`, `TAKEOVER` and `IMITATED_FROM` matter."""

    def __len__(self) -> int:
        """Number of steps, N."""

    @property
    def steps(self) -> dict[str, NDArray]:
        """The actions, N rows each."""

    @property
    def observations(self) -> Mapping[str, NDArray]:
        """What was observed besides the frame before each action: name -> N rows."""

    def frames(
        self, size: tuple[int, int] | None = None, stop: int | None = None
    ) -> Iterator[Frame]:
        """The N + 1 frames, or the first `stop` of them, scaled to (width, height)."""


def find_episodes(folder: str | Path) -> list[Path]:
    """Return the paths of all recorded episodes in a folder and below, sorted; for `open_episode`.

    Raises:
        RecordingError: There is no such folder, or one of the recordings cannot be opened.
    """
    ours = [recording.path for recording in find_recordings(folder)]
    theirs = [
        path
        for path in sorted(Path(folder).rglob(f"{PREFIX}*{SUFFIX}"))
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return ours + theirs


def open_episode(path: str | Path) -> RecordedEpisode:
    """Open what `find_episodes` found.

    Raises:
        RecordingError: It is no recorded episode.
    """
    path = Path(path)
    return MineStudioRecording(path) if path.suffix == SUFFIX else Recording(path)


def imitated_from(recording: RecordedEpisode) -> int:
    """Return the first step that is to be imitated.

    Raises:
        RecordingError: The recording is damaged: that is no step.
    """
    step = recording.meta.get(IMITATED_FROM, recording.meta.get(TAKEOVER, 0))
    if not is_integer(step) or step < 0:
        raise RecordingError(
            f"{str(recording.path)!r} is damaged: it is to be imitated from step {step!r} on, "
            "which must be an integer of at least 0."
        )
    return int(step)
