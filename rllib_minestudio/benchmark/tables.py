"""Results and comparisons of benchmarks as tables for a terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from rllib_minestudio.benchmark.compare import TESTS, BenchmarkComparison, MeanDifference
from rllib_minestudio.benchmark.intervals import Interval
from rllib_minestudio.benchmark.results import BenchmarkResults, Total
from rllib_minestudio.benchmark.task_result import FAILED, MARKED, PLAYED, TaskResult
from rllib_minestudio.console import counted, rounded
from rllib_minestudio.evaluation.evaluation_summary import CONFIDENCE

_INTERVAL = f"{CONFIDENCE:.0%} interval"
_NARROWEST_NAME = 12
"""Columns for the names of tasks, however narrow the terminal."""


def results_table(results: BenchmarkResults) -> Table:
    """One row per played or failed task, then the categories, then all; marked ones are counted."""
    table = Table(
        title=Text(f"{results.suite}   {results.player['name']}   seed {results.seed}"),
        title_justify="left",
        caption=Text(_counts(results)),
        caption_justify="left",
    )
    table.add_column("task", overflow="fold")
    for name in ("solved", "rate", _INTERVAL, "progress", _INTERVAL):
        table.add_column(name, justify="right", no_wrap=True)
    for task in results.tasks:
        if task.status == PLAYED:
            table.add_row(*map(Text, _task_cells(task)))
        elif task.status == FAILED:
            table.add_row(Text(task.name), Text("failed", style="red"))
    if results.total is not None:
        table.add_section()
        totals = results.categories if len(results.categories) > 1 else {}
        for name, total in {**totals, "all": results.total}.items():
            table.add_row(*map(Text, _total_cells(name, total)))
    return table


def items_table(task: TaskResult) -> Table:
    """How often each item was obtained, for a task that counts items."""
    table = Table(title=Text(f"{task.name}: items"), title_justify="left")
    table.add_column("item")
    for name in ("episodes with it", "rate", _INTERVAL, "per episode"):
        table.add_column(name, justify="right", no_wrap=True)
    for found in task.items:
        rate = found.rate
        cells = (str(rate.num_yes), f"{rate.yes_rate:.1%}", _share(rate.interval))
        table.add_row(*map(Text, (found.item, *cells, f"{found.mean_count:.2f}")))
    return table


def comparison_table(comparison: BenchmarkComparison) -> Table:
    """One row per task that both played, and one for all."""
    title = f"first: {comparison.first}   second: {comparison.second}   differences: second - first"
    caption = TESTS
    if comparison.unpaired:
        caption = f"not in both: {', '.join(comparison.unpaired)}\n{caption}"
    table = Table(
        title=Text(title),
        title_justify="left",
        caption=Text(caption),
        caption_justify="left",
        pad_edge=False,
    )
    table.add_column("task", overflow="fold", min_width=_NARROWEST_NAME)
    names = ("first", "second", "rate", _INTERVAL, "p", "progress", _INTERVAL)
    for name in names:  # intervals may break, so that names are left room in 80 columns
        table.add_column(name, justify="right", no_wrap=name != _INTERVAL)
    for task in comparison.tasks:
        cells = (f"{task.first_rate:.0%}", f"{task.second_rate:.0%}")
        p = "<.001" if task.p < 0.001 else f"{task.p:.3f}"
        row = (task.name, *cells, *_difference(task.rate), p, *_progress(task.progress))
        table.add_row(*map(Text, row))
    table.add_section()
    count = len(comparison.tasks)
    means = [
        f"{sum(getattr(task, name) for task in comparison.tasks) / count:.0%}"
        for name in ("first_rate", "second_rate")
    ]
    total = (*_difference(comparison.rate), "", *_progress(comparison.progress))
    table.add_row(*map(Text, (f"all {counted(count, 'task')}", *means, *total)))
    return table


def _counts(results: BenchmarkResults) -> str:
    """Say how many tasks were played, are marked and have failed."""
    words = {PLAYED: "played", MARKED: "marked, not counted", FAILED: "failed, not counted"}
    found = {status: len(results.with_status(status)) for status in words}
    return "; ".join(
        f"{counted(count, 'task')} {words[status]}" for status, count in found.items() if count
    )


def _task_cells(task: TaskResult) -> tuple[str, ...]:
    rate = task.rate
    return (
        task.name,
        f"{rate.num_yes}/{rate.num_episodes}",
        f"{rate.yes_rate:.1%}",
        _share(rate.interval),
        f"{task.progress:.2f}",
        _range(task.progress_interval),
    )


def _total_cells(name: str, total: Total) -> tuple[str, ...]:
    return (
        f"{name}, {counted(total.tasks, 'task')}",
        "",
        f"{total.yes_rate:.1%}",
        _share(total.yes_rate_interval),
        f"{total.progress:.2f}",
        _range(total.progress_interval),
    )


def _share(interval: Interval) -> str:
    return f"{interval[0]:.0%} to {interval[1]:.0%}"


def _range(interval: Interval) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"


def _difference(found: MeanDifference) -> tuple[str, str]:
    low, high = (rounded(end, "{:+.0%}") for end in found.interval)
    return rounded(found.mean, "{:+.0%}"), f"{low} to {high}"


def _progress(found: MeanDifference) -> tuple[str, str]:
    low, high = (rounded(end, "{:+.2f}") for end in found.interval)
    return rounded(found.mean, "{:+.2f}"), f"{low} to {high}"
