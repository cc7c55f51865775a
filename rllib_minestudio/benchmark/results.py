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
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rllib_minestudio.benchmark.intervals import Interval, mean_of_means_interval
from rllib_minestudio.benchmark.task_result import PLAYED, STATUSES, TaskResult
from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.evaluation_summary import CONFIDENCE, Rate
from rllib_minestudio.small_files import read_json
from rllib_minestudio.whole_file import write_whole

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
