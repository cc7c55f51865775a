"""Compares two benchmarks that met the same worlds, task by task and episode by episode."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rllib_minestudio.benchmark.intervals import RESAMPLES, Interval, mean_of_means_interval
from rllib_minestudio.benchmark.results import BenchmarkResults
from rllib_minestudio.benchmark.task_result import PLAYED, EpisodeResult, TaskResult
from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.compare import mcnemar, paired_episodes
from rllib_minestudio.evaluation.evaluation_summary import CONFIDENCE
from rllib_minestudio.whole_file import write_whole

FORMAT = "rllib_minestudio.benchmark_comparison"
VERSION = 1

TESTS = (
    "p: exact McNemar test, two-sided, on the episodes that one solved and the other did not; "
    f"intervals: {CONFIDENCE:.0%}, bootstrap of the paired differences with {RESAMPLES:,} "
    "resamples, in total over tasks and episodes"
)

Pairs = Sequence[tuple[EpisodeResult, EpisodeResult]]


@dataclass(frozen=True)
class MeanDifference:
    """A mean difference, the second minus the first.

    Attributes:
        mean: Of the paired differences.
        interval: Of the mean, by the bootstrap.
    """

    mean: float
    interval: Interval

    @classmethod
    def of(cls, groups: Sequence[Sequence[float]]) -> MeanDifference:
        """Average over the groups' means; at least one group with at least one difference."""
        means = [sum(group) / len(group) for group in groups]
        return cls(sum(means) / len(means), mean_of_means_interval(groups))


@dataclass(frozen=True)
class TaskComparison:
    """A task as both played it.

    Attributes:
        name: The task's.
        category: The task's.
        pairs: Episodes.
        first_rate: Success rate of the first.
        second_rate: Of the second.
        only_first: Episodes that only the first solved.
        only_second: Episodes that only the second solved.
        p: p-value of "both solve it equally often".
        rate: Difference of the success rates.
        progress: Difference of the progress.
    """

    name: str
    category: str
    pairs: int
    first_rate: float
    second_rate: float
    only_first: int
    only_second: int
    p: float
    rate: MeanDifference
    progress: MeanDifference


@dataclass(frozen=True)
class BenchmarkComparison:
    """Two benchmarks beside each other.

    Attributes:
        first: Name of the first player.
        second: Name of the second.
        tasks: The tasks that both played.
        unpaired: Names of tasks that only one of them played, for instance because only one has a
            scripted solution; they do not count.
        rate: Difference of the success rates, each task counting as much as any other.
        progress: Likewise of the progress.
    """

    first: str
    second: str
    tasks: tuple[TaskComparison, ...]
    unpaired: tuple[str, ...]
    rate: MeanDifference
    progress: MeanDifference

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {"format": FORMAT, "version": VERSION, **asdict(self), "tests": TESTS}

    def save(self, file: Path) -> None:
        """Write `to_json`; the file appears as a whole."""
        write_whole(file, json.dumps(self.to_json(), indent=1) + "\n")


def compare_benchmarks(first: BenchmarkResults, second: BenchmarkResults) -> BenchmarkComparison:
    """Compare two benchmarks of the same tasks in the same worlds.

    Raises:
        MineStudioError: Their seeds, tasks or time limits differ, or no task was played by both.
    """
    _require_same_worlds(first, second)
    theirs = {task.name: task for task in second.with_status(PLAYED)}
    both = [(task, theirs[task.name]) for task in first.with_status(PLAYED) if task.name in theirs]
    paired = [(a, paired_episodes(a.episodes, b.episodes)) for a, b in both]
    paired = [(task, pairs) for task, pairs in paired if pairs]
    if not paired:
        raise MineStudioError("The benchmarks cannot be compared: no task was played in both.")
    names = {task.name for task, _ in paired}
    played = [task.name for one in (first, second) for task in one.with_status(PLAYED)]
    return BenchmarkComparison(
        first=_name(first),
        second=_name(second),
        tasks=tuple(_compared(task, pairs) for task, pairs in paired),
        unpaired=tuple(dict.fromkeys(name for name in played if name not in names)),
        rate=MeanDifference.of([_solved(pairs) for _, pairs in paired]),
        progress=MeanDifference.of([_progressed(pairs) for _, pairs in paired]),
    )


def _name(results: BenchmarkResults) -> str:
    return str(results.player.get("name", "?"))


def _require_same_worlds(first: BenchmarkResults, second: BenchmarkResults) -> None:
    """Refuse benchmarks that did not meet the same worlds, in one sentence.

    Raises:
        MineStudioError: They did not.
    """
    problems = []
    if first.seed != second.seed:
        problems.append(f"their seeds differ ({first.seed} and {second.seed})")
    rules = [one.request.get("rules") for one in (first, second)]
    if rules[0] != rules[1]:
        problems.append(f"the engine's rules differ (revision {rules[0]} and {rules[1]})")
    theirs = {task.name: task for task in second.tasks}
    both = [(task, theirs[task.name]) for task in first.tasks if task.name in theirs]
    limits = [a.name for a, b in both if a.time_limit != b.time_limit]
    others = [a.name for a, b in both if a.digest != b.digest and a.name not in limits]
    if limits:
        problems.append(f"time limits differ ({_some(limits)})")
    if others and rules[0] == rules[1]:
        problems.append(f"tasks of the same name are not the same ({_some(others)})")
    if problems:
        raise MineStudioError(
            f"The benchmarks cannot be compared: {'; '.join(problems)}. Run both with the same "
            "--suite, --seed and --steps."
        )


def _some(names: Sequence[str]) -> str:
    """Write the first few names."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _solved(pairs: Pairs) -> list[float]:
    return [float(b.success) - float(a.success) for a, b in pairs]


def _progressed(pairs: Pairs) -> list[float]:
    return [b.progress - a.progress for a, b in pairs]


def _compared(task: TaskResult, pairs: Pairs) -> TaskComparison:
    only_first = sum(a.success and not b.success for a, b in pairs)
    only_second = sum(b.success and not a.success for a, b in pairs)
    return TaskComparison(
        name=task.name,
        category=task.category,
        pairs=len(pairs),
        first_rate=sum(a.success for a, _ in pairs) / len(pairs),
        second_rate=sum(b.success for _, b in pairs) / len(pairs),
        only_first=only_first,
        only_second=only_second,
        p=mcnemar(only_second, only_first),
        rate=MeanDifference.of([_solved(pairs)]),
        progress=MeanDifference.of([_progressed(pairs)]),
    )
