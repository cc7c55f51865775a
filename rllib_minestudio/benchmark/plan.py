"""Everything about a benchmark that can be known, and can be wrong, before anything is played."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_minestudio.benchmark.players import BenchmarkPlayer, make_player
from rllib_minestudio.benchmark.request import BenchmarkRequest, claim_folder, task_digest
from rllib_minestudio.benchmark.suites import load_suite
from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.benchmark.task_env import check_tasks
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.backends.minecraft import prerequisites
from rllib_minestudio.env.env_options import VOXEL, EnvOptions
from rllib_minestudio.env.voxel import RULES
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments.evaluate_checkpoint import overridden


@dataclass(frozen=True)
class PlannedTask:
    """A task as it is going to be played, or not.

    Attributes:
        task: With the time limit that is played.
        digest: See `request.task_digest`.
        env_config: Options of its environment; empty if it is marked.
        mark: Why it is not played; None if it is.
    """

    task: BenchmarkTask
    digest: str
    env_config: Mapping[str, Any]
    mark: str | None = None


@dataclass(frozen=True)
class BenchmarkPlan:
    """A benchmark that is ready to begin.

    Attributes:
        request: What was asked for.
        suite: The suite's name.
        tasks: Those that were chosen, in the suite's order.
        player: Who plays.
        facts: What the results are results of; see `BenchmarkRequest.facts`.
        folder: Where results go; it is there, and can be written to.
    """

    request: BenchmarkRequest
    suite: str
    tasks: tuple[PlannedTask, ...]
    player: BenchmarkPlayer
    facts: Mapping[str, Any]
    folder: Path

    @property
    def engine(self) -> str:
        """The game that is played: `voxel` or `minecraft`."""
        return str(self.player.env_config.get("engine", VOXEL))


def make_plan(request: BenchmarkRequest) -> BenchmarkPlan:
    """Check a request and everything that it names, and claim its folder.

    Raises:
        MineStudioError: Anything about it is wrong.
    """
    request = request.checked()
    suite = load_suite(request.suite)
    chosen = suite.matching(request.tasks)
    player = make_player(
        request.player,
        workers=request.workers,
        envs=request.envs,
        gpus=request.gpus,
        deterministic=request.deterministic,
        overrides=request.overrides,
        agent_timeout_s=request.agent_timeout_s,
    )
    player.env_config = overridden(player.env_config, request.overrides)
    engine = str(player.env_config.get("engine", VOXEL))
    rules = RULES if engine == VOXEL else None
    tasks = _planned([task.capped(request.steps) for task in chosen], player, engine, rules)
    if engine != VOXEL and "RAY_ADDRESS" not in os.environ:  # else other machines play
        prerequisites.require(EnvOptions.from_mapping(player.env_config).minecraft)
    digests = {planned.task.name: planned.digest for planned in tasks}
    facts = request.facts(player.identity, player.env_config, rules, digests)
    folder = Path(request.out)
    claim_folder(folder, facts)
    return BenchmarkPlan(request, suite.name, tasks, player, facts, folder)


def _planned(
    tasks: Sequence[BenchmarkTask], player: BenchmarkPlayer, engine: str, rules: int | None
) -> tuple[PlannedTask, ...]:
    """Decide which tasks are played, and in which environments.

    Raises:
        InvalidOptionsError: The player does not fit them; lists all problems, each once.
    """
    marks = {}
    for task in tasks:
        unfit = player.unfit(task)
        marks[task.name] = task.marks(engine) or ([] if unfit is None else [unfit])
    env_configs = check_tasks([t for t in tasks if not marks[t.name]], player.env_config)
    problems: dict[str, None] = {}
    for env_config in env_configs.values():
        try:
            MineStudioEnv.check_options(env_config)
            player.check(env_config)
        except InvalidOptionsError as error:
            problems.update(dict.fromkeys(error.problems))
    if problems:
        raise InvalidOptionsError(list(problems))
    return tuple(
        PlannedTask(
            task,
            task_digest(task, engine, rules),
            env_configs.get(task.name, {}),
            " ".join(marks[task.name]) or None,
        )
        for task in tasks
    )
