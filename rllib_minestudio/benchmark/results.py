"""What a benchmark comes to: a result per task, totals, and what they are the results of.

`BenchmarkResults.tasks` has one `TaskResult` per task of the suite, in the suite's order, whatever
became of it:

- `played`: every episode was played; its numbers are all there.
- `marked`: the task is not for this engine or this player; `reason` says why. It has no numbers
  and counts nowhere.
- `failed`: playing it went wrong; `reason` says how. It has no numbers and counts nowhere, and
  the command's exit status tells.

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

from rllib_minestudio.benchmark.intervals import Interval, mean_interval, mean_of_means_interval
from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.evaluation_summary import CONFIDENCE, Rate, spread
from rllib_minestudio.small_files import read_json
from rllib_minestudio.whole_file import write_whole

FORMAT = "rllib_minestudio.benchmark"
VERSION = 1
RESULTS_FILE = "benchmark.json"
PAGE_FILE = "benchmark.html"
TASKS_FOLDER = "tasks"
"""Holds a folder per played task: its result, its summary and its videos."""

PLAYED, MARKED, FAILED = "played", "marked", "failed"
STATUSES = (PLAYED, MARKED, FAILED)

_LARGEST = 1024**3
"""Bytes of a results file that is read."""


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
