"""What the command line answers to words that it does not know."""

import ast
import shlex
from pathlib import Path

import pytest

import rllib_minestudio
from rllib_minestudio.cli.main import build_parser, main

TRAIN = ("train", "file", "cow.yaml")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["tran"], "Did you mean 'train'?"),
        (["model", "infos", "x"], "Did you mean 'info'?"),
        ([*TRAIN, "--lr=1e-4"], "Options of the experiment go by --set: --set lr=1e-4"),
        ([*TRAIN, "--model.hidden_size", "64"], "--set model.hidden_size=64"),
        ([*TRAIN, "--seed", "3"], "Did you mean '--seeds'?"),
        ([*TRAIN, "--seed", "3"], "--set seed=3"),
        ([*TRAIN, "--resum=1"], "Did you mean '--resume'?"),
        (["doctor", "--jsn"], "Did you mean '--json'?"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(words, hint, capsys):
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(words)
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def test_without_anything_close_there_is_no_hint(capsys):
    for words in (["xyz"], ["doctor", "RUN", "another"], ["warmup", "--lr=1"]):
        with pytest.raises(SystemExit):
            build_parser().parse_args(words)
        error = capsys.readouterr().err
        assert "Did you mean" not in error and "--set" not in error


def test_the_version(capsys):
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("rllib-minestudio 0.")


def test_without_a_word_the_help_is_printed_and_nothing_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["rllib"])
    for arguments in ([], None):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        printed = capsys.readouterr()
        assert ended.value.code == 0
        assert "rllib evaluate CHECKPOINT" in printed.out and not printed.err


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("cow.yaml", "`rllib train file cow.yaml`"),
        ("cow", "`rllib train file cow`"),
        ("cow.py --resume --stop a=1", "`rllib train file cow.py --resume --stop a=1`"),
        ("--resume cow.yml", "`rllib train file cow.yml --resume`"),
        ("-f cow.yaml", "`rllib train file cow.yaml`"),
        ("--run PPO --env X", "--run and --env can't be given here; write an experiment file"),
        ("--run PPO --env X", "`rllib train file FILE`"),
        ("--algo=PPO", "--algo can't be given here"),
        ("--env mine.py --run PPO", "write an experiment file"),
    ],
)
def test_a_forgotten_word_and_rllibs_command_are_answered_with_the_right_one(
    words, command, capsys
):
    with pytest.raises(SystemExit) as ended:
        main(["train", *words.split()])
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert command in error
    assert error.count("\n") == 1 and "usage" not in error


@pytest.mark.parametrize("words", [["train", "fiel", "cow"], ["train"], ["train", "--resume"]])
def test_other_slips_are_left_to_the_parser(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: rllib train" in capsys.readouterr().err


def proposed():
    """The commands that other commands end with, with a word in place of what is filled in."""
    for file in Path(rllib_minestudio.__file__).parent.rglob("*.py"):
        text = file.read_text()
        if "print_next(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "x" for v in node.values]
                if "".join(parts).startswith("rllib "):
                    yield "".join(parts)


def test_the_commands_that_are_proposed_exist():
    commands = set(proposed())
    assert {command.split()[1] for command in commands} == {
        *("benchmark", "checkpoint", "evaluate", "train")
    }
    for command in commands:
        build_parser().parse_args(shlex.split(command)[1:])
