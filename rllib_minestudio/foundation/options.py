"""Options, each declared once as a dataclass field with its default, bounds and description.

    @dataclass(kw_only=True)
    class PPOOptions:
        kl_coeff: float = option(0.2, "The KL term starts with this weight.", least=0.0, most=1e9)

Keyword arguments with their help (`takes`), validation (`value_problems`, `group_problems`), the
flags of a command (`cli/flags.py`), and the reference pages in the docs (`tools/reference`) are
derived from the fields.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import Any, Concatenate, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from rllib_minestudio.errors import InvalidOptionsError, did_you_mean

MANY, EVER = 10**6, 10**12
"""Upper bounds for things that are held at once, and for things that are only counted."""

Check = Callable[[str, Any], list[str]]
"""(name, value) -> one sentence per problem."""

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

_SENTENCE, _BOUNDS, _FLAG, _GROUP, _KEYS = "sentence", "bounds", "flag", "group", "keys"
"""Keys of a field's metadata."""


@dataclass(frozen=True)
class Bounds:
    """The values of its type that an option may have.

    Attributes:
        least: The smallest number, inclusive.
        most: The largest number, inclusive; `EVER` at most for integers.
        choices: The allowed strings; empty if all are.
        wording: How messages describe the allowed values; None: derived from the above.
        check: Checks the value instead of all of the above.
    """

    least: float = 0
    most: float = math.inf
    choices: tuple[str, ...] = ()
    wording: str | None = None
    check: Check | None = None


@dataclass(frozen=True)
class Flag:
    """How an option is written on the command line, where that is not `--its-name VALUE`.

    A boolean is a flag without a value, and false unless the flag is given.

    Attributes:
        metavar: Placeholder of the value in the help; "": derived from the type.
        names: Names, with their dashes; by default `--` and the option's name.
        is_positional: Whether it is a positional argument.
        takes_several: Whether all values of a list follow one flag, instead of a flag for each.
        is_alternative: Whether it is one of several flags of which exactly one must be given.
    """

    metavar: str = ""
    names: tuple[str, ...] = ()
    is_positional: bool = False
    takes_several: bool = False
    is_alternative: bool = False


def option(default: Any, sentence: str, flag: Flag | None = None, **bounds: Any) -> Any:
    """Declare an option, as the right-hand side of a dataclass field.

    Args:
        default: The default, copied for each instance if it is a dict. MISSING: it is required.
        sentence: What it does, for help and docs.
        flag: How it is written on the command line.
        bounds: Fields of `Bounds`.
    """
    metadata = {_SENTENCE: sentence, _BOUNDS: Bounds(**bounds), _FLAG: flag or Flag()}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def option_group(options: type, sentence: str, without: tuple[str, ...] = ()) -> Any:
    """Declare an option that is a mapping, whose keys are the fields of a dataclass.

    Args:
        options: The dataclass.
        sentence: What it does, for help and docs.
        without: Fields that are not keys.
    """
    keys = tuple(option for option in fields(options) if option.name not in without)
    metadata = {_SENTENCE: sentence, _BOUNDS: Bounds(), _GROUP: options, _KEYS: keys}
    return field(default_factory=lambda: {k.name: default_of(k) for k in keys}, metadata=metadata)


def like(
    base: type,
    name: str,
    *,
    default: Any = MISSING,
    sentence: str = "",
    flag: Flag | None = None,
    **bounds: Any,
) -> Any:
    """Declare an option like the one in another dataclass, except for what is given here."""
    (model,) = (declared for declared in fields(base) if declared.name == name)
    return option(
        default_of(model) if default is MISSING else default,
        sentence or sentence_of(model),
        flag or flag_of(model),
        **{**vars(bounds_of(model)), **bounds},
    )


def is_option(declared: Field) -> bool:
    """Return whether a dataclass field was declared as an option."""
    return _SENTENCE in declared.metadata


def default_of(option: Field) -> Any:
    """Return an option's default; MISSING if it has none."""
    if option.default_factory is not MISSING:
        return option.default_factory()
    return option.default


def sentence_of(option: Field) -> str:
    """Return the description of an option."""
    return str(option.metadata[_SENTENCE])


def group_of(option: Field) -> type | None:
    """Return the dataclass that declares a mapping's keys; None for other options."""
    return option.metadata.get(_GROUP)


def keys_of(group: Field) -> tuple[Field, ...]:
    """Return the options that are the keys of a mapping."""
    keys: tuple[Field, ...] = group.metadata[_KEYS]
    return keys


def flag_of(option: Field) -> Flag:
    """Return how an option is written on the command line."""
    flag: Flag = option.metadata[_FLAG]
    return flag


def bounds_of(option: Field) -> Bounds:
    """Return the bounds of an option's values."""
    bounds: Bounds = option.metadata[_BOUNDS]
    return bounds


@cache
def types_of(options: type) -> dict[str, tuple[type, bool]]:
    """Return each option's type, and whether it may be None."""
    hints = get_type_hints(options)
    return {option.name: _without_none(hints[option.name]) for option in fields(options)}


def _without_none(hint: Any) -> tuple[type, bool]:
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kinds = [member for member in members if member is not types.NoneType]
    return get_origin(kinds[0]) or kinds[0], len(kinds) < len(members)


# ---------------------------------------------------------------- checking values


def option_problems(options: type, values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Check values against the options that a dataclass declares.

    Args:
        options: The dataclass.
        values: Option -> value; missing options are skipped.
        prefix: Put before each name in messages.

    Returns:
        One sentence per problem.
    """
    problems = []
    for declared in fields(options):
        if declared.name in values:
            name, value = f"{prefix}{declared.name}", values[declared.name]
            group = group_of(declared)
            if group is not None and isinstance(value, Mapping):
                problems += group_problems(group, value, name)
            else:
                kind, nullable = types_of(options)[declared.name]
                problems += value_problems(name, value, kind, nullable, bounds_of(declared))
    return problems


def group_problems(options: type, values: Mapping[str, Any], name: str) -> list[str]:
    """Return what is wrong with a mapping of options, including unknown keys."""
    known = [option.name for option in fields(options)]
    unknown = [unknown_name("option", key, known, name) for key in values if key not in known]
    return [*unknown, *option_problems(options, values, f"{name}.")]


def value_problems(name: str, value: Any, kind: type, nullable: bool, bounds: Bounds) -> list[str]:
    """Return what is wrong with a value, one sentence per problem."""
    if (value is None and nullable) or _is_within(value, kind, bounds):
        return []
    if bounds.check is not None:
        return bounds.check(name, value)
    if bounds.choices and not bounds.wording:
        return [not_a_choice(name, value, bounds.choices)]
    rule = bounds.wording or _rule(value, kind, bounds)
    if nullable and bounds.wording:
        rule += ", or null"
    return [broken_rule(name, value, f"must be {rule}")]


def _is_within(value: Any, kind: type, bounds: Bounds) -> bool:
    if bounds.check is not None:
        return False
    if kind in (int, float):
        numbers = int if kind is int else (int, float)
        is_number = isinstance(value, numbers) and not isinstance(value, bool)
        return is_number and bounds.least <= value <= _most(kind, bounds)  # false for NaN
    if kind is str:
        return isinstance(value, str) and (not bounds.choices or value in bounds.choices)
    return isinstance(value, Mapping if kind is dict else kind)


def _most(kind: type, bounds: Bounds) -> float:
    return min(bounds.most, EVER) if kind is int else bounds.most


def _rule(value: Any, kind: type, bounds: Bounds) -> str:
    """Return the rule that a value breaks, in words."""
    least, most = bounds.least, _most(kind, bounds)
    if kind is int:
        if is_integer(value) and value > most:
            return f"an integer, at most {most}"
        return f"an integer, at least {least}"
    if kind is float:
        if most == math.inf:
            return "a number, at least 0" if least == 0 else "a number, positive"
        return f"a number, between {least:g} and {most:g}"
    return {bool: "true or false", dict: "a mapping"}.get(kind, "text")


# ---------------------------------------------------------------- keyword arguments


def takes(
    options: Callable[Arguments, Any],
) -> Callable[[Callable[..., Returned]], Callable[Concatenate[Returned, Arguments], Returned]]:
    """Let a setter that returns its object take a dataclass's fields as keyword arguments.

    Type checkers and editors see the names and types of the fields, `help` also their descriptions.
    """

    def decorate(setter: Callable[..., Returned]) -> Any:
        keyword, anything = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
        declared = fields(options)  # type: ignore[arg-type]
        parameters = [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(
                inspect.Parameter(
                    option.name, keyword, default=default_of(option), annotation=option.type
                )
                for option in declared
            ),
            inspect.Parameter("others", anything, annotation="Any"),
        ]
        setter.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=setter.__annotations__.get("return")
        )
        lines = [f"    {option.name}: {sentence_of(option)}" for option in declared]
        text = inspect.cleandoc(setter.__doc__ or "")
        setter.__doc__ = "\n".join([text, "", "Args:", *lines])
        return setter

    return decorate


# ----------------------------------------------------------------- small checks, and their messages
# All layers share them, so that all messages have the same form: the field, the rule, the value
# received, and the nearest valid name.


def is_integer(value: Any) -> bool:
    """Return whether `value` is an int but not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether `value` is a finite int or float but not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def is_list(value: Any) -> bool:
    """Return whether `value` is a sequence other than a string or bytes."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


LONGEST_PATH = 255
"""Limit on the characters of an import path."""


def is_import_path(text: str) -> bool:
    """Return whether a text has the form of an import path; nothing is imported.

    Args:
        text: A text such as `package.module.Class` or `package.module:Class`.
    """
    parts = text.replace(":", ".", 1).split(".")
    is_short = len(parts) > 1 and len(text) <= LONGEST_PATH
    return is_short and text.isascii() and all(map(str.isidentifier, parts))


def shown(value: Any) -> str:
    """Return a value as messages show it, truncated if it is long."""
    try:
        text = value.__qualname__ if isinstance(value, type) else repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, deep nesting
        return f"<{type(value).__name__} too large to be shown>"
    return text if len(text) <= 300 else f"{text[:300]}..."


def printable(text: str) -> str:
    """Return a text that a terminal shows as it is: all but its line breaks and tabs is visible.

    Control characters, which could recolour, move or erase what a terminal shows, and those that
    reverse or hide text are written as their escape sequences, as `repr` writes them.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in "\n\t"
        else character.encode("unicode_escape").decode()
        for character in text
    )


_FEW = 12
"""Up to so many names are all listed, even if one is close."""


def broken_rule(field: str, value: Any, rule: str) -> str:
    """Return the message that `field` with `value` breaks `rule` ("must be ...")."""
    return f"{field} {rule}; got {shown(value)}."


def unknown_name(kind: str, name: Any, valid: Iterable[str], where: str = "") -> str:
    """Return the message that there is no `kind` called `name`, and what was probably meant.

    Args:
        kind: The kind of thing, such as "option".
        name: What the user wrote.
        valid: All valid names; listed if there are few, or none is close.
        where: Dotted path of the option; "" leaves it out.
    """
    names = list(valid)
    hint = did_you_mean(name, names)
    if names and (not hint or len(names) <= _FEW):
        hint += f" Valid: {', '.join(names)}."
    return f"{where}{': ' if where else ''}unknown {kind} {shown(name)}.{hint}"


def not_a_choice(field: str, value: Any, valid: Iterable[str]) -> str:
    """Return the message that `value` is not one of the strings `valid`."""
    names = tuple(valid)
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    return broken_rule(field, value, f"must be one of {', '.join(map(repr, names))}") + hint


class Problems:
    """Collects problems with options, so that a user sees all of them at once.

    Args:
        owner: What the options belong to, for the messages; "" for nothing.
    """

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self._prefix = f"{owner}: " if owner else ""
        self.messages: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.messages)

    def add(self, name: str, value: Any, rule: str) -> None:
        """Note that option `name` with `value` breaks `rule` ("must be ...")."""
        self.messages.append(broken_rule(f"{self._prefix}{name}", value, rule))

    def unknown(self, kind: str, name: Any, valid: Iterable[str]) -> None:
        """Note that there is no `kind` called `name`."""
        self.messages.append(unknown_name(kind, name, valid, self.owner))

    def known(self, kind: str, given: Mapping[Any, Any], valid: Iterable[str]) -> dict[str, Any]:
        """Check that all given names exist.

        Args:
            kind: The kind of thing, such as "option".
            given: Name -> value, as a user wrote them.
            valid: All valid names.

        Returns:
            The entries whose names exist.
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
        """Add the problems of a part that was checked separately."""
        self.messages.extend(self._prefix + problem for problem in error.problems)

    def raise_if_any(self) -> None:
        """Raise the collected problems, if there are any.

        Raises:
            InvalidOptionsError: There is at least one problem.
        """
        if self.messages:
            raise InvalidOptionsError(self.messages)
