"""Every command of `rllib` and its arguments.

Made from the declarations rather than from `--help`, whose layout differs between versions of
Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rllib_minestudio.algorithms.options import help_text
from rllib_minestudio.cli.flags import DeclaredFlag, flags_of, shown_default
from rllib_minestudio.cli.main import build_parser
from rllib_minestudio.foundation.options import default_of, sentence_of
from tools.reference.tables import table

_INTRODUCTION = """\
# Commands

Every command of `rllib`, as `rllib COMMAND --help` shows it.
"""


def page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for words, parser in _leaves(build_parser()):
        parts += [f"## {words}\n", *_text(parser.description)]
        rows = [_row(flag) for flag in flags_of(parser.get_default("request"))]
        parts.append(
            table(rows, ("Argument", "Default", "Description")) if rows else "No arguments.\n"
        )
        parts += _text((parser.epilog or "").replace(help_text(), ""))
    return "\n".join(parts)


def _leaves(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the commands that have no subcommands, in the order of their declaration."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not below:
        yield parser.prog, parser
    for commands in below:
        for name, command in commands.choices.items():
            command.prog = f"{parser.prog} {name}"
            command.description = command.description or parser.description
            command.epilog = command.epilog or parser.epilog
            yield from _leaves(command)


def _row(flag: DeclaredFlag) -> tuple[str, str, str]:
    value = "" if flag.kind is bool else flag.metavar
    name = " ".join(filter(None, [", ".join(flag.names), value]))
    shown = shown_default(default_of(flag.option))
    return name, shown and f"`{shown}`", sentence_of(flag.option)


def _text(text: str | None) -> list[str]:
    """Keep the lines of a help text as they are."""
    return [f"```text\n{text.strip()}\n```\n"] if text and text.strip() else []
