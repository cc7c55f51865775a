"""A command's flags are the fields of its request, each declared once by `option()`.

    @dataclass(frozen=True, kw_only=True)
    class PlayRequest:
        task: Path = option(MISSING, "An experiment file.", Flag("TASK", is_positional=True))
        episodes: int = option(1, "How many are played.", least=1, most=MANY)

`add_flags` adds them to a parser, with their help, and `request_from` builds the request. argparse
only tells flags from values: every value is judged by its option's bounds, so that all that is
wrong is said at once, in the words in which experiment files are refused.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.foundation.console import stderr
from rllib_minestudio.foundation.options import (
    bounds_of,
    default_of,
    flag_of,
    group_of,
    is_option,
    keys_of,
    sentence_of,
    types_of,
    value_problems,
)

Request = TypeVar("Request")

_METAVARS = {int: "N", float: "X", Path: "PATH"}


@dataclass(frozen=True)
class DeclaredFlag:
    """A flag of a command, or a word that it takes without a name.

    Attributes:
        option: The field that declares it.
        kind: Type of its value.
        is_nullable: Whether it may be left out for lack of a default.
        group: The request's mapping that it is a key of; "": it is a field of the request.
    """

    option: Field
    kind: type
    is_nullable: bool
    group: str = ""

    @property
    def destination(self) -> str:
        """Its name among parsed arguments."""
        return f"{self.group}.{self.option.name}".lstrip(".")

    @property
    def names(self) -> tuple[str, ...]:
        """What is written before its value; nothing before a positional one."""
        flag = flag_of(self.option)
        if flag.is_positional or flag.names:
            return flag.names
        return (f"--{self.option.name.replace('_', '-')}",)

    @property
    def metavar(self) -> str:
        """What stands for its value in the help."""
        choices = bounds_of(self.option).choices
        named = "{" + ",".join(choices) + "}" if choices else _METAVARS.get(self.kind, "TEXT")
        return flag_of(self.option).metavar or named

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Declare it to argparse."""
        default = default_of(self.option)
        given: dict[str, Any] = {"help": help_of(self.option).replace("%", "%%")}
        if self.kind is bool:
            given["action"] = "store_true"
        else:
            given |= {"metavar": self.metavar, "type": _reader(self.kind), **self._words()}
            if default is not MISSING:
                given["default"] = list(default) if self.kind is tuple else default
        if self.names:
            given |= {"dest": self.destination, "required": default is MISSING}
        parser.add_argument(*(self.names or [self.destination]), **given)

    def _words(self) -> dict[str, str]:
        """Return argparse's arguments that say how many words the value is."""
        is_required = default_of(self.option) is MISSING
        if flag_of(self.option).takes_several:
            return {"nargs": "+"}
        if self.kind is tuple:
            return {"action": "append"} if self.names else {"nargs": "+" if is_required else "*"}
        return {} if self.names or is_required else {"nargs": "?"}

    def value_of(self, parsed: argparse.Namespace) -> Any:
        """Return its value among parsed arguments."""
        value = getattr(parsed, self.destination)
        return tuple(value) if isinstance(value, list) else value

    def problems(self, value: Any) -> list[str]:
        """Say what is wrong with a value, if anything is."""
        name = self.names[0] if self.names else self.metavar
        return value_problems(name, value, self.kind, self.is_nullable, bounds_of(self.option))


def flags_of(request: type) -> Iterator[DeclaredFlag]:
    """The flags that a request declares, those of its mappings in their place."""
    for option in filter(is_option, fields(request)):
        group = group_of(option)
        if group is None:
            yield DeclaredFlag(option, *types_of(request)[option.name])
        else:
            for key in keys_of(option):
                yield DeclaredFlag(key, *types_of(group)[key.name], option.name)


def add_flags(
    parser: argparse.ArgumentParser, request: type[Request], run: Callable[[Request], int]
) -> None:
    """Give a command the flags of its request.

    Args:
        parser: The command's.
        request: A dataclass.
        run: Does what is asked for, and returns the exit status.
    """
    alternatives: argparse._ActionsContainer | None = None
    for flag in flags_of(request):
        if flag_of(flag.option).is_alternative:
            alternatives = alternatives or parser.add_mutually_exclusive_group(required=True)
            flag.add_to(alternatives)
        else:
            flag.add_to(parser)
    parser.set_defaults(request=request, run=run)


def request_from(parsed: argparse.Namespace) -> Any:
    """Build the request of the command that was parsed.

    Raises:
        InvalidOptionsError: Values are out of bounds; lists all problems.
    """
    given: dict[str, Any] = {}
    problems = []
    for flag in flags_of(parsed.request):
        value = flag.value_of(parsed)
        problems += flag.problems(value)
        place = given.setdefault(flag.group, {}) if flag.group else given
        place[flag.option.name] = value
    if problems:
        raise InvalidOptionsError(problems)
    return parsed.request(**given)


def shown_default(default: Any) -> str:
    """Return a default as help and docs show it; "" where a flag's sentence says what is meant."""
    if default is None or isinstance(default, bool) or default in (MISSING, (), [], ""):
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def help_of(option: Field) -> str:
    """Return what an option does, and its default."""
    shown = shown_default(default_of(option))
    return sentence_of(option) + (f" Default: {shown}." if shown else "")


def _reader(kind: type) -> Callable[[str], Any]:
    """Return what reads a value of some type; what it cannot read it leaves to be judged."""
    if kind not in (int, float, Path):
        return str

    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return text

    return read


# --------------------------------------- argparse's parser, which also says what was probably meant

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


# --------------------------------------------------------------------- what `--deterministic` costs

WARNING = (
    "warning: --deterministic takes the most probable action of every step. VPT is trained to be "
    "sampled: what it does now and then, such as an attack, may never be the most probable thing "
    "to do. How much that costs depends on the policy: on the cow task one fell from 7.1 cows per "
    "episode to 0.25, while package:hunter_nano keeps its 8. Leave the option out to measure what "
    "training measured."
)


def warn_if_deterministic(deterministic: bool) -> None:
    """Say what the option costs, if it is given."""
    if deterministic:
        stderr.print(WARNING, style="yellow", markup=False)
