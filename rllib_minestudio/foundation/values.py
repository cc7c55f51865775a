"""Conversion of values to plain data, and hashes of it.

Plain data are numbers, strings, lists and mappings of Python's own types: JSON and YAML can hold
them, and every process can unpickle them, whatever is installed there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

OMITTED = object()
"""Returned by an `otherwise` function to leave a value out of its list or mapping."""

_ARRAYS = ("numpy", "torch")


def plain(
    value: Any,
    otherwise: Callable[[Any], Any] = repr,
    key: Callable[[Any], Any] = str,
    largest_array: float = float("inf"),
) -> Any:
    """Convert a value to plain data.

    Tuples and sets become lists; NumPy's and torch's scalars and arrays become numbers and lists.

    Args:
        value: Anything.
        otherwise: Converts any other object to plain data, or returns `OMITTED`.
        key: Converts a mapping's keys.
        largest_array: Arrays with more elements are converted by `otherwise`.
    """
    kind = type(value)
    if value is None or kind is str or kind is float or kind is int or kind is bool:
        return value
    if isinstance(value, Mapping):
        converted = (
            (key(name), plain(each, otherwise, key, largest_array)) for name, each in value.items()
        )
        return {name: each for name, each in converted if each is not OMITTED}
    if isinstance(value, list | tuple | set | frozenset):
        entries = (plain(each, otherwise, key, largest_array) for each in value)
        return [each for each in entries if each is not OMITTED]
    if kind.__module__.partition(".")[0] in _ARRAYS and hasattr(value, "tolist"):
        size = value.numel() if hasattr(value, "numel") else value.size
        if size > largest_array:
            return otherwise(value)
        return plain(value.tolist(), otherwise, key, largest_array)
    if isinstance(value, Enum) or not isinstance(value, str | int | float):
        return otherwise(value)
    return next(builtin(value) for builtin in (str, int, float) if isinstance(value, builtin))


def integer_or_text(key: Any) -> int | str:
    """Convert a mapping's key to one that YAML can hold: an integer or a string."""
    found = plain(key)
    return found if isinstance(found, int | str) else str(key)


def import_path(value: Any) -> str:
    """Return the dotted path of a class or function, or the `repr` of anything else."""
    if isinstance(value, type) or callable(value):
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        return f"{module}.{name}" if name else repr(value)
    return repr(value)


def recordable(value: Any) -> Any:
    """Convert options or results to plain data for YAML, with classes as dotted paths."""
    return plain(value, otherwise=import_path, key=integer_or_text)


def digest(data: Any) -> str:
    """Return a short hash of plain data, which is the same in every process."""
    text = json.dumps(data, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
