"""docs/commands.md: every command of `rllib` and its arguments.

Made from the parsers rather than from `--help`, whose layout differs between versions of Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from rllib_minestudio.algorithms.options.listing import help_text
from rllib_minestudio.cli.main import build_parser
from tools.reference.tables import table

_INTRODUCTION = """\
# Commands

Every command of `rllib`, as `rllib COMMAND --help` shows it.

This page is generated from the code: `python -m tools.reference docs`.
"""


def page() -> str:
    """Return docs/commands.md."""
    parts = [_INTRODUCTION]
    for words, parser in _leaves(build_parser()):
        parts += [f"## {words}\n", *_text(parser.description)]
        rows = [_row(action) for action in parser._actions if _is_argument(action)]
        parts.append(
            table(rows, ("Argument", "Default", "Description")) if rows else "No arguments.\n"
        )
        parts += _text((parser.epilog or "").replace(help_text(), ""))
    return "\n".join(parts)


def _leaves(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Walk through the commands that have none below them, in the order of their declaration."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not below:
        yield parser.prog, parser
    for commands in below:
        for name, command in commands.choices.items():
            command.prog = f"{parser.prog} {name}"
            command.description = command.description or parser.description
            command.epilog = command.epilog or parser.epilog
            yield from _leaves(command)


def _is_argument(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS


def _row(action: argparse.Action) -> tuple[str, str, str]:
    default: Any = action.default
    shown = "" if default in (None, False, argparse.SUPPRESS, []) else f"`{default}`"
    if not action.help:
        raise LookupError(f"{_name(action)}: has no help; add it where the argument is declared")
    sentence = action.help.replace("%(default)s", str(default)).replace("%%", "%")
    return _name(action), shown, sentence


def _name(action: argparse.Action) -> str:
    value = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
    if action.choices is not None and not action.metavar:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    return " ".join(filter(None, [", ".join(action.option_strings), str(value)]))


def _text(text: str | None) -> list[str]:
    """Keep the lines of a help text as they are."""
    return [f"```text\n{text.strip()}\n```\n"] if text and text.strip() else []
