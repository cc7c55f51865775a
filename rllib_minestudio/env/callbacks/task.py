"""Task: what the agent is to do, by name and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.option_checks import Problems, is_list

TASK, TASK_TEXT = "task", "task_text"
"""Info keys that name the task and say it in words; `TASK` is also the key in `sim.obs`."""


class TaskCallback(MinecraftCallback):
    """Draws the task of each episode from a list, and names it.

    As in MineStudio, the first observation holds the task as it is in the list, for other
    callbacks: the environment's observations are frames only. Besides, every info has its name
    under `task` and its text under `task_text`, so that statistics, filters and recordings know
    it.
    """

    def __init__(self, task_cfg: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> None:
        """Check and keep the tasks.

        Args:
            task_cfg: Mappings with `name`, optionally `text`, and whatever else callbacks of your
                own want to know; a single one need not be in a list. Example:
                `[{"name": "chop tree", "text": "chop the tree"}]`.

        Raises:
            InvalidOptionsError: If there is no task, or one without a name; lists all problems.
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
        problems.raise_if_any()
        self.task_cfg = [dict(task) for task in task_cfg]
        self._told: Info = {}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Draw the episode's task and name it."""
        task = self.task_cfg[sim.np_random.integers(len(self.task_cfg))]
        self._told = {TASK: task["name"], TASK_TEXT: task.get("text", "")}
        return {**obs, TASK: dict(task)}, {**info, **self._told}

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Name the task."""
        return obs, reward, terminated, truncated, {**info, **self._told}

    def __repr__(self) -> str:
        """Show the tasks."""
        return f"TaskCallback({self.task_cfg!r})"


def _check_task(problems: Problems, where: str, task: Any) -> None:
    """Note what is wrong with one task."""
    if not isinstance(task, Mapping):
        problems.add(where, task, "must be a mapping with name and text")
        return
    name, text = task.get("name"), task.get("text", "")
    if not isinstance(name, str) or not name:
        problems.add(f"{where}.name", name, "must be the name of a task, such as 'chop tree'")
    if not isinstance(text, str):
        problems.add(f"{where}.text", text, "must say in words what to do")
