"""The programs of MineStudio's package that play its published agents: run here, read from there."""

import importlib.util
from pathlib import Path

import pytest

from tests.evaluation import minestudio_programs as programs

MINESTUDIO = importlib.util.find_spec("minestudio")
NUMBERS = {"num_workers": 1, "num_gpus": 0, "num_max_steps": programs.STEPS, "num_episodes": 1}
YES_RATES = {"build_portal": None, "mine_diamond": 0.0, "shoot_animals": 0.0}
"""Of agents that have learned nothing; the first program has no filter."""

pytestmark = pytest.mark.skipif(MINESTUDIO is None, reason="MineStudio is not installed")


def read(name):
    """A program, before and after."""
    folder = Path(MINESTUDIO.origin).parent / "tutorials" / "inference" / "evaluate_vpts"
    program = (folder / f"{name}.py").read_text()
    return program, programs.changed(program, **NUMBERS)


def test_there_are_no_others():
    folder = Path(MINESTUDIO.origin).parent / "tutorials" / "inference" / "evaluate_vpts"
    assert {path.stem for path in folder.glob("*.py")} == set(YES_RATES)


@pytest.mark.parametrize("name", YES_RATES)
def test_nothing_but_imports_weights_and_numbers_changes(name):
    changes = programs.differences(*read(name))
    imports = [(theirs, ours) for theirs, ours in changes if theirs.startswith("from ")]
    for theirs, ours in imports:
        assert theirs.split(" import ")[0].startswith("from minestudio.")
        assert ours == f"from rllib_minestudio.minestudio import {theirs.split(' import ')[1]}"
    others = [theirs for theirs, _ in changes[len(imports) :]]
    assert len(imports) == 4
    assert [line.partition("=")[0].strip() for line in others if "=" in line] == [
        "agent_generator",
        *(name for name in ("num_max_steps", "num_episodes", "num_workers", "num_gpus")
          if any(line.startswith(name) for line in others)),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", YES_RATES)
def test_each_plays_records_and_counts(name, tmp_path):
    _, program = read(name)
    printed = programs.run(program, tmp_path)
    summary = programs.printed_summary(printed)
    assert summary["num_episodes"] == 1 and summary["yes_rate"] == YES_RATES[name]
    assert summary["failed_episodes"] == 0
    assert [episode["error"] for episode in summary["episodes"]] == [None]
    programs.check_recordings(tmp_path / "output", episodes=1)
