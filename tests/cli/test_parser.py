"""What the command line answers to words that it does not know."""

import pytest

from rllib_minestudio.cli.main import build_parser

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
