"""Reading pickles that others wrote without running anything that they may contain.

A pickle is a program: unpickling calls whatever functions it names. Here only containers and
numbers can be made; every other name is refused, or stands for something inert.
"""

from __future__ import annotations

import collections
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.errors import CheckpointMismatchError

_CONTAINERS = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    **{("builtins", kind.__name__): kind for kind in (dict, list, tuple, set, frozenset, complex)},
    # How pickles of protocol 2 write bytes; the encoding they name is always this one.
    ("_codecs", "encode"): lambda text, _encoding="latin1": text.encode("latin1"),
}

_PYTHON_2_NAMES = {"__builtin__": "builtins"}
"""Protocols up to 2 name modules as Python 2 did, whoever wrote them."""

_NUMPY_PACKAGES = ("numpy.core", "numpy._core")
"""NumPy 2 renamed the package; pickles name whichever wrote them."""


class Inert:
    """Stands in for an object whose class is not admitted; it takes anything and does nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Inert:
        """Accepts what the real class would have."""
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Forgets the arguments."""

    def __setstate__(self, state: Any) -> None:
        """Forgets the state."""


def load_plain(
    path: Path, *, others_inert: bool = False, unpickler: type[PlainUnpickler] | None = None
) -> Any:
    """Reads a pickle of containers, numbers, strings and NumPy arrays.

    Args:
        path: The file.
        others_inert: Put an ``Inert`` object in the place of one whose class is not admitted,
            instead of refusing the file.
        unpickler: A subclass that admits more.

    Raises:
        CheckpointMismatchError: The file is missing, damaged, or names something not admitted.
    """
    try:
        with path.open("rb") as file:
            return (unpickler or PlainUnpickler)(file, others_inert).load()
    except CheckpointMismatchError as error:
        raise CheckpointMismatchError(f"{str(path)!r} is refused: {error}") from error
    # A damaged pickle can raise nearly anything: it makes its own calls with wrong arguments.
    except Exception as error:
        raise CheckpointMismatchError(f"{str(path)!r} cannot be read: {error}") from error


class PlainUnpickler(pickle.Unpickler):
    """Makes containers and numbers; see the module."""

    def __init__(self, file: Any, others_inert: bool = False) -> None:
        """Reads from an open file; ``others_inert`` as in ``load_plain``."""
        super().__init__(file)
        self._others_inert = others_inert

    def find_class(self, module: str, name: str) -> Any:
        """Returns what a name stands for, or refuses it."""
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


def _from_numpy(module: str, name: str) -> Any:
    """Returns NumPy's own function or class if it does nothing but hold numbers, else None."""
    if (module, name) in (("numpy", "dtype"), ("numpy", "ndarray")):
        return getattr(np, name)
    package, _, submodule = module.rpartition(".")
    if package not in _NUMPY_PACKAGES:
        return None
    if (submodule, name) == ("multiarray", "scalar"):
        return _number
    if (submodule, name) == ("multiarray", "_reconstruct"):
        return _empty_array
    return _array_of_buffer if (submodule, name) == ("numeric", "_frombuffer") else None


def _number(dtype: np.dtype, data: Any = b"") -> Any:
    """A NumPy number from its bytes."""
    return np.frombuffer(data, dtype=_numeric(dtype), count=1)[0]


def _empty_array(kind: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The array that the pickle then fills through ``__setstate__``."""
    return np.ndarray.__new__(np.ndarray, shape, dtype)


def _array_of_buffer(data: Any, dtype: np.dtype, shape: tuple[int, ...], order: Any) -> np.ndarray:
    return np.frombuffer(data, dtype=_numeric(dtype)).reshape(shape, order=order)


def _numeric(dtype: np.dtype) -> np.dtype:
    if dtype.hasobject:
        raise CheckpointMismatchError("it holds an array of Python objects.")
    return dtype
