"""The rows of an episode: what was done at each step and what came of it."""

from __future__ import annotations

import gzip
import io
import json
import math
import zipfile
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.foundation.files import parse_json
from rllib_minestudio.foundation.options import is_integer, is_list, shown
from rllib_minestudio.recordings.failures import DAMAGE
from rllib_minestudio.recordings.layout import (
    KEY_COLUMNS,
    KL_COLUMN,
    OUTCOME_COLUMNS,
    REMOVED,
    TOKEN_COLUMNS,
    to_json,
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


# -------------------------------------------------------------- what was observed besides the frame
# Optional columns of an episode, described beside it.
#
# `episode.json` says under `observations` which parts there are, `{name: {"shape": [2], "dtype":
# "float64"}}`, and `steps.npz` has a column `obs/<name>` of N rows for each: row t is what was seen
# before action t. The description is judged first, and the columns by it, so that a file cannot
# make its reader take more memory than is good.

PREFIX = "obs/"
"""Of the names of the columns."""

MOST_PARTS = 256
MOST_DIMENSIONS = 8
MOST_BYTES = 2**28
"""Of all columns together: a kilobyte a step in an episode of three and a half hours."""

_DTYPES = frozenset(
    (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
)


class Row(NamedTuple):
    """One row of a column."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


class ObservationColumns:
    """Collects observations, in as many bytes as they have."""

    def __init__(self) -> None:
        """Start without rows; the first observation decides about the columns."""
        self._rows: dict[str, Row] | None = None
        self._bytes: dict[str, array[int]] = {}
        self._count = self._row_bytes = 0

    def add(self, observation: Mapping[str, Any]) -> None:
        """Append one row to each column.

        Args:
            observation: Name -> array or number; the same names, shapes and dtypes every time.

        Raises:
            ValueError: It is not like the first, or a reader would refuse the columns.
        """
        arrays = {name: np.asarray(value) for name, value in observation.items()}
        rows = {name: Row(value.shape, value.dtype) for name, value in arrays.items()}
        if self._rows is None:
            self._rows = rows
            self._bytes = {name: array("B") for name in rows}
            self._row_bytes = sum(row.size for row in rows.values())
            for problem in problems_of(self.description(), steps=1):
                raise ValueError(problem)
        elif rows != self._rows:
            raise ValueError("the parts of an observation are not those of the first one")
        self._count += 1
        if self._count * self._row_bytes > MOST_BYTES:
            raise ValueError(_too_large(self._count * self._row_bytes))
        for name, value in arrays.items():
            self._bytes[name].frombytes(value.tobytes())

    def description(self) -> dict[str, dict[str, Any]]:
        """Return what `episode.json` says of the columns."""
        return {
            name: {"shape": list(row.shape), "dtype": row.dtype.name}
            for name, row in (self._rows or {}).items()
        }

    def arrays(self) -> dict[str, NDArray]:
        """Return the columns as `steps.npz` holds them."""
        return {
            f"{PREFIX}{name}": np.frombuffer(self._bytes[name], row.dtype).reshape(
                self._count, *row.shape
            )
            for name, row in (self._rows or {}).items()
        }


class RecordedObservations(Mapping[str, NDArray]):
    """The columns of a recording by name, N rows each; read from the file whenever asked for."""

    def __init__(
        self, path: Path, description: Any, steps: int, damaged: Callable[[object], Exception]
    ) -> None:
        """Note where they are.

        Args:
            path: The file of columns.
            description: Of them, judged by `problems_of`.
            steps: How many rows there are.
            damaged: Makes an error out of a reason.
        """
        self._path, self._steps, self._damaged = path, steps, damaged
        self._rows = {
            name: Row(tuple(told["shape"]), np.dtype(told["dtype"]))
            for name, told in description.items()
        }

    def __getitem__(self, name: str) -> NDArray:
        """Read one column, (N, ...).

        Raises:
            RecordingError: The file is damaged, or the column is not what its description says.
        """
        row = self._rows[name]
        try:
            with zipfile.ZipFile(self._path) as archive:
                return read_column(archive, f"{PREFIX}{name}", (self._steps, *row.shape), row.dtype)
        except DAMAGE as error:
            raise self._damaged(error) from error

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return how many columns there are."""
        return len(self._rows)


def problems_of(description: Any, steps: int) -> list[str]:
    """Say what is wrong with the description of columns, or with their size.

    Args:
        description: What `episode.json` says under `observations`.
        steps: How many rows each column has.
    """
    if not isinstance(description, dict) or len(description) > MOST_PARTS:
        return [f"observations must be a mapping with at most {MOST_PARTS} entries"]
    total = 0
    for name, told in description.items():
        told = told if isinstance(told, dict) else {}
        shape: Any = told.get("shape")
        dtype: Any = told.get("dtype")
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            return [f"dtype of the observation {name!r} must be one of numbers; got {shown(dtype)}"]
        if (
            not is_list(shape)
            or len(shape) > MOST_DIMENSIONS
            or not all(is_integer(side) and 0 <= side <= MOST_BYTES for side in shape)
        ):
            return [
                f"shape of the observation {name!r} must be a list of at most {MOST_DIMENSIONS} "
                f"numbers, from 0 to {MOST_BYTES}; got {shown(shape)}"
            ]
        total += Row(tuple(shape), np.dtype(dtype)).size * steps
    return [_too_large(total)] if total > MOST_BYTES else []


def _too_large(size: int) -> str:
    return (
        f"the observations besides the frames must be at most {MOST_BYTES} bytes large; they are "
        f"{size}: make the episodes shorter, or the parts smaller"
    )


# --------------------------------------- infos as compressed JSON lines that hold only what changed

COMPRESSION = 1
"""gzip's fastest level: most of what it saves, at a tenth of the time."""

_LONGEST_LINE = 8 * 1024**2
_LARGEST_INFO = 64 * 1024**2
"""Characters of a line, and of all lines that an info is made of; real ones have thousands."""


class InfoLines:
    """Writes infos one by one.

    A line holds the top-level entries that are new or different since the line before, and under
    `REMOVED` the keys that are gone. The inventory and the statistics rarely change, so that this
    is several times smaller and faster than whole infos.
    """

    def __init__(self, path: Path) -> None:
        compressed = gzip.GzipFile(path, "wb", compresslevel=COMPRESSION)
        self._stream = io.TextIOWrapper(compressed, encoding="utf-8")
        self._before: dict[str, Any] = {}

    def add(self, info: Mapping[str, Any]) -> None:
        """Append one info."""
        # Serialised entry by entry: what is remembered must not change under our hands.
        entries = {str(key): to_json(value) for key, value in info.items()}
        changed = {
            key: text for key, text in entries.items() if self._before.get(key, None) != text
        }
        removed = [key for key in self._before if key not in entries]
        if removed:
            changed[REMOVED] = json.dumps(removed)
        line = ",".join(f"{json.dumps(key)}:{text}" for key, text in changed.items())
        self._stream.write(f"{{{line}}}\n")
        self._before = entries

    def close(self) -> None:
        """Write what is buffered."""
        self._stream.close()


def read_infos(path: Path) -> Iterator[dict[str, Any]]:
    """Yield whole infos, line by line.

    Raises:
        OSError, EOFError, ValueError: The file is missing, cut off, or not what it should be.
    """
    info: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        while line := stream.readline(_LONGEST_LINE):
            changed = parse_json(line)
            if not isinstance(changed, dict):
                raise ValueError(f"a line holds no info: {line[:40]!r}")
            gone = changed.pop(REMOVED, ())
            if not isinstance(gone, list | tuple):
                raise ValueError(f"a line lists no keys under {REMOVED!r}")
            info = {**{key: value for key, value in info.items() if key not in gone}, **changed}
            sizes = {
                key: _size(changed[key], line) if key in changed else sizes[key] for key in info
            }
            if sum(sizes.values()) > _LARGEST_INFO:
                raise ValueError("an info has more than anybody could have recorded")
            yield info


def _size(value: Any, line: str) -> int:
    """Characters that an entry takes, or more: a short line is simply taken for all of it."""
    return len(line) if len(line) < 4096 else len(to_json(value))
