"""Markdown tables of dataclasses and signatures whose docstrings describe every part."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml

from rllib_minestudio.foundation.options import default_of, is_option, sentence_of

_HEADER = ("Option", "Default", "Values", "Description")

_SECTION = re.compile(r"^(Args|Attributes):\n((?:[ ]{4}.*\n|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}\**(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
_OTHER_SECTIONS = re.compile(r"^(Args|Attributes|Raises|Returns):$", re.MULTILINE)

_WORDS = {
    int: "integer",
    float: "number",
    bool: "true or false",
    str: "text",
    Any: "anything",
}


def described(docstring: str | None) -> dict[str, str]:
    """Return what a Google-style docstring says about each argument or attribute.

    Args:
        docstring: With or without a section `Args` or `Attributes`.

    Returns:
        Name -> description, on one line; empty without such a section.
    """
    found = _SECTION.search(f"{inspect.cleandoc(docstring or '')}\n")
    entries = _ENTRY.findall(found[2]) if found else []
    return {name: " ".join(text.split()) for name, text in entries}


def prose(docstring: str | None) -> str:
    """Return a docstring without its sections of arguments, attributes and errors."""
    text = inspect.cleandoc(docstring or "")
    section = _OTHER_SECTIONS.search(text)
    return text[: section.start()].strip() if section else text


def dataclass_table(
    options: type,
    *,
    without: Iterable[str] = (),
    defaults: Mapping[str, str] | None = None,
    more: Sequence[tuple[str, str, str, str]] = (),
) -> str:
    """Return a table of a dataclass's fields, those without a default first.

    Args:
        options: The dataclass; each field is an option, or described under `Attributes`.
        without: Fields that users do not set.
        defaults: Field -> wording of a default that differs from machine to machine.
        more: Rows to put first: name, default, values, sentence.

    Raises:
        LookupError: If the docstring lacks a field.
    """
    hints, told = get_type_hints(options), described(options.__doc__)
    rows = list(more)
    for option in sorted(fields(options), key=lambda option: default_of(option) is not MISSING):
        if option.name in without:
            continue
        default = (defaults or {}).get(option.name) or _default_of_field(option)
        said = {option.name: sentence_of(option)} if is_option(option) else told
        sentence = _sentence(said, option.name, options.__qualname__)
        rows.append((option.name, default, values(hints[option.name]), sentence))
    return table(rows)


def signature_table(function: Callable[..., Any], where: str) -> str:
    """Return a table of a constructor's arguments, or "" if it takes none.

    Args:
        function: Its docstring describes each argument under `Args`.
        where: Whose constructor it is, for the error.

    Raises:
        LookupError: If the docstring lacks an argument.
    """
    hints, told = get_type_hints(function), described(function.__doc__)
    rows = []
    for argument in list(inspect.signature(function).parameters.values())[1:]:  # not `self`
        default = "" if argument.default is argument.empty else in_yaml(argument.default)
        name = "KEY" if argument.kind is argument.VAR_KEYWORD else argument.name
        sentence = _sentence(told, argument.name, where)
        rows.append((name, default, values(hints[argument.name]), sentence))
    return table(rows) if rows else ""


def inherited_table(constructed: type, defaults: Mapping[str, Any]) -> str:
    """Return a table of a class's arguments, which its own docstring describes.

    Args:
        constructed: Its constructor may be another library's.
        defaults: Argument -> default, where it differs from the constructor's.

    Raises:
        LookupError: If the docstring lacks an argument.
    """
    hints, told = get_type_hints(constructed.__init__), described(constructed.__doc__)  # type: ignore[misc]
    rows = []
    for name, argument in inspect.signature(constructed).parameters.items():
        default = in_yaml(defaults.get(name, argument.default))
        rows.append((name, default, values(hints[name]), _sentence(told, name, str(constructed))))
    return table(rows)


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = _HEADER) -> str:
    """Return a Markdown table; the first cell of each row is set as code."""
    lines = [header, ["---"] * len(header)]
    lines += [(f"`{name}`", *cells) for name, *cells in rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def in_yaml(value: Any) -> str:
    """Return a default as code, as an experiment file would have it."""
    value = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump(value, default_flow_style=True, width=1000)
    return f"`{text.removesuffix('...' + chr(10)).strip()}`"


def values(hint: Any) -> str:
    """Describe a type hint for users of YAML files."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    named = [_kind(kind) for kind in kinds if kind is not types.NoneType]
    return ", or ".join([*dict.fromkeys(named), *(["null"] if types.NoneType in kinds else [])])


def _kind(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _WORDS:
        return _WORDS[hint]
    if origin is tuple and Ellipsis not in arguments:
        return f"list of {len(arguments)} {_kind(arguments[0])}s"
    if is_dataclass(hint) or (inspect.isclass(origin or hint) and _is_mapping(origin or hint)):
        return "mapping"
    return "list"


def _is_mapping(kind: type) -> bool:
    return issubclass(kind, Mapping)


def _default_of_field(option: Field) -> str:
    if option.default_factory is not MISSING:
        default = option.default_factory()
        return "" if is_dataclass(default) else in_yaml(default)
    return "" if option.default is MISSING else in_yaml(option.default)


def _sentence(told: Mapping[str, str], name: str, where: str) -> str:
    if name not in told:
        raise LookupError(f"{where}: the docstring does not say what {name!r} is; add it there")
    return re.sub(r"\bNone\b", "null", told[name])  # as YAML has it


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
