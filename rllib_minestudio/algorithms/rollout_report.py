"""What an env runner returns from one call: fragments, and a report of how they were played."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from rllib_minestudio.algorithms.env_pool import Episode
from rllib_minestudio.algorithms.fragment import Fragment, FragmentMetadata

INFERENCE = "inference"
WAITING = "waiting_for_envs"
PRIOR = "prior"
SAMPLING = "sampling"


class RunnerProgress(NamedTuple):
    """How far an env runner has come.

    Attributes:
        rollouts: How many it has played; the actions of each are drawn with numbers of its own.
        unplayed: As in `EpisodeCounts`.
    """

    rollouts: int = 0
    unplayed: tuple[int, ...] = ()


class RolloutStart(NamedTuple):
    """Where an env runner begins if it has played nothing yet, or nothing since a restore.

    Attributes:
        restores: How often training was restored; an env runner that began before the last time
            begins once more.
        seed: What its episodes and actions derive from, together with its index.
        progress: What it goes on from.
    """

    restores: int
    seed: int
    progress: RunnerProgress


class RolloutReport(NamedTuple):
    """All that is small: the driver reads it without touching a fragment.

    Attributes:
        fragments: What there is to know of each fragment, in their order.
        episodes: Those that ended since the last report.
        env_restarts: How often environments were replaced since then, by cause.
        metrics: RLlib's counters and timers.
        seconds: Wall time in the policy (`inference`), in waiting for environments or playing
            them (`waiting_for_envs`), in the prior (`prior`), and altogether (`sampling`).
        weights_number: Of the publication that the runner acted with last; 0 if it never pulled.
        weights_reachable: Whether the actor that has the newest ones answered; if it did not, the
            runner may have played on with older ones.
        instance_id: Tells the environments that a runner has from those it had before its
            process was lost.
        worker_index: Of the runner.
        restores: As in the `RolloutStart` that it began with.
        progress: How far it has come with this rollout.
    """

    fragments: list[FragmentMetadata]
    episodes: list[Episode]
    env_restarts: dict[str, int]
    metrics: dict[str, Any]
    seconds: dict[str, float]
    weights_number: int
    weights_reachable: bool
    instance_id: str
    worker_index: int
    restores: int
    progress: RunnerProgress


class Rollout(NamedTuple):
    """A report and the fragments it is about."""

    report: RolloutReport
    fragments: list[Fragment]


class StageTimes:
    """A stopwatch with several hands."""

    def __init__(self) -> None:
        """Start at zero."""
        self._seconds = dict.fromkeys((INFERENCE, WAITING, PRIOR, SAMPLING), 0.0)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] += time.perf_counter() - started

    def take(self) -> dict[str, float]:
        """Hand out the times and go back to zero."""
        seconds = self._seconds
        self._seconds = dict.fromkeys(seconds, 0.0)
        return seconds
