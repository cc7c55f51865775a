"""Values of a config module as YAML can hold them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any


class NotPlainError(ValueError):
    """A value that YAML cannot hold; the message shows it."""


def plain(value: Any) -> Any:
    """Return a value in lists, mappings, strings and numbers; NumPy's and torch's become these.

    Raises:
        NotPlainError: It holds something else.
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {plain(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, str | PurePath):
        return str(value)
    for exact in (int, float):
        if isinstance(value, exact) and not isinstance(value, bool):
            return exact(value)  # NumPy's float64 is a float, and YAML knows only Python's own
    # Stand-ins have every method, theirs are no numbers.
    kind = type(value)
    if kind.__module__.partition(".")[0] in ("numpy", "torch") and hasattr(value, "tolist"):
        return plain(value.tolist())
    raise NotPlainError(f"{value!r} cannot be written as YAML")
