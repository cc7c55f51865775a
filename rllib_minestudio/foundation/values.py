"""The one conversion of values to plain Python, and a short name of what comes of it.

Numbers, texts, lists and mappings: what JSON and YAML can hold, and what every process can
unpickle, whatever is installed there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

OMITTED = object()
"""What an `otherwise` returns so that a value is left out of the list or mapping it is in."""

_ARRAYS = ("numpy", "torch")


def plain(
    value: Any,
    otherwise: Callable[[Any], Any] = repr,
    key: Callable[[Any], Any] = str,
    largest_array: float = float("inf"),
) -> Any:
    """Return a value in numbers, texts, lists and mappings of Python's own types.

    Tuples and sets become lists, and NumPy's and torch's scalars and arrays numbers and lists.

    Args:
        value: Anything.
        otherwise: What becomes of any other object: returns it in plain values, or `OMITTED`.
        key: What becomes of a mapping's keys.
        largest_array: An array of more elements is one of the other objects.
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
    """Return a mapping's key as YAML reads it back: integers and texts as they are."""
    found = plain(key)
    return found if isinstance(found, int | str) else str(key)


def import_path(value: Any) -> str:
    """Return the dotted path of a class or function; of anything else, its `repr`."""
    if isinstance(value, type) or callable(value):
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        return f"{module}.{name}" if name else repr(value)
    return repr(value)


def recordable(value: Any) -> Any:
    """Return options or results as records in YAML hold them, classes by their dotted path."""
    return plain(value, otherwise=import_path, key=integer_or_text)


def digest(data: Any) -> str:
    """Return a short name for plain data: equal data have equal names in any process."""
    text = json.dumps(data, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
