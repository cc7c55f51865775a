"""The comparison with other libraries: one game for all, and a diary that tells the truth."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

import rllib_minestudio  # noqa: F401  # registers MineStudio-v0
from rllib_minestudio.env import FlatSpaces, MineStudioEnv

OTHERS = Path(__file__).parents[2] / "benchmarks" / "others"


@pytest.fixture
def game(monkeypatch):
    monkeypatch.syspath_prepend(str(OTHERS))
    import game

    yield game
    sys.modules.pop("game")


def request_for(folder, **changes):
    return argparse.Namespace(
        **{"task": "cow", "diary": folder, "fault_after": None, "fault": "exit", **changes}
    )


def shortened(options, steps):
    """The same game with episodes of so many steps."""
    for callback in options["callbacks"]:
        if isinstance(callback, dict) and "JudgeReset" in callback:
            callback["JudgeReset"] = {"time_limit": steps}
    return options


def test_a_diary_has_every_episode_with_its_return_and_its_steps(game, tmp_path):
    env = FlatSpaces(MineStudioEnv(shortened(game.game_options(request_for(tmp_path)), 40)))
    returns, rng = [], np.random.default_rng(0)
    for _ in range(3):
        env.reset()
        returns.append(0.0)
        truncated = False
        while not truncated:
            _, reward, _, truncated, _ = env.step(rng.integers(0, env.action_space.nvec))
            returns[-1] += float(reward)
    env.close()
    (file,) = tmp_path.glob("*.jsonl")
    began, *ended = [json.loads(line) for line in file.read_text().splitlines()]
    assert began[1] is None and [line[1] for line in ended] == returns
    assert [line[2] for line in ended] == [40, 40, 40]
    assert sorted(line[0] for line in (began, *ended)) == [line[0] for line in (began, *ended)]


@pytest.mark.parametrize("task", ["cow", "stray_cows"])
def test_all_libraries_play_the_same_game(game, tmp_path, task):
    """Frames and rewards of the wrapped environments equal those that our algorithms play."""
    options = game.game_options(request_for(tmp_path, task=task))
    ours = MineStudioEnv(options)
    theirs = gym.make("MineStudio-v0", disable_env_checker=True, **options)
    theirs = FlatSpaces(theirs)
    frame, _ = theirs.reset(seed=5)
    assert (ours.reset(seed=5)[0]["image"] == frame).all()
    rng = np.random.default_rng(0)
    for _ in range(60):
        action = rng.integers(0, theirs.action_space.nvec)
        buttons, camera = theirs.flat_actions.to_tokens(action)
        seen, reward, *_ = ours.step({"buttons": [buttons], "camera": [camera]})
        frame, their_reward, *_ = theirs.step(action)
        assert (seen["image"] == frame).all() and reward == their_reward
    ours.close()
    theirs.close()


def test_one_game_fails_once(game, tmp_path, monkeypatch):
    slept = []
    # The module's clock alone: other threads of this process sleep as well.
    monkeypatch.setattr(game, "time", SimpleNamespace(**{**vars(time), "sleep": slept.append}))
    options = game.game_options(request_for(tmp_path, fault_after=5, fault="hang"))
    envs = [MineStudioEnv({**options, "vector_index": index}) for index in range(2)]
    for env in envs:
        env.reset()
    for step in range(8):
        for env in envs:
            env.step({"buttons": [0], "camera": [60]})
        assert slept == [game.FOREVER_S] * (step >= 4)


def test_scripts_are_short_and_the_reports_of_no_cells_say_so(tmp_path):
    for script in OTHERS.glob("*_*ppo.py"):
        assert len(script.read_text().splitlines()) <= 80, script
    command = [sys.executable, "run.py", "report", "--folder", str(tmp_path)]
    shown = subprocess.run(command, cwd=OTHERS, capture_output=True, text=True, check=True)
    assert "| MineStudioPPO | - | - |" in shown.stdout
