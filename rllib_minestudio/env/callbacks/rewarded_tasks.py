"""Whether the tasks that rewards are paid for are tasks that there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rllib_minestudio.env.callbacks.compose import Compose
from rllib_minestudio.env.callbacks.rewards import RewardsCallback
from rllib_minestudio.env.callbacks.task import TaskCallback
from rllib_minestudio.option_checks import Problems


def check_rewarded_tasks(problems: Problems, callbacks: Iterable[Any]) -> None:
    """Note rules whose task no callback before them lists.

    Where no `Task` or `TaskFile` is listed at all, tasks may be named by a callback of the user's;
    if they are not, the first reset says so.

    Args:
        problems: Where to note them.
        callbacks: In the order in which they run; specs among them are passed over.
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
