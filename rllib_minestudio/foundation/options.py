"""An option is declared once: a dataclass field with its default, its bounds and its sentence.

    @dataclass(kw_only=True)
    class PPOOptions:
        kl_coeff: float = option(0.2, "The KL term starts with this weight.", least=0.0, most=1e9)

From the fields come keyword arguments with their help (`takes`), validation (`value_problems`,
`group_problems`), the flags of a command (`cli/flags.py`), and the pages of the docs that list them
(`tools/reference`).
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
"""More than anybody has of things held at once, and of what is only ever counted."""

Check = Callable[[str, Any], list[str]]
"""(name, value) -> one sentence per problem."""

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

_SENTENCE, _BOUNDS, _FLAG, _GROUP, _KEYS = "sentence", "bounds", "flag", "group", "keys"
"""Keys of a field's metadata."""


@dataclass(frozen=True)
class Bounds:
    """Which values of its type an option may have.

    Attributes:
        least: The smallest number, itself allowed.
        most: The greatest number, itself allowed; of integers never more than `EVER`.
        choices: The only texts allowed; empty if any is.
        wording: What a message calls the values allowed; None: what follows from the above.
        check: Judges the value instead of all of the above.
    """

    least: float = 0
    most: float = math.inf
    choices: tuple[str, ...] = ()
    wording: str | None = None
    check: Check | None = None


@dataclass(frozen=True)
class Flag:
    """How an option is written on the command line, where that is not `--its-name VALUE`.

    A truth value is a flag without a value: false unless it is given.

    Attributes:
        metavar: What stands for its value in the help; "": what its type suggests.
        names: With their dashes; left out: `--` and the option's name.
        is_positional: Its value is a word of its own, without a name before it.
        takes_several: All values of a list follow one name, instead of each its own.
        is_alternative: Exactly one of a command's flags that are marked so has to be given.
    """

    metavar: str = ""
    names: tuple[str, ...] = ()
    is_positional: bool = False
    takes_several: bool = False
    is_alternative: bool = False


def option(default: Any, sentence: str, flag: Flag | None = None, **bounds: Any) -> Any:
    """Declare an option, as the right-hand side of a dataclass field.

    Args:
        default: Its default; a mapping is copied for each instance. MISSING: it has to be given.
        sentence: What it does, for help and docs.
        flag: How it is written on the command line, if it is a flag there.
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
        sentence: What they decide.
        without: Fields that are no keys.
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
    """Declare an option as another dataclass does, but for what is given here."""
    (model,) = (declared for declared in fields(base) if declared.name == name)
    return option(
        default_of(model) if default is MISSING else default,
        sentence or sentence_of(model),
        flag or flag_of(model),
        **{**vars(bounds_of(model)), **bounds},
    )


def is_option(declared: Field) -> bool:
    """Whether a dataclass's field was declared as an option."""
    return _SENTENCE in declared.metadata


def default_of(option: Field) -> Any:
    """Return an option's default; MISSING if it has none."""
    if option.default_factory is not MISSING:
        return option.default_factory()
    return option.default


def sentence_of(option: Field) -> str:
    """Return what an option does."""
    return str(option.metadata[_SENTENCE])


def group_of(option: Field) -> type | None:
    """Return the dataclass of a mapping's keys; None for other options."""
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
    """Return which values an option may have."""
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


# ---------------------------------------------------------------- judging values


def option_problems(options: type, values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Say what is wrong with the values of all options that a dataclass declares.

    Args:
        options: The dataclass.
        values: Value by option; those that are left out are passed over.
        prefix: Stands before each name in messages.

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
    """Say what is wrong with a mapping of options, unknown keys included."""
    known = [option.name for option in fields(options)]
    unknown = [unknown_name("option", key, known, name) for key in values if key not in known]
    return [*unknown, *option_problems(options, values, f"{name}.")]


def value_problems(name: str, value: Any, kind: type, nullable: bool, bounds: Bounds) -> list[str]:
    """Say what is wrong with one value, if anything is."""
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
        return is_number and bounds.least <= value <= _most(kind, bounds)  # NaN is within none
    if kind is str:
        return isinstance(value, str) and (not bounds.choices or value in bounds.choices)
    return isinstance(value, Mapping if kind is dict else kind)


def _most(kind: type, bounds: Bounds) -> float:
    return min(bounds.most, EVER) if kind is int else bounds.most


def _rule(value: Any, kind: type, bounds: Bounds) -> str:
    """Word the rule that a value breaks."""
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

    Type checkers and editors see the fields' names and types, `help` their sentences as well.
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


# ----------------------- small checks of options, and the sentences that say what is wrong with one
# All layers share them, so that a wrong option reads alike wherever it is written: the field, the
# rule, the value received, and the nearest valid name.


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
