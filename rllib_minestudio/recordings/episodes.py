"""Recorded episodes of every format that is read: what they have in common, finding, opening.

| Format | An episode is | Read by |
|---|---|---|
| `episodes`, this package's | a folder with `episode.json` | `Recording` |
| `minestudio`, of its inference workers | `action_ID.pkl` | `MineStudioRecording` |
| `contractor`, as OpenAI published them | `NAME.jsonl` with `NAME.mp4` | `ContractorRecording` |
| `minestudio-dataset`, LMDB | an entry in `action/PART/data.mdb` | `DatasetRecording` |
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol

from numpy.typing import NDArray

from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.console import counted
from rllib_minestudio.recordings.contractor import LINES, ContractorRecording
from rllib_minestudio.recordings.minestudio_dataset import (
    ACTION,
    DATA_FILE,
    DatasetRecording,
    dataset_at,
    is_dataset,
)
from rllib_minestudio.recordings.minestudio_formats import (
    PICTURES,
    PREFIX,
    SUFFIX,
    MineStudioRecording,
)
from rllib_minestudio.recordings.reader import Recording, find_recordings
from rllib_minestudio.recordings.video import FRAMES_PER_SECOND, Frame


class RecordedEpisode(Protocol):
    """A recorded episode of N steps that can be cut into windows.

    Attributes:
        format: The name of its format.
    """

    format: ClassVar[str]

    @property
    def path(self) -> Path:
        """The path by which `open_episode` opens it."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Its description; `keys`, `video`, `takeover` and `imitated_from` are used."""

    def __len__(self) -> int:
        """Return N."""

    @property
    def steps(self) -> dict[str, NDArray]:
        """The actions, N rows each."""

    @property
    def observations(self) -> Mapping[str, NDArray]:
        """Observations before each action, without the frame: name -> N rows."""

    def frames(
        self, size: tuple[int, int] | None = None, stop: int | None = None, start: int = 0
    ) -> Iterator[Frame]:
        """Yield the frames from `start` to `stop`, scaled to `size`, (width, height).

        Frame t was seen before action t; some formats have another one after the last action.
        """

    def problems(self) -> list[str]:
        """Return what is wrong with an episode that can be read nonetheless, in sentences."""


def open_episode(path: str | Path) -> RecordedEpisode:
    """Open a recorded episode whose path `find_episodes` returned.

    Raises:
        RecordingError: It is not a recorded episode, or cannot be read.
    """
    path = Path(path)
    if path.suffix == LINES:
        return ContractorRecording(path)
    if path.parent.name == DATA_FILE:
        return DatasetRecording(path)
    return MineStudioRecording(path) if path.suffix == SUFFIX else Recording(path)


def find_episodes(folder: str | Path, broken: dict[str, str] | None = None) -> list[Path]:
    """Return the paths of all recorded episodes in a folder and below, for `open_episode`.

    Our own recordings come first; each format is sorted.

    Args:
        folder: The folder.
        broken: Takes the names of episodes of a dataset that cannot be read, and why.

    Raises:
        RecordingError: There is no such folder, or one of our own recordings cannot be opened.
    """
    found = [recording.path for recording in find_recordings(folder)]
    theirs, people, datasets = [], [], []
    for root, folders, files in os.walk(folder):
        # Of folders of pictures, of which there may be millions, nothing is needed.
        folders[:] = [name for name in folders if not name.startswith((".", PICTURES))]
        place = Path(root)
        theirs += [place / n for n in files if n.startswith(PREFIX) and n.endswith(SUFFIX)]
        people += [place / n for n in files if n.endswith(LINES) and not n.startswith(".")]
        if ACTION in folders and is_dataset(place):
            datasets.append(place)
    found += sorted(theirs) + sorted(people)
    for place in sorted(datasets):
        dataset = dataset_at(place.resolve(), refresh=True)
        found += map(dataset.path_of, dataset.episodes)
        if broken is not None:
            broken |= dataset.broken
    return found


@dataclass
class FolderSurvey:
    """What a folder, or several, hold.

    Attributes:
        lengths: Path of an episode that can be opened -> its number of steps.
        formats: Number of steps by format.
        versions: Number of episodes by the version of what recorded them, if they tell.
        broken: Path or name of what cannot be read -> why.
    """

    lengths: dict[Path, int] = field(default_factory=dict)
    formats: Counter[str] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Number of steps of all episodes."""
        return sum(self.lengths.values())

    def __str__(self) -> str:
        """Say it in a sentence."""
        hours = self.steps / FRAMES_PER_SECOND / 3600
        text = f"{counted(len(self.lengths), 'episode')}, {hours:.1f} hours, {self.steps:,} frames"
        text += f" ({', '.join(self.formats) or 'none'}"
        if self.versions:
            text += f"; versions {', '.join(sorted(self.versions))}"
        if not self.broken:
            return f"{text})"
        name, reason = next(iter(self.broken.items()))
        return (
            f"{text}). {counted(len(self.broken), 'recording')} cannot be read and "
            f"{'is' if len(self.broken) == 1 else 'are'} left out: {name}: {reason} "
            "(`rllib data check` names all)"
        )


def survey(folders: Iterable[str | Path]) -> FolderSurvey:
    """Find and open all episodes below some folders; their steps and frames are not read.

    Raises:
        RecordingError: There is no such folder, or one of our own recordings cannot be opened.
    """
    found = FolderSurvey()
    for folder in folders:
        for path in find_episodes(folder, found.broken):
            try:
                episode = open_episode(path)
                found.lengths[path] = len(episode)
            except RecordingError as error:
                found.broken[str(path)] = str(error)
                continue
            found.formats[episode.format] += len(episode)
            if version := episode.meta.get("recorder"):
                found.versions[str(version)] += 1
    return found


_MOST_FILES = 10_000
_MOST_SUFFIXES = 4


def contents(folder: str | Path) -> str:
    """Return in words what a folder without a recorded episode holds instead."""
    names = (name for _, _, names in os.walk(folder) for name in names)
    counts = Counter(Path(name).suffix.lower() for name in islice(names, _MOST_FILES))
    if not counts:
        return f"{str(folder)!r} holds no files"
    found = ", ".join(
        f"{counted:,} {suffix or 'other'}" for suffix, counted in counts.most_common(_MOST_SUFFIXES)
    )
    return f"{str(folder)!r} holds no recorded episode (files: {found})"
