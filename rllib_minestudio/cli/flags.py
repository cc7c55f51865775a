"""Command-line flags, derived from the fields of a command's request and declared by `option()`.

    @dataclass(frozen=True, kw_only=True)
    class PlayRequest:
        task: Path = option(MISSING, "An experiment file.", Flag("TASK", is_positional=True))
        episodes: int = option(1, "How many are played.", least=1, most=MANY)

`add_flags` adds the flags and their help to a parser, and `request_from` builds the request.
argparse only separates flags from values. Values are checked against the options' bounds, so that
all problems are reported at once, in the same words as for experiment files.
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
from rllib_minestudio.foundation.files import NOT_A_URL, is_url
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
    """A flag or positional argument of a command.

    Attributes:
        option: The field that declares it.
        kind: Type of its value.
        is_nullable: Whether the value may be None.
        group: Field of the request whose mapping has it as a key; "" if it is a field itself.
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
        """The flag's names on the command line; empty for a positional argument."""
        flag = flag_of(self.option)
        if flag.is_positional or flag.names:
            return flag.names
        return (f"--{self.option.name.replace('_', '-')}",)

    @property
    def metavar(self) -> str:
        """The placeholder of its value in the help."""
        choices = bounds_of(self.option).choices
        named = "{" + ",".join(choices) + "}" if choices else _METAVARS.get(self.kind, "TEXT")
        return flag_of(self.option).metavar or named

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add it to an argparse parser."""
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
        """Return argparse's arguments for the number of words of the value."""
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
        """Return what is wrong with a value, one sentence per problem."""
        name = self.names[0] if self.names else self.metavar
        if isinstance(value, Path) and is_url(str(value)):
            return [f"{name} {str(value)!r} {NOT_A_URL}."]
        return value_problems(name, value, self.kind, self.is_nullable, bounds_of(self.option))


def flags_of(request: type) -> Iterator[DeclaredFlag]:
    """Yield the flags that a request declares, including the keys of its mappings."""
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
    """Add the flags of a request to a command.

    Args:
        parser: The command's parser.
        request: The request's dataclass.
        run: Executes a request, and returns the exit status.
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
        InvalidOptionsError: Values are out of bounds; all problems are listed.
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
    """Return a default as help and docs show it; "" if the flag's description covers it."""
    if default is None or isinstance(default, bool) or default in (MISSING, (), [], ""):
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def help_of(option: Field) -> str:
    """Return an option's help: its description and default."""
    shown = shown_default(default_of(option))
    return sentence_of(option) + (f" Default: {shown}." if shown else "")


def _reader(kind: type) -> Callable[[str], Any]:
    """Return a parser for a type; it returns invalid text unchanged, for the bounds to refuse."""
    if kind not in (int, float, Path):
        return str

    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return text

    return read


# ----------------------------------------------------- an argparse parser that suggests corrections

INVALID_CHOICE = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<valid>.*)\)$")
"""argparse's message about an unknown command."""


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest command or option in errors, and so do its subparsers.

    Options cannot be abbreviated: --seed 3 must not be taken for --seeds 3.
    """

    correction: Callable[[Sequence[str]], str] | None = None
    """Returns a sentence with the command that was meant, given this parser's words; "" if they may
    be right. For common mistakes to which argparse would only print its usage."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Print usage and error to standard error, and exit with status 2."""
        if found := INVALID_CHOICE.search(message):
            valid = [word.strip(" '") for word in found["valid"].split(",")]
            message = f"{message}.{did_you_mean(found['word'], valid)}"
        super().error(message)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse known arguments, and note which options exist, including a subparser's."""
        if self.correction is not None and args and (sentence := self.correction(args)):
            self.exit(2, f"{self.prog}: error: {sentence}\n")
        parsed, unknown = super().parse_known_args(args, namespace)
        parsed.known = [*getattr(parsed, "known", ()), *self._option_string_actions]
        return parsed, unknown

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse all words; unknown ones end the program with a hint."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            hint = _hint(unknown, parsed.known)
            self.error(f"unrecognized arguments: {' '.join(unknown)}.{hint}")
        del parsed.known
        return parsed


def _hint(unknown: Sequence[str], known: Sequence[str]) -> str:
    """Return which option was probably meant, and that options of the experiment need `--set`.

    Args:
        unknown: The words unknown to argparse; there is a hint only if the first is an option.
        known: The command's options.
    """
    option, _, value = unknown[0].partition("=")
    if not option.startswith("--"):
        return ""
    # Compared without the dashes, which would make all options similar.
    hint = did_you_mean(option[2:], [name[2:] for name in known]).replace("mean '", "mean '--")
    if "--set" in known:
        value = value or (unknown[1] if len(unknown) > 1 else "VALUE")
        hint += f" Options of the experiment go by --set: --set {option.removeprefix('--')}={value}"
    return hint


# ----------------------------------------------------------------- the warning of `--deterministic`

WARNING = (
    "warning: --deterministic takes the most probable action of every step. VPT is trained to be "
    "sampled: what it does now and then, such as an attack, may never be the most probable thing "
    "to do. How much that costs depends on the policy: on the cow task one fell from 7.1 cows per "
    "episode to 0.25, and package:hunter_nano falls from 7.6 to 3.7. Leave the option out to "
    "measure what training measured."
)


def warn_if_deterministic(deterministic: bool) -> None:
    """Print `WARNING` if actions are deterministic."""
    if deterministic:
        stderr.print(WARNING, style="yellow", markup=False)
