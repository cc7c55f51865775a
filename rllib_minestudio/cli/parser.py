"""argparse's parser, which also says what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rllib_minestudio.errors import did_you_mean

INVALID_CHOICE = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<valid>.*)\)$")
"""As argparse complains about a word that is no command."""


class Parser(argparse.ArgumentParser):
    """Adds the nearest command or option to complaints; its subparsers are of this class, too."""

    correction: Callable[[Sequence[str]], str] | None = None
    """Given this parser's words, says in a sentence which command was meant; "" if they may be
    right. For mistakes that are expected, and for which argparse has only its usage."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take argparse's arguments; options are not abbreviated: --seed 3 is not --seeds 3."""
        super().__init__(*arguments, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Print usage and complaint to standard error, and exit with status 2."""
        if found := INVALID_CHOICE.search(message):
            valid = [word.strip(" '") for word in found["valid"].split(",")]
            message = f"{message}.{did_you_mean(found['word'], valid)}"
        super().error(message)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse what is known, and note which options there are, those of a subparser included."""
        if self.correction is not None and args and (sentence := self.correction(args)):
            self.exit(2, f"{self.prog}: error: {sentence}\n")
        parsed, unknown = super().parse_known_args(args, namespace)
        parsed.known = [*getattr(parsed, "known", ()), *self._option_string_actions]
        return parsed, unknown

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse all words; those that are no option end the program, with a hint."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            hint = _hint(unknown, parsed.known)
            self.error(f"unrecognized arguments: {' '.join(unknown)}.{hint}")
        del parsed.known
        return parsed


def _hint(unknown: Sequence[str], known: Sequence[str]) -> str:
    """Name the option that was meant, or say that `--set` is for those of the experiment.

    Args:
        unknown: What argparse could not place; it begins with an option, or there is no hint.
        known: The command's options.
    """
    option, _, value = unknown[0].partition("=")
    if not option.startswith("--"):
        return ""
    # Without the dashes, which would make all options alike.
    hint = did_you_mean(option[2:], [name[2:] for name in known]).replace("mean '", "mean '--")
    if "--set" in known:
        value = value or (unknown[1] if len(unknown) > 1 else "VALUE")
        hint += f" Options of the experiment go by --set: --set {option.removeprefix('--')}={value}"
    return hint
