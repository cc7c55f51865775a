"""TaskFile: a task from a file of MineStudio's benchmark."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.env.callbacks.commands import CommandsCallback
from rllib_minestudio.env.callbacks.compose import Compose
from rllib_minestudio.env.callbacks.fast_reset import FastResetCallback
from rllib_minestudio.env.callbacks.hard_reset import HardResetCallback
from rllib_minestudio.env.callbacks.init_inventory import InitInventoryCallback
from rllib_minestudio.env.callbacks.judge_reset import JudgeResetCallback
from rllib_minestudio.env.callbacks.prev_action import PrevActionCallback
from rllib_minestudio.env.callbacks.summon_mobs import SummonMobsCallback
from rllib_minestudio.env.callbacks.task import TaskCallback
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import Problems, shown
from rllib_minestudio.small_files import SmallFileError, read_yaml

_SHIPPED = "minestudio:"
"""Prefix of the files that MineStudio's package has, such as "minestudio:simple/collect_wood"."""
_BENCHMARK = ("benchmark", "task_configs")

_WITHOUT_EFFECT = ("name", "text", "defaults", "reference_video")


def _fast_reset(task: Mapping[str, Any]) -> FastResetCallback:
    optional = {key: task[key] for key in ("start_time", "start_weather") if key in task}
    return FastResetCallback(task["biomes"], task.get("random_tp_range", 0), **optional)


_BUILDERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "spawn_positions": lambda task: HardResetCallback(task["spawn_positions"]),
    "summon_mobs": lambda task: SummonMobsCallback(task["summon_mobs"]),
    "biomes": _fast_reset,
    "custom_init_commands": lambda task: CommandsCallback(task["custom_init_commands"]),
    "commands": lambda task: CommandsCallback(task["commands"]),
    "time_limit": lambda task: JudgeResetCallback(task["time_limit"]),
    "init_inventory": lambda task: InitInventoryCallback(task["init_inventory"]),
    "use_prev_action": lambda task: PrevActionCallback() if task["use_prev_action"] else None,
}
"""What makes a callback of which key, in the order in which MineStudio runs them; None for none."""

_PARTS = ("random_tp_range", "start_time", "start_weather")
"""Keys that belong to `biomes`."""


class TaskFileCallback(Compose):
    """Prepares the world as a task file says, and names the task as `Task` does.

    The files are those of MineStudio's benchmark (`{custom_init_commands: [...], text: "..."}`)
    and what its `load_callbacks_from_config` reads: `biomes` with `random_tp_range`, `start_time`
    and `start_weather`, `commands`, `summon_mobs`, `time_limit`, `spawn_positions`,
    `init_inventory`, `use_prev_action`. Reference videos are not shown: `reference_video` and
    `defaults` are read past.

    Attributes:
        name: The task's name: the file's, without folder and suffix.
        text: What to do, in words.
    """

    def __init__(self, path: str, max_text_bytes: int = 256) -> None:
        """Read the file.

        Args:
            path: A YAML file, or "minestudio:" and the name of one that MineStudio's package has,
                such as "minestudio:simple/collect_wood".
            max_text_bytes: Room for the text in observations, as `Task` has it.

        Raises:
            InvalidOptionsError: If the file cannot be read or says something that is not known.
        """
        file = _find(path)
        task = _read(file)
        self.path = path
        self.name: str = task.get("name", file.stem)
        self.text: str = str(task.get("text", "")).strip()
        parts = [
            build(task) for key, build in _BUILDERS.items() if task.get(key, False) is not False
        ]
        described = {"name": self.name, "text": self.text}
        super().__init__([*parts, TaskCallback(described, max_text_bytes)])

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
    problems.known("key", task, known)
    if not isinstance(task.get("name", "a name"), str) or not task.get("name", "a name"):
        problems.add("name", task["name"], "must be a text")
    if not isinstance(task.get("use_prev_action", False), bool):
        problems.add("use_prev_action", task["use_prev_action"], "must be true or false")
    problems.raise_if_any()
    return {str(key): value for key, value in task.items()}
