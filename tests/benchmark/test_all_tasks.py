"""Every task that is shipped: solved neither at the start, nor by doing nothing, nor by luck."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from rllib_minestudio.benchmark.players import task_env_config
from rllib_minestudio.benchmark.task import FOLDER, BenchmarkTask, find_suites, load_suite
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.foundation.names import NUM_BUTTONS

SUITES = [name for name, folder in find_suites().items() if folder.parent == FOLDER]
PLAYED = [
    pytest.param(task, id=f"{suite}:{task.name}")
    for suite in SUITES
    for task in load_suite(suite).tasks
    if not task.marks()
]
STEPS = 600
"""Of an episode; a longer one is cut off here."""
WORLDS = 3

SMALL = {"obs_size": [16, 16]}
NUM_CAMERA_BINS = 121
IDLE = {"buttons": np.array([0]), "camera": np.array([NUM_CAMERA_BINS // 2])}


def idle() -> Iterator[dict[str, np.ndarray]]:
    while True:
        yield IDLE


def at_random(seed: int) -> Iterator[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    while True:
        yield {
            "buttons": rng.integers(0, NUM_BUTTONS, 1),
            "camera": rng.integers(0, NUM_CAMERA_BINS, 1),
        }


def succeeds(env: MineStudioEnv, seed: int, actions: Iterator, steps: int) -> bool:
    """Play an episode; returns whether it ends in success."""
    _, info = env.reset(seed=seed)
    assert info["success"] is False and 0.0 <= info["progress"] < 1.0
    for _, action in zip(range(steps), actions, strict=False):
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    assert "engine_error" not in info
    return info["success"]


def wins_at_random(env: MineStudioEnv) -> bool:
    """Whether chance succeeds in more than half of the worlds; plays no more than that takes."""
    enough, won = WORLDS // 2 + 1, 0
    for seed in range(WORLDS):
        won += succeeds(env, seed, at_random(seed), STEPS)
        if won == enough or seed + 1 - won == enough:
            return won == enough
    raise AssertionError("an odd number of worlds decides")


def environment(task: BenchmarkTask, steps: int) -> MineStudioEnv:
    return MineStudioEnv(task_env_config(task.capped(steps), SMALL))


@pytest.mark.parametrize("suite", SUITES)
def test_names_and_texts_tell_tasks_apart(suite):
    tasks = load_suite(suite).tasks
    assert len({task.name for task in tasks}) == len(tasks)
    for task in tasks:
        assert task.success is None or task.because


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_no_task_is_solved_in_its_first_step(suite):
    """All playable tasks of a suite in one test: a world each takes but a moment."""
    solved = [
        task.name
        for task in load_suite(suite).tasks
        if not task.marks() and not task.by_chance and succeeds(environment(task, 2), 0, idle(), 2)
    ]
    assert not solved


@pytest.mark.sweep
@pytest.mark.parametrize("task", PLAYED)
def test_a_task_is_solved_neither_by_doing_nothing_nor_in_most_worlds_at_random(task):
    env = environment(task, STEPS)
    without_skill = succeeds(env, 0, idle(), STEPS) or wins_at_random(env)
    assert without_skill is bool(task.by_chance), task.by_chance
