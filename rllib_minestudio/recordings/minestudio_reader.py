"""Reading the episodes that MineStudio's inference workers write, as demonstrations.

    action_<id>.pkl   list of N actions: {"attack": (), ..., "camera": (2,)}, keys and degrees; or
                      {"buttons": (1,), "camera": (1,)}, tokens. Torch tensors or arrays
    video_<id>.mp4    N + 1 frames, or images_<id>/0.jpeg, 1.jpeg, ...

Source of the layout: MineStudio 1.1.6, `Worker.save_to_file` in
inference/generator/mine_generator.py.
Its simulator overwrites the tokens in the agent's own dict with keys, so real files hold keys. They
also hold what callbacks requested from the game (`voxels`, `mobs`, `chat`), which is ignored.

The pickle is read without running code in it (`foundation/pickles.py`). Torch's tensors are decoded
here, because torch's own unpickling of them would also unpickle anything else.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import av
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import CheckpointMismatchError, RecordingError
from rllib_minestudio.foundation.buttons import KEYS
from rllib_minestudio.foundation.pickles import PlainUnpickler, load_plain
from rllib_minestudio.recordings.video import Frame, read_pictures, read_video

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
