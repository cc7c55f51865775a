"""The columns of an episode, with a row per step (action, outcome, observations), and its infos."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import stat
import struct
import zipfile
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from rllib_minestudio.foundation.documents import (
    LONGEST_LINE,
    LONGEST_NAME,
    MOST_FIELDS,
    Contradiction,
    Document,
    MeasuredInLine,
    Name,
    one_of,
    parse_document,
)
from rllib_minestudio.foundation.files import SmallFileError, parse_json
from rllib_minestudio.recordings.layout import (
    DAMAGE,
    KEY_COLUMNS,
    KL_COLUMN,
    OBSERVATIONS,
    OUTCOME_COLUMNS,
    REMOVED,
    TOKEN_COLUMNS,
    to_json,
)

_CAMERA = "camera"

EXTRAS = ("value", "kl")
"""Columns from the policy: the frame's value, and KL from the prior in nats. NaN if unknown."""

_HEADERS: dict[Any, Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Version of the `.npy` format -> function that reads (shape, is Fortran order, dtype)."""

_HEADER = 16384
"""Limit on the bytes of a `.npy` header."""


class Columns:
    """Collects rows in typed arrays: per step 13 bytes with tokens, 37 with keys, and 4 for KL.

    The first action decides whether the columns are of tokens, or of keys and perhaps tokens too.

    Attributes:
        keys: Names of the keys in the order of the column, if the actions are keys; else None.
    """

    def __init__(self) -> None:
        self.keys: list[str] | None = None
        self._rewards, self._values, self._kl = array("f"), array("f"), array("f")
        self._terminated, self._truncated = array("B"), array("B")
        self._tokens = {name: array("H") for name in TOKEN_COLUMNS}
        self._pressed, self._degrees = array("B"), array("f")

    def __len__(self) -> int:
        return len(self._rewards)

    def add(
        self,
        action: Mapping[str, Any],
        reward: float,
        terminated: bool,
        truncated: bool,
        value: float,
        kl: float | None = None,
        tokens: tuple[int, int] | None = None,
    ) -> None:
        """Append one row.

        Args:
            action: Tokens (`buttons` and `camera`, each an int or an array of one element) or an
                environment action: keys, 0 or 1, and `camera`, (pitch, yaw) in degrees.
            reward: Reward of the step.
            terminated: Whether the step terminated the episode.
            truncated: Whether the step truncated the episode.
            value: The policy's value of the frame before; NaN if unknown.
            kl: KL(policy || prior) in nats; given for every step or for none.
            tokens: The tokens (buttons, camera) nearest to an action of keys; as `kl`.
        """
        if len(self) == 0 and "buttons" not in action:
            self.keys = [name for name in action if name != _CAMERA]
        if self.keys is None:
            for name, column in self._tokens.items():
                column.append(int(np.asarray(action[name]).item()))
        else:
            self._pressed.extend(int(np.asarray(action.get(key, 0)).item()) for key in self.keys)
            self._degrees.extend(float(angle) for angle in action.get(_CAMERA, (0.0, 0.0)))
            for column, token in zip(self._tokens.values(), tokens or (), strict=False):
                column.append(token)
        self._rewards.append(reward)
        self._values.append(value)
        if kl is not None:
            self._kl.append(kl)
        self._terminated.append(terminated)
        self._truncated.append(truncated)

    def arrays(self) -> dict[str, NDArray]:
        """Return all columns, with the names and types of `layout`."""
        columns: dict[str, Any] = {
            "reward": self._rewards,
            "terminated": self._terminated,
            "truncated": self._truncated,
            "value": self._values,
        }
        if self._kl:
            columns["kl"] = self._kl
        if self.keys is None or any(self._tokens.values()):
            columns.update(self._tokens)
        if self.keys is not None:
            columns["keys"] = np.reshape(self._pressed, (len(self), len(self.keys)))
            columns["degrees"] = np.reshape(self._degrees, (len(self), 2))
        types = {**OUTCOME_COLUMNS, **TOKEN_COLUMNS, **KEY_COLUMNS, **KL_COLUMN}
        return {name: np.asarray(column, types[name]) for name, column in columns.items()}


def read_columns(path: Path, rows: int, keys: Sequence[str] | None) -> dict[str, NDArray]:
    """Read and check the columns that `Columns.arrays` returned when they were written.

    Args:
        path: A file written by `numpy.savez_compressed`.
        rows: Number of steps.
        keys: Names of the keys; None if the actions are tokens.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile: The file is damaged.
    """
    actions = TOKEN_COLUMNS if keys is None else KEY_COLUMNS
    width = {"keys": (len(keys or ()),), "degrees": (2,)}
    found = {}
    with zipfile.ZipFile(path) as archive:
        told = {
            name: dtype
            for name, dtype in {**KL_COLUMN, **TOKEN_COLUMNS}.items()
            if f"{name}.npy" in archive.NameToInfo
        }
        for name, dtype in {**OUTCOME_COLUMNS, **actions, **told}.items():
            shape = (rows, *width.get(name, ()))
            column = found[name] = read_column(archive, name, shape, np.dtype(dtype))
            if name not in EXTRAS and not np.isfinite(column).all():
                raise ValueError(f"column {name!r} has values that are not finite numbers")
    return found


def read_column(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype
) -> NDArray:
    """Read one column, checked before it is unpacked: a few kilobytes can hold gigabytes of zeros.

    Args:
        archive: A file written by `numpy.savez_compressed`.
        name: Name of the column.
        shape: Its expected shape, rows first.
        dtype: Its expected dtype.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile: It is damaged, or not as expected.
    """
    file = f"{name}.npy"
    size = archive.getinfo(file).file_size if file in archive.NameToInfo else -1
    wrong = f"column {name!r} must have {shape[0]} rows of {dtype.name}"
    if not 0 <= size - math.prod(shape) * dtype.itemsize <= _HEADER:
        raise ValueError(wrong)
    with archive.open(file) as member:
        version = np.lib.format.read_magic(member)
        told_shape, _, told_dtype = _HEADERS[version](member)
    if told_shape != shape or told_dtype != dtype:  # before memory is allocated
        raise ValueError(wrong)
    with archive.open(file) as member:
        column: NDArray = np.lib.format.read_array(member, allow_pickle=False)
        return column


# ---------------------------------------------------------- parts of observations besides the frame
# These columns are optional. `episode.json` describes them under `observations`, as `{name:
# {"shape": [2], "dtype": "float64"}}`, and `steps.npz` has a column `obs/<name>` of N rows for
# each: row t was observed before action t. The description is checked first, and the columns
# against it, so that a file cannot make its reader allocate too much memory.

PREFIX = "obs/"
"""Prefix of the columns' names."""

MOST_PARTS = 256
MOST_DIMENSIONS = 8
MOST_BYTES = 2**28
"""Limit on all columns together: a kilobyte per step in an episode of three and a half hours."""

_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)


class Row(NamedTuple):
    """The shape and dtype of a column's rows."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Bytes per row."""
        return math.prod(self.shape) * self.dtype.itemsize


class ObservationColumns:
    """Collects observations as bytes; the first one decides on the columns."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] | None = None
        self._bytes: dict[str, array[int]] = {}
        self._count = self._row_bytes = 0

    def add(self, observation: Mapping[str, Any]) -> None:
        """Append one row to each column.

        Args:
            observation: Name -> array or number; names, shapes and dtypes must not change.

        Raises:
            ValueError: It differs from the first, or the columns would be too large to be read.
        """
        arrays = {name: np.asarray(value) for name, value in observation.items()}
        rows = {name: Row(value.shape, value.dtype) for name, value in arrays.items()}
        if self._rows is None:
            self._rows = rows
            self._bytes = {name: array("B") for name in rows}
            self._row_bytes = sum(row.size for row in rows.values())
            parse_document({OBSERVATIONS: self.description()}, PartsDocument)
            refuse_too_large(self.description(), steps=1)
        elif rows != self._rows:
            raise ValueError("the parts of an observation are not those of the first one")
        self._count += 1
        if self._count * self._row_bytes > MOST_BYTES:
            raise ValueError(_too_large(self._count * self._row_bytes))
        for name, value in arrays.items():
            self._bytes[name].frombytes(value.tobytes())

    def description(self) -> dict[str, dict[str, Any]]:
        """Return the columns' entry for `episode.json`."""
        return {
            name: {"shape": list(row.shape), "dtype": row.dtype.name}
            for name, row in (self._rows or {}).items()
        }

    def arrays(self) -> dict[str, NDArray]:
        """Return the columns for `steps.npz`."""
        return {
            f"{PREFIX}{name}": np.frombuffer(self._bytes[name], row.dtype).reshape(
                self._count, *row.shape
            )
            for name, row in (self._rows or {}).items()
        }


class RecordedObservations(Mapping[str, NDArray]):
    """The columns of a recording by name, N rows each, read from the file at each access.

    Args:
        path: The file of columns.
        description: The columns' description, as `PartsDocument` has it.
        steps: Number of rows.
        damaged: Returns the error to raise for a reason.
    """

    def __init__(
        self, path: Path, description: Any, steps: int, damaged: Callable[[object], Exception]
    ) -> None:
        self._path, self._steps, self._damaged = path, steps, damaged
        self._rows = {
            name: Row(tuple(told["shape"]), np.dtype(told["dtype"]))
            for name, told in description.items()
        }

    def __getitem__(self, name: str) -> NDArray:
        """Read one column, (N, ...).

        Raises:
            RecordingError: The file is damaged, or the column does not match its description.
        """
        row = self._rows[name]
        try:
            with zipfile.ZipFile(self._path) as archive:
                return read_column(archive, f"{PREFIX}{name}", (self._steps, *row.shape), row.dtype)
        except DAMAGE as error:
            raise self._damaged(error) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class PartDocument(Document):
    """The rows of a column."""

    shape: Annotated[
        list[Annotated[int, Field(ge=0, le=MOST_BYTES)]],
        Field(max_length=MOST_DIMENSIONS, fail_fast=True),
    ]
    dtype: Annotated[Name, one_of(_DTYPES)]


class PartsDocument(Document):
    """What a description holds, whatever else is in its file."""

    observations: Annotated[dict[Name, PartDocument], Field(max_length=MOST_PARTS)]


def refuse_too_large(description: Mapping[str, Any], steps: int) -> None:
    """Refuse columns that are too large together.

    Args:
        description: The columns' description, as `PartsDocument` has it.
        steps: Number of rows of each column.

    Raises:
        Contradiction: They are larger than `MOST_BYTES`.
    """
    rows = (Row(told["shape"], np.dtype(told["dtype"])) for told in description.values())
    total = steps * sum(row.size for row in rows)
    if total > MOST_BYTES:
        raise Contradiction(_too_large(total))


def _too_large(size: int) -> str:
    return (
        f"the observations besides the frames must be at most {MOST_BYTES} bytes large; they are "
        f"{size}: make the episodes shorter, or the parts smaller"
    )


# ----------------------------------------------- infos as compressed JSON lines of what has changed

COMPRESSION = 1
"""gzip's fastest level: most of the savings of the best one, in a tenth of the time."""

_LARGEST_INFO = 64 * 1024**2
"""Limit on the characters of a whole info; real ones have thousands."""


class InfoLines:
    """Writes infos one by one, each as a line of JSON in a gzip file.

    A line holds the top-level entries that are new or have changed since the previous info, and
    under `REMOVED` the keys that are gone. As the inventory and the statistics rarely change, this
    is several times smaller and faster than writing whole infos.
    """

    def __init__(self, path: Path) -> None:
        compressed = gzip.GzipFile(path, "wb", compresslevel=COMPRESSION)
        self._stream = io.TextIOWrapper(compressed, encoding="utf-8")
        self._before: dict[str, Any] = {}

    def add(self, info: Mapping[str, Any]) -> None:
        """Append one info."""
        # Compare and keep serialised entries: the caller may change the values later.
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
        """Write what is buffered and close the file."""
        self._stream.close()


class InfoDocument(Document):
    """A line: the entries that are new or have changed, and the keys that are gone."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, MeasuredInLine]

    removed: Annotated[
        list[Annotated[str, Field(max_length=LONGEST_NAME)]],
        Field(alias=REMOVED, max_length=MOST_FIELDS, fail_fast=True),
    ] = Field([])


def read_infos(path: Path) -> Iterator[dict[str, Any]]:
    """Yield whole infos, line by line.

    Raises:
        OSError, EOFError, ValueError: The file is missing, truncated, or damaged.
    """
    info: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for number in count(1):
            line = stream.readline(LONGEST_LINE)
            if not line:
                return
            try:
                told = parse_document(parse_json(line), InfoDocument)
            except SmallFileError as error:
                raise SmallFileError(f"line {number}: {error}") from error
            if told.removed:
                kept = info.keys() - told.removed
                info = {key: value for key, value in info.items() if key in kept}
                sizes = {key: sizes[key] for key in kept}
            changed = told.__pydantic_extra__
            info = {**info, **changed}
            sizes.update(_sizes(changed, line))
            if sum(sizes.values()) > _LARGEST_INFO:
                rule = f"its info must have at most {_LARGEST_INFO:,} characters"
                raise SmallFileError(f"line {number}: {rule}")
            yield info


def _sizes(entries: dict[str, Any], line: str) -> dict[str, int]:
    """Return an upper bound on each entry's characters; for a short line, the line's length."""
    if len(line) < 4096:
        return dict.fromkeys(entries, len(line))
    return {key: len(to_json(value)) for key, value in entries.items()}


# ----------- reading LMDB's files as data: byte by byte, each pointer checked before it is followed
# liblmdb maps a file into memory and trusts it: one that is cut off, or forged, ends the process,
# and the pages that were read count as the process's memory. Here they are read with `pread`, so
# neither happens, and no library is required.
#
# The format is that of LMDB 0.9 (data version 1, 64-bit, little-endian; `MDB_page`, `MDB_node` and
# `MDB_meta` in mdb.c): a B-tree of pages, whose nodes hold a key and a value, or the number of a
# run of overflow pages with a larger value. Two meta pages at the start name the root; the one
# with the higher transaction counts.

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_META = struct.Struct("<16xII16xI84xQQQ")
"""Magic, version, page size, root, last page, transaction."""
_PAGE = struct.Struct("<QHHHH")
"""Number, padding, flags, end of the pointers, end of the free space."""
_PAGES = struct.Struct("<12xI")
"""Number of pages in a run of overflow pages."""
_NODE = struct.Struct("<HHHH")
"""Low and high half of the value's size (in branches, of the child's page), flags, key's size."""
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG_VALUE = 1
_DEEPEST = 32
_NO_PAGE = 2**64 - 1


class LmdbFileError(ValueError):
    """A file is not one of LMDB's, is damaged, or has a larger value than expected."""


class LmdbFile:
    """An open file (`data.mdb`) of an LMDB database without named databases.

    Raises:
        OSError: It cannot be opened.
        LmdbFileError: It is not LMDB's, or damaged.
    """

    def __init__(self, path: Path) -> None:
        if not stat.S_ISREG(path.stat().st_mode):  # a named pipe would block
            raise LmdbFileError("it is not a regular file")
        self._file = os.open(path, os.O_RDONLY)
        try:
            metas = [self._meta(0)]
            self._size = metas[0][0]
            metas.append(self._meta(self._size))
        except BaseException:
            self.close()
            raise
        self._size, self._root, self._last, _ = max(metas, key=lambda meta: meta[-1])

    def __enter__(self) -> LmdbFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def get(self, key: bytes, largest: int) -> bytes:
        """Return a value.

        Args:
            key: Its key.
            largest: Limit on its bytes.

        Raises:
            LmdbFileError: There is no such key, the file is damaged, or the value is too large.
        """
        number = self._root
        for _ in range(_DEEPEST):
            if number == _NO_PAGE:
                break
            page = self._page(number)
            _, _, flags, lower, _ = _PAGE.unpack_from(page)
            nodes = range((min(lower, len(page)) - _PAGE.size) // 2)

            def key_of(node: int, page: bytes = page) -> bytes:
                return self._node(page, node)[1]

            if flags & _BRANCH and len(nodes):
                # The first child holds all keys below the second one's, whatever its own key is.
                child = bisect_right(nodes[1:], key, key=key_of)
                (low, high, top, _), _, _ = self._node(page, child)
                number = low | high << 16 | top << 32
            elif flags & _LEAF:
                place = bisect_left(nodes, key, key=key_of)
                if place == len(nodes) or key_of(place) != key:
                    break
                return self._value(page, place, largest)
            else:
                raise LmdbFileError(f"page {number} is none of its tree")
        raise LmdbFileError(f"it has no entry {key.decode(errors='replace')!r}")

    def _value(self, page: bytes, node: int, largest: int) -> bytes:
        (low, high, flags, _), _, rest = self._node(page, node)
        size = low | high << 16
        if size > largest:
            raise LmdbFileError(f"an entry has {size:,} bytes, more than {largest:,}")
        if flags == _BIG_VALUE and len(rest) >= 8:
            first = int.from_bytes(rest[:8], "little")
            header = self._page(first, _PAGE.size)
            if not _PAGE.unpack(header)[2] & _OVERFLOW or (
                _PAGES.unpack(header)[0] * self._size < _PAGE.size + size
            ):
                raise LmdbFileError(f"page {first} does not hold a value of {size:,} bytes")
            value = os.pread(self._file, size, first * self._size + _PAGE.size)
        else:
            value = rest[:size]
        if flags & ~_BIG_VALUE or len(value) < size:
            raise LmdbFileError("an entry is cut off, or holds no plain value")
        return value

    def _meta(self, offset: int) -> tuple[int, int, int, int]:
        """Return page size, root, last page and transaction."""
        meta = os.pread(self._file, _META.size, offset)
        if len(meta) < _META.size:
            raise LmdbFileError("it is cut off")
        magic, version, size, root, last, transaction = _META.unpack(meta)
        if (magic, version) != (_MAGIC, _VERSION) or size not in (2**i for i in range(8, 17)):
            raise LmdbFileError(f"it is not a file of LMDB's data version {_VERSION}")
        return size, root, last, transaction

    def _page(self, number: int, size: int | None = None) -> bytes:
        if not 2 <= number <= self._last:
            raise LmdbFileError(f"it has no page {number}")
        page = os.pread(self._file, size or self._size, number * self._size)
        if len(page) < (size or self._size) or _PAGE.unpack_from(page)[0] != number:
            raise LmdbFileError(f"page {number} is missing: the file is cut off or damaged")
        return page

    @staticmethod
    def _node(page: bytes, node: int) -> tuple[tuple[int, int, int, int], bytes, bytes]:
        """Return the numbers of a node, its key, and the rest of its page."""
        (offset,) = struct.unpack_from("<H", page, _PAGE.size + 2 * node)
        if not _PAGE.size <= offset <= len(page) - _NODE.size:
            raise LmdbFileError("a node lies outside its page")
        numbers: tuple[int, int, int, int] = _NODE.unpack_from(page, offset)
        begin = offset + _NODE.size
        end = begin + numbers[3]
        return numbers, page[begin:end], page[end:]
