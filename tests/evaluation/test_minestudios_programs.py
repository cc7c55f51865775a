"""MineStudio's programs for its published agents: read from its package, run here."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.evaluation import minestudio_programs as programs

MINESTUDIO = importlib.util.find_spec("minestudio")
NUMBERS = {"num_workers": 1, "num_gpus": 0, "num_max_steps": programs.STEPS, "num_episodes": 1}
YES_RATES = {"build_portal": None, "mine_diamond": 0.0, "shoot_animals": 0.0}
"""Of an agent that has learned nothing; the first program has no filter."""

pytestmark = pytest.mark.skipif(MINESTUDIO is None, reason="MineStudio is not installed")


def folder():
    return Path(MINESTUDIO.origin).parent / "tutorials" / "inference" / "evaluate_vpts"


def read(name):
    """A program, as it is there and as it is run."""
    program = (folder() / f"{name}.py").read_text()
    return program, programs.changed(program, **NUMBERS)


def test_there_are_no_others():
    assert {path.stem for path in folder().glob("*.py")} == set(YES_RATES)


@pytest.mark.parametrize("name", YES_RATES)
def test_nothing_but_imports_weights_and_numbers_changes(name):
    changes = programs.differences(*read(name))
    imports = {theirs: ours for theirs, ours in changes if theirs.startswith("from minestudio.")}
    assert len(imports) == 4
    for theirs, ours in imports.items():
        _, _, names = theirs.partition(" import ")
        assert ours == f"from rllib_minestudio.minestudio import {names}"
    others = [change for change in changes if change[0] not in imports]
    assert len(others) > 2
    for theirs, ours in others:
        argument = theirs.partition("=")[0].strip()
        value = NUMBERS.get(argument, f'"{programs.WEIGHTS}"')
        assert argument in {"agent_generator", *NUMBERS}
        assert ours == re.sub(r'"CraftJarvis/[\w.]+"|[\d.]+(?=,)', str(value), theirs)


@pytest.mark.slow
@pytest.mark.parametrize("name", YES_RATES)
def test_each_plays_records_and_counts(name, tmp_path):
    _, program = read(name)
    summary = programs.printed_summary(programs.run(program, tmp_path))
    assert (summary["num_episodes"], summary["yes_rate"]) == (1, YES_RATES[name])
    assert summary["failed_episodes"] == 0
    assert [episode["error"] for episode in summary["episodes"]] == [None]
    programs.check_recordings(tmp_path / "output", episodes=1)
