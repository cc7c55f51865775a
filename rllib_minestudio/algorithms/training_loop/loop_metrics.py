"""What the training loop measures: staleness and reuse of samples, and which parts are busy."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ray.rllib.core import DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    NUM_AGENT_STEPS_SAMPLED,
    NUM_ENV_STEPS_SAMPLED,
    NUM_EPISODES,
    NUM_MODULE_STEPS_SAMPLED,
)
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from rllib_minestudio.algorithms.env_pool.restarts import CAUSES
from rllib_minestudio.algorithms.options.ppo import ReplayBufferOptions
from rllib_minestudio.algorithms.rollout_report import SAMPLING, RolloutReport
from rllib_minestudio.algorithms.training_loop.failures import RESTARTS
from rllib_minestudio.algorithms.training_loop.replay_buffer import SampledFragment

REPLAY_BUFFER_RESULTS = "replay_buffer"
LAST_BIN = 8
"""Histograms have a bin for each value below this, and one for all from it on."""


COUNTS_OF_ROLLOUTS = (
    (NUM_ENV_STEPS_SAMPLED,),
    (NUM_AGENT_STEPS_SAMPLED, DEFAULT_AGENT_ID),
    (NUM_MODULE_STEPS_SAMPLED, DEFAULT_MODULE_ID),
    (NUM_EPISODES,),
)
"""RLlib's sums over the rollouts of an iteration."""


def report_of_no_rollout() -> dict[str, Any]:
    """Metrics of an env runner that played nothing, to be aggregated with those of all others.

    An iteration may be trained wholly on what the buffer held. RLlib's sums would be NaN in it, and
    so would every sum that a reader takes over iterations.
    """
    metrics = MetricsLogger()
    for count in COUNTS_OF_ROLLOUTS:
        metrics.log_value(count, 0, reduce="sum")
    return metrics.reduce()


def sample_metrics(
    samples: Sequence[SampledFragment[Any]], limits: ReplayBufferOptions
) -> dict[tuple[str, ...], float]:
    """Staleness and reuse of what was trained on: means, and shares by value.

    Args:
        samples: One iteration's.
        limits: Of the replay buffer; they say which bins the histograms have.
    """
    staleness = [sample.staleness for sample in samples]
    uses = [sample.use for sample in samples]
    measured: dict[tuple[str, ...], float] = {
        ("staleness_mean",): sum(staleness) / len(staleness),
        ("staleness_max",): max(staleness),
        ("reuse_mean",): sum(uses) / len(uses),
    }
    for name, values, bins in (
        ("staleness", staleness, range(limits.max_staleness + 1)),
        ("reuse", uses, range(1, limits.max_reuse + 1)),
    ):
        measured |= {(name, bin_): share for bin_, share in _histogram(values, bins).items()}
    return {(REPLAY_BUFFER_RESULTS, *name): value for name, value in measured.items()}


def _histogram(values: Sequence[int], possible: Iterable[int]) -> dict[str, float]:
    """The share of each value; all bins are there, so that columns do not come and go."""
    bins = dict.fromkeys(map(_bin, possible), 0.0)
    for name, count in Counter(map(_bin, values)).items():
        bins[name] = count / len(values)
    return bins


def _bin(value: int) -> str:
    return str(value) if value < LAST_BIN else f"{LAST_BIN}_or_more"


class LoopTimes:
    """Which part was busy for which share of the time, and sums over the rollouts' reports.

    Args:
        num_env_runners: How many there are.
    """

    def __init__(self, num_env_runners: int) -> None:
        """Start the clock."""
        self._num_env_runners = num_env_runners
        self._learning_s = 0.0
        self._stages: Counter[Any] = Counter()  # of seconds
        self._env_restarts: Counter[str] = Counter(dict.fromkeys(CAUSES, 0))
        self._since = time.perf_counter()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Count a block as time in which the learner learned."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._learning_s += time.perf_counter() - started

    def note_rollout(self, report: RolloutReport) -> None:
        """Count a rollout's time, and the environments that were restarted in it."""
        self._stages.update(report.seconds)
        self._env_restarts.update(report.env_restarts)

    def take(self) -> dict[tuple[str, ...], float]:
        """Shares and seconds since the last call, restarts since the start.

        Rollouts count when they come back, so that one iteration's share may exceed 1.
        """
        now = time.perf_counter()
        wall_s = now - self._since
        measured: dict[tuple[str, ...], float] = {
            ("busy_fraction", "learner"): self._learning_s / wall_s,
            ("busy_fraction", "env_runners"): (
                self._stages[SAMPLING] / wall_s / self._num_env_runners
            ),
        }
        measured |= {
            (ENV_RUNNER_RESULTS, "seconds", stage): seconds
            for stage, seconds in self._stages.items()
        }
        measured |= {
            (RESTARTS, f"env_{cause}"): count for cause, count in self._env_restarts.items()
        }
        self._since, self._learning_s = now, 0.0
        self._stages = Counter(dict.fromkeys(self._stages, 0.0))
        return measured
