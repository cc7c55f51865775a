"""Reading pickles that others wrote without running anything that they may contain.

A pickle is a program: unpickling calls whatever functions it names, with arguments of its choice.
Here it can make containers, numbers and strings. What it says about NumPy's arrays is noted by
stand-ins (`_DType`, `_Array`); the arrays are made of these notes when it has ended, from
bytes that are in the file and a dtype out of a list. Every other name is refused, or stands for
something inert. `pickle_scan` bounds what it may ask for before it is read.
"""

from __future__ import annotations

import collections
import io
import mmap
import pickle
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.pickle_scan import scan
from rllib_minestudio.pickled_arrays import ArrayNote, DTypeNote, Settled

_CONTAINERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    **{("builtins", kind.__name__): kind for kind in (dict, list, tuple, set, frozenset, complex)},
    # How pickles of protocol 2 write bytes; the encoding they name is always this one.
    ("_codecs", "encode"): lambda text, _encoding="latin1": text.encode("latin1"),
}

_PYTHON_2_NAMES = {"__builtin__": "builtins"}
"""Protocols up to 2 name modules as Python 2 did, whoever wrote them."""

_NUMPY_PACKAGES = ("numpy.core", "numpy._core")
"""NumPy 2 renamed the package; pickles name whichever wrote them."""

_NUMPY: dict[tuple[str, str], Callable[..., Any]] = {
    ("multiarray", "scalar"): ArrayNote.of_number,
    ("multiarray", "_reconstruct"): ArrayNote.empty,
    ("numeric", "_frombuffer"): ArrayNote.of_buffer,
}
"""Functions of NumPy's own -> what notes their arguments."""


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
        CheckpointMismatchError: The file is missing, damaged, names something not admitted, or
            asks for more memory than an honest one.
    """
    try:
        # A named pipe would be waited for.
        if not stat.S_ISREG(path.stat().st_mode):
            raise CheckpointMismatchError("it is no regular file")
        with path.open("rb") as file:
            return (unpickler or PlainUnpickler)(file, others_inert).load()
    except CheckpointMismatchError as error:
        raise CheckpointMismatchError(f"{str(path)!r} is refused: {error}") from error
    # A damaged pickle can raise nearly anything: it makes its own calls with wrong arguments.
    except Exception as error:
        raise CheckpointMismatchError(f"{str(path)!r} cannot be read: {error}") from error


class PlainUnpickler(pickle.Unpickler):
    """Makes containers, numbers and arrays; see the module."""

    def __init__(self, file: Any, others_inert: bool = False) -> None:
        """Reads from an open file or ``io.BytesIO``; ``others_inert`` as in ``load_plain``."""
        super().__init__(file)
        self._file = file
        self._others_inert = others_inert
        self._may_copy = 0
        admitted = self.find_class
        # Whatever a subclass admits, too, is called with a meter running.
        self.find_class = lambda module, name: self._metered(admitted(module, name))  # type: ignore[method-assign]

    def load(self) -> Any:
        """Returns what the pickle at the file's position holds.

        Raises:
            CheckpointMismatchError: It names something not admitted, or copies without end.
            Exception: Of nearly any type, if it is damaged.
        """
        with _bytes_of(self._file) as data:
            size = scan(data, self._file.tell()) - self._file.tell()
        # What is copied in an honest pickle was in it: 4 leaves room for small things.
        self._may_copy = 4 * size + 65536
        return Settled(size).settle(super().load())

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

    def _metered(self, admitted: Any) -> Any:
        """Returns ``admitted`` such that it ends the reading when it was given too much in all.

        A pickle may pass one long list to ``list`` a million times.
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
    """Gives all bytes of an open file without reading them."""
    if isinstance(file, io.BytesIO):
        yield file.getvalue()
        return
    if not file.seek(0, io.SEEK_END):
        raise ValueError("it is empty")
    file.seek(0)
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _from_numpy(module: str, name: str) -> Any:
    """Returns what notes the arguments of NumPy's own function or class, else None."""
    if (module, name) == ("numpy", "dtype"):
        return DTypeNote
    if (module, name) == ("numpy", "ndarray"):
        return "ndarray"  # only ever an argument
    package, _, submodule = module.rpartition(".")
    return _NUMPY.get((submodule, name)) if package in _NUMPY_PACKAGES else None
