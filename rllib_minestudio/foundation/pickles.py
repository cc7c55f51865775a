"""Safe reading of pickles that others wrote: no code of theirs runs, and memory is bounded.

A pickle is a program: unpickling calls the functions that it names, with arguments of its choice.
Here it can only make containers, numbers and strings. NumPy's arrays are first represented by
placeholders (`DTypeNote`, `ArrayNote`), which are replaced by arrays when the pickle has ended,
using only bytes from the file and a fixed list of dtypes. Every other name is refused, or yields an
inert object. Before a pickle is read, `scan` bounds the memory it may ask for.
"""

from __future__ import annotations

import collections
import io
import math
import mmap
import pickle
import pickletools
import re
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import CheckpointMismatchError

# ------------------------------------------------- bounding a pickle's memory use before it is read
# A few bytes of a pickle can ask for gigabytes: a large length with no data after it, a memo index
# in the billions, or millions of empty sets in a file of as many bytes. The opcodes are parsed here
# without being executed; a regular expression skips runs of fixed-size opcodes quickly.

BUDGET = 400 * 1024**2
"""Bytes of Python objects that a pickle may ask for. Strings and bytes do not count: they take no
more memory than the file."""

_COMMON_COST = 32
_COSTS = {
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_DICT", "LIST", "DICT", "TUPLE", "TUPLE1"), 72),
    **dict.fromkeys(("TUPLE2", "TUPLE3", "GLOBAL", "STACK_GLOBAL"), 72),
    **dict.fromkeys(("EMPTY_SET", "FROZENSET", "SETITEM", "SETITEMS", "ADDITEMS"), 230),
    **dict.fromkeys(("REDUCE", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST", "BUILD"), 200),
}
"""Bytes per opcode, generously estimated: of the object it makes, or by which a container grows."""

_PUTS = ("PUT", "LONG_BINPUT")
_SPECIAL = (*_PUTS, "FRAME", "STOP")

_OPCODES = {opcode.code.encode("latin1")[0]: opcode for opcode in pickletools.opcodes}
_COST_OF_BYTE = np.array(
    [_COSTS.get(_OPCODES[b].name, _COMMON_COST) if b in _OPCODES else 0 for b in range(256)]
)

_LENGTHS: dict[int, struct.Struct] = {
    pickletools.TAKEN_FROM_ARGUMENT1: struct.Struct("<B"),
    pickletools.TAKEN_FROM_ARGUMENT4: struct.Struct("<i"),
    pickletools.TAKEN_FROM_ARGUMENT4U: struct.Struct("<I"),
    pickletools.TAKEN_FROM_ARGUMENT8U: struct.Struct("<Q"),
}
"""pickletools' marker of an argument that begins with its length -> encoding of that length."""


class PickleRefusedError(ValueError):
    """A pickle is truncated, is not a pickle, or asks for too much memory."""


def _argument_size(opcode: Any) -> int:
    return 0 if opcode.arg is None else int(opcode.arg.n)


def _fixed_size_runs() -> re.Pattern[bytes]:
    by_size: dict[int, bytes] = {}
    for byte, opcode in _OPCODES.items():
        size = _argument_size(opcode)
        if size >= 0 and opcode.name not in _SPECIAL:
            by_size[size] = by_size.get(size, b"") + re.escape(bytes([byte]))
    parts = [b"[" + codes + b"]" + b"." * size for size, codes in sorted(by_size.items())]
    return re.compile(b"(?:" + b"|".join(parts) + b"){1,4096}", re.DOTALL)


_RUN = _fixed_size_runs()


def scan(data: Any, start: int = 0, budget: int = BUDGET) -> int:
    """Check the pickle that begins at `start`, without executing it.

    Args:
        data: The bytes, or a memory-mapped file.
        start: Offset of the pickle.
        budget: Bytes of objects that it may ask for.

    Returns:
        Offset of the first byte after the pickle.

    Raises:
        PickleRefusedError: It is damaged, or would take too much memory.
    """
    position, cost = start, 0
    while True:
        run = _RUN.match(data, position)
        if run:
            codes = np.frombuffer(run[0], np.uint8)
            cost += int(_COST_OF_BYTE[codes].sum())
            position = run.end()
        else:
            if position >= len(data):
                raise PickleRefusedError("it is cut off")
            opcode = _OPCODES.get(data[position])
            if opcode is None:
                raise PickleRefusedError(f"it is not a pickle: byte {data[position]:#04x}")
            cost += 64
            position = _behind(data, position, opcode)
            if opcode.name == "STOP":
                return position
        if cost > budget:
            raise PickleRefusedError(
                f"it asks for more than {budget // 1024**2} MB of Python objects"
            )


def _behind(data: Any, position: int, opcode: Any) -> int:
    """Return the offset after the opcode at `position`, having checked its argument."""
    size, argument = _argument_size(opcode), position + 1
    if opcode.name == "FRAME":
        (length,) = _unpacked(struct.Struct("<Q"), data, argument)
        if length > len(data) - argument - 8:
            raise PickleRefusedError("it is cut off: a frame is longer than the file")
        return argument + 8
    if opcode.name in _PUTS:
        return _behind_put(data, argument, opcode)
    if size == pickletools.UP_TO_NEWLINE:
        # The names of a module and of an object in it take two lines.
        for _ in range(2 if opcode.name in ("GLOBAL", "INST") else 1):
            argument = _behind_line(data, argument)
        return argument
    if size in _LENGTHS:
        (length,) = _unpacked(_LENGTHS[size], data, argument)
        argument += _LENGTHS[size].size
        if not 0 <= length <= len(data) - argument:
            raise PickleRefusedError("it is cut off: a string is longer than the file")
        return argument + int(length)
    if argument + size > len(data):
        raise PickleRefusedError("it is cut off")
    return argument + size


def _behind_put(data: Any, argument: int, opcode: Any) -> int:
    """Return the offset after a memo opcode; refuse large numbers, as the memo gets that long."""
    if opcode.name == "PUT":
        end = _behind_line(data, argument)
        text = bytes(data[argument : end - 1])
        number = int(text) if text.isdigit() and len(text) < 12 else len(data)
    else:
        (number,) = _unpacked(struct.Struct("<I"), data, argument)
        end = argument + 4
    if number >= argument:  # every stored object takes at least a byte before this
        raise PickleRefusedError(f"it stores something under the number {number}")
    return end


def _behind_line(data: Any, position: int) -> int:
    end = int(data.find(b"\n", position))
    if end < 0:
        raise PickleRefusedError("it is cut off: a line has no end")
    return end + 1


def _unpacked(form: struct.Struct, data: Any, position: int) -> tuple[Any, ...]:
    if position + form.size > len(data):
        raise PickleRefusedError("it is cut off")
    return form.unpack(data[position : position + form.size])


# ---------------------------------- placeholders for NumPy's arrays, checked before they are arrays
# NumPy's own `__setstate__` trusts its arguments: with a forged dtype it makes objects at addresses
# of the file's choice. So the pickle gets placeholders (notes) instead of dtypes and arrays, and
# `Settled` replaces them by arrays when the pickle has ended and cannot act any more.

_NUMERIC = re.compile(r"[<>|=]?(?:\?|[bBhHiIlLqQefdgFDG]|[biufc]\d{1,2}|[SUa]\d{1,5})")
"""Names of dtypes that hold numbers, booleans or text, and no pointers."""

_DEEPEST = 64
"""Limit on nested containers; more could overflow the stack of code that walks through them."""

_SHARING = 64
"""How many times larger than its file a pickle's contents may be, with shared parts counted as
often as they occur: one no-op action in a thousand places is fine, a list of lists of one shared
list is a bomb."""


class DTypeNote:
    """A placeholder for a `numpy.dtype`."""

    __slots__ = ("_name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: Any, align: Any = False, copy: Any = False) -> None:
        """Note the arguments of `numpy.dtype`.

        Raises:
            ValueError: It is not a dtype of numbers or text.
        """
        if not isinstance(name, str) or not _NUMERIC.fullmatch(name):
            raise ValueError(f"it holds an array of {name!r}, not of numbers or text")
        self._name = name

    def __setstate__(self, state: Any) -> None:
        """Take the byte order from what `numpy.dtype.__reduce__` wrote.

        Raises:
            ValueError: The dtype has fields or a subarray.
        """
        _, order, *fields = state
        if order not in ("<", ">", "|", "=") or any(part is not None for part in fields[:3]):
            raise ValueError("it holds an array of structures")
        self._name = order + self._name.lstrip("<>|=")

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return np.dtype(self._name)


class ArrayNote:
    """A placeholder for an array, or for one of NumPy's numbers."""

    __slots__ = ("_content", "_is_number")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, content: tuple[Any, Any, Any, str] | None, is_number: bool = False) -> None:
        """Note (bytes, `DTypeNote`, shape, order); None: `__setstate__` provides them."""
        self._content = content
        self._is_number = is_number

    @classmethod
    def empty(cls, kind: Any, shape: Any, dtype: Any) -> ArrayNote:
        """Note a call of `_reconstruct`; the array's contents follow in the pickle."""
        return cls(None)

    @classmethod
    def of_buffer(cls, data: Any, dtype: Any, shape: Any, order: Any = "C") -> ArrayNote:
        """Note a call of `_frombuffer`."""
        return cls((data, dtype, shape, order))

    @classmethod
    def of_number(cls, dtype: Any, data: Any) -> ArrayNote:
        """Note a call of `scalar`."""
        return cls((data, dtype, (), "C"), is_number=True)

    def __setstate__(self, state: Any) -> None:
        """Note what `numpy.ndarray.__reduce__` wrote."""
        _, shape, dtype, is_fortran, data = state
        self._content = (data, dtype, shape, "F" if is_fortran else "C")

    @property
    def data(self) -> Any:
        """The array's bytes; empty until they are known."""
        return b"" if self._content is None else self._content[0]

    def array(self) -> NDArray | np.generic:
        """Return the array, or the number.

        Raises:
            ValueError: The bytes do not fit the dtype and shape, or one of these is not allowed.
        """
        if self._content is None:
            raise ValueError("it holds an array without contents")
        data, note, shape, order = self._content
        if not isinstance(data, (bytes, bytearray)) or not isinstance(note, DTypeNote):
            raise ValueError("it holds an array of Python objects")
        sizes: tuple[int, ...] = tuple(shape)
        if len(sizes) > 32 or any(type(size) is not int or size < 0 for size in sizes):
            raise ValueError(f"it holds an array of the shape {str(sizes)[:80]}")
        if math.prod(sizes) * note.dtype.itemsize != len(data) or order not in ("C", "F"):
            raise ValueError(
                f"it holds an array of the shape {sizes} in {len(data)} bytes, which do not fit"
            )
        # Writable, like NumPy's own.
        array = np.frombuffer(bytearray(data), note.dtype).reshape(
            sizes, order="F" if order == "F" else "C"
        )
        return array[()] if self._is_number else array


class Settled:
    """Replaces placeholders by arrays in what a pickle holds.

    Args:
        size: Size of the pickle in bytes; it limits the size of its contents and arrays.
    """

    def __init__(self, size: int) -> None:
        self._most = _SHARING * size + 100_000
        self._array_bytes = 4 * size + 65536
        self._met: dict[int, tuple[Any, Any, int]] = {}
        self._open: set[int] = set()

    def settle(self, root: Any) -> Any:
        """Return `root` with all placeholders replaced; lists and dicts keep their identity.

        Raises:
            ValueError: It contains itself, is nested too deeply, or expands to too many parts.
        """
        return self._settled(root, 0)[0]

    def _settled(self, value: Any, depth: int) -> tuple[Any, int]:
        """Return the value and the number of its parts, shared ones counted at each occurrence."""
        if not isinstance(value, (list, dict, tuple, ArrayNote, DTypeNote)):
            return value, 1
        known = self._met.get(id(value))
        if known is not None:
            return known[1], known[2]
        if id(value) in self._open:
            raise ValueError("it contains itself")
        if depth > _DEEPEST:
            raise ValueError(f"its containers are nested more than {_DEEPEST} deep")
        self._open.add(id(value))
        settled, count = self._new(value, depth)
        self._open.discard(id(value))
        if count > self._most:
            raise ValueError(f"it holds more than {self._most} things, most of them shared")
        # The first entry keeps the object alive, so that its id is not reused.
        self._met[id(value)] = (value, settled, count)
        return settled, count

    def _new(self, value: Any, depth: int) -> tuple[Any, int]:
        if isinstance(value, DTypeNote):
            return value.dtype, 1
        if isinstance(value, ArrayNote):
            self._array_bytes -= len(value.data)
            if self._array_bytes < 0:
                raise ValueError("its arrays are larger than the file")
            return value.array(), 1
        if isinstance(value, tuple):
            parts = [self._settled(part, depth + 1) for part in value]
            return tuple(part for part, _ in parts), 1 + sum(count for _, count in parts)
        total = 1
        for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
            value[key], count = self._settled(part, depth + 1)
            total += count
        return value, total


_CONTAINERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    **{("builtins", kind.__name__): kind for kind in (dict, list, tuple, set, frozenset, complex)},
    # Protocol 2 writes bytes this way, always with this encoding.
    ("_codecs", "encode"): lambda text, _encoding="latin1": text.encode("latin1"),
}

_PYTHON_2_NAMES = {"__builtin__": "builtins"}
"""Protocols up to 2 use Python 2's names of modules, whatever version wrote them."""

_NUMPY_PACKAGES = ("numpy.core", "numpy._core")
"""NumPy 2 renamed the package; pickles have the name of the version that wrote them."""

_NUMPY: dict[tuple[str, str], Callable[..., Any]] = {
    ("multiarray", "scalar"): ArrayNote.of_number,
    ("multiarray", "_reconstruct"): ArrayNote.empty,
    ("numeric", "_frombuffer"): ArrayNote.of_buffer,
}
"""NumPy's internal functions -> what notes their arguments."""


class Inert:
    """A placeholder for an object whose class is not allowed: accepts anything, does nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Inert:
        """Ignore the arguments."""
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Ignore the arguments."""

    def __setstate__(self, state: Any) -> None:
        """Ignore the state."""


def load_plain(
    path: Path, *, others_inert: bool = False, unpickler: type[PlainUnpickler] | None = None
) -> Any:
    """Read a pickle of containers, numbers, strings and NumPy arrays.

    Args:
        path: The file.
        others_inert: Replace objects whose classes are not allowed by `Inert` ones, instead of
            refusing the file.
        unpickler: A subclass that allows more.

    Raises:
        CheckpointMismatchError: The file is missing or damaged, names something not allowed, or
            asks for too much memory.
    """
    try:
        # A named pipe would block.
        if not stat.S_ISREG(path.stat().st_mode):
            raise CheckpointMismatchError("it is not a regular file")
        with path.open("rb") as file:
            return (unpickler or PlainUnpickler)(file, others_inert).load()
    except CheckpointMismatchError as error:
        raise CheckpointMismatchError(f"{str(path)!r} is refused: {error}") from error
    # A damaged pickle can raise nearly anything, because it calls functions with wrong arguments.
    except Exception as error:
        raise CheckpointMismatchError(f"{str(path)!r} cannot be read: {error}") from error


class PlainUnpickler(pickle.Unpickler):
    """An unpickler that makes only containers, numbers and arrays; see the module.

    Args:
        file: An open file or `io.BytesIO`.
        others_inert: As in `load_plain`.
    """

    def __init__(self, file: Any, others_inert: bool = False) -> None:
        super().__init__(file)
        self._file = file
        self._others_inert = others_inert
        self._may_copy = 0
        admitted = self.find_class
        # What a subclass allows in addition is metered, too.
        self.find_class = lambda module, name: self._metered(admitted(module, name))  # type: ignore[method-assign]

    def load(self) -> Any:
        """Return the object in the pickle at the file's position.

        Raises:
            CheckpointMismatchError: It names something not allowed, or copies too much.
            Exception: It is damaged; nearly any type of exception.
        """
        with _bytes_of(self._file) as data:
            size = scan(data, self._file.tell()) - self._file.tell()
        # A normal pickle copies no more than it holds; the factor 4 leaves room for small objects.
        self._may_copy = 4 * size + 65536
        return Settled(size).settle(super().load())

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name, or refuse it."""
        module = _PYTHON_2_NAMES.get(module, module)
        found = _CONTAINERS.get((module, name)) or _from_numpy(module, name)
        if found is not None:
            return found
        if self._others_inert:
            return Inert
        raise CheckpointMismatchError(
            f"it wants to import {module}.{name}, and only containers, numbers and arrays are "
            f"read from such files, because importing could run anything."
        )

    def _metered(self, admitted: Any) -> Any:
        """Wrap `admitted` to count the elements passed to it, and refuse the pickle if too many.

        A pickle can pass one long list to `list` a million times.
        """
        is_inert = isinstance(admitted, type) and issubclass(admitted, (Inert, np.generic))
        if is_inert or not callable(admitted):
            return admitted

        def call(*args: Any, **kwargs: Any) -> Any:
            self._may_copy -= sum(len(arg) for arg in args if hasattr(arg, "__len__"))
            if self._may_copy < 0:
                raise CheckpointMismatchError("it copies its own parts over and over")
            return admitted(*args, **kwargs)

        return call


@contextmanager
def _bytes_of(file: Any) -> Iterator[Any]:
    """Yield all bytes of an open file, memory-mapped instead of read."""
    if isinstance(file, io.BytesIO):
        yield file.getvalue()
        return
    if not file.seek(0, io.SEEK_END):
        raise ValueError("it is empty")
    file.seek(0)
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _from_numpy(module: str, name: str) -> Any:
    """Return what notes the arguments of one of NumPy's functions or classes, else None."""
    if (module, name) == ("numpy", "dtype"):
        return DTypeNote
    if (module, name) == ("numpy", "ndarray"):
        return "ndarray"  # only ever an argument
    package, _, submodule = module.rpartition(".")
    return _NUMPY.get((submodule, name)) if package in _NUMPY_PACKAGES else None
