"""The passes over an iteration: epochs, optimizer steps, minibatches, chunks.

A sequence is processed in chunks of `context_length`; the memory is carried from one chunk to the
next and detached (truncated backpropagation through time). The gradients of all chunks of all
minibatches of an optimizer step (`plan_steps`) add up to the gradient of the mean over its
environment steps. With several learners, each has its part of every optimizer step, and the
accumulated gradients are exchanged only in the last chunk.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.utils.metrics import NUM_ENV_STEPS_TRAINED, NUM_ENV_STEPS_TRAINED_LIFETIME
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from torch import Tensor

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.learner import objective
from rllib_minestudio.algorithms.learner.batch import (
    MinibatchStream,
    SequenceBatch,
    Tensors,
    TrainingBatch,
    end_to_end,
    stacked,
    stacked_states,
)
from rllib_minestudio.algorithms.learner.gradient_step import GradientStep, Peers
from rllib_minestudio.algorithms.learner.imitation import BehaviourCloning
from rllib_minestudio.algorithms.learner.policy_learner import forward
from rllib_minestudio.algorithms.learner.value_targets import Targets
from rllib_minestudio.algorithms.options import PPOOptions
from rllib_minestudio.foundation.episode_seeds import derived_seed

LearnFromChunk = Callable[[TrainingBatch, dict[str, Any]], Tensor]
"""(chunk, outputs of `forward_train`) -> the chunk's loss, without gradient. Accumulates the
chunk's gradients."""


class Prepared(NamedTuple):
    """An iteration, ready to be trained on.

    Attributes:
        sequences: This learner's sequences; every learner has equally many.
        targets: Their targets.
        knows_prior: Returns whether the KL term can be computed for a version of the prior's
            weights; None without a prior.
    """

    sequences: SequenceBatch
    targets: Targets
    knows_prior: Callable[[int], bool] | None


class TrainingPass:
    """Trains a module on iterations.

    Args:
        module: A `RecurrentRLModule`, or its distributed wrapper if there are several learners.
        options: The algorithm's options.
        stream: Moves minibatches to the module's device.
        gradient_step: Steps the optimizer.
        peers: The learners that train together.
        seed: Determines the order of sequences, together with the iteration; the same for all
            learners.
        cloning: Adds a loss on demonstrations to each minibatch's, or None.
    """

    def __init__(
        self,
        module: Any,
        options: PPOOptions,
        *,
        stream: MinibatchStream,
        gradient_step: GradientStep,
        peers: Peers,
        seed: int,
        cloning: BehaviourCloning | None = None,
    ) -> None:
        reporting.publish_as_actor()
        self._minibatches = reporting.Count("minibatch", 0)
        self._cloning = cloning
        self._module = module
        self._options = options
        self._stream = stream
        self._gradient_step = gradient_step
        self._peers = peers
        self._seed = seed

    def run(
        self,
        prepared: Prepared,
        learn: LearnFromChunk,
        collected: IterationMetrics,
        *,
        iteration: int,
    ) -> None:
        """Run all epochs of an iteration.

        Args:
            prepared: The iteration to train on.
            learn: Called for each chunk.
            collected: Receives the losses and the outcome of the steps.
            iteration: The number of finished iterations. The order of sequences depends only on it
                and the seed, so that a resumed run continues with the orders that come next.
        """
        options, targets = self._options, prepared.targets
        mine = targets.usable_b.tolist(), int(targets.nonfinite_b.sum())
        usable, nonfinite = zip(*self._peers.gather(mine), strict=True)
        if not any(map(any, usable)):
            self._skip(len(prepared.sequences), any(nonfinite), collected)
            return
        if self._cloning is not None:
            self._cloning.go_on_at(iteration)
        generator = torch.Generator().manual_seed(derived_seed(self._seed, iteration))
        epochs = [self._plan_epoch(usable, generator) for _ in range(options.num_epochs)]
        count = sum(len(step.minibatches) for steps in epochs for step in steps)
        self._minibatches = reporting.Count("minibatch", count)
        for steps in epochs:
            planned = [(step, indices) for step in steps for indices in step.minibatches]
            minibatches = self._stream.stream(lambda key: self._minibatch(prepared, *key), planned)
            for step in steps:
                self._step(step, minibatches, learn, collected)

    def _plan_epoch(
        self, usable: Sequence[Sequence[bool]], generator: torch.Generator
    ) -> list[PlannedStep]:
        """Draw an order of all learners' sequences, and split it into optimizer steps.

        Args:
            usable: Whether each sequence of each learner is usable.
            generator: In the same state for all learners.
        """
        options, here = self._options, len(usable[0])
        places = torch.randperm(len(usable) * here, generator=generator).tolist()
        order = [divmod(place, here) for place in places]
        return plan_steps(
            [(learner, i) for learner, i in order if usable[learner][i]],
            self._peers.count,
            self._peers.rank,
            per_minibatch=options.fragments_per_minibatch,
            accumulation=options.gradient_accumulation,
        )

    def _skip(self, num_sequences: int, nonfinite: bool, collected: IterationMetrics) -> None:
        """Count the minibatches of an iteration in which no sequence can be trained on."""
        options = self._options
        minibatches = math.ceil(num_sequences / options.fragments_per_minibatch)
        minibatches *= options.num_epochs
        collected.counts["skipped_minibatches"] += minibatches
        if nonfinite:
            self._gradient_step.skip(minibatches * self._peers.count)

    def _minibatch(
        self, prepared: Prepared, step: PlannedStep, indices: Sequence[int]
    ) -> TrainingBatch:
        """Stack one minibatch in host memory; without indices, one whose steps do not count."""
        targets = prepared.targets
        at = list(indices) or [0]
        sequences = prepared.sequences.select(at)
        shape = len(sequences), sequences.num_steps
        share = self._peers.count / (step.num_sequences * shape[1]) if indices else 0.0
        prior: dict[str, Tensor] = {}
        if prepared.knows_prior is not None:
            version = torch.from_numpy(sequences.prior_version_of_steps)
            prior = {
                "prior_latent": stacked([end_to_end(p) for p in sequences.prior_latent]),
                "prior_version": version,
                "kl_share": _known(version, prepared.knows_prior) * share,
            }
        minibatch = TrainingBatch(
            obs={
                name: stacked([end_to_end(obs[name]) for obs in sequences.obs])
                for name in sequences.obs[0]
            },
            action={name: torch.from_numpy(array) for name, array in sequences.action.items()},
            first=torch.from_numpy(sequences.first),
            state_in=stacked_states(sequences),
            share=torch.full(shape, share),
            proximal_logp=targets.proximal_logp_bt[at],
            weight=targets.weight_bt[at],
            advantage=targets.advantage_bt[at],
            value_target=targets.value_target_bt[at],
            **prior,
        )
        # The placeholder sequence of an empty minibatch may hold NaN or infinite numbers.
        return minibatch if indices else minibatch.map(torch.zeros_like)

    def _step(
        self,
        step: PlannedStep,
        minibatches: Iterator[TrainingBatch],
        learn: LearnFromChunk,
        collected: IterationMetrics,
    ) -> None:
        """Take one optimizer step on the mean gradient over its sequences."""
        count = len(step.minibatches)
        losses: list[Tensor] = []
        for i in range(count):
            if self._cloning is not None:
                with self._synchronised(False):
                    parts = self._cloning.accumulate(self._module, 1.0 / count)
                losses += parts.values()
                collected.add({name: part / count for name, part in parts.items()})
            self._minibatches.add()
            # A local name would keep the minibatch in memory while the next one is prepared.
            losses += self._accumulate(
                next(minibatches), learn, collected, synchronise=i == count - 1
            )
        taken = self._gradient_step.step(
            loss=torch.stack(losses).sum(), minibatches=count * self._peers.count
        )
        collected.finish_step(
            taken=taken.taken, gradient_norm=taken.gradient_norm, minibatches=count
        )

    def _accumulate(
        self,
        minibatch: TrainingBatch,
        learn: LearnFromChunk,
        collected: IterationMetrics,
        *,
        synchronise: bool,
    ) -> list[Tensor]:
        """Accumulate the gradients of one minibatch.

        Args:
            minibatch: Whole sequences.
            learn: Called for each chunk.
            collected: Receives the losses.
            synchronise: Whether the minibatch's last chunk is the last of the optimizer step, and
                so averages the gradients over the learners.

        Returns:
            The chunks' losses, without gradient.
        """
        losses: list[Tensor] = []
        state = minibatch.state_in
        chunks = list(minibatch.chunks(self._options.context_length))
        for i, chunk in enumerate(chunks):
            with self._synchronised(synchronise and i == len(chunks) - 1):
                outputs = forward(self._module, chunk.obs, chunk.first, state)
                loss = learn(chunk, outputs)
            state = {name: tensor.detach() for name, tensor in outputs[Columns.STATE_OUT].items()}
            losses.append(loss)
            collected.add({"total_loss": loss})
        return losses

    def _synchronised(self, synchronise: bool) -> AbstractContextManager[None]:
        """Return a context in which backward averages gradients over the learners, or does not."""
        if synchronise or self._peers.count == 1:
            return nullcontext()
        return self._module.no_sync()


def _known(version_bt: Tensor, knows: Callable[[int], bool]) -> Tensor:
    """Return 1 where the prior's version is known, else 0; float32 of the same shape."""
    versions = version_bt.numpy()
    known = {version: knows(version) for version in np.unique(versions).tolist()}
    return torch.from_numpy(np.vectorize(known.__getitem__, otypes=[np.float32])(versions))


# --------------------------------------------------- the assignment of sequences to optimizer steps
# An iteration is split into as few steps as `gradient_accumulation` allows, all of nearly equal
# size, even if sequences do not divide evenly or had to be left out: a last step that averaged over
# two sequences instead of ten would give each of them five times the weight of the others.


class PlannedStep(NamedTuple):
    """One learner's part of one optimizer step.

    Attributes:
        minibatches: Indices of their sequences. Every learner has equally many minibatches; a
            learner that runs out of sequences has empty ones.
        num_sequences: Number of sequences of all learners together.
    """

    minibatches: list[list[int]]
    num_sequences: int


def plan_steps(
    order: Sequence[tuple[int, int]],
    num_learners: int,
    rank: int,
    *,
    per_minibatch: int,
    accumulation: int,
) -> list[PlannedStep]:
    """Split the usable sequences into optimizer steps.

    A pure function with the same steps for every learner. A step holds the same sequences as if a
    single learner had them all.

    Args:
        order: The sequences of all learners in random order, as (learner, index in the learner);
            the same for every learner.
        num_learners: The number of learners.
        rank: This learner's rank.
        per_minibatch: Maximum number of sequences in a learner's forward pass.
        accumulation: Maximum number of minibatches per step, of all learners together, if every
            learner holds an equal share of the step. A learner that holds more may need more
            minibatches; the others then get empty ones.

    Returns:
        n = ceil(minibatches / accumulation) steps, whose sizes differ by at most one sequence. Step
        s takes every n-th sequence, beginning with the s-th.
    """
    num_steps = math.ceil(math.ceil(len(order) / per_minibatch) / accumulation)
    steps = []
    for s in range(num_steps):
        members = order[s::num_steps]
        shares: list[list[int]] = [[] for _ in range(num_learners)]
        for learner, index in members:
            shares[learner].append(index)
        count = math.ceil(max(map(len, shares)) / per_minibatch)
        own = shares[rank]
        minibatches = [own[i * per_minibatch : (i + 1) * per_minibatch] for i in range(count)]
        steps.append(PlannedStep(minibatches, len(members)))
    return steps


# ------------------------------------------------------------ the learner's metrics of an iteration
# docs/metrics.md explains every name. Scalars are collected as tensors and read once, at the end,
# so that the host waits for a GPU only then. Numbers about the whole iteration are computed from
# the sums of all learners.

STALENESS_BUCKETS = 8
"""The histogram counts all staleness of at least this in one bucket."""

RLLIB_NAMES = {
    "explained_variance": "vf_explained_var",
    "gradient_norm": "gradients_default_optimizer_global_norm",
    "approximate_kl": "mean_kl_loss",
}
"""Our name -> the name of the same number in RLlib's PPO, under which it is also reported."""


class IterationMetrics:
    """Collects the numbers of one iteration.

    Losses are collected minibatch by minibatch, and only count if their optimizer step is taken, so
    that the NaN of a skipped step does not spoil the means.

    Args:
        peers: The learners that share the iteration.
    """

    def __init__(self, peers: Peers) -> None:
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
        """Add a chunk's parts of means over the optimizer step, as scalars."""
        self._pending.append(parts)

    def finish_step(self, *, taken: bool, gradient_norm: Tensor, minibatches: int) -> None:
        """Keep what was added since the last step, or drop it if the step was not taken."""
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
        """Add mean and standard deviation of values, value targets and importance weights."""
        usable, total = targets.usable_bt, self._peers.total
        for name, tensor in (
            ("value", targets.value_bt),
            ("value_target", targets.value_target_bt),
            ("importance_weight", targets.weight_bt),
        ):
            _, mean, variance = objective.moments(tensor, usable, total=total)
            self.scalars[f"{name}_mean"] = float(mean)
            self.scalars[f"{name}_std"] = float(variance.sqrt())
        self.scalars["explained_variance"] = float(
            objective.explained_variance(
                targets.value_bt, targets.value_target_bt, usable, total=total
            )
        )

    def kl_to_prior(self) -> float:
        """Return the mean KL to the prior of all learners' steps whose prior is known.

        Waits for the device.

        Returns:
            Nats per step; NaN if there is no such step.
        """
        names = ("kl_to_prior", "prior_known")
        if not self._steps["prior_known"]:  # no optimizer step was taken, in any learner
            return math.nan
        kl, known = self._peers.total(
            torch.stack([torch.stack(self._sums[name]).sum() for name in names])
        )
        return float(kl / known)

    def add_staleness(self, staleness: Sequence[int]) -> None:
        """Add the staleness of each fragment."""
        everywhere = list(chain.from_iterable(self._peers.gather(list(staleness))))
        if not everywhere:
            return
        self.scalars["staleness_mean"] = sum(everywhere) / len(everywhere)
        self.scalars["staleness_max"] = max(everywhere)
        histogram = Counter(min(s, STALENESS_BUCKETS) for s in everywhere)
        for bucket in range(STALENESS_BUCKETS + 1):
            self.scalars[f"staleness_histogram/{bucket}"] = histogram[bucket] / len(everywhere)

    def log_to(self, metrics: MetricsLogger, *, steps: int) -> None:
        """Log the iteration's numbers, and the environment steps that this learner trained on."""
        for name, scalar in self._results().items():
            metrics.log_value((DEFAULT_MODULE_ID, name), scalar, window=1)
        for name, count in self.counts.items():
            metrics.log_value((DEFAULT_MODULE_ID, name), count, reduce="sum")
        metrics.log_value((ALL_MODULES, NUM_ENV_STEPS_TRAINED), steps, reduce="sum")
        metrics.log_value(
            (ALL_MODULES, NUM_ENV_STEPS_TRAINED_LIFETIME), steps, reduce="lifetime_sum"
        )

    def _results(self) -> dict[str, float]:
        """Return all scalars, losses as means over the optimizer steps. Waits for the device."""
        means = {
            name: float(torch.stack(parts).sum()) / self._steps[name]
            for name, parts in self._sums.items()
        }
        seconds = {f"{stage}_seconds": value for stage, value in self.seconds.items()}
        found = {**means, **self.scalars}
        rllibs = {name: found[ours] for ours, name in RLLIB_NAMES.items() if ours in found}
        return {**found, **rllibs, **seconds}
