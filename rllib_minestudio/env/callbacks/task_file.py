"""TaskFile: a task from a file of MineStudio's benchmark."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rllib_minestudio.env.callbacks.base import Info, Obs, StepResult
from rllib_minestudio.env.callbacks.commands import CommandsCallback
from rllib_minestudio.env.callbacks.compose import Compose
from rllib_minestudio.env.callbacks.fast_reset import FastResetCallback
from rllib_minestudio.env.callbacks.judge_reset import JudgeResetCallback
from rllib_minestudio.env.callbacks.summon_mobs import SummonMobsCallback
from rllib_minestudio.env.checks import Problems, shown
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.small_files import SmallFileError, read_yaml

if TYPE_CHECKING:
    from rllib_minestudio.env.simulator import MinecraftSim

_SHIPPED = "minestudio:"
"""Prefix of the files that MineStudio's package has, such as "minestudio:simple/collect_wood"."""
_BENCHMARK = ("benchmark", "task_configs")

TASK, TASK_TEXT = "task", "task_text"
"""Info keys that name the task and say it in words."""

_WITHOUT_EFFECT = ("name", "text", "defaults", "reference_video")


def _fast_reset(task: Mapping[str, Any]) -> FastResetCallback:
    optional = {key: task[key] for key in ("start_time", "start_weather") if key in task}
    return FastResetCallback(task["biomes"], task.get("random_tp_range", 0), **optional)


_BUILDERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "biomes": _fast_reset,
    "custom_init_commands": lambda task: CommandsCallback(task["custom_init_commands"]),
    "commands": lambda task: CommandsCallback(task["commands"]),
    "summon_mobs": lambda task: SummonMobsCallback(task["summon_mobs"]),
    "time_limit": lambda task: JudgeResetCallback(task["time_limit"]),
}
"""What makes a callback of which key, in the order in which the callbacks run."""

_PARTS = ("random_tp_range", "start_time", "start_weather")
"""Keys that belong to `biomes`."""


class TaskFileCallback(Compose):
    """Prepares the world as a task file says, and names the task in every info.

    The files are those of MineStudio's benchmark (`{custom_init_commands: [...], text: "..."}`)
    and what its `load_callbacks_from_config` reads, as far as this package has the callbacks.

    Attributes:
        name: The task's name: the file's, without folder and suffix.
        text: What to do, in words.
    """

    def __init__(self, path: str) -> None:
        """Read the file.

        Args:
            path: A YAML file, or "minestudio:" and the name of one that MineStudio's package has,
                such as "minestudio:simple/collect_wood".

        Raises:
            InvalidOptionsError: If the file cannot be read or says something that is not known.
        """
        file = _find(path)
        task = _read(file)
        super().__init__([build(task) for key, build in _BUILDERS.items() if key in task])
        self.path = path
        self.name: str = task.get("name", file.stem)
        self.text: str = str(task.get("text", "")).strip()

    def after_reset(self, sim: MinecraftSim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Prepare the episode and name the task."""
        obs, info = super().after_reset(sim, obs, info)
        return obs, {**info, TASK: self.name, TASK_TEXT: self.text}

    def after_step(
        self,
        sim: MinecraftSim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Name the task."""
        obs, reward, terminated, truncated, info = super().after_step(
            sim, obs, reward, terminated, truncated, info
        )
        info = {**info, TASK: self.name, TASK_TEXT: self.text}
        return obs, reward, terminated, truncated, info

    def __repr__(self) -> str:
        """Show the file."""
        return f"TaskFileCallback({self.path!r})"


def _find(path: Any) -> Path:
    """Return the file that a path or a name means."""
    problems = Problems()
    if not isinstance(path, str) or not path:
        problems.add("path", path, "must be the path of a task file")
        problems.raise_if_any()
    if not path.startswith(_SHIPPED):
        return Path(path).expanduser()
    package = importlib.util.find_spec("minestudio")
    if package is None or package.origin is None:
        raise InvalidOptionsError(
            f"path {path!r} names a file of the package minestudio, which is not installed; run "
            "pip install --no-deps -r requirements-minecraft.txt, or give the path of a file."
        )
    name = path.removeprefix(_SHIPPED).removesuffix(".yaml")
    return Path(package.origin).parent.joinpath(*_BENCHMARK, f"{name}.yaml")


def _read(file: Path) -> dict[str, Any]:
    """Return the mapping of a task file, checked for unknown keys."""
    try:
        task = read_yaml(file)
    except (OSError, SmallFileError, yaml.YAMLError) as error:
        raise InvalidOptionsError(f"the task file {file} cannot be read: {error}") from error
    if not isinstance(task, Mapping):
        raise InvalidOptionsError(f"the task file {file} must hold a mapping; got {shown(task)}.")
    problems = Problems(str(file))
    known = (*_BUILDERS, *_PARTS, *_WITHOUT_EFFECT)
    for key in task:
        if key not in known:
            problems.unknown("key", str(key), known)
    if not isinstance(task.get("name", ""), str):
        problems.add("name", task["name"], "must be a text")
    problems.raise_if_any()
    return {str(key): value for key, value in task.items()}
