"""Reading files of tensors, with sizes checked before memory is allocated.

A safetensors file is a table of contents followed by numbers. `torch.save` writes a pickle and
numbers; torch reads them without running code (`weights_only`), but trusts the sizes in the pickle.
RLlib's `module_state.pkl` is a pickle of arrays. Except in the latter, numbers stay on disk until
they are accessed, so that names and shapes cost no more than reading the table of contents.

This is the only file of `checkpoints` that uses torch; it is imported when tensors are needed.
"""

from __future__ import annotations

import hashlib
import mmap
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.foundation.pickles import Inert, load_plain, scan

Tensors = Mapping[str, Tensor]
"""A state dict: name -> tensor on the CPU."""

PREFIXES = ("", "mine_policy.", "module.", "network.", "_orig_mod.")
"""Possible prefixes of all names, from Lightning, DistributedDataParallel, RLlib, torch.compile."""

LANDMARK = "net.final_ln.weight"
"""A name in every VPT policy, from which the prefix is found."""

_DIGESTS = "sha256"
"""Key in the metadata of our own safetensors files: of the tensors, and of the description."""

_LARGEST_HEADER = 16 * 1024**2
"""Limit on the bytes of a table of contents; that of VPT 3x has fifty thousand."""

_PICKLE_BUDGET = 32 * 1024**2
"""Limit on the bytes of Python objects in a file of tensors: names, shapes, a few settings."""

_LEGACY_PICKLES = 5
"""Number of pickles at the start of files from `torch.save` before 1.6; see its `_legacy_save`."""


def read_tensors(path: Path, description: Path | None = None) -> Tensors:
    """Read the state dict in a file of any format, without prefixes in its names.

    Args:
        path: The file. If it has digests of its tensors, these are compared.
        description: The description of the network that was written with it; then the file must
            have digests of both.

    Raises:
        CheckpointMismatchError: The file is missing, damaged, or holds something else.
    """
    if not path.is_file():
        raise CheckpointMismatchError(f"weights {str(path)!r} do not exist.")
    if path.suffix == ".safetensors":
        state: Any = _read_safetensors(path, description)
    else:
        state = _read_arrays(path) if path.suffix == ".pkl" else _read_torch(path)
    tensors = _without_prefix(state, path)
    _check_sizes(tensors, path)
    return tensors


def digests_of(state: Tensors, description: bytes) -> dict[str, str]:
    """Return the metadata by which damage of a file of tensors and its description is noticed.

    Args:
        state: The tensors, by name.
        description: The contents of the file that describes their network.
    """
    found = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return {_DIGESTS: f"{found.hexdigest()} {hashlib.sha256(description).hexdigest()}"}


def _read_safetensors(path: Path, description: Path | None) -> dict[str, Tensor]:
    """Read all tensors; without digests to compare, they stay on disk until they are copied.

    Raises:
        CheckpointMismatchError: The file is damaged.
    """
    try:
        _check_header(path)
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
        _compare_digests(state, metadata, description)
        return state
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise CheckpointMismatchError(
            f"weights {str(path)!r} cannot be read as safetensors: {error}"
        ) from error


def _compare_digests(state: Tensors, metadata: Mapping[str, str], description: Path | None) -> None:
    """Compare tensors and description with the digests that were written with them.

    Raises:
        ValueError: Something has changed, or there are no digests where there must be.
    """
    written = metadata.get(_DIGESTS)
    if description is None and written is None:
        return
    if written is None:
        raise ValueError("it lacks the digests by which damage is noticed")
    text = b"" if description is None else description.read_bytes()
    tensors_now, text_now = digests_of(state, text)[_DIGESTS].split()
    tensors_then, _, text_then = written.partition(" ")
    if tensors_now != tensors_then:
        raise ValueError("its tensors have changed since they were written (their digest differs)")
    if description is not None and text_now != text_then:
        raise ValueError(
            f"{description.name} beside it has changed since it was written (its digest differs)"
        )


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        length = file.read(8)
    size = path.stat().st_size
    if len(length) < 8 or struct.unpack("<Q", length)[0] > min(size - 8, _LARGEST_HEADER):
        raise ValueError("its table of contents is cut off, or far too long")


def _read_arrays(path: Path) -> Any:
    """Read only the arrays in a pickle of RLlib's."""
    content = load_plain(path)
    if not isinstance(content, Mapping):
        return content
    return {
        name: torch.from_numpy(value)
        for name, value in content.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    }


def _read_torch(path: Path) -> Any:
    """Read a file of `torch.save`; tensors stay on disk until they are copied.

    Raises:
        CheckpointMismatchError: The file is damaged, or asks for too much memory.
    """
    try:
        with path.open("rb") as file:
            is_zip = torch.serialization._is_zipfile(file)
        (_check_zip if is_zip else _check_legacy)(path)
        return _load(path, is_zip)
    # On damaged files, torch.load raises anything from AttributeError to zlib's errors.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointMismatchError(
            f"weights {str(path)!r} cannot be read as a torch state dict: {reason}"
        ) from error


def _check_zip(path: Path) -> None:
    """Refuse archives that are larger in memory than on disk; torch's are never compressed."""
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


def _load(path: Path, is_zip: bool) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except pickle.UnpicklingError:
        if not is_zip:
            raise
    # Lightning stores settings beside the weights; their classes are not needed.
    names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    with torch.serialization.safe_globals([(Inert, name) for name in names]):
        return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)


def _check_sizes(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse tensors that are larger than their file because they repeat a few numbers.

    Copying them, or building their network, would exhaust the memory.
    """
    size = path.stat().st_size
    if any(tensor.layout != torch.strided for tensor in tensors.values()):
        raise CheckpointMismatchError(f"weights {str(path)!r} have sparse tensors.")
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) > size:
        raise CheckpointMismatchError(
            f"weights {str(path)!r} are damaged: their tensors claim more numbers than the file "
            f"of {size:,} bytes can hold."
        )


def _without_prefix(state: Any, path: Path) -> dict[str, Tensor]:
    """Unwrap a state dict, and keep only the tensors under the policy's prefix."""
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    if not isinstance(state, Mapping) or not any(isinstance(v, Tensor) for v in state.values()):
        raise CheckpointMismatchError(
            f"weights {str(path)!r} hold a {type(state).__name__}, not a state dict "
            f"(names to tensors)."
        )
    prefix = next((p for p in PREFIXES if p + LANDMARK in state), "")
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in state.items()
        if isinstance(name, str) and name.startswith(prefix) and isinstance(tensor, Tensor)
    }
