"""What was observed besides the frame: optional columns of an episode, described beside it.

`episode.json` says under `observations` which parts there are, `{name: {"shape": [2], "dtype":
"float64"}}`, and `steps.npz` has a column `obs/<name>` of N rows for each: row t is what was seen
before action t. The description is judged first, and the columns by it, so that a file cannot make
its reader take more memory than is good.
"""

from __future__ import annotations

import math
import zipfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.option_checks import is_integer, is_list, shown
from rllib_minestudio.recordings.columns import read_column
from rllib_minestudio.recordings.failures import DAMAGE

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
