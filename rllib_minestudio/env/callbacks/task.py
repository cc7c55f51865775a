"""Task: what the agent is to do, by name and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.episode_info import TASK
from rllib_minestudio.option_checks import Problems, is_integer, is_list

TASK_TEXT = "task_text"
"""Info key that says the task in words. In `sim.obs` it is the text as bytes, and `TASK` the whole
task."""

_MOST_TEXT_BYTES = 4096


class TaskCallback(MinecraftCallback):
    """Draws the task of each episode from a list, and names it.

    Every observation has the text under `task_text`: its UTF-8 bytes, padded with zeros,
    (`max_text_bytes`,) uint8. Every info has the name under `task` and the text under `task_text`,
    so that statistics, filters and recordings know it. As in MineStudio, the first `sim.obs` holds
    the task as it is in the list, under `task`; that is for other callbacks, and policies do not
    see it.
    """

    def __init__(
        self,
        task_cfg: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        max_text_bytes: int = 64,
    ) -> None:
        """Check and keep the tasks.

        Args:
            task_cfg: Mappings with `name`, optionally `text`, and whatever else callbacks of your
                own want to know; a single one need not be in a list. Example:
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
        """Draw the episode's task and name it."""
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
        """Name the task."""
        obs = {**obs, TASK_TEXT: self._text.copy()}
        return obs, reward, terminated, truncated, {**info, **self._told}

    def __repr__(self) -> str:
        """Show the tasks."""
        return f"TaskCallback({self.task_cfg!r})"


def _bytes_of(task: Mapping[str, Any]) -> bytes:
    """Return a task's text in UTF-8."""
    return str(task.get("text", "")).encode()


def _check_task(problems: Problems, where: str, task: Any) -> None:
    """Note what is wrong with one task."""
    if not isinstance(task, Mapping):
        problems.add(where, task, "must be a mapping with name and text")
        return
    name, text = task.get("name"), task.get("text", "")
    if not isinstance(name, str) or not name:
        problems.add(f"{where}.name", name, "must be the name of a task, such as 'chop tree'")
    if not isinstance(text, str) or not _is_plain(text):
        problems.add(f"{where}.text", text, "must say in words what to do")


def _is_plain(text: str) -> bool:
    """Return whether UTF-8 padded with zeros can hold a text."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
