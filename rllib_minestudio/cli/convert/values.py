"""Values of a config module as YAML can hold them."""

from __future__ import annotations

from enum import Enum
from pathlib import PurePath
from typing import Any

from rllib_minestudio.plain_values import plain


class NotPlainError(ValueError):
    """A value that YAML cannot hold; the message shows it."""


def yaml_value(value: Any) -> Any:
    """Return a value in lists, mappings, texts and numbers, enums as what they stand for.

    Raises:
        NotPlainError: It holds something else.
    """
    return plain(value, otherwise=_stands_for, key=yaml_value)


def _stands_for(value: Any) -> Any:
    if isinstance(value, Enum):
        return yaml_value(value.value)
    if isinstance(value, PurePath):
        return str(value)
    raise NotPlainError(f"{value!r} cannot be written as YAML")
