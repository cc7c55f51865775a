"""The rows of an episode: what was done at each step and what came of it."""

from __future__ import annotations

import math
import zipfile
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.recordings.layout import (
    KEY_COLUMNS,
    KL_COLUMN,
    OUTCOME_COLUMNS,
    TOKEN_COLUMNS,
)

_CAMERA = "camera"

EXTRAS = ("value", "kl")
"""What a policy may tell of a step: the frame's value, and how far it is from its prior (nats). NaN
where it was not told."""

_HEADERS: dict[Any, Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Version of the format -> what reads (shape, is Fortran's order, dtype)."""

_HEADER = 16384
"""Bytes that the description of a column may take in its file."""


class Columns:
    """Collects rows in typed arrays: 13 bytes a step with tokens, 37 with keys; 4 for KL.

    Attributes:
        keys: Names of the keys if the actions are keys, in the order of the column; else None.
    """

    def __init__(self) -> None:
        """Start without rows; the first action decides between tokens and keys."""
        self.keys: list[str] | None = None
        self._rewards, self._values, self._kl = array("f"), array("f"), array("f")
        self._terminated, self._truncated = array("B"), array("B")
        self._tokens = {name: array("H") for name in TOKEN_COLUMNS}
        self._pressed, self._degrees = array("B"), array("f")

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rewards)

    def add(
        self,
        action: Mapping[str, Any],
        reward: float,
        terminated: bool,
        truncated: bool,
        value: float,
        kl: float | None = None,
    ) -> None:
        """Append one row.

        Args:
            action: Tokens (`buttons` and `camera`, each an int or an array of one element) or an
                environment action: keys, 0 or 1, and `camera`, two degrees.
            reward: Of the step.
            terminated: Whether the step ended the episode.
            truncated: Whether it cut the episode off.
            value: The policy's value of what it saw before; NaN if it told none.
            kl: Its divergence from a prior, told in every step or in none.
        """
        if len(self) == 0 and "buttons" not in action:
            self.keys = [name for name in action if name != _CAMERA]
        if self.keys is None:
            for name, column in self._tokens.items():
                column.append(int(np.asarray(action[name]).item()))
        else:
            self._pressed.extend(int(np.asarray(action.get(key, 0)).item()) for key in self.keys)
            self._degrees.extend(float(angle) for angle in action.get(_CAMERA, (0.0, 0.0)))
        self._rewards.append(reward)
        self._values.append(value)
        if kl is not None:
            self._kl.append(kl)
        self._terminated.append(terminated)
        self._truncated.append(truncated)

    def arrays(self) -> dict[str, NDArray]:
        """Return all columns under the names, and with the types, of `layout`."""
        columns: dict[str, Any] = {
            "reward": self._rewards,
            "terminated": self._terminated,
            "truncated": self._truncated,
            "value": self._values,
        }
        if self._kl:
            columns["kl"] = self._kl
        if self.keys is None:
            columns.update(self._tokens)
        else:
            columns["keys"] = np.reshape(self._pressed, (len(self), len(self.keys)))
            columns["degrees"] = np.reshape(self._degrees, (len(self), 2))
        types = {**OUTCOME_COLUMNS, **TOKEN_COLUMNS, **KEY_COLUMNS, **KL_COLUMN}
        return {name: np.asarray(column, types[name]) for name, column in columns.items()}


def read_columns(path: Path, rows: int, keys: Sequence[str] | None) -> dict[str, NDArray]:
    """Return the columns that `Columns.arrays` gave, read from their file and checked.

    Args:
        path: What `numpy.savez_compressed` wrote.
        rows: How many steps there are.
        keys: Names of the keys; None if the actions are tokens.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile: The file is damaged.
    """
    actions = TOKEN_COLUMNS if keys is None else KEY_COLUMNS
    width = {"keys": (len(keys or ()),), "degrees": (2,)}
    found = {}
    with zipfile.ZipFile(path) as archive:
        told = KL_COLUMN if "kl.npy" in archive.namelist() else {}
        for name, dtype in {**OUTCOME_COLUMNS, **actions, **told}.items():
            shape = (rows, *width.get(name, ()))
            column = found[name] = read_column(archive, name, shape, np.dtype(dtype))
            if name not in EXTRAS and not np.isfinite(column).all():
                raise ValueError(f"column {name!r} has values that are no finite numbers")
    return found


def read_column(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype
) -> NDArray:
    """Return one column, judged before it is unpacked: a few kilobytes can hold gigabytes of zeros.

    Args:
        archive: What `numpy.savez_compressed` wrote.
        name: The column's.
        shape: What it must have, rows first.
        dtype: The same.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile: It is damaged, or another.
    """
    file = f"{name}.npy"
    size = archive.getinfo(file).file_size if file in archive.NameToInfo else -1
    wrong = f"column {name!r} must have {shape[0]} rows of {dtype.name}"
    if not 0 <= size - math.prod(shape) * dtype.itemsize <= _HEADER:
        raise ValueError(wrong)
    with archive.open(file) as member:
        version = np.lib.format.read_magic(member)
        told_shape, _, told_dtype = _HEADERS[version](member)
    if told_shape != shape or told_dtype != dtype:  # before room is made for them
        raise ValueError(wrong)
    with archive.open(file) as member:
        column: NDArray = np.lib.format.read_array(member, allow_pickle=False)
        return column
