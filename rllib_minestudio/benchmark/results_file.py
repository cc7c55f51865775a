"""What the files of a benchmark may hold: `benchmark.json`, a task's `result.json`, `request.json`.

Results are published and compared, so these files come from anyone. The numbers that only other
programs read, such as a task's success rate, are checked as well: they must not contradict the
episodes from which this package computes its own.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from rllib_minestudio.evaluation.summary import SpreadDocument
from rllib_minestudio.foundation.documents import (
    Contradiction,
    Count,
    Document,
    Few,
    First,
    Interval,
    ListOf,
    MappingOf,
    Measure,
    Name,
    Plain,
    PlainMapping,
    RelativePath,
    Seconds,
    Seed,
    Share,
    Text,
)
from rllib_minestudio.foundation.options import shown

FORMAT = "rllib_minestudio.benchmark"
VERSION = 1

Status = Literal["played", "marked", "failed"]
Outcome = Literal["success", "failure"]


class EpisodeResultDocument(Document):
    """The fields of `EpisodeResult`."""

    index: Few
    seed: Seed
    success: bool
    progress: Share
    undiscounted_return: Measure
    length: Count
    items: MappingOf[Annotated[float, Field(ge=0, le=1e12)]]


class ItemDocument(Document):
    """The fields of `ItemResult`."""

    item: Name
    num_yes: Few
    yes_rate: Share
    yes_rate_interval: Interval
    mean_count: Annotated[float, Field(ge=0, le=1e12)]


class TaskResultDocument(Document):
    """The fields of `TaskResult`, and the numbers of a task that was played."""

    name: Name
    category: Name
    text: Text
    success: Text | None
    time_limit: Count
    digest: Name
    status: Status
    reason: Text | None
    episodes: ListOf[EpisodeResultDocument]
    seconds: Seconds
    videos: Annotated[dict[Outcome, RelativePath], Field(max_length=2)]
    num_yes: Few | None = None
    num_episodes: Few | None = None
    yes_rate: Share | None = None
    yes_rate_interval: Interval | None = None
    progress: Share | None = None
    progress_interval: Interval | None = None
    episode_return: SpreadDocument | None = None
    episode_length: SpreadDocument | None = None
    items: ListOf[ItemDocument] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> TaskResultDocument:
        count = len(self.episodes)
        played = self.status == "played"
        if played != bool(count):
            raise Contradiction(
                "status must be 'played' if there are episodes, and only then; got "
                f"{self.status!r} with {count} episodes"
            )
        if len({episode.index for episode in self.episodes}) < count:
            raise Contradiction("each episode must be there once")
        found = (sum(e.success for e in self.episodes), count) if played else (None, None)
        if (self.num_yes, self.num_episodes) != found:
            raise Contradiction(
                f"num_yes and num_episodes must be {found}, as its episodes are; got "
                f"{(self.num_yes, self.num_episodes)}"
            )
        return self


class KeptTaskDocument(TaskResultDocument):
    """A task's `result.json`, from which an interrupted benchmark continues."""

    request: Name


class TotalDocument(Document):
    """The fields of `Total`."""

    tasks: Few
    episodes: Count
    yes_rate: Share
    yes_rate_interval: Interval
    progress: Share
    progress_interval: Interval


class ResultPlayerDocument(Document):
    """The player; a policy and an agent have facts of their own."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Plain]

    name: Name
    weights: Text | None = None
    deterministic: bool | None = None
    env_config: PlainMapping | None = None


class RequestDocument(Document):
    """The facts of a `BenchmarkRequest`, as in `request.json`."""

    seed: Seed
    suite: Text | None = None
    player: PlainMapping | None = None
    episodes: Few | None = None
    steps: Count | None = None
    envs: Few | None = None
    tasks: Text | None = None
    smoke: bool | None = None
    overrides: ListOf[Text] | None = None
    env_config: PlainMapping | None = None
    rules: Few | None = None
    task_digests: MappingOf[Name] | None = None
    digest: Name | None = None


class CountsDocument(Document):
    """How many tasks have which status."""

    played: Few
    marked: Few
    failed: Few


class BenchmarkDocument(Document):
    """`benchmark.json`."""

    format: Literal["rllib_minestudio.benchmark"]
    version: First
    suite: Name
    player: ResultPlayerDocument
    request: RequestDocument
    versions: MappingOf[Text | bool]
    created: Annotated[str, Field(max_length=100)]
    seconds: Seconds
    confidence: Share
    counts: CountsDocument
    total: TotalDocument | None
    categories: MappingOf[TotalDocument]
    tasks: ListOf[TaskResultDocument]

    @model_validator(mode="after")
    def _agrees(self) -> BenchmarkDocument:
        if len({task.name for task in self.tasks}) < len(self.tasks):
            raise Contradiction("each task must be there once")
        statuses: list[str] = [task.status for task in self.tasks]
        for status, count in self.counts.model_dump().items():
            if count != statuses.count(status):
                raise Contradiction(
                    f"counts.{status} must be {statuses.count(status)}, as its tasks are; got "
                    f"{count}"
                )
        played = [task for task in self.tasks if task.status == "played"]
        in_each = Counter(task.category for task in played)
        if in_each != {name: total.tasks for name, total in self.categories.items()}:
            raise Contradiction(
                f"categories must have the totals of the played tasks: {shown(dict(in_each))}"
            )
        told = (0, 0) if self.total is None else (self.total.tasks, self.total.episodes)
        expected = (len(played), sum(len(task.episodes) for task in played))
        if told != expected:
            raise Contradiction(
                "total must be of {} tasks and {} episodes".format(*expected)
                + "; got {} and {}".format(*told)
            )
        return self
