"""What became of one task of a benchmark, and of each of its episodes.

- `played`: every episode was played; its numbers are all there.
- `marked`: the task is not for this engine or this player; `reason` says why. It has no numbers
  and counts nowhere.
- `failed`: playing it went wrong; `reason` says how. It has no numbers and counts nowhere, and
  the command's exit status tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from rllib_minestudio.benchmark.intervals import Interval, mean_interval
from rllib_minestudio.evaluation.evaluation_summary import Rate, spread

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
