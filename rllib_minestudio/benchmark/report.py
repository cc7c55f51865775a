"""Benchmark results for human readers: terminal tables and one HTML page."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from rich.text import Text

from rllib_minestudio.benchmark.results import (
    FAILED,
    MARKED,
    PLAYED,
    TESTS,
    BenchmarkComparison,
    BenchmarkResults,
    Interval,
    ItemResult,
    MeanDifference,
    TaskResult,
    Total,
)
from rllib_minestudio.benchmark.task import BenchmarkTask, Suite
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.evaluation.report import MAX_EMBEDDED_BYTES, VideoSources
from rllib_minestudio.evaluation.summary import CONFIDENCE, spread
from rllib_minestudio.foundation.console import Aligned, counted, rounded
from rllib_minestudio.foundation.files import write_whole


class Category(NamedTuple):
    """The tasks of one category.

    Attributes:
        name: Its name.
        tasks: Its tasks by name; played and failed ones before marked ones.
        total: Total of the played tasks; None if none was played.
    """

    name: str
    tasks: list[TaskResult]
    total: Total | None


class ItemTable(NamedTuple):
    """The table of obtained items, for tasks that count items.

    Attributes:
        tasks: The columns.
        rows: Each item's name and its result per task; None where a task does not count it.
    """

    tasks: list[TaskResult]
    rows: list[tuple[str, list[ItemResult | None]]]


def write_page(
    results: BenchmarkResults, file: Path, max_embedded: int = MAX_EMBEDDED_BYTES
) -> None:
    """Write the HTML page of a benchmark, atomically.

    Args:
        results: The results to show; paths of videos are relative to the folder of `file`.
        file: Destination; its folder is created.
        max_embedded: Bytes of video to embed in the page, starting with the smallest videos, so
            that as many tasks as possible have theirs.
    """
    template = Path(__file__).with_suffix(".html").read_text()
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"percent": _percent, "breakable": _breakable, "counted": counted}
    text = environment.from_string(template).render(
        results=results,
        name=str(results.player.get("name", "player")),
        counts={status: len(results.with_status(status)) for status in (PLAYED, MARKED, FAILED)},
        failed=results.with_status(FAILED),
        facts=list(_facts(results)),
        lacking=Counter(task.reason for task in results.with_status(MARKED)).most_common(),
        confidence=CONFIDENCE,
        categories=_categories(results),
        items=_item_table(results.with_status(PLAYED)),
        videos=_videos(results, file.parent, max_embedded),
        mean_return=lambda task: _mean([e.undiscounted_return for e in task.episodes]),
        mean_length=lambda task: _mean([e.length for e in task.episodes]),
        identity=json.dumps(
            {
                "player": dict(results.player),
                "request": dict(results.request),
                "versions": dict(results.versions),
            },
            indent=2,
            default=str,
        ),
    )
    write_whole(file, text)


def _facts(results: BenchmarkResults) -> Iterator[tuple[str, str]]:
    """Yield (label, value) of everything that determines the numbers, and of time and date."""
    request, player = results.request, results.player
    yield "suite", results.suite
    yield "episodes per task", str(request.get("episodes", "as listed"))
    yield "seed", str(results.seed)
    if request.get("steps") is not None:
        yield "steps per episode", f"at most {request['steps']:,}"
    if request.get("tasks") is not None:
        yield "only tasks like", str(request["tasks"])
    options = {**(player.get("env_config") or {}), **(request.get("env_config") or {})}
    engine = options.get("engine", VOXEL)
    rules = request.get("rules")
    is_told = engine == VOXEL and rules is not None  # only of the embedded engine
    yield "engine", f"{engine}, rules {rules}" if is_told else str(engine)
    if request.get("overrides"):
        yield "set", " ".join(map(str, request["overrides"]))
    if player.get("deterministic") is not None:
        yield "actions", "most probable" if player["deterministic"] else "sampled"
    if player.get("weights"):
        yield "weights", str(player["weights"])
    for name, version in results.versions.items():
        if version:
            yield name, str(version)
    yield "took", _duration(results.seconds)
    if results.created:
        yield "created", results.created


def _categories(results: BenchmarkResults) -> list[Category]:
    found = []
    for name in sorted({task.category for task in results.tasks}):
        tasks = [task for task in results.tasks if task.category == name]
        tasks.sort(key=lambda task: (task.status == MARKED, _in_order(task.name)))
        found.append(Category(name, tasks, results.categories.get(name)))
    return found


def _item_table(played: Sequence[TaskResult]) -> ItemTable | None:
    tasks = sorted((task for task in played if task.items), key=lambda task: task.time_limit)
    if not tasks:
        return None
    told = [{found.item: found for found in task.items} for task in tasks]
    names = dict.fromkeys(name for items in told for name in items)
    return ItemTable(tasks, [(name, [items.get(name) for items in told]) for name in names])


def _videos(
    results: BenchmarkResults, folder: Path, max_embedded: int
) -> dict[str, list[tuple[str, str]]]:
    """Return each task's videos by its name, as (outcome, source)."""
    found = [
        (folder / file, task.name, outcome)
        for task in results.tasks
        for outcome, file in task.videos.items()
        if (folder / file).is_file()
    ]
    sources = VideoSources(folder, max_embedded)
    by_size = sorted(found, key=lambda video: (video[0].stat().st_size, video[1:]))
    source = {(name, outcome): sources.source(file) for file, name, outcome in by_size}
    videos: dict[str, list[tuple[str, str]]] = {task.name: [] for task in results.tasks}
    for _, name, outcome in found:
        videos[name].append((outcome, source[name, outcome]))
    return videos


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares numbers in names by value: 3000 before 12000."""
    parts = re.split(r"(\d+)", name)  # digits at odd indices
    return [(int(part) if i % 2 else 0, part) for i, part in enumerate(parts)]


def _mean(values: Sequence[float]) -> float:
    return spread(values)["mean"]


def _percent(share: float) -> str:
    """Format a share as percent, with a decimal where it would otherwise be rounded to 0 or 100."""
    percent = 100.0 * share
    return (
        f"{percent:.0f}" if percent in (0.0, 100.0) or 1.0 <= percent <= 99.0 else f"{percent:.1f}"
    )


def _breakable(name: str) -> Markup:
    """Return a name with line breaks allowed between its words."""
    return Markup("_<wbr>").join(name.split("_"))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


# ------------------------------------------------------- results and comparisons as terminal tables

_INTERVAL = f"{CONFIDENCE:.0%} interval"


def results_table(results: BenchmarkResults) -> Aligned:
    """Return a table of played and failed tasks, then totals, then the counts of all tasks."""
    rows: list[Sequence[str | Text]] = []
    for task in results.tasks:
        if task.status == PLAYED:
            rows.append(_task_cells(task))
        elif task.status == FAILED:
            rows.append((task.name, Text("failed", style="red")))
    if results.total is not None:
        totals = results.categories if len(results.categories) > 1 else {}
        rows.append(())
        rows += [_total_cells(name, total) for name, total in totals.items()]
        rows.append(_total_cells("all", results.total))
    return Aligned(
        rows=rows,
        key="task",
        numbers=("solved", "rate", _INTERVAL, "progress", _INTERVAL),
        title=f"{results.suite}   {results.player['name']}   seed {results.seed}",
        notes=_counts(results),
    )


def items_table(task: TaskResult) -> Aligned:
    """Return a table of how often each item was obtained, for a task that counts items."""
    rows = [
        (
            found.item,
            str(found.rate.num_yes),
            f"{found.rate.yes_rate:.1%}",
            _share(found.rate.interval),
            f"{found.mean_count:.2f}",
        )
        for found in task.items
    ]
    numbers = ("episodes with it", "rate", _INTERVAL, "per episode")
    return Aligned(rows=rows, key="item", numbers=numbers, title=f"{task.name}: items")


def comparison_table(comparison: BenchmarkComparison) -> Aligned:
    """Return a table with one row per task that both played, and a total."""
    rows = []
    for task in comparison.tasks:
        cells = (f"{task.first_rate:.0%}", f"{task.second_rate:.0%}")
        p = "<.001" if task.p < 0.001 else f"{task.p:.3f}"
        rows.append((task.name, *cells, *_difference(task.rate), p, *_progress(task.progress)))
    count = len(comparison.tasks)
    means = [
        f"{sum(getattr(task, name) for task in comparison.tasks) / count:.0%}"
        for name in ("first_rate", "second_rate")
    ]
    total = (*_difference(comparison.rate), "", *_progress(comparison.progress))
    unpaired = f"not in both: {', '.join(comparison.unpaired)}\n" if comparison.unpaired else ""
    return Aligned(
        rows=[*rows, (), (f"all {counted(count, 'task')}", *means, *total)],
        key="task",
        numbers=("first", "second", "rate", _INTERVAL, "p", "progress", _INTERVAL),
        title=f"first: {comparison.first}   second: {comparison.second}   "
        "differences: second - first",
        notes=unpaired + TESTS,
    )


def _counts(results: BenchmarkResults) -> str:
    """Return how many tasks were played, are marked and have failed, in words."""
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


# ---------------------------------------------------- lists of suites and tasks, as tables and JSON

Listing = tuple[Suite, Sequence[BenchmarkTask]]
"""A suite, and the tasks of it to list."""

ALL = "all"
"""Name of the total row."""


def suites_table(suites: Sequence[Suite], engine: str) -> Aligned:
    """Return a table with one row per suite: its tasks, and how many the engine can play."""
    rows = [(suite.name, *_totals(suite.tasks, engine), suite.title) for suite in suites]
    return Aligned(rows=rows, key="suite", numbers=_TOTALS, texts=("title",))


def tasks_table(listing: Listing, engine: str) -> Aligned:
    """Return a table with one row per task: its condition, and whether the engine can play it."""
    suite, tasks = listing
    rows = [
        (
            task.name,
            str(task.time_limit),
            "yes" if task.solution else "",
            _playable(task, engine),
            task.category,
            _condition(task),
        )
        for task in tasks
    ]
    return Aligned(
        rows=rows,
        key="task",
        numbers=("steps", "solution"),
        texts=("playable", "category", "success"),
        title=f"{suite.name}: {suite.title}",
    )


def categories_table(tasks: Sequence[BenchmarkTask], engine: str) -> Aligned:
    """Return a table with one row per category and a total: all tasks, and playable ones."""
    rows: list[Sequence[str]] = []
    for category in sorted({task.category for task in tasks}):
        chosen = [task for task in tasks if task.category == category]
        rows.append((category, *_totals(chosen, engine)))
    return Aligned(
        rows=[*rows, (), (ALL, *_totals(tasks, engine))], key="category", numbers=_TOTALS
    )


def reasons(tasks: Sequence[BenchmarkTask], engine: str) -> list[str]:
    """Return why tasks cannot be played, with the number of tasks, most frequent reason first."""
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


_TOTALS = ("tasks", "playable", "solved")
"""Columns of `_totals`."""


def _totals(tasks: Sequence[BenchmarkTask], engine: str) -> tuple[str, str, str]:
    """Return the numbers of all tasks, playable ones, and those with a scripted solution."""
    playable = sum(not task.marks(engine) for task in tasks)
    return str(len(tasks)), str(playable), str(sum(task.solution is not None for task in tasks))


def _condition(task: BenchmarkTask) -> str:
    if task.success is None:
        return "-"
    return task.success if task.judged == "any_time" else f"{task.success} (at the end)"


def _playable(task: BenchmarkTask, engine: str) -> str:
    """Return `yes`, or what is missing in a few words."""
    if not task.marks(engine):
        return "yes"
    if task.undecidable is not None:
        return "no: undecidable"
    return f"no: {', '.join(task.needs)}" if engine == VOXEL else "no: not told"
