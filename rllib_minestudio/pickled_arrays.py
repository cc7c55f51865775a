"""What a pickle says about NumPy's arrays, noted and judged before there is an array.

NumPy's own `__setstate__` trusts its arguments: with a forged dtype it makes objects at addresses
of the file's choice. So the pickle gets notes in the place of dtypes and arrays; `Settled` puts
arrays into their places when the pickle has ended and can do no more.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMERIC = re.compile(r"[<>|=]?(?:\?|[bBhHiIlLqQefdgFDG]|[biufc]\d{1,2}|[SUa]\d{1,5})")
"""Names of dtypes that hold numbers, truth values or text, and nothing that points elsewhere."""

_DEEPEST = 64
"""Containers in one another; more would overflow the stack of whoever walks through them."""

_SHARING = 64
"""How many times larger than its file a pickle's contents may be if each part counts as often as
it is met: one no-op action in a thousand places is honest, a list of lists of lists is a bomb."""


class DTypeNote:
    """Stands for a `numpy.dtype`."""

    __slots__ = ("_name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: Any, align: Any = False, copy: Any = False) -> None:
        """Notes what `numpy.dtype` would be called with.

        Raises:
            ValueError: It is no dtype of numbers or text.
        """
        if not isinstance(name, str) or not _NUMERIC.fullmatch(name):
            raise ValueError(f"it holds an array of {name!r}, which are no numbers")
        self._name = name

    def __setstate__(self, state: Any) -> None:
        """Takes the byte order out of what `numpy.dtype.__reduce__` wrote.

        Raises:
            ValueError: It has fields, or parts of its own.
        """
        _, order, *fields = state
        if order not in ("<", ">", "|", "=") or any(part is not None for part in fields[:3]):
            raise ValueError("it holds an array of structures")
        self._name = order + self._name.lstrip("<>|=")

    @property
    def dtype(self) -> np.dtype:
        """The dtype itself, newly made."""
        return np.dtype(self._name)


class ArrayNote:
    """Stands for an array, or for one of NumPy's numbers."""

    __slots__ = ("_content", "_is_number")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, content: tuple[Any, Any, Any, str] | None, is_number: bool = False) -> None:
        """Notes (bytes, dtype's note, shape, order); None: they come by `__setstate__`."""
        self._content = content
        self._is_number = is_number

    @classmethod
    def empty(cls, kind: Any, shape: Any, dtype: Any) -> ArrayNote:
        """Notes `_reconstruct`, after which the pickle says what the array holds."""
        return cls(None)

    @classmethod
    def of_buffer(cls, data: Any, dtype: Any, shape: Any, order: Any = "C") -> ArrayNote:
        """Notes `_frombuffer`."""
        return cls((data, dtype, shape, order))

    @classmethod
    def of_number(cls, dtype: Any, data: Any) -> ArrayNote:
        """Notes `scalar`."""
        return cls((data, dtype, (), "C"), is_number=True)

    def __setstate__(self, state: Any) -> None:
        """Notes what `numpy.ndarray.__reduce__` wrote."""
        _, shape, dtype, is_fortran, data = state
        self._content = (data, dtype, shape, "F" if is_fortran else "C")

    @property
    def data(self) -> Any:
        """The bytes of the numbers; empty until they are known."""
        return b"" if self._content is None else self._content[0]

    def array(self) -> NDArray | np.generic:
        """Makes the array, or the number.

        Raises:
            ValueError: The bytes are not those of such an array.
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
        # One that can be written, as NumPy's own.
        array = np.frombuffer(bytearray(data), note.dtype).reshape(
            sizes, order="F" if order == "F" else "C"
        )
        return array[()] if self._is_number else array


class Settled:
    """Puts arrays into the places of their notes.

    Args:
        size: Bytes of the pickle; its contents, and its arrays, must be in proportion.
    """

    def __init__(self, size: int) -> None:
        """Starts with nothing met."""
        self._most = _SHARING * size + 100_000
        self._array_bytes = 4 * size + 65536
        self._met: dict[int, tuple[Any, Any, int]] = {}
        self._open: set[int] = set()

    def settle(self, root: Any) -> Any:
        """Returns `root` without notes; containers keep their identity where they can.

        Raises:
            ValueError: It contains itself, is nested too deeply, or is a bomb of shared parts.
        """
        return self._settled(root, 0)[0]

    def _settled(self, value: Any, depth: int) -> tuple[Any, int]:
        """Returns the value and how many things it holds, shared ones as often as they are met."""
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
        # The first entry keeps the object alive, and with it the meaning of its id.
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
