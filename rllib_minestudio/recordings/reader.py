"""Reads recorded episodes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator

from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.documents import (
    HUGE,
    Document,
    First,
    ListOf,
    Measured,
    Name,
    Plain,
    given,
    parse_document,
    read_plain,
)
from rllib_minestudio.foundation.files import SmallFileError, read_bounded
from rllib_minestudio.foundation.options import shown
from rllib_minestudio.foundation.recording_options import OWN
from rllib_minestudio.recordings.columns import (
    PartsDocument,
    RecordedObservations,
    read_columns,
    read_infos,
    refuse_too_large,
)
from rllib_minestudio.recordings.layout import (
    BESIDE_FILE,
    BESIDE_FOLDER,
    DAMAGE,
    EPISODE_FILE,
    FORMAT,
    FRAMES_FOLDER,
    INFOS_FILE,
    OBSERVATIONS,
    SNAPSHOT_NAME,
    SNAPSHOTS_FOLDER,
    STEPS_FILE,
    VERSION,
    VIDEO_FILE,
)
from rllib_minestudio.recordings.video import Frame, read_pictures, read_video

LARGEST_SNAPSHOT = 64 * 1024**2
"""Limit on the bytes of a saved game, which is compressed: usual ones have a few kB."""

MOST_STEPS = 100_000_000
"""Limit on the steps of an episode: two months of play."""


class Recording:
    """One recorded episode of N steps.

    Attributes:
        path: Its folder.
        meta: The contents of `episode.json`: identity, outcome, video.
    """

    format: ClassVar[str] = OWN

    def __init__(self, path: str | Path) -> None:
        """Open a recording; frames, steps and infos are read on access.

        Raises:
            RecordingError: The folder is not a recording, or has an unknown format.
        """
        self.path = Path(path)
        try:
            facts = read_plain(self.path / EPISODE_FILE)
        except (OSError, SmallFileError) as error:
            raise RecordingError(
                f"{str(path)!r} is not a recording: {EPISODE_FILE}: {error}."
            ) from error
        if not isinstance(facts, dict) or not {"format", "version"} <= facts.keys():
            raise RecordingError(
                f"{str(path)!r} is not a recording: {EPISODE_FILE} names no format and version."
            )
        if (facts["format"], facts["version"]) != (FORMAT, VERSION):
            raise RecordingError(
                f"{str(path)!r} is a recording of format {shown(facts['format'])} version "
                f"{shown(facts['version'])}; this version reads {FORMAT!r} version {VERSION}."
            )
        try:
            self.meta: dict[str, Any] = given(parse_document(facts, EpisodeDocument))
        except SmallFileError as error:
            raise self._damaged(EPISODE_FILE, error) from error
        for name in (VIDEO_FILE, BESIDE_FILE, STEPS_FILE, INFOS_FILE):
            part = self.path / name
            if part.exists() and not part.is_file():  # a named pipe would block
                raise self._damaged(name, "it is not a regular file")

    def __len__(self) -> int:
        """N, the number of steps."""
        return int(self.meta["length"])

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r})"

    @cached_property
    def steps(self) -> dict[str, NDArray]:
        """The columns of `layout`, each with N rows.

        Raises:
            RecordingError: The file is damaged, or its columns are not as expected.
        """
        try:
            return read_columns(self.path / STEPS_FILE, len(self), self.meta.get("keys"))
        except DAMAGE as error:
            raise self._damaged(STEPS_FILE, error) from error

    @property
    def observations(self) -> Mapping[str, NDArray]:
        """The observations before each action, without the frame: name -> (N, ...).

        Names are as in `foundation.observations`. A column is read on access, which raises
        `RecordingError` if it is damaged.
        """
        described = self.meta[OBSERVATIONS]
        damaged = partial(self._damaged, STEPS_FILE)
        return RecordedObservations(self.path / STEPS_FILE, described, len(self), damaged)

    @property
    def has_beside(self) -> bool:
        """Whether the other picture of each step is stored, too."""
        return any((self.path / name).exists() for name in (BESIDE_FILE, BESIDE_FOLDER))

    def frames(
        self,
        size: tuple[int, int] | None = None,
        stop: int | None = None,
        start: int = 0,
        *,
        beside: bool = False,
    ) -> Iterator[Frame]:
        """Decode the N + 1 frames one by one, (height, width, 3) uint8 RGB.

        Args:
            size: (width, height) to scale to; None keeps the recorded size.
            stop: Number of the frame to stop before; None yields all. N leaves out the final frame.
            start: Number of the first frame to yield.
            beside: Decode the other picture of each step, if it is stored.

        Raises:
            RecordingError: There are fewer frames, or they cannot be decoded.
        """
        expected = (len(self) + 1 if stop is None else min(stop, len(self) + 1)) - start
        folder = self.path / (BESIDE_FOLDER if beside else FRAMES_FOLDER)
        video = self.path / (BESIDE_FILE if beside else VIDEO_FILE)
        name = folder.name if folder.is_dir() else video.name
        source = (
            read_pictures(sorted(folder.iterdir())[start:], size)
            if folder.is_dir()
            else read_video(video, size, start)
        )
        count = 0
        try:
            for frame in islice(source, max(0, expected)):
                yield frame
                count += 1
        except DAMAGE as error:
            raise self._damaged(name, error) from error
        if count < expected:
            raise self._damaged(name, f"{count} frames instead of {expected}")

    @cached_property
    def snapshot_steps(self) -> list[int]:
        """The steps after which the whole game is saved, in order."""
        folder = self.path / SNAPSHOTS_FOLDER
        steps = range(len(self) + 1)
        names = [file.stem for file in folder.glob("*.game") if file.stem.isdecimal()]
        return sorted(int(name) for name in names if int(name) in steps)

    def snapshot(self, step: int) -> bytes:
        """Return the game that is saved after a step, for `reset(options={"snapshot": ...})`.

        Raises:
            RecordingError: There is none, or it cannot be read.
        """
        name = f"{SNAPSHOTS_FOLDER}/{SNAPSHOT_NAME.format(step)}"
        if step not in self.snapshot_steps:
            saved = ", ".join(map(str, self.snapshot_steps[:8])) or "no step"
            raise RecordingError(
                f"{str(self.path)!r} holds no game saved after step {step}, but after {saved}."
            )
        try:
            return read_bounded(self.path / name, LARGEST_SNAPSHOT)
        except (OSError, SmallFileError) as error:
            raise self._damaged(name, error) from error

    @property
    def video_path(self) -> Path:
        """The path of the video, if the frames are stored as one."""
        return self.path / VIDEO_FILE

    def infos(self) -> Iterator[dict[str, Any]]:
        """Yield the N + 1 infos, the first of which is the reset's.

        Raises:
            RecordingError: There are fewer or more, or the file is damaged.
        """
        count = 0
        try:
            for info in islice(read_infos(self.path / INFOS_FILE), len(self) + 2):
                yield info
                count += 1
        except DAMAGE as error:
            raise self._damaged(INFOS_FILE, error) from error
        if count != len(self) + 1:
            raise self._damaged(INFOS_FILE, f"{count} infos instead of {len(self) + 1}")

    def problems(self) -> list[str]:
        """Return an empty list: a damaged recording is refused when it is opened or read."""
        return []

    def _damaged(self, name: str, reason: object) -> RecordingError:
        return RecordingError(f"{str(self.path / name)!r} is damaged: {reason}.")


class VideoDocument(Document):
    """How the frames are shown and stored."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Plain]

    overlay: bool | None = None


class EpisodeDocument(PartsDocument):
    """`episode.json`: what reading depends on, and whatever facts the recorder was given."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Measured]

    format: Literal["rllib_minestudio.episode"]
    version: First
    length: Annotated[int, Field(ge=0, le=MOST_STEPS)]
    undiscounted_return: Annotated[float, Field(alias="return", ge=-HUGE, le=HUGE)] = 0.0
    keys: ListOf[Name] | None = None
    video: VideoDocument | None = None
    imitated_from: Annotated[int, Field(ge=0, le=MOST_STEPS)] = 0
    takeover: Annotated[int, Field(ge=0, le=MOST_STEPS)] = 0

    @model_validator(mode="after")
    def _fits(self) -> EpisodeDocument:
        refuse_too_large(
            {name: dict(told) for name, told in self.observations.items()}, self.length
        )
        return self


def find_recordings(root: str | Path) -> Iterator[Recording]:
    """Yield all recordings in a folder and below, sorted by path.

    Unfinished recordings are hidden, and skipped.

    Args:
        root: A folder that contains recordings at any depth, or is one itself.

    Raises:
        RecordingError: There is no such folder, or a recording cannot be opened.
    """
    root = Path(root)
    if not root.is_dir():
        raise RecordingError(f"There is no folder {str(root)!r} with recordings.")
    yield from map(Recording, recorded_folders(root))


def recorded_folders(root: Path) -> list[Path]:
    """Return the folders of all recordings in a folder and below, sorted.

    Hidden folders, which hold what is unfinished, are not entered: whoever records may remove them
    meanwhile.
    """
    found = []
    for folder, inner, files in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".")]
        if EPISODE_FILE in files:
            found.append(Path(folder, EPISODE_FILE))
    return [file.parent for file in sorted(found)]
