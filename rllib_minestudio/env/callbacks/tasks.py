"""Task, TaskFile: what the agent is to do, by name, in words, or from MineStudio's task files."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.callbacks.base import (
    Compose,
    Info,
    MinecraftCallback,
    Obs,
    Sim,
    StepResult,
)
from rllib_minestudio.env.callbacks.extra_observations import PrevActionCallback
from rllib_minestudio.env.callbacks.initial_state import (
    CommandsCallback,
    InitInventoryCallback,
    SummonMobsCallback,
)
from rllib_minestudio.env.callbacks.resets import (
    FastResetCallback,
    HardResetCallback,
    JudgeResetCallback,
)
from rllib_minestudio.env.callbacks.rewards import RewardsCallback
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.documents import (
    Document,
    Name,
    Plain,
    Text,
    given,
    parse_written,
    read_plain_yaml,
)
from rllib_minestudio.foundation.files import SmallFileError
from rllib_minestudio.foundation.names import TASK
from rllib_minestudio.foundation.options import Problems, is_integer, is_list

TASK_TEXT = "task_text"
"""Info key of the task in words. In `sim.obs`, this key holds the text as bytes, and `TASK` the
whole task."""

_MOST_TEXT_BYTES = 4096


class TaskCallback(MinecraftCallback):
    """Draws the task of each episode from a list, and names it.

    Every observation has the text under `task_text`: its UTF-8 bytes, padded with zeros,
    (`max_text_bytes`,) uint8. Every info has the name under `task` and the text under `task_text`,
    for statistics, filters and recordings. As in MineStudio, an episode's first `sim.obs` holds the
    task's whole entry in the list, under `task`; this is for other callbacks, and policies do not
    see it.
    """

    def __init__(
        self,
        task_cfg: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        max_text_bytes: int = 64,
    ) -> None:
        """Check and keep the tasks.

        Args:
            task_cfg: Mappings with `name`, optionally `text`, and whatever else your own callbacks
                need; a single one need not be in a list. Example:
                `[{"name": "chop tree", "text": "chop the tree"}]`.
            max_text_bytes: Room for the text in observations, 1 to 4096 bytes.

        Raises:
            InvalidOptionsError: If there is no task, one without a name, or one with a text that
                is too long; lists all problems.
        """
        problems = Problems()
        if isinstance(task_cfg, Mapping):
            task_cfg = [task_cfg]
        if not is_list(task_cfg) or not task_cfg:
            rule = "must be a non-empty list of mappings with name and text"
            problems.add("task_cfg", task_cfg, rule)
            task_cfg = []
        for i, task in enumerate(task_cfg):
            _check_task(problems, f"task_cfg[{i}]", task)
        if not is_integer(max_text_bytes) or not 1 <= max_text_bytes <= _MOST_TEXT_BYTES:
            rule = f"must be an integer from 1 to {_MOST_TEXT_BYTES}"
            problems.add("max_text_bytes", max_text_bytes, rule)
        problems.raise_if_any()
        self.task_cfg = [dict(task) for task in task_cfg]
        self.max_text_bytes = max_text_bytes
        longest = max(self.task_cfg, key=lambda task: len(_bytes_of(task)))
        if len(_bytes_of(longest)) > max_text_bytes:
            problems.add(
                f"text of the task {longest['name']!r}",
                longest["text"],
                f"must be at most max_text_bytes={max_text_bytes} bytes long in UTF-8: shorten it, "
                f"or set max_text_bytes: {len(_bytes_of(longest))}",
            )
        problems.raise_if_any()
        self._told: Info = {}
        self._text = np.zeros(max_text_bytes, np.uint8)

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return the space of texts."""
        return {TASK_TEXT: gym.spaces.Box(0, 255, (self.max_text_bytes,), np.uint8)}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Draw the episode's task, and add it to the observation and the info."""
        task = self.task_cfg[sim.np_random.integers(len(self.task_cfg))]
        self._told = {TASK: task["name"], TASK_TEXT: task.get("text", "")}
        text = _bytes_of(task)
        self._text = np.zeros(self.max_text_bytes, np.uint8)
        self._text[: len(text)] = np.frombuffer(text, np.uint8)
        obs = {**obs, TASK: dict(task), TASK_TEXT: self._text.copy()}
        return obs, {**info, **self._told}

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Add the task to the observation and the info."""
        obs = {**obs, TASK_TEXT: self._text.copy()}
        return obs, reward, terminated, truncated, {**info, **self._told}

    def __repr__(self) -> str:
        return f"TaskCallback({self.task_cfg!r})"


def _bytes_of(task: Mapping[str, Any]) -> bytes:
    return str(task.get("text", "")).encode()


def _check_task(problems: Problems, where: str, task: Any) -> None:
    if not isinstance(task, Mapping):
        problems.add(where, task, "must be a mapping with name and text")
        return
    name, text = task.get("name"), task.get("text", "")
    if not isinstance(name, str) or not name:
        problems.add(f"{where}.name", name, "must be the name of a task, such as 'chop tree'")
    if not isinstance(text, str) or not _is_plain(text):
        problems.add(f"{where}.text", text, "must say in words what to do")


def _is_plain(text: str) -> bool:
    """Return whether zero-padded UTF-8 can hold a text."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


# ----------------------------------------------------------------------------------------- TaskFile
# A task from a file of MineStudio's benchmark.

_SHIPPED = "minestudio:"
"""Prefix of the files in MineStudio's package, such as "minestudio:simple/collect_wood"."""
_BENCHMARK = ("benchmark", "task_configs")


class TaskFileDocument(Document):
    """A task file; what is `Plain` is checked by the callback to which it goes."""

    name: Name = ""
    text: Text = ""
    spawn_positions: Plain = False
    summon_mobs: Plain = False
    biomes: Plain = False
    random_tp_range: Plain = 0
    start_time: Plain = None
    start_weather: Plain = None
    custom_init_commands: Plain = False
    commands: Plain = False
    time_limit: Plain = False
    init_inventory: Plain = False
    use_prev_action: bool = False
    defaults: Plain = None
    reference_video: Plain = None


def _fast_reset(task: Mapping[str, Any]) -> FastResetCallback:
    optional = {key: task[key] for key in ("start_time", "start_weather") if key in task}
    return FastResetCallback(task["biomes"], task.get("random_tp_range", 0), **optional)


_BUILDERS: dict[str, Callable[[Mapping[str, Any]], MinecraftCallback]] = {
    "spawn_positions": lambda task: HardResetCallback(task["spawn_positions"]),
    "summon_mobs": lambda task: SummonMobsCallback(task["summon_mobs"]),
    "biomes": _fast_reset,
    "custom_init_commands": lambda task: CommandsCallback(task["custom_init_commands"]),
    "commands": lambda task: CommandsCallback(task["commands"]),
    "time_limit": lambda task: JudgeResetCallback(task["time_limit"]),
    "init_inventory": lambda task: InitInventoryCallback(task["init_inventory"]),
    "use_prev_action": lambda task: PrevActionCallback(),
}
"""Makers of a key's callback, in MineStudio's order."""


class TaskFileCallback(Compose):
    """Prepares the world as a task file says, and names the task as `Task` does.

    The files are those of MineStudio's benchmark (`{custom_init_commands: [...], text: "..."}`) and
    those that its `load_callbacks_from_config` reads: `biomes` with `random_tp_range`, `start_time`
    and `start_weather`, `commands`, `summon_mobs`, `time_limit`, `spawn_positions`,
    `init_inventory`, `use_prev_action`. `reference_video` and `defaults` are ignored: reference
    videos are not shown.

    Attributes:
        name: The task's name; by default the file's, without folder and suffix.
        text: What to do, in words.
    """

    def __init__(self, path: str, max_text_bytes: int = 256) -> None:
        """Read the file.

        Args:
            path: A YAML file, or "minestudio:" followed by the name of one in MineStudio's package,
                such as "minestudio:simple/collect_wood".
            max_text_bytes: Room for the text in observations, as in `Task`.

        Raises:
            InvalidOptionsError: If the file cannot be read, or a key or value in it is invalid.
        """
        file = _find(path)
        task = _read(file)
        self.path = path
        self.name: str = task.get("name", file.stem)
        self.text: str = task.get("text", "").strip()
        parts = [
            build(task) for key, build in _BUILDERS.items() if task.get(key, False) is not False
        ]
        described = {"name": self.name, "text": self.text}
        super().__init__([*parts, TaskCallback(described, max_text_bytes)])

    def __repr__(self) -> str:
        return f"TaskFileCallback({self.path!r})"


def _find(path: Any) -> Path:
    """Return the file that a path or a name refers to."""
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
    """Return the fields of a task file."""
    try:
        facts = read_plain_yaml(file)
    except (OSError, SmallFileError) as error:
        raise InvalidOptionsError(f"the task file {file} cannot be read: {error}") from error
    problems = Problems(str(file))
    task = parse_written(facts, TaskFileDocument, problems)
    problems.raise_if_any()
    assert task is not None
    return given(task)


# -------------------------------------------------------- whether the tasks that rewards name exist


def check_rewarded_tasks(problems: Problems, callbacks: Iterable[Any]) -> None:
    """Note reward rules whose task no callback before them lists.

    If there is no `Task` or `TaskFile` at all, one of the user's callbacks may name the tasks; if
    none does, the first reset raises.

    Args:
        problems: Where to note them.
        callbacks: In the order in which they run; specs among them are skipped.
    """
    ordered = list(_flat(callbacks))
    listed = {name for callback in ordered for name in _tasks(callback)}
    before: set[str] = set()
    for callback in ordered:
        before.update(_tasks(callback))
        if not isinstance(callback, RewardsCallback) or not listed:
            continue
        for i, rule in enumerate(callback.reward_cfg):
            task, field = rule.get("task"), f"Rewards: reward_cfg[{i}].task"
            if task is None or task in before:
                continue
            if task in listed:
                rule_text = "must be named by a callback before Rewards: list Task first"
                problems.add(field, task, rule_text)
            else:
                problems.choice(field, task, sorted(listed))


def _flat(callbacks: Iterable[Any]) -> Iterator[Any]:
    for callback in callbacks:
        if isinstance(callback, Compose):
            yield from _flat(callback.callbacks)
        else:
            yield callback


def _tasks(callback: Any) -> list[str]:
    if not isinstance(callback, TaskCallback):
        return []
    return [task["name"] for task in callback.task_cfg]
