"""MineStudio's datasets: folders of LMDB databases that hold episodes in chunks of frames.

    DATASET/action/PART/data.mdb        chunks: {key: (C,), ..., "camera": (C, 2)}, pickled
    DATASET/image/PART/data.mdb         chunks: mp4 files of C frames; older: `video`
    DATASET/meta_info/PART/data.mdb     chunks: list of C infos, pickled; older: `contractor_info`

A database lists its episodes under `__chunk_infos__`; the chunk that begins with frame f of the
e-th episode has the key `(e, f)`. Source: MineStudio 1.1.6, `ModalKernel` in data/minecraft/core.py
and `ConvertWorker` in data/minecraft/tools/convertion.py.

MineStudio unpickles whatever a database holds. Here it is read as data (`LmdbFile`,
`foundation/pickles.py`), each value up to a size.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError, RecordingError
from rllib_minestudio.foundation.files import Unfinished
from rllib_minestudio.foundation.names import KEYS, POV
from rllib_minestudio.foundation.options import is_integer
from rllib_minestudio.foundation.pickles import PlainUnpickler
from rllib_minestudio.foundation.recording_options import DATASET
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.recordings.columns import LmdbFile, LmdbFileError
from rllib_minestudio.recordings.layout import Layout, RecordedStep, Sight
from rllib_minestudio.recordings.reader import MOST_STEPS
from rllib_minestudio.recordings.video import (
    FRAMES_PER_SECOND,
    Frame,
    UnreadableFramesError,
    VideoOptions,
    VideoWriter,
    read_video,
)

DATA_FILE = "data.mdb"
ACTION, IMAGE, META_INFO = "action", "image", "meta_info"
_FOLDERS = {
    ACTION: (ACTION,),
    IMAGE: (IMAGE, "video"),
    META_INFO: (META_INFO, "contractor_info"),
}
"""Modality -> names of its folder."""

CHUNK = 32
"""Frames per chunk that MineStudio's converters write."""
_LARGEST_CHUNK = 100_000
LARGEST_VALUE = 64 * 1024**2
"""Limit on the bytes of a chunk or a list of episodes."""
MOST_EPISODES = 1_000_000

_VERSION = re.compile(r"\d+xx(?:-v\d+)?")
"""The recorder's version in the name of a published dataset, such as 10xx-v110."""

_DAMAGE = (CheckpointMismatchError, LmdbFileError, OSError, av.error.FFmpegError)


class Part(NamedTuple):
    """Where an episode is.

    Attributes:
        file: The database.
        number: The episode's number in it.
        frames: Number of frames.
        chunk: Frames per chunk.
    """

    file: Path
    number: int
    frames: int
    chunk: int


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is a dataset: it has databases of actions and of frames."""
    return all(next(_databases(folder, kind), None) for kind in (ACTION, IMAGE))


def _databases(folder: Path, modality: str) -> Iterator[Path]:
    for name in _FOLDERS[modality]:
        yield from sorted((folder / name).glob(f"*/{DATA_FILE}"))


class MineStudioDataset:
    """The index of a dataset: its episodes, and where their chunks are.

    Attributes:
        folder: Its folder.
        episodes: Name -> number of frames, sorted by name; only those of equal length in the
            databases of actions and frames, which are those that MineStudio reads.
        broken: Name of an episode or path of a database -> why it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broken: dict[str, str] = {}
        self._parts = {modality: self._index(modality) for modality in _FOLDERS}
        actions, images = self._parts[ACTION], self._parts[IMAGE]
        self.episodes: dict[str, int] = {}
        for name in sorted({*actions, *images}):
            counts = [parts[name].frames if name in parts else 0 for parts in (actions, images)]
            if counts[0] == counts[1]:
                self.episodes[name] = counts[0]
            else:
                self.broken[name] = f"it has {counts[0]:,} actions and {counts[1]:,} frames"

    @property
    def has_infos(self) -> bool:
        """Whether there are infos of any episode."""
        return bool(self._parts[META_INFO])

    def is_informed(self, episode: str) -> bool:
        """Return whether an episode has an info for each of its frames."""
        part = self._parts[META_INFO].get(episode)
        return part is not None and part.frames == self.episodes[episode]

    def path_of(self, episode: str) -> Path:
        """Return the path by which `open_episode` opens an episode."""
        return self.folder / ACTION / DATA_FILE / episode

    def chunks(
        self, modality: str, episode: str, start: int, stop: int
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks that hold frames from `start` to `stop`, each with its first frame.

        Raises:
            RecordingError: A chunk is missing, too large, or damaged.
        """
        part = self._parts[modality][episode]
        try:
            with LmdbFile(part.file) as database:
                for first in range(start // part.chunk * part.chunk, stop, part.chunk):
                    key = str((part.number, first)).encode()
                    yield first, database.get(key, LARGEST_VALUE)
        except _DAMAGE as error:
            raise self._damaged(modality, episode, error) from error

    def decoded(self, modality: str, episode: str, start: int, stop: int) -> Iterator[Any]:
        """Yield the same chunks unpickled: dicts of columns, or lists of infos.

        Raises:
            RecordingError: A chunk is missing, or holds something else.
        """
        for first, value in self.chunks(modality, episode, start, stop):
            try:
                chunk = _unpickled(value)
                rows = chunk.values() if modality == ACTION else [chunk]
                wanted = min(self._parts[modality][episode].chunk, self.episodes[episode] - first)
                if not all(len(row) == wanted for row in rows) or not isinstance(
                    chunk, dict if modality == ACTION else list
                ):
                    raise ValueError(f"the chunk of frame {first} does not have {wanted} rows")
            except (*_DAMAGE, ValueError, TypeError, AttributeError) as error:
                raise self._damaged(modality, episode, error) from error
            yield chunk

    def first_of(self, modality: str, episode: str, frame: int) -> int:
        """Return the first frame of the chunk that holds a frame."""
        return frame - frame % self._parts[modality][episode].chunk

    def pictures(
        self,
        episode: str,
        start: int,
        stop: int,
        size: tuple[int, int] | None = None,
        step: int = 1,
    ) -> Iterator[Frame]:
        """Decode every `step`-th frame from `start` to `stop`.

        Args:
            episode: The episode's name.
            start: Number of the first frame.
            stop: Number of the first frame that is left out.
            size: (width, height) to scale to, see `scaled`; None keeps the size.
            step: Distance between frames.

        Raises:
            RecordingError: A chunk is missing, or cannot be decoded.
        """
        number = start
        for first, value in self.chunks(IMAGE, episode, start, stop):
            end = min(first + self._parts[IMAGE][episode].chunk, stop)
            try:
                for frame in read_video(io.BytesIO(value), size, number - first, step):
                    if number >= end:
                        break
                    yield frame
                    number += step
                if number < end:
                    raise UnreadableFramesError(f"frame {number} is missing")
            except _DAMAGE as error:
                raise self._damaged(IMAGE, episode, error) from error

    def _index(self, modality: str) -> dict[str, Part]:
        parts: dict[str, Part] = {}
        for file in _databases(self.folder, modality):
            try:
                parts |= _episodes_of(file)
            except (*_DAMAGE, ValueError) as error:
                self.broken[str(file)] = str(error)
        return parts

    def _damaged(self, modality: str, episode: str, reason: object) -> RecordingError:
        file = self._parts[modality][episode].file
        return RecordingError(f"The episode {episode!r} in {str(file)!r} is damaged: {reason}.")


_known: dict[Path, MineStudioDataset] = {}


def dataset_at(folder: Path, refresh: bool = False) -> MineStudioDataset:
    """Return the index of a dataset.

    Args:
        folder: Its folder.
        refresh: Read it again, as it may have changed, rather than what this process knows already.
    """
    if refresh or folder not in _known:
        _known[folder] = MineStudioDataset(folder)
    return _known[folder]


def _unpickled(value: bytes) -> Any:
    """Unpickle a value's containers, numbers and arrays.

    Raises:
        CheckpointMismatchError: It holds anything else, or is damaged.
    """
    try:
        return PlainUnpickler(io.BytesIO(value)).load()
    # A damaged pickle can raise nearly anything.
    except Exception as error:
        raise CheckpointMismatchError(f"a value is refused: {error}") from error


def _episodes_of(file: Path) -> dict[str, Part]:
    """Return the episodes in a database.

    Raises:
        LmdbFileError, CheckpointMismatchError, OSError, ValueError: It is damaged.
    """
    with LmdbFile(file) as database:
        chunk, infos = (
            _unpickled(database.get(key, LARGEST_VALUE))
            for key in (b"__chunk_size__", b"__chunk_infos__")
        )
    if not is_integer(chunk) or not 1 <= chunk <= _LARGEST_CHUNK:
        raise ValueError(f"its chunks have {str(chunk)[:40]} frames")
    if not isinstance(infos, list) or len(infos) > MOST_EPISODES:
        raise ValueError("it has no list of episodes")
    parts = {}
    for info in infos:
        found = info if isinstance(info, dict) else {}
        name, number, frames = (found.get(k, -1) for k in ("episode", "episode_idx", "num_frames"))
        if not isinstance(name, str) or not 0 < len(name) <= 300 or set(name) & set("/\0\\"):
            raise ValueError(f"an episode has the name {str(name)[:40]!r}")
        if not (is_integer(number) and is_integer(frames) and 0 <= frames <= MOST_STEPS):
            raise ValueError(f"the episode {name[:40]!r} has {str(frames)[:40]} frames")
        parts[name] = Part(file, int(number), int(frames), int(chunk))
    return parts


class DatasetRecording:
    """One episode of a dataset, as a `RecordedEpisode`.

    Attributes:
        path: See `MineStudioDataset.path_of`.
        name: The episode's name.
    """

    format: ClassVar[str] = DATASET

    def __init__(self, path: Path) -> None:
        """Find the episode.

        Raises:
            RecordingError: The dataset has no such episode.
        """
        self.path, self.name = path, path.name
        self.dataset = dataset_at(path.parents[2])
        if self.name not in self.dataset.episodes:
            raise RecordingError(f"{str(path.parents[2])!r} has no episode {self.name!r}.")

    @property
    def meta(self) -> dict[str, Any]:
        """The entries `keys` and `video` of `Recording.meta`, and as `recorder` the version."""
        version = _VERSION.search(self.dataset.folder.name)
        return {"keys": list(KEYS), "video": {}, "recorder": version[0] if version else None}

    def __len__(self) -> int:
        """N, the number of frames."""
        return self.dataset.episodes[self.name]

    @cached_property
    def steps(self) -> dict[str, NDArray]:
        """The actions: `keys`, (N, K) uint8, and `degrees`, (N, 2) float32.

        Raises:
            RecordingError: A chunk is missing or damaged, or holds no actions.
        """
        keys = np.zeros((len(self), len(KEYS)), np.uint8)
        degrees = np.zeros((len(self), 2), np.float32)
        start = 0
        for columns in self.dataset.decoded(ACTION, self.name, 0, len(self)):
            try:
                turned = np.asarray(columns["camera"], np.float32)
                rows = slice(start, start + len(turned))
                degrees[rows] = turned.reshape(-1, 2)
                for column, key in enumerate(KEYS):
                    pressed = np.asarray(columns.get(key, 0))
                    if not ((pressed == 0) | (pressed == 1)).all():
                        raise ValueError(f"the key {key} is neither 0 nor 1")
                    keys[rows, column] = pressed
                if not np.isfinite(turned).all():
                    raise ValueError("the camera turns by no finite number of degrees")
            except (KeyError, ValueError, TypeError) as error:
                raise RecordingError(
                    f"{str(self.path)!r} has no actions at frame {start}: {error}."
                ) from error
            start = rows.stop
        return {"keys": keys, "degrees": degrees}

    @property
    def observations(self) -> Mapping[str, NDArray]:
        """Empty: a dataset's frames are all that was observed."""
        return {}

    def frames(
        self, size: tuple[int, int] | None = None, stop: int | None = None, start: int = 0
    ) -> Iterator[Frame]:
        """Decode frames from `start` to `stop` (all N by default).

        Raises:
            RecordingError: A chunk is missing, or cannot be decoded.
        """
        stop = len(self) if stop is None else min(stop, len(self))
        return self.dataset.pictures(self.name, start, stop, size)

    def problems(self) -> list[str]:
        """Return what is wrong with the parts that can be read: nothing."""
        return []


# -------------------------------------------------------------------------------------- writing one


class DatasetLayout(Layout):
    """Writes an episode as a dataset's databases, one per modality, as MineStudio's converters do.

        DATASET/action/NAME/data.mdb and so on

    The episode's N frames, each seen before an action, are at hand to MineStudio's `RawDataset` and
    `KernelManager` at once. Unlike the converters', the last chunk may be shorter than the others.
    The episode is called NAME; its infos are moved last.
    """

    takes_keys: ClassVar[bool] = True

    @staticmethod
    def place_of(path: Path) -> Path:
        """Return the database of infos."""
        return path.parent / META_INFO / path.name

    def __init__(self, path: Path, video: VideoOptions) -> None:
        """Create the databases.

        Raises:
            InvalidOptionsError: The package `lmdb` is not installed.
        """
        lmdb = the_package()
        self.path = path
        self.partial = Unfinished(path).partial

        def chunks(modality: str, encode: Callable[[list[Any]], bytes]) -> _Chunks:
            return _Chunks(lmdb, self.partial / modality, path.name, encode)

        self._actions = chunks(ACTION, _columns)
        self.frames = chunks(IMAGE, partial(_film, self.partial / "chunk.mp4", video))
        self._infos = chunks(META_INFO, pickle.dumps)
        self.files = (self._actions, self._infos)
        self._sight: Sight | None = None

    def see(self, sight: Sight) -> None:
        """Keep it until the action that follows is known."""
        self._sight = Sight(sight.frame, sight.shown, dict(sight.info))

    def act(self, step: RecordedStep) -> None:
        """Add the frame and info before the action, and the action."""
        assert self._sight is not None
        info = {name: value for name, value in self._sight.info.items() if name != POV}
        self.frames.add(self._sight.shown)
        self._infos.add(plain(info))
        self._actions.add({"camera": np.zeros(2), **dict.fromkeys(KEYS, 0), **step.action})

    def complete(self, facts: Mapping[str, Any]) -> list[tuple[Path, Path]]:
        """Return the databases and their final paths; the format has no place for facts."""
        return [
            (self.partial / modality, self.path.parent / modality / self.path.name)
            for modality in _FOLDERS
        ]


def the_package() -> ModuleType:
    """Return the package `lmdb`, with which datasets are written.

    Raises:
        InvalidOptionsError: It is not installed.
    """
    try:
        import lmdb
    except ImportError as error:
        raise InvalidOptionsError(
            "format is 'minestudio-dataset', which is written with the package lmdb: pip install "
            "'rllib-minestudio[lmdb]'."
        ) from error
    return lmdb


def _columns(actions: list[Any]) -> bytes:
    return pickle.dumps({key: np.array([row[key] for row in actions]) for key in actions[0]})


def _film(file: Path, options: VideoOptions, frames: list[Any]) -> bytes:
    with VideoWriter(file, FRAMES_PER_SECOND, crf=options.crf, preset=options.preset) as video:
        for frame in frames:
            video.add(frame)
    return file.read_bytes()


class _Chunks:
    """A database of one episode in one modality, written chunk by chunk.

    Attributes:
        path: Its folder.
    """

    def __init__(
        self, lmdb: Any, path: Path, name: str, encode: Callable[[list[Any]], bytes]
    ) -> None:
        path.mkdir(parents=True)
        self.path, self._name, self._encode = path, name, encode
        self._rows: list[Any] = []
        self._count = 0
        # The file grows to what is written.
        self._database = lmdb.open(str(path), map_size=2**40, lock=False)

    def add(self, row: Any) -> None:
        """Append a frame, an info or an action."""
        self._rows.append(row)
        if len(self._rows) == CHUNK:
            self._write()

    def close(self) -> None:
        """Write the last chunk and the list of episodes; closing it again has no effect."""
        if self._database is None:
            return
        if self._rows:
            self._write()
        episode = {"episode": self._name, "episode_idx": 0, "num_frames": self._count}
        facts = {
            "__chunk_size__": CHUNK,
            "__chunk_infos__": [episode],
            "__num_episodes__": 1,
            "__num_total_frames__": self._count,
        }
        with self._database.begin(write=True) as transaction:
            for key, value in facts.items():
                transaction.put(key.encode(), pickle.dumps(value))
        self.discard()

    def discard(self) -> None:
        """Close the database as it is."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _write(self) -> None:
        with self._database.begin(write=True) as transaction:
            transaction.put(str((0, self._count)).encode(), self._encode(self._rows))
        self._count += len(self._rows)
        self._rows = []
