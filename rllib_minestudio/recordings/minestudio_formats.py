"""Two of MineStudio's episode formats, for its own tools; `minestudio_dataset` has the third.

The layouts are those of MineStudio 1.1.6, which holds an episode in memory until its end; here the
files are streamed. Pickle is MineStudio's choice: load such files only if you trust their source.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import av
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import CheckpointMismatchError, RecordingError
from rllib_minestudio.foundation.files import Unfinished
from rllib_minestudio.foundation.names import KEYS, POV
from rllib_minestudio.foundation.observations import IMAGE
from rllib_minestudio.foundation.pickles import PlainUnpickler, load_plain
from rllib_minestudio.recordings.layout import Layout, RecordedStep, Sight, to_json
from rllib_minestudio.recordings.video import (
    Frame,
    VideoOptions,
    VideoWriter,
    read_pictures,
    read_video,
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


# ---------------- reading the episodes that MineStudio's inference workers write, as demonstrations
#     action_<id>.pkl   list of N actions: {"attack": (), ..., "camera": (2,)}, keys and degrees; or
#                       {"buttons": (1,), "camera": (1,)}, tokens. Torch tensors or arrays
#     video_<id>.mp4    N + 1 frames, or images_<id>/0.jpeg, 1.jpeg, ...
#
# Source of the layout: MineStudio 1.1.6, `Worker.save_to_file` in
# inference/generator/mine_generator.py. Its simulator overwrites the tokens in the agent's own dict
# with keys, so real files hold keys. They also hold what callbacks requested from the game
# (`voxels`, `mobs`, `chat`), which is ignored.
#
# The pickle is read without running code in it (`foundation/pickles.py`). Torch's tensors are
# decoded here, because torch's own unpickling of them would also unpickle anything else.

PREFIX, SUFFIX, PICTURES = "action_", ".pkl", "images_"

_MALFORMED = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""Exceptions that a malformed action makes Python and NumPy raise."""

_STORAGES = {"LongStorage": np.int64, "IntStorage": np.int32, "ShortStorage": np.int16}
"""Names of torch's integer storages -> dtype."""


class MineStudioRecording:
    """One episode of MineStudio's, as a `RecordedEpisode`.

    Attributes:
        path: The file of actions.
    """

    format: ClassVar[str] = "minestudio"

    def __init__(self, path: str | Path) -> None:
        """Find the files; they are read on access.

        Args:
            path: `action_<id>.pkl`.

        Raises:
            RecordingError: There is no video or folder of pictures in the same folder.
        """
        self.path = Path(path)
        episode = self.path.stem.removeprefix(PREFIX)
        self._video = self.path.with_name(f"video_{episode}.mp4")
        self._pictures = self.path.with_name(f"{PICTURES}{episode}")
        if not self._video.is_file() and not self._pictures.is_dir():
            raise RecordingError(
                f"{str(self.path)!r} has neither {self._video.name} nor {self._pictures.name} "
                "beside it."
            )

    @property
    def meta(self) -> dict[str, Any]:
        """The entries `keys` and `video` of `Recording.meta`.

        Raises:
            RecordingError: As `steps`.
        """
        return {"keys": None if "buttons" in self.steps else list(KEYS), "video": {}}

    def __len__(self) -> int:
        return len(next(iter(self.steps.values())))

    @cached_property
    def steps(self) -> dict[str, NDArray]:
        """The actions.

        Returns:
            Tokens: `buttons` and `camera`, (N,) int64 each. Or keys: `keys`, (N, K) uint8 in the
            order of `meta["keys"]`, and `degrees`, (N, 2) float32, pitch and yaw.

        Raises:
            RecordingError: The file is damaged, or holds something else.
        """
        try:
            actions = load_plain(self.path, unpickler=_TensorUnpickler)
            if not isinstance(actions, list):
                raise TypeError(f"it holds a {type(actions).__name__}")
            return _tokens(actions) if actions and "buttons" in actions[0] else _keys(actions)
        except (CheckpointMismatchError, *_MALFORMED) as error:
            raise RecordingError(
                f"{str(self.path)!r} holds no list of MineStudio's actions: {error}"
            ) from error

    @property
    def observations(self) -> Mapping[str, NDArray]:
        """Empty: MineStudio's files have no observations besides the frame."""
        return {}

    def problems(self) -> list[str]:
        """Return an empty list: a damaged episode is refused when it is read."""
        return []

    def frames(
        self, size: tuple[int, int] | None = None, stop: int | None = None, start: int = 0
    ) -> Iterator[Frame]:
        """Decode frames one by one, like `Recording.frames`.

        Raises:
            RecordingError: There are fewer, or they cannot be decoded.
        """
        expected = len(self) + 1 if stop is None else min(stop, len(self) + 1)
        count = start
        try:
            for frame in islice(self._source(size, start), max(0, expected - start)):
                yield frame
                count += 1
        except (OSError, av.error.FFmpegError) as error:
            raise RecordingError(
                f"The frames of {str(self.path)!r} are damaged: {error}"
            ) from error
        if count < expected:
            raise RecordingError(
                f"{str(self.path)!r} has {len(self)} actions, but only {count} frames."
            )

    def _source(self, size: tuple[int, int] | None, start: int) -> Iterator[Frame]:
        if self._video.is_file():
            return read_video(self._video, size, start)
        pictures = list(self._pictures.iterdir())
        strange = [file.name for file in pictures if not file.stem.isdecimal()]
        if strange:
            raise RecordingError(
                f"{str(self._pictures / strange[0])!r} is no frame of a recording: pictures are "
                "named 0.jpeg, 1.jpeg, and so on. Remove it."
            )
        # Their names have no leading zeros.
        return read_pictures(sorted(pictures, key=lambda file: int(file.stem))[start:], size)


def _tokens(actions: list[Any]) -> dict[str, NDArray]:
    return {
        name: np.array([int(np.asarray(action[name]).item()) for action in actions], np.int64)
        for name in ("buttons", "camera")
    }


def _keys(actions: list[Any]) -> dict[str, NDArray]:
    """Return `keys` and `degrees`; keys missing from an action are not pressed.

    Raises:
        KeyError, TypeError, ValueError: It is not a list of environment actions.
    """
    pressed = np.zeros((len(actions), len(KEYS)), np.uint8)
    degrees = np.zeros((len(actions), 2), np.float32)
    for row, action in enumerate(actions):
        degrees[row] = np.asarray(action["camera"], np.float64).reshape(2)
        for column, key in enumerate(KEYS):
            value = int(np.asarray(action.get(key, 0)).item())
            if value not in (0, 1):
                raise ValueError(f"the key {key} is {value}, not 0 or 1")
            pressed[row, column] = value
    if not np.isfinite(degrees).all():
        raise ValueError("the camera turns by no finite number of degrees")
    return {"keys": pressed, "degrees": degrees}


class _TensorUnpickler(PlainUnpickler):
    """An unpickler that also allows torch's integer tensors, and makes them arrays."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _read_storage
        return super().find_class(module, name)


class _StorageUnpickler(PlainUnpickler):
    """An unpickler of the parts in which `torch.save`'s legacy format stores a storage."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        return pid


def _rebuild_tensor(
    storage: NDArray, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any
) -> NDArray:
    if int(np.prod(size)) != 1:
        raise ValueError(f"a token is one number, but one has the shape {tuple(size)}")
    return storage[offset : offset + 1].reshape(size)


def _read_storage(data: bytes) -> NDArray:
    """Return the numbers of a storage in the format of `_legacy_save` in torch/serialization.py.

    It consists of pickles of a magic number, the protocol, the system, the storage's description
    and the list of keys; then, for each key, the count and the numbers.
    """
    file = io.BytesIO(data)
    *_, description, keys = (_StorageUnpickler(file).load() for _ in range(5))
    if len(keys) != 1:
        raise ValueError("a tensor has one storage")
    dtype = np.dtype(description[1]).newbyteorder("<")
    (count,) = np.frombuffer(file.read(8), "<i8")
    return np.frombuffer(file.read(int(count) * dtype.itemsize), dtype, int(count))
