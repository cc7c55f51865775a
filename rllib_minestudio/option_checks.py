"""Small checks of options, and the sentences that say what is wrong with one.

All layers share them, so that a wrong option reads alike wherever it is written: the field, the
rule, the value received, and the nearest valid name.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rllib_minestudio.errors import InvalidOptionsError, did_you_mean


def is_integer(value: Any) -> bool:
    """Return whether `value` is an int; a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether `value` is a finite int or float; a bool is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def is_list(value: Any) -> bool:
    """Return whether `value` is a list, a tuple or the like; a string is not."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


LONGEST_PATH = 255
"""Characters of an import path."""


def is_import_path(text: str) -> bool:
    """Return whether a text could name something in a module; nothing is imported.

    Args:
        text: Such as `package.module.Class` or `package.module:Class`.
    """
    parts = text.replace(":", ".", 1).split(".")
    is_short = len(parts) > 1 and len(text) <= LONGEST_PATH
    return is_short and text.isascii() and all(map(str.isidentifier, parts))


def shown(value: Any) -> str:
    """Return a value as messages show it, cut where it is long."""
    try:
        text = value.__qualname__ if isinstance(value, type) else repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; a list of itself
        return f"a {type(value).__name__} too large to be shown"
    return text if len(text) <= 300 else f"{text[:300]}..."


_FEW = 12
"""Names that are listed even where one is close."""


def broken_rule(field: str, value: Any, rule: str) -> str:
    """Say that `field` with `value` breaks `rule` ("must be ...")."""
    return f"{field} {rule}; got {shown(value)}."


def unknown_name(kind: str, name: Any, valid: Iterable[str], where: str = "") -> str:
    """Say that there is no such `kind` of thing called `name`, and what was probably meant.

    Args:
        kind: What is looked for.
        name: What the user wrote.
        valid: All names that would have been right; listed if they are few, or none is close.
        where: Dotted path of the option; "" leaves it out.
    """
    names = list(valid)
    hint = did_you_mean(name, names)
    if names and (not hint or len(names) <= _FEW):
        hint += f" Valid: {', '.join(names)}."
    return f"{where}{': ' if where else ''}unknown {kind} {name!r}.{hint}"


def not_a_choice(field: str, value: Any, valid: Iterable[str]) -> str:
    """Say that `value` is none of the strings `valid`."""
    names = tuple(valid)
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    return broken_rule(field, value, f"must be one of {', '.join(map(repr, names))}") + hint


class Problems:
    """Collects complaints about options, so that a user sees all of them at once."""

    def __init__(self, owner: str = "") -> None:
        """Start an empty collection; `owner` names what the options belong to, if anything."""
        self.owner = owner
        self._prefix = f"{owner}: " if owner else ""
        self.messages: list[str] = []

    def __bool__(self) -> bool:
        """Return whether anything is wrong so far."""
        return bool(self.messages)

    def add(self, name: str, value: Any, rule: str) -> None:
        """Note that option `name` with `value` breaks `rule` ("must be ...")."""
        self.messages.append(broken_rule(f"{self._prefix}{name}", value, rule))

    def unknown(self, kind: str, name: Any, valid: Iterable[str]) -> None:
        """Note that there is no such `kind` of thing called `name`."""
        self.messages.append(unknown_name(kind, name, valid, self.owner))

    def known(self, kind: str, given: Mapping[Any, Any], valid: Iterable[str]) -> dict[str, Any]:
        """Check that all of some options exist.

        Args:
            kind: What they are, each.
            given: Options by name, as a user wrote them.
            valid: The names that there are.

        Returns:
            Those that exist.
        """
        names = list(valid)
        for name in given:
            if name not in names:
                self.unknown(kind, name, names)
        return {name: value for name, value in given.items() if name in names}

    def choice(self, name: str, value: Any, valid: Iterable[str]) -> None:
        """Check that `value` is one of the strings `valid`."""
        valid = tuple(valid)
        if not isinstance(value, str) or value not in valid:
            self.messages.append(not_a_choice(f"{self._prefix}{name}", value, valid))

    def include(self, error: InvalidOptionsError) -> None:
        """Take over the problems of a part that was checked on its own."""
        self.messages.extend(self._prefix + problem for problem in error.problems)

    def raise_if_any(self) -> None:
        """Raise what was collected.

        Raises:
            InvalidOptionsError: If there is at least one problem.
        """
        if self.messages:
            raise InvalidOptionsError(self.messages)
