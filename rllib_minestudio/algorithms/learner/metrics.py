"""What the learner reports of an iteration; `docs/metrics.md` explains every name.

Scalars are collected as tensors and read once, at the end, so that a GPU is waited for only then.
Where a number is about the whole iteration it is made from the sums of all learners.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import torch
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import NUM_ENV_STEPS_TRAINED, NUM_ENV_STEPS_TRAINED_LIFETIME
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from torch import Tensor

from rllib_minestudio.algorithms.learner import losses
from rllib_minestudio.algorithms.learner.batch import Tensors
from rllib_minestudio.algorithms.learner.distributed import Peers
from rllib_minestudio.algorithms.learner.targets import Targets

STALENESS_BUCKETS = 8
"""Staleness from this on is counted together in the histogram."""

RLLIB_NAMES = {
    "explained_variance": "vf_explained_var",
    "gradient_norm": "gradients_default_optimizer_global_norm",
    "approximate_kl": "mean_kl_loss",
}
"""Our name -> the name of the same number in RLlib's PPO, under which it is reported as well."""


class IterationMetrics:
    """Collects the numbers of one iteration.

    Losses are collected minibatch by minibatch, and count only if their optimizer step is taken. So
    the NaN of a skipped step does not spoil the means of the others.

    Args:
        peers: The learners that share the iteration.
    """

    def __init__(self, peers: Peers) -> None:
        """Start empty."""
        self._peers = peers
        self._pending: list[Tensors] = []
        self._sums: dict[str, list[Tensor]] = defaultdict(list)
        self._steps: Counter[str] = Counter()
        self.scalars: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time spent in the block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - started

    def add(self, parts: Tensors) -> None:
        """Collect a chunk's parts of means over the optimizer step; scalars."""
        self._pending.append(parts)

    def finish_step(self, *, taken: bool, gradient_norm: Tensor, minibatches: int) -> None:
        """Keep what was collected since the last step, or drop it if the step was not taken."""
        if taken:
            self.add({"gradient_norm": gradient_norm})
            for parts in self._pending:
                for name, part in parts.items():
                    self._sums[name].append(part)
            self._steps.update(set(chain.from_iterable(self._pending)))
        else:
            self.counts["skipped_minibatches"] += minibatches
        self._pending.clear()

    def add_targets(self, targets: Targets) -> None:
        """Add mean and deviation of the values, their targets and the importance weights."""
        usable, total = targets.usable_bt, self._peers.total
        for name, tensor in (
            ("value", targets.value_bt),
            ("value_target", targets.value_target_bt),
            ("importance_weight", targets.weight_bt),
        ):
            _, mean, variance = losses.moments(tensor, usable, total=total)
            self.scalars[f"{name}_mean"] = float(mean)
            self.scalars[f"{name}_std"] = float(variance.sqrt())
        self.scalars["explained_variance"] = float(
            losses.explained_variance(
                targets.value_bt, targets.value_target_bt, usable, total=total
            )
        )

    def add_staleness(self, staleness: Sequence[int]) -> None:
        """How many versions of weights lie between acting and training, for each fragment."""
        everywhere = list(chain.from_iterable(self._peers.gather(list(staleness))))
        if not everywhere:
            return
        self.scalars["staleness_mean"] = sum(everywhere) / len(everywhere)
        self.scalars["staleness_max"] = max(everywhere)
        histogram = Counter(min(s, STALENESS_BUCKETS) for s in everywhere)
        for bucket in range(STALENESS_BUCKETS + 1):
            self.scalars[f"staleness_histogram/{bucket}"] = histogram[bucket] / len(everywhere)

    def log_to(self, metrics: MetricsLogger, *, steps: int) -> None:
        """Hand the iteration's numbers to RLlib; the one place where the device is waited for.

        Args:
            metrics: The learner's.
            steps: Environment steps that were trained on, of this learner.
        """
        for name, scalar in self._results().items():
            metrics.log_value((DEFAULT_MODULE_ID, name), scalar, window=1)
        for name, count in self.counts.items():
            metrics.log_value((DEFAULT_MODULE_ID, name), count, reduce="sum")
        metrics.log_value((ALL_MODULES, NUM_ENV_STEPS_TRAINED), steps, reduce="sum")
        metrics.log_value(
            (ALL_MODULES, NUM_ENV_STEPS_TRAINED_LIFETIME), steps, reduce="lifetime_sum"
        )

    def _results(self) -> dict[str, float]:
        """All scalars, losses as means over the optimizer steps. Waits for the device."""
        means = {
            name: float(torch.stack(parts).sum()) / self._steps[name]
            for name, parts in self._sums.items()
        }
        seconds = {f"{stage}_seconds": value for stage, value in self.seconds.items()}
        found = {**means, **self.scalars}
        rllibs = {name: found[ours] for ours, name in RLLIB_NAMES.items() if ours in found}
        return {**found, **rllibs, **seconds}
