"""Reading files of tensors: safetensors, and what `torch.save` writes, bounded before it is read.

Safetensors are numbers behind a table of contents. What `torch.save` writes is a pickle and
numbers; torch reads it without running anything (`weights_only`), but takes its word for sizes.
"""

from __future__ import annotations

import mmap
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.pickle_scan import scan
from rllib_minestudio.safe_pickle import Inert

_LARGEST_HEADER = 16 * 1024**2
"""Bytes of a table of contents; that of VPT 3x has fifty thousand."""

_PICKLE_BUDGET = 32 * 1024**2
"""Bytes of Python objects in a file of tensors: names, shapes, a few settings."""

_LEGACY_PICKLES = 5
"""Files of `torch.save` before version 1.6 begin with so many; see torch's `_legacy_save`."""

_DTYPES = {
    "F64": torch.float64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
"""Safetensors' names of dtypes besides float32."""


def read_safetensors(path: Path, device: str) -> dict[str, Tensor]:
    """Reads all tensors; on the device `meta` only names, shapes and dtypes.

    Raises:
        CheckpointMismatchError: The file is damaged.
    """
    try:
        _check_header(path)
        with safe_open(path, framework="pt") as file:
            if device != "meta":
                return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: _blank(part) for name, part in slices.items()}
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise CheckpointMismatchError(
            f"weights {str(path)!r} cannot be read as safetensors: {error}"
        ) from error


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        length = file.read(8)
    size = path.stat().st_size
    if len(length) < 8 or struct.unpack("<Q", length)[0] > min(size - 8, _LARGEST_HEADER):
        raise ValueError("its table of contents is cut off, or far too long")


def _blank(part: Any) -> Tensor:
    """A tensor without contents, of the shape and dtype in a safetensors header."""
    dtype = _DTYPES.get(part.get_dtype(), torch.float32)
    return torch.empty(part.get_shape(), dtype=dtype, device="meta")


def read_torch(path: Path, device: str) -> Any:
    """Reads a file of `torch.save`; tensors stay on disk until they are copied.

    Raises:
        CheckpointMismatchError: The file is damaged, or asks for too much memory.
    """
    try:
        with path.open("rb") as file:
            is_zip = torch.serialization._is_zipfile(file)
        (_check_zip if is_zip else _check_legacy)(path)
        return _load(path, device, is_zip)
    # What torch.load raises on damaged files ranges from AttributeError to zlib's.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointMismatchError(
            f"weights {str(path)!r} cannot be read as a torch state dict: {reason}"
        ) from error


def _check_zip(path: Path) -> None:
    """Refuses archives that are larger in memory than on disk; torch compresses nothing."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("a part of it is compressed, which torch never does")
        if sum(member.file_size for member in members) > path.stat().st_size:
            raise ValueError("its parts are larger than the file")
        for member in members:
            if member.filename.endswith("data.pkl"):
                scan(archive.read(member), budget=_PICKLE_BUDGET)


def _check_legacy(path: Path) -> None:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        position = 0
        for _ in range(_LEGACY_PICKLES):
            position = scan(data, position, _PICKLE_BUDGET)


def _load(path: Path, device: str, is_zip: bool) -> Any:
    try:
        return torch.load(path, map_location=device, weights_only=True, mmap=is_zip)
    except pickle.UnpicklingError:
        if not is_zip:
            raise
    # Lightning stores settings beside the weights; what they are made of is not needed.
    names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    with torch.serialization.safe_globals([(Inert, name) for name in names]):
        return torch.load(path, map_location=device, weights_only=True, mmap=is_zip)
