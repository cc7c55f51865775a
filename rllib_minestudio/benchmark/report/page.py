"""The results of a benchmark as one HTML page that needs no other file and no network."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from rllib_minestudio.benchmark.results import BenchmarkResults, Total
from rllib_minestudio.benchmark.task_result import FAILED, MARKED, PLAYED, ItemResult, TaskResult
from rllib_minestudio.console import counted
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.evaluation.evaluation_summary import CONFIDENCE, spread
from rllib_minestudio.evaluation.report.page import MAX_EMBEDDED_BYTES
from rllib_minestudio.evaluation.report.videos import VideoSources
from rllib_minestudio.whole_file import write_whole


class Category(NamedTuple):
    """The tasks of one category.

    Attributes:
        name: Its name.
        tasks: By name, those that were played or have failed before the marked ones.
        total: Of those that were played; None if none was.
    """

    name: str
    tasks: list[TaskResult]
    total: Total | None


class ItemTable(NamedTuple):
    """How often each item was obtained, for tasks that count items.

    Attributes:
        tasks: The columns.
        rows: Per item its name and, per task, how often it was obtained; None where the task does
            not count it.
    """

    tasks: list[TaskResult]
    rows: list[tuple[str, list[ItemResult | None]]]


def write_page(
    results: BenchmarkResults, file: Path, max_embedded: int = MAX_EMBEDDED_BYTES
) -> None:
    """Write the page; it appears as a whole.

    Args:
        results: What it shows. Their videos are looked for below the folder of `file`.
        file: Where to; its folder is created.
        max_embedded: Bytes of video that become part of it; the smallest first, so that as many
            tasks as possible have theirs.
    """
    template = files("rllib_minestudio.benchmark.report").joinpath("page.html").read_text()
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
    """Yield what has to be equal for the numbers to be the same, label and value."""
    request, player = results.request, results.player
    yield "suite", results.suite
    yield "episodes per task", str(request.get("episodes", "as many as are listed"))
    yield "seed", str(results.seed)
    if request.get("steps") is not None:
        yield "steps per episode", f"at most {request['steps']:,}"
    if request.get("tasks") is not None:
        yield "only tasks like", str(request["tasks"])
    options = {**(player.get("env_config") or {}), **(request.get("env_config") or {})}
    engine = options.get("engine", VOXEL)
    rules = request.get("rules")
    is_told = engine == VOXEL and rules is not None  # they are the embedded engine's
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
    """Return each task's videos, by name: what they show and their source."""
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
    """A key to sort names by in which numbers are numbers: 3000 before 12000."""
    parts = re.split(r"(\d+)", name)  # digits at the odd places
    return [(int(part) if i % 2 else 0, part) for i, part in enumerate(parts)]


def _mean(values: Sequence[float]) -> float:
    return spread(values)["mean"]


def _percent(share: float) -> str:
    """A share as text, with a decimal where it would otherwise seem to be 0 or 1."""
    percent = 100.0 * share
    return (
        f"{percent:.0f}" if percent in (0.0, 100.0) or 1.0 <= percent <= 99.0 else f"{percent:.1f}"
    )


def _breakable(name: str) -> Markup:
    """A name that may be broken into lines where its words end."""
    return Markup("_<wbr>").join(name.split("_"))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
