"""Every flag of every command is a field of the command's request, and is judged by its bounds."""

import argparse
import subprocess
import sys
from dataclasses import MISSING, dataclass

import pytest

from rllib_minestudio.cli.flags import add_flags, flags_of, help_of, request_from
from rllib_minestudio.cli.main import build_parser, main
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.console import stderr
from rllib_minestudio.foundation.options import (
    EVER,
    Flag,
    bounds_of,
    default_of,
    is_option,
    option,
    option_group,
    sentence_of,
)

HEAVY = {"ray", "torch", "gymnasium", "numba", "numpy", "av", "pydantic"}


def leaves(parser, words=()):
    """The commands that have none below them: their words and parsers."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not below:
        yield words, parser
    for commands in below:
        for name, command in commands.choices.items():
            yield from leaves(command, (*words, name))


COMMANDS = {" ".join(words): parser for words, parser in leaves(build_parser())}


def flags(command):
    return list(flags_of(COMMANDS[command].get_default("request")))


def needed(command, without):
    """A command with everything that has to be given, but for one flag."""
    words = command.split()
    for flag in flags(command):
        if default_of(flag.option) is MISSING and flag.destination != without:
            words += [*flag.names[:1], "1" if flag.kind is int else "cow"]
    return words


def wrong_values(flag):
    """Words that are out of a flag's bounds, as they are typed."""
    bounds = bounds_of(flag.option)
    if flag.kind in (int, float):
        beyond = [flag.kind(bounds.least) - 1, 2 * min(bounds.most, EVER) + 1]
        values = [*map(str, beyond), "x", "1.5" if flag.kind is int else "nan"]
        return [v for v in values if v != "inf" and flag.problems(number(flag.kind, v))]
    return [word for word in ("nothing", "") if flag.kind is str and flag.problems(word)]


def number(kind, text):
    try:
        return kind(text)
    except ValueError:
        return text


JUDGED = [
    (command, flag, value)
    for command in COMMANDS
    for flag in flags(command)
    for value in wrong_values(flag)
]


def test_the_commands_are_found():
    assert {"train file", "evaluate", "benchmark run", "model export", "warmup"} <= set(COMMANDS)
    judged = {(command, flag.destination) for command, flag, _ in JUDGED}
    assert {("evaluate", "form.crf"), ("evaluate", "options.only"), ("doctor", "engine")} <= judged


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_declared_as_an_option(command):
    actions = [a for a in COMMANDS[command]._actions if not isinstance(a, argparse._HelpAction)]
    declared = {flag.destination: flag for flag in flags(command)}
    assert [action.dest for action in actions] == list(declared)
    for action in actions:
        flag = declared[action.dest]
        assert is_option(flag.option)
        assert sentence_of(flag.option).endswith(".")
        assert action.help.replace("%%", "%") == help_of(flag.option)
        assert tuple(action.option_strings) == flag.names


@pytest.mark.parametrize(
    ("command", "flag", "value"),
    [pytest.param(*case, id=f"{case[0]} {case[1].destination}={case[2]}") for case in JUDGED],
)
def test_a_value_out_of_bounds_is_one_sentence(command, flag, value, capsys, monkeypatch):
    monkeypatch.setattr(stderr, "_width", 1000)
    name = flag.names[0] if flag.names else flag.metavar
    given = f"{name}={value}" if flag.names else value
    assert main([*needed(command, flag.destination), given]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {name} must be ")
    assert value[:5] in error and error.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [["train", "file", "https://a.b/cow.yaml"], ["train", "file", "cow", "--out", "s3://b"]],
)
def test_an_address_is_not_taken_for_a_path(words, capsys, monkeypatch):
    monkeypatch.setattr(stderr, "_width", 1000)
    assert main(words) == 2
    assert "is an address, and nothing is read from or written to" in capsys.readouterr().err


def test_all_that_is_wrong_is_said_at_once(capsys):
    assert main(["evaluate", "x", "--episodes", "0", "--crf", "99", "--only", "best"]) == 2
    assert capsys.readouterr().err.count("error: --") == 3


@dataclass(frozen=True, kw_only=True)
class Inner:
    depth: int = option(3, "How deep.", least=1, most=9)
    hidden: int = option(0, "No flag.")


@dataclass(frozen=True, kw_only=True)
class Outer:
    what: str = option(MISSING, "What.", Flag("WHAT", is_positional=True))
    rest: tuple[str, ...] = option((), "More.", Flag("MORE", is_positional=True))
    names: tuple[str, ...] = option((), "Names.", Flag(takes_several=True))
    changes: tuple[str, ...] = option((), "100 % of them.", Flag("K=V", names=("--set", "-s")))
    share: float | None = option(None, "How much.", most=1)
    loud: bool = option(False, "Loud.")
    inner: dict = option_group(Inner, "Inside.", without=("hidden",))
    kept: str = "not a flag"


def parsed(*words):
    parser = argparse.ArgumentParser()
    add_flags(parser, Outer, lambda request: 0)
    return request_from(parser.parse_args(words))


def test_what_is_left_out_has_its_default():
    assert parsed("x") == Outer(what="x", inner={"depth": 3})


def test_all_forms_of_flags():
    words = ["x", "y", "z", "--names", "a", "b", "--set", "c=1", "-s", "d=2", "--share", "0.5"]
    assert parsed(*words, "--loud", "--depth", "9") == Outer(
        what="x",
        rest=("y", "z"),
        names=("a", "b"),
        changes=("c=1", "d=2"),
        share=0.5,
        loud=True,
        inner={"depth": 9},
    )
    with pytest.raises(InvalidOptionsError, match=r"--depth must be an integer, at most 9; got 10"):
        parsed("x", "--depth", "10")


def test_the_help_shows_sentences_and_defaults():
    parser = argparse.ArgumentParser()
    add_flags(parser, Outer, lambda request: 0)
    text = " ".join(parser.format_help().split())
    assert "--depth N How deep. Default: 3." in text
    assert "100 % of them." in text and "hidden" not in text and "kept" not in text


def test_help_imports_nothing_that_takes_long():
    code = f"import rllib_minestudio.cli.main, sys; print({HEAVY!r} & sys.modules.keys() or '')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
