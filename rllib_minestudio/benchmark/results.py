"""The results of a benchmark: a result per task, totals, and the identity of player and request.

`BenchmarkResults.tasks` has one `TaskResult` per chosen task, in the suite's order, whether it was
played or not. `total` and `categories` are `Total`s over the played tasks. Everything is saved in
one JSON file, `benchmark.json` in the results' folder; `to_json` shows its layout and `load` reads
it. Paths of videos are relative to that folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.benchmark.results_file import (
    FORMAT,
    VERSION,
    BenchmarkDocument,
    TaskResultDocument,
)
from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.aggregates import Aggregates, Scores
from rllib_minestudio.evaluation.summary import CONFIDENCE, Rate, mcnemar, paired_episodes, spread
from rllib_minestudio.foundation.documents import given, read_document
from rllib_minestudio.foundation.files import SmallFileError, write_whole

RESULTS_FILE = "benchmark.json"
PAGE_FILE = "benchmark.html"
TASKS_FOLDER = "tasks"
"""Subfolder with a folder per played task, for its result, summary and videos."""

_LARGEST = 1024**3
"""Most bytes of a results file."""


@dataclass(frozen=True)
class Total:
    """The average over several played tasks, each with equal weight.

    Attributes:
        tasks: Number of tasks; at least one.
        episodes: Number of episodes of all tasks.
        yes_rate: Mean of the tasks' success rates.
        yes_rate_interval: Bootstrap interval over tasks and their episodes, widened to Wilson's
            interval for all episodes together, because the bootstrap interval is empty if nothing
            or everything succeeds.
        progress: Mean of the tasks' mean progress.
        progress_interval: Bootstrap interval over tasks and their episodes.
    """

    tasks: int
    episodes: int
    yes_rate: float
    yes_rate_interval: Interval
    progress: float
    progress_interval: Interval

    @classmethod
    def of(cls, results: Sequence[TaskResult]) -> Total:
        """Average over at least one played task."""
        everything = Rate(
            sum(result.rate.num_yes for result in results),
            sum(result.rate.num_episodes for result in results),
        )
        drawn = mean_of_means_interval([result.successes for result in results])
        pooled = everything.interval
        return cls(
            tasks=len(results),
            episodes=everything.num_episodes,
            yes_rate=sum(result.rate.yes_rate for result in results) / len(results),
            yes_rate_interval=(min(drawn[0], pooled[0]), max(drawn[1], pooled[1])),
            progress=sum(result.progress for result in results) / len(results),
            progress_interval=mean_of_means_interval([result.progresses for result in results]),
        )


@dataclass(frozen=True)
class BenchmarkResults:
    """The results of one player on a suite.

    Attributes:
        suite: Name of the suite.
        tasks: A result per task, in the suite's order.
        player: The player: `name`, and for a policy `weights`, `deterministic` and the options
            `env_config` of its environment.
        request: The request: `suite`, `episodes` (per task), `seed`, `steps` (cap of the time
            limits, or None), `envs`, `tasks` (pattern, or None), `smoke`, `overrides`; `rules`, the
            embedded engine's revision; and the `digest` of all of these.
        versions: Versions of Python and packages, and the `commit` of the code.
        seconds: Total wall time of all tasks.
        created: Time of creation, ISO 8601 with the offset from UTC.
    """

    suite: str
    tasks: tuple[TaskResult, ...]
    player: Mapping[str, Any]
    request: Mapping[str, Any]
    versions: Mapping[str, Any]
    seconds: float = 0.0
    created: str = ""

    @property
    def seed(self) -> int:
        """Seed of the worlds and the player's random numbers."""
        return int(self.request["seed"])

    def with_status(self, status: str) -> list[TaskResult]:
        """Return the tasks with a status: `played`, `marked` or `failed`."""
        return [task for task in self.tasks if task.status == status]

    @cached_property
    def total(self) -> Total | None:
        """Total of all played tasks; None if there are none."""
        played = self.with_status(PLAYED)
        return Total.of(played) if played else None

    @cached_property
    def categories(self) -> dict[str, Total]:
        """Totals by category, in alphabetical order, of categories with a played task."""
        played = self.with_status(PLAYED)
        names = sorted({task.category for task in played})
        return {name: Total.of([t for t in played if t.category == name]) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "suite": self.suite,
            "player": dict(self.player),
            "request": dict(self.request),
            "versions": dict(self.versions),
            "created": self.created,
            "seconds": round(self.seconds, 3),
            "confidence": CONFIDENCE,
            "counts": {status: len(self.with_status(status)) for status in STATUSES},
            "total": None if self.total is None else asdict(self.total),
            "categories": {name: asdict(total) for name, total in self.categories.items()},
            "tasks": [task.to_json() for task in self.tasks],
        }

    def save(self, file: Path) -> None:
        """Write `to_json` to a file, atomically."""
        write_whole(file, json.dumps(self.to_json(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> BenchmarkResults:
        """Load saved results.

        Args:
            path: The file, or the folder that contains it as `benchmark.json`.

        Raises:
            MineStudioError: There are no results, or they have another format.
        """
        file = Path(path)
        file = file / RESULTS_FILE if file.is_dir() else file
        try:
            found = read_document(file, BenchmarkDocument, _LARGEST)
        except (OSError, SmallFileError) as error:
            raise MineStudioError(
                f"{str(path)!r} holds no results of a benchmark: {error}. `rllib benchmark run` "
                f"writes them, as {RESULTS_FILE}."
            ) from error
        return cls(
            suite=found.suite,
            tasks=tuple(map(TaskResult.of, found.tasks)),
            player=given(found.player),
            request=given(found.request),
            versions=found.versions,
            seconds=found.seconds,
            created=found.created,
        )


# ---------------------------------------------- the result of one task, and of each of its episodes
# - `played`: every episode was played, and all numbers are available.
# - `marked`: this engine or this player cannot play the task; `reason` says why. It has no numbers
#   and is not counted.
# - `failed`: an error occurred, which is in `reason`. The task has no numbers and is not counted,
#   and the command's exit status is not 0.

PLAYED, MARKED, FAILED = "played", "marked", "failed"
STATUSES = (PLAYED, MARKED, FAILED)


@dataclass(frozen=True)
class EpisodeResult:
    """The facts of an episode that tables and comparisons need.

    Attributes:
        index: Index among the task's episodes, which with the benchmark's seed decides the world.
        seed: Seed of the world.
        success: Whether the task's condition held.
        progress: Progress in [0, 1].
        undiscounted_return: Sum of the rewards.
        length: Steps.
        items: How often each item was obtained, if the task counts items; name -> count.
    """

    index: int
    seed: int
    success: bool
    progress: float
    undiscounted_return: float
    length: int
    items: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemResult:
    """How often an item was obtained, as in the VPT paper.

    Attributes:
        item: The item's name.
        rate: Share of the episodes with at least one.
        mean_count: Mean number per episode.
    """

    item: str
    rate: Rate
    mean_count: float


@dataclass(frozen=True)
class TaskResult:
    """The result of one task.

    Attributes:
        name: The task's path below the suite's folder: `simple/collect_wood`.
        category: The task's category.
        text: The instruction to the agent.
        success: The condition, as text; None for a task that no program can decide.
        time_limit: Most steps of an episode, after `--steps` and `--smoke`.
        digest: Digest of everything that determines the worlds and success; results with the same
            seed and digest may be compared episode by episode.
        status: `played`, `marked` or `failed`.
        reason: Why it is marked or has failed; None if it was played.
        episodes: All episodes, ordered by index, if it was played.
        seconds: Wall time of the task.
        videos: `success` and `failure` -> video file, relative to the results' folder, where there
            is one.
    """

    name: str
    category: str
    text: str
    success: str | None
    time_limit: int
    digest: str
    status: str
    reason: str | None = None
    episodes: tuple[EpisodeResult, ...] = ()
    seconds: float = 0.0
    videos: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> Rate:
        """Success rate of a played task, with Wilson's interval."""
        return Rate(sum(episode.success for episode in self.episodes), len(self.episodes))

    @property
    def successes(self) -> list[float]:
        """1 or 0 for each episode."""
        return [float(episode.success) for episode in self.episodes]

    @property
    def progresses(self) -> list[float]:
        """The progress of each episode."""
        return [episode.progress for episode in self.episodes]

    @property
    def progress(self) -> float:
        """Mean progress of a played task's episodes."""
        return sum(self.progresses) / len(self.episodes)

    @cached_property
    def progress_interval(self) -> Interval:
        """Bootstrap interval of the mean progress."""
        return mean_interval(self.progresses)

    @property
    def items(self) -> list[ItemResult]:
        """The items that the task counts, in its order; empty if it counts none."""
        names = dict.fromkeys(name for episode in self.episodes for name in episode.items)
        table = []
        for name in names:
            counts = [episode.items.get(name, 0) for episode in self.episodes]
            rate = Rate(sum(count > 0 for count in counts), len(counts))
            table.append(ItemResult(name, rate, sum(counts) / len(counts)))
        return table

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, including derived numbers for other programs."""
        facts = {option.name: getattr(self, option.name) for option in fields(self)}
        facts["videos"] = dict(self.videos)
        facts["episodes"] = [asdict(episode) for episode in self.episodes]
        return {**facts, **(self._numbers() if self.status == PLAYED else {})}

    def _numbers(self) -> dict[str, Any]:
        rate = self.rate
        return {
            "num_yes": rate.num_yes,
            "num_episodes": rate.num_episodes,
            "yes_rate": rate.yes_rate,
            "yes_rate_interval": list(rate.interval),
            "progress": self.progress,
            "progress_interval": list(self.progress_interval),
            "episode_return": spread([e.undiscounted_return for e in self.episodes]),
            "episode_length": spread([e.length for e in self.episodes]),
            "items": [
                {
                    "item": found.item,
                    "num_yes": found.rate.num_yes,
                    "yes_rate": found.rate.yes_rate,
                    "yes_rate_interval": list(found.rate.interval),
                    "mean_count": found.mean_count,
                }
                for found in self.items
            ],
        }

    @classmethod
    def of(cls, told: TaskResultDocument) -> TaskResult:
        """Return the result that a file tells; numbers derived from its episodes are not read."""
        facts = {option.name: getattr(told, option.name) for option in fields(cls)}
        facts["episodes"] = tuple(EpisodeResult(**dict(episode)) for episode in told.episodes)
        return cls(**{**facts, "videos": dict(told.videos)})


# ------------------------------------------------------------------------------ bootstrap intervals
# The percentile bootstrap (Efron and Tibshirani 1993, chapter 13): the numbers are resampled with
# replacement `RESAMPLES` times, and the interval spans the middle 95 % of the resampled means. The
# seed is fixed, so equal numbers always have the same interval.

RESAMPLES = 4000
"""This determines the ends of the interval to about a fiftieth of its width."""

_SEED = 0
_BLOCK = 1_000_000
"""Numbers drawn at a time, which bounds the memory."""

_DECIMALS = 12
"""Rounding, since smaller differences only come from the order of additions."""

Interval = tuple[float, float]


def mean_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval:
    """Return the interval of the mean of at least one number.

    The interval of equal numbers has no width.
    """
    return mean_of_means_interval([values])


def mean_of_means_interval(groups: Sequence[Sequence[float] | NDArray[np.float64]]) -> Interval:
    """Return the interval of the mean of the groups' means.

    Groups are resampled, and within each resampled group its numbers. So the interval covers the
    variation between groups like these; for a single group it is the interval of its mean.

    Args:
        groups: At least one, each with at least one number, such as the episodes of tasks.
    """
    arrays = [np.asarray(group, np.float64) for group in groups]
    sizes = np.array([len(array) for array in arrays])
    flat, starts = np.concatenate(arrays), np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rng = np.random.default_rng(_SEED)
    rows = max(1, _BLOCK // (len(arrays) * int(sizes.max())))
    means = np.concatenate(
        [
            _drawn_means(flat, starts, sizes, min(rows, RESAMPLES - done), rng)
            for done in range(0, RESAMPLES, rows)
        ]
    )
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return round(float(low), _DECIMALS), round(float(high), _DECIMALS)


def _drawn_means(
    flat: NDArray[np.float64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return (count,) means of the means of resampled groups.

    Args:
        flat: The groups' numbers, one group after the other.
        starts: (groups,) indices at which the groups begin.
        sizes: (groups,) sizes of the groups.
        count: Number of resamples.
        rng: Random generator.
    """
    groups = rng.integers(0, len(sizes), (count, len(sizes)))  # a single group is drawn as itself
    longest = int(sizes.max())
    within = (rng.random((count, len(sizes), longest)) * sizes[groups][..., None]).astype(np.int64)
    drawn = flat[starts[groups][..., None] + within]
    counted = np.arange(longest) < sizes[groups][..., None]
    means: NDArray[np.float64] = (drawn * counted).sum(axis=2) / sizes[groups]
    return means.mean(axis=1)


# -------------------------------- comparison of two benchmarks, task by task and episode by episode

COMPARISON_FORMAT = "rllib_minestudio.benchmark_comparison"
COMPARISON_VERSION = 1

TESTS = (
    "p: exact McNemar test, two-sided, on the episodes that one solved and the other did not; "
    f"intervals: {CONFIDENCE:.0%}, bootstrap of the paired differences with {RESAMPLES:,} "
    "resamples, in total over tasks and episodes"
)

Pairs = Sequence[tuple[EpisodeResult, EpisodeResult]]


@dataclass(frozen=True)
class MeanDifference:
    """A mean difference, second minus first.

    Attributes:
        mean: Mean of the paired differences.
        interval: Bootstrap interval of the mean.
    """

    mean: float
    interval: Interval

    @classmethod
    def of(cls, groups: Sequence[Sequence[float]]) -> MeanDifference:
        """Average the means of at least one group, each with at least one difference."""
        means = [sum(group) / len(group) for group in groups]
        return cls(sum(means) / len(means), mean_of_means_interval(groups))


@dataclass(frozen=True)
class TaskComparison:
    """The comparison of two players on one task.

    Attributes:
        name: The task's name.
        category: The task's category.
        pairs: Number of paired episodes.
        first_rate: Success rate of the first player.
        second_rate: Success rate of the second player.
        only_first: Number of episodes that only the first solved.
        only_second: Number of episodes that only the second solved.
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
    """The comparison of two benchmarks.

    Attributes:
        first: Name of the first player.
        second: Name of the second player.
        tasks: The tasks that both played.
        unpaired: Names of tasks that only one of them played, for instance because only one has a
            scripted solution; they are not counted.
        rate: Difference of the success rates, with equal weight for each task.
        progress: Likewise for the progress.
        aggregates: Both players' progress in all paired episodes.
        scores: The same for each player, task by task.
    """

    first: str
    second: str
    tasks: tuple[TaskComparison, ...]
    unpaired: tuple[str, ...]
    rate: MeanDifference
    progress: MeanDifference
    aggregates: Aggregates
    scores: tuple[Scores, Scores]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        facts = {name: value for name, value in asdict(self).items() if name != "scores"}
        identity = {"format": COMPARISON_FORMAT, "version": COMPARISON_VERSION}
        return {**identity, **facts, "tests": TESTS}

    def save(self, file: Path) -> None:
        """Write `to_json` to a file, atomically."""
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
    players = (_name(first), _name(second))
    if players[0] == players[1]:  # two runs of one player
        players = (f"{players[0]} (first)", f"{players[1]} (second)")
    scores = (
        [np.array([a.progress for a, _ in pairs]) for _, pairs in paired],
        [np.array([b.progress for _, b in pairs]) for _, pairs in paired],
    )
    return BenchmarkComparison(
        first=_name(first),
        second=_name(second),
        tasks=tuple(_compared(task, pairs) for task, pairs in paired),
        unpaired=tuple(dict.fromkeys(name for name in played if name not in names)),
        rate=MeanDifference.of([_solved(pairs) for _, pairs in paired]),
        progress=MeanDifference.of([_progressed(pairs) for _, pairs in paired]),
        aggregates=Aggregates.of("progress", players, *scores),
        scores=scores,
    )


def _name(results: BenchmarkResults) -> str:
    return str(results.player.get("name", "?"))


def _require_same_worlds(first: BenchmarkResults, second: BenchmarkResults) -> None:
    """Refuse benchmarks of different worlds.

    Raises:
        MineStudioError: Seeds, rules, time limits or tasks differ.
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
    """Return the first few names, and the number of the others."""
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
