"""What a benchmark comes to: a result per task, totals, and what they are the results of.

`BenchmarkResults.tasks` has one `TaskResult` per task of the suite, in the suite's order, whatever
became of it.

`total` and `categories` are `Total`s over the played tasks. All of it is one JSON file,
`benchmark.json` in the results' folder; `to_json` shows its layout and `load` reads it.
Paths of videos are relative to that folder.
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

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.summary import CONFIDENCE, Rate, mcnemar, paired_episodes, spread
from rllib_minestudio.foundation.files import read_json, write_whole

FORMAT = "rllib_minestudio.benchmark"
VERSION = 1
RESULTS_FILE = "benchmark.json"
PAGE_FILE = "benchmark.html"
TASKS_FOLDER = "tasks"
"""Holds a folder per played task: its result, its summary and its videos."""

_LARGEST = 1024**3
"""Bytes of a results file that is read."""


@dataclass(frozen=True)
class Total:
    """Several played tasks together, each of which counts as much as any other.

    Attributes:
        tasks: How many; at least one.
        episodes: Of all of them.
        yes_rate: Mean of their success rates.
        yes_rate_interval: By the bootstrap over tasks and their episodes, widened to Wilson's for
            all episodes together: where nothing or everything succeeds the bootstrap is empty.
        progress: Mean of their mean progress.
        progress_interval: By the bootstrap over tasks and their episodes.
    """

    tasks: int
    episodes: int
    yes_rate: float
    yes_rate_interval: Interval
    progress: float
    progress_interval: Interval

    @classmethod
    def of(cls, results: Sequence[TaskResult]) -> Total:
        """Add up played tasks, of which there must be one."""
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
    """A suite as one player played it.

    Attributes:
        suite: Name of the suite.
        tasks: A result per task, in the suite's order.
        player: Who played: `name`, and for a policy `weights`, `deterministic` and the options
            `env_config` of the environment that it sees the game by.
        request: What was asked for: `suite`, `episodes` (per task), `seed`, `steps` (cap of the
            time limits, or None), `envs`, `tasks` (pattern, or None), `smoke`, `overrides`;
            `rules`, the embedded engine's revision; and the `digest` of all of it.
        versions: Of Python and of packages, and the `commit` of the code.
        seconds: Wall time of all tasks together.
        created: When the results were put together, ISO 8601 with the offset from UTC.
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
        """What the worlds and the policy's random numbers derive from."""
        return int(self.request["seed"])

    def with_status(self, status: str) -> list[TaskResult]:
        """Return the tasks that were `played`, `marked` or `failed`."""
        return [task for task in self.tasks if task.status == status]

    @cached_property
    def total(self) -> Total | None:
        """Of all played tasks; None if there are none."""
        played = self.with_status(PLAYED)
        return Total.of(played) if played else None

    @cached_property
    def categories(self) -> dict[str, Total]:
        """Total by category, in alphabetical order; of categories with a played task."""
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
        """Write `to_json` to a file, which appears as a whole."""
        write_whole(file, json.dumps(self.to_json(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> BenchmarkResults:
        """Read what `save` wrote.

        Args:
            path: The file, or the folder that holds it as `benchmark.json`.

        Raises:
            MineStudioError: There are no such results, or they are of another format.
        """
        file = Path(path)
        file = file / RESULTS_FILE if file.is_dir() else file
        try:
            facts = read_json(file, _LARGEST)
            if (facts["format"], facts["version"]) != (FORMAT, VERSION):
                raise ValueError(f"format {facts['format']!r} version {facts['version']}")
            names = ("suite", "player", "request", "versions", "seconds", "created")
            found = cls(
                tasks=tuple(map(TaskResult.from_json, facts["tasks"])),
                **{name: facts[name] for name in names},
            )
            int(found.request["seed"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise MineStudioError(
                f"{str(path)!r} holds no results of a benchmark: {error}. `rllib benchmark run` "
                f"writes them, as {RESULTS_FILE}."
            ) from error
        return found


# ------------------------------ what became of one task of a benchmark, and of each of its episodes
# - `played`: every episode was played; its numbers are all there.
# - `marked`: the task is not for this engine or this player; `reason` says why. It has no numbers
#   and counts nowhere.
# - `failed`: playing it went wrong; `reason` says how. It has no numbers and counts nowhere, and
#   the command's exit status tells.

PLAYED, MARKED, FAILED = "played", "marked", "failed"
STATUSES = (PLAYED, MARKED, FAILED)


@dataclass(frozen=True)
class EpisodeResult:
    """One episode, as far as tables and comparisons need it.

    Attributes:
        index: Which of the task's episodes; with the benchmark's seed it decides the world.
        seed: Of the world.
        success: Whether the task's condition held.
        progress: How far it got, in [0, 1].
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
    """How often an item was obtained, as in the paper of VPT.

    Attributes:
        item: Its name.
        rate: Of the episodes with at least one.
        mean_count: How many per episode.
    """

    item: str
    rate: Rate
    mean_count: float


@dataclass(frozen=True)
class TaskResult:
    """What became of one task.

    Attributes:
        name: The task's, its path below the suite's folder: `simple/collect_wood`.
        category: What it is counted under.
        text: What the agent is told.
        success: The condition, as text; None for a task that no program can decide.
        time_limit: Steps that an episode may take, after `--steps` and `--smoke`.
        digest: Short name of everything that decides the worlds and what success is: results with
            the same seed and digest may be compared episode by episode.
        status: `played`, `marked` or `failed`.
        reason: Why it is marked or has failed; None if it was played.
        episodes: All of them by index, if it was played.
        seconds: Wall time of the task.
        videos: `success` and `failure` -> file below the results' folder, as far as there are any.
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
        """1 or 0 per episode."""
        return [float(episode.success) for episode in self.episodes]

    @property
    def progresses(self) -> list[float]:
        """The episodes' progress."""
        return [episode.progress for episode in self.episodes]

    @property
    def progress(self) -> float:
        """Mean progress of a played task's episodes."""
        return sum(self.progresses) / len(self.episodes)

    @cached_property
    def progress_interval(self) -> Interval:
        """Of the mean progress, by the bootstrap."""
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
        """Return everything as plain data; what is derived is there to be read by others."""
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
    def from_json(cls, facts: Mapping[str, Any]) -> TaskResult:
        """Return what `to_json` was called on.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        given = {option.name: facts[option.name] for option in fields(cls)}
        given["episodes"] = tuple(EpisodeResult(**episode) for episode in facts["episodes"])
        if given["status"] not in STATUSES or (given["status"] == PLAYED) != bool(
            facts["episodes"]
        ):
            raise ValueError(f"task {facts['name']!r} has status {facts['status']!r}")
        return cls(**given)


# --------------------------- intervals of a benchmark's numbers, by the bootstrap with a fixed seed
# The percentile bootstrap (Efron and Tibshirani 1993, chapter 13): the numbers are drawn again with
# replacement, `RESAMPLES` times, and the interval is what the middle 95 % of the drawn means span.
# The seed is fixed, so that the same numbers always have the same interval.

RESAMPLES = 4000
"""The ends of the interval are then known to about a fiftieth of its width."""

_SEED = 0
_BLOCK = 1_000_000
"""Numbers that are drawn at a time."""

_DECIMALS = 12
"""Means that differ by less differ by the order of their additions only."""

Interval = tuple[float, float]


def mean_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval:
    """Return the interval of the mean of at least one number.

    Equal numbers have an interval of no width: the bootstrap knows nothing but what it is given.
    """
    return mean_of_means_interval([values])


def mean_of_means_interval(groups: Sequence[Sequence[float] | NDArray[np.float64]]) -> Interval:
    """Return the interval of the mean, over groups, of each group's mean.

    Groups are drawn, and within each drawn group its numbers. So the interval is that of what
    groups like these would come to; a single group's is that of its own mean.

    Args:
        groups: At least one, each with at least one number: for instance a task's episodes.
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
    """Return (count,) means of means of drawn groups.

    Args:
        flat: The groups' numbers, one group after the other.
        starts: (groups,) where each begins.
        sizes: (groups,) how many each has.
        count: How often all groups are drawn.
        rng: Draws.
    """
    groups = rng.integers(0, len(sizes), (count, len(sizes)))  # a single one is drawn as itself
    longest = int(sizes.max())
    within = (rng.random((count, len(sizes), longest)) * sizes[groups][..., None]).astype(np.int64)
    drawn = flat[starts[groups][..., None] + within]
    counted = np.arange(longest) < sizes[groups][..., None]
    means: NDArray[np.float64] = (drawn * counted).sum(axis=2) / sizes[groups]
    return means.mean(axis=1)


# ------------ compares two benchmarks that met the same worlds, task by task and episode by episode

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
        return {
            "format": COMPARISON_FORMAT,
            "version": COMPARISON_VERSION,
            **asdict(self),
            "tests": TESTS,
        }

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
