"""A policy's environment, set in the world of a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rllib_minestudio.benchmark.judge import JudgeTaskCallback
from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.env.callbacks import (
    Compose,
    MaskActionsCallback,
    TaskCallback,
    TaskFileCallback,
)
from rllib_minestudio.env.callbacks.builder import declaring_callbacks
from rllib_minestudio.env.callbacks.declared import declares
from rllib_minestudio.env.callbacks.task import TASK_TEXT
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import Problems

_OF_THE_PLAYER = (
    *("engine", "action_type", "obs_size", "render_size", "sampling", "gamma", "resource_pack"),
    *("camera_config", "render_mode", "minecraft"),
)
"""Options that say how a policy sees and acts, and in which game; all others are the task's."""

_ENVIRONMENT = ("MineStudio", MineStudioEnv.__name__)
"""Names of the environment, without modules."""


def task_env_config(task: BenchmarkTask, env_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment's options in which a policy plays a task.

    The policy keeps how it sees and acts: sizes, sampling, brightness, camera, the engine, and of
    its callbacks `MaskActions` and those that declare parts of its observations. The task decides
    the rest. Everything in the world follows from the seed of an episode's reset, which always
    makes a new world, whatever was played before.

    Args:
        task: One that the engine has; see `BenchmarkTask.marks`.
        env_config: What the policy was trained with, or `{}` for a scripted agent.

    Raises:
        InvalidOptionsError: The policy's observations or actions cannot be had in the task, or
            the engine lacks a biome; lists all problems.
    """
    policy_callbacks = list(env_config.get("callbacks") or ())
    kept = _kept(policy_callbacks)
    room = _room_for_text(policy_callbacks)
    told = [] if room is None else [_told_task(task, room)]
    rewards = [] if task.rewards is None else [dict(task.rewards)]
    chosen: dict[str, Any] = {
        **{name: env_config[name] for name in _OF_THE_PLAYER if name in env_config},
        "preferred_spawn_biome": task.world.biomes[0],
        "callbacks": [
            *task.world.callbacks,
            *kept,
            *told,
            *rewards,
            {"JudgeReset": task.time_limit},
            JudgeTaskCallback.spec_of(task),
        ],
    }
    problems = Problems()
    _check_biomes(problems, task, chosen.get("engine", VOXEL))
    problems.raise_if_any()
    _check_fit(problems, env_config, chosen)
    problems.raise_if_any()
    return chosen


def check_tasks(
    tasks: Iterable[BenchmarkTask], env_config: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return `task_env_config` of each task that can be played, by the task's name.

    Args:
        tasks: Those to be played; marked ones are left out.
        env_config: As for `task_env_config`.

    Raises:
        InvalidOptionsError: A policy does not fit; one sentence where all tasks agree on it.
    """
    found: dict[str, dict[str, Any]] = {}
    problems: dict[str, list[str]] = {}
    engine = env_config.get("engine", VOXEL)
    for task in tasks:
        if task.marks(engine):
            continue
        try:
            found[task.name] = task_env_config(task, env_config)
        except InvalidOptionsError as error:
            for problem in error.problems:
                problems.setdefault(problem, []).append(task.name)
    if problems:
        raise InvalidOptionsError(
            [
                problem if not found and len(names) > 1 else f"task {names[0]}: {problem}"
                for problem, names in problems.items()
            ]
        )
    return found


def check_environment(name: Any) -> None:
    """Refuse a policy of another environment.

    Args:
        name: `config.env` of the policy's config: a name or a class.

    Raises:
        InvalidOptionsError: It is not `MineStudioEnv`.
    """
    called = name if isinstance(name, str) else getattr(name, "__name__", str(name))
    if called.rpartition(".")[2] not in _ENVIRONMENT:
        raise InvalidOptionsError(
            f"the policy plays the environment {called!r}; tasks are played in MineStudioEnv only."
        )


def _kept(specs: list[Any]) -> list[Any]:
    """Return the specs of those of a policy's callbacks that belong to it, not to its task."""
    kept = []
    for spec, callback in zip(specs, declaring_callbacks(specs), strict=True):
        names_tasks = isinstance(callback, TaskCallback | TaskFileCallback | Compose)
        is_part = declares(callback) or isinstance(callback, MaskActionsCallback)
        if is_part and not names_tasks:
            kept.append(spec)
    return kept


def _room_for_text(specs: list[Any]) -> int | None:
    """Return how many bytes of text the policy's observations have; None if they have none."""
    space = MineStudioEnv.space_of({"callbacks": specs}).spaces.get(TASK_TEXT)
    return None if space is None or not space.shape else space.shape[0]


def _told_task(task: BenchmarkTask, room: int) -> dict[str, Any]:
    """Return the callback that tells the task in every observation.

    Raises:
        InvalidOptionsError: There is no room for its text.
    """
    size = len(task.text.encode())
    if size > room:
        raise InvalidOptionsError(
            f"its text has {size} bytes, and the policy's observations have room for {room} "
            f"(max_text_bytes of its Task): {task.text!r}."
        )
    return {"Task": {"task_cfg": {"name": task.name, "text": task.text}, "max_text_bytes": room}}


def _check_biomes(problems: Problems, task: BenchmarkTask, engine: str) -> None:
    """Note biomes that the embedded engine does not have."""
    if engine != VOXEL:
        return
    from rllib_minestudio.env.voxel.world.worldgen import BIOMES  # late: numba takes a second

    for biome in task.world.biomes:
        problems.choice("world.biomes", biome, BIOMES)


def _check_fit(
    problems: Problems, env_config: Mapping[str, Any], chosen: Mapping[str, Any]
) -> None:
    """Note where observations in the task are not those that the policy was trained with.

    Actions are the same: the options that decide them are the policy's.
    """
    reads = MineStudioEnv.space_of(env_config).spaces
    provided = MineStudioEnv.space_of(chosen).spaces
    for key, space in reads.items():
        if key not in provided:
            problems.messages.append(
                f"the policy reads {key!r}, which no callback of the task provides: what a Compose "
                "of its environment declares cannot be had elsewhere."
            )
        elif space != provided[key]:
            problems.add(f"observation {key!r}", provided[key], f"must be {space} for the policy")
    for key in provided.keys() - reads.keys():
        problems.messages.append(
            f"the task adds {key!r} to observations, which the policy does not read."
        )
