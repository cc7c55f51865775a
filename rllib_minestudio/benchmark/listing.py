"""What suites and tasks there are, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from rllib_minestudio.benchmark.suites import Suite
from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.env.env_options import VOXEL

Listing = tuple[Suite, Sequence[BenchmarkTask]]
"""A suite, and those of its tasks that are listed."""

ALL = "all"
"""Name of the row of totals."""


def suites_table(suites: Sequence[Suite], engine: str) -> Table:
    """One row per suite: how many tasks it has, and how many of them the engine has."""
    table = _table("suite", "title", tasks="right", playable="right", solved="right")
    for suite in suites:
        table.add_row(*map(Text, (suite.name, suite.title, *_totals(suite.tasks, engine))))
    return table


def tasks_table(listing: Listing, engine: str) -> Table:
    """One row per task: what decides it, and whether the engine has what it needs."""
    suite, tasks = listing
    table = _table("task", "category", steps="right", success="left", playable="left")
    table.add_column("solution")
    table.title, table.title_justify = Text(f"{suite.name}: {suite.title}"), "left"
    for task in tasks:
        cells = (task.name, task.category, str(task.time_limit), _condition(task))
        table.add_row(*map(Text, (*cells, _playable(task, engine), "yes" if task.solution else "")))
    return table


def categories_table(tasks: Sequence[BenchmarkTask], engine: str) -> Table:
    """One row per category, and one for all: how many tasks there are, and can be played."""
    table = _table("category", tasks="right", playable="right", solved="right")
    for category in sorted({task.category for task in tasks}):
        chosen = [task for task in tasks if task.category == category]
        table.add_row(*map(Text, (category, *_totals(chosen, engine))))
    table.add_section()
    table.add_row(*map(Text, (ALL, *_totals(tasks, engine))))
    return table


def reasons(tasks: Sequence[BenchmarkTask], engine: str) -> list[str]:
    """Say why tasks cannot be played, the most frequent reason first, and of how many it is one."""
    counted = Counter(reason for task in tasks for reason in task.marks(engine))
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [f"{count:4}  {reason}" for reason, count in ordered]


def listing_json(listings: Sequence[Listing], engine: str) -> list[dict[str, Any]]:
    """Return suites and their tasks as plain data."""
    return [
        {
            "suite": suite.name,
            "title": suite.title,
            "text": suite.text,
            "tasks": [_task_json(task, engine) for task in tasks],
        }
        for suite, tasks in listings
    ]


def _task_json(task: BenchmarkTask, engine: str) -> dict[str, Any]:
    progress = task.progress
    return {
        "name": task.name,
        "text": task.text,
        "category": task.category,
        "time_limit": task.time_limit,
        "success": task.success,
        "judged": task.judged,
        "progress": None if progress is None else {"of": progress.of, "goal": progress.goal},
        "because": task.because,
        "by_chance": task.by_chance,
        "needs": list(task.needs),
        "marks": task.marks(engine),
        "solution": None if task.solution is None else dict(task.solution),
        "origin": task.origin,
    }


def _table(*columns: str, **justified: Any) -> Table:
    table = Table()
    for name in columns:
        table.add_column(name)
    for name, justify in justified.items():
        table.add_column(name, justify=justify)
    return table


def _totals(tasks: Sequence[BenchmarkTask], engine: str) -> tuple[str, str, str]:
    """Return how many tasks there are, can be played, and have a scripted solution."""
    playable = sum(not task.marks(engine) for task in tasks)
    return str(len(tasks)), str(playable), str(sum(task.solution is not None for task in tasks))


def _condition(task: BenchmarkTask) -> str:
    if task.success is None:
        return "-"
    return task.success if task.judged == "any_time" else f"{task.success} (in the end)"


def _playable(task: BenchmarkTask, engine: str) -> str:
    """Return `yes`, or in few words what is missing."""
    if not task.marks(engine):
        return "yes"
    if task.undecidable is not None:
        return "no: undecidable"
    return f"no: {', '.join(task.needs)}" if engine == VOXEL else "no: not told"
