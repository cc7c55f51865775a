"""Agents that are not ours, wherever a command takes a player: `module:function`."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import replace

import pytest

from rllib_minestudio.benchmark.results import BenchmarkResults
from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.env.agents import hunter, scripted, user_agents
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.recordings import find_recordings
from tests.benchmark.conftest import TASKS, write_suite
from tests.cli.test_evaluate_command import task
from tests.processes import run_rllib

DEMOS = ("--episodes", "1", "--out", "demos")

WALKER = """
class Walker:
    def reset(self):
        self.steps = 0

    def act(self, obs):
        self.steps += 1
        assert obs["image"].shape == (64, 64, 3)
        return {"forward": 1, "camera": (0.0, 3.0 * (self.steps == 5))}


def make_walker():
    return Walker()


class Sleeper:
    def act(self, obs):
        import time

        time.sleep(60)


def make_sleeper():
    return Sleeper()


def make_broken():
    raise OSError("no battery")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a module that no other process of the tests has imported."""
    name = f"own_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(WALKER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield name
    sys.modules.pop(name, None)


@pytest.mark.slow
def test_it_is_watched_and_recorded(own, tmp_path):
    words = [task(tmp_path), "--agent", f"{own}:make_walker", "--episodes", "2"]
    assert main(["play", *words, "--out", "plays"]) == 0
    first, second = find_recordings(tmp_path / "plays")
    assert len(first) == len(second) == 12
    assert first.steps["buttons"].tolist() == second.steps["buttons"].tolist()
    assert len({*first.steps["camera"].ravel().tolist()}) == 2  # it turned once
    assert main(["record", *words, "--out", "demos", "--workers", "1"]) == 0
    assert len(list(find_recordings(tmp_path / "demos" / "episodes"))) == 2
    order = json.loads((tmp_path / "demos" / "demonstrations.json").read_text())
    assert order["program"]["module"] == own and len(order["program"]["file_digest"]) == 16
    (tmp_path / f"{own}.py").write_text(WALKER + "\n# another program\n")
    assert main(["record", *words[:-1], "3", "--out", "demos"]) == BAD_INPUT


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["play", "TASK", "--agent", "OWN:make_runner"], "has no 'make_runner'; it has Walker"),
        (["play", "TASK", "--agent", "no_module_of_this_name:make"], "cannot be imported (Mod"),
        (["record", "TASK", *DEMOS, "--agent", "OWN:nobody"], "has no 'nobody'"),
        (
            [*("record", "TASK", *DEMOS, "--agent", "OWN:make_walker"),
             *("--novice", "package:hunter_nano")],
            "novice is for scripted agents, which can take over",
        ),
        (["evaluate", "OWN:nobody"], "has no 'nobody'"),
        (["evaluate", "package:hunter_nano", "--env", "TASK"], "--env is for agents of your own"),
        (["benchmark", "run", "OWN:nobody", "--suite", "SUITE"], "has no 'nobody'"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_is_played(own, command, told, tmp_path, capsys):
    names = {"TASK": task(tmp_path), "SUITE": write_suite(tmp_path / "suite", TASKS)}
    words = [names.get(word, word.replace("OWN", own)) for word in command]
    assert main(words) == BAD_INPUT
    assert told in capsys.readouterr().err


def test_an_agent_that_raises_or_hangs_is_told_where_it_is_watched(
    own, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(user_agents, "TIMEOUT_S", 0.2)
    for maker, told in (("make_broken", "raised OSError: no battery"), ("make_sleeper", "0.2 s")):
        words = ["play", task(tmp_path), "--agent", f"{own}:{maker}", "--out", maker]
        assert main(words) != 0
        error = capsys.readouterr().err
        assert told in error and "bug of ours" not in error


@pytest.mark.slow  # three evaluations with Ray, in processes of their own
def test_it_is_evaluated_beside_a_policy_in_its_worlds(own, tmp_path):
    words = ["--episodes", "3", "--workers", "2"]
    status, output = run_rllib(
        *(tmp_path, "evaluate", f"{own}:make_walker", "--env", task(tmp_path), *words),
        *("--record", "out", "--filter", "length>=12"),
    )
    assert status == 0, output
    summary = Summary.load(tmp_path / "out")
    assert summary.rate.yes_rate == 1.0 and summary.policy["module"] == own
    assert len(list(find_recordings(tmp_path / "out" / "episodes"))) == 3
    words = ["--env", "package:hunter_nano", "--max-steps", "5", "--episodes", "2"]
    status, output = run_rllib(
        *(tmp_path, "evaluate", f"{own}:make_walker", "--compare", "package:hunter_nano", *words),
        *("--out", "beside"),
    )
    assert status == 0, output
    assert json.loads((tmp_path / "beside" / "comparison.json").read_text())
    status, output = run_rllib(
        *(tmp_path, "evaluate", f"{own}:make_broken", "--env", task(tmp_path)),
        *("--episodes", "4", "--out", "broken"),
    )
    assert status == 1 and output.count("OSError: no battery") == 4, output
    assert len(Summary.load(tmp_path / "broken").failures) == 4


COPIES = """
from copied_hunter import HumanlikeHunter
from copied_scripted import RandomAgent


def make_hunter(seed):
    return HumanlikeHunter(seed=seed)


def make_random(seed):
    return RandomAgent(seed)
"""


@pytest.mark.slow  # four runs, two of them with Ray, in processes of their own
def test_copies_of_our_agents_give_our_numbers(tmp_path):
    for module in (hunter, hunter, scripted):
        text = inspect.getsource(module)
        for name in ("human_limits", "hunter", "scripted"):
            text = text.replace(f"rllib_minestudio.env.agents.{name} ", f"copied_{name} ")
        (tmp_path / f"copied_{module.__name__.rpartition('.')[2]}.py").write_text(text)
    (tmp_path / "copies.py").write_text(COPIES)
    words = ["--suite", write_suite(tmp_path / "suite", TASKS), "--episodes", "6", "--no-videos"]
    for name in ("hunter", "random"):
        tables = []
        for player in (name, f"copies:make_{name}"):
            out = player.partition(":")[2] or player
            status, output = run_rllib(
                tmp_path, "benchmark", "run", player, *words, "--out", out, "--workers", "2"
            )
            assert status == 0, output
            results = BenchmarkResults.load(tmp_path / out)
            tables.append([replace(each, seconds=0.0) for each in results.tasks])
        assert tables[0] == tables[1]
        assert any(episode.length > 4 for each in tables[0] for episode in each.episodes)
