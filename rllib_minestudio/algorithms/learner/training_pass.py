"""The passes over an iteration: epochs, optimizer steps, minibatches, chunks.

A sequence is walked through in chunks of `context_length`, the memory carried from one to the next
and detached (truncated backpropagation through time). The gradients of all chunks of all
minibatches of a step (`plan.py`) add up to the gradient of the mean over its steps in time. With
several learners each has its part of every step; only the step's last chunk sends gradients, those
of all chunks before included.
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
from rllib_minestudio.algorithms.learner import losses
from rllib_minestudio.algorithms.learner.batch import (
    MinibatchStream,
    SequenceBatch,
    Tensors,
    TrainingBatch,
    end_to_end,
    stacked,
    stacked_states,
)
from rllib_minestudio.algorithms.learner.forward import forward
from rllib_minestudio.algorithms.learner.gradient_step import GradientStep, Peers
from rllib_minestudio.algorithms.learner.imitation import BehaviourCloning
from rllib_minestudio.algorithms.learner.targets import Targets
from rllib_minestudio.algorithms.options import PPOOptions
from rllib_minestudio.foundation.episode_seeds import derived_seed

LearnFromChunk = Callable[[TrainingBatch, dict[str, Any]], Tensor]
"""(chunk, outputs of `forward_train`) -> its part of the loss, without gradient. Adds the chunk's
gradients to those accumulated so far."""


class Prepared(NamedTuple):
    """An iteration, ready to be trained on.

    Attributes:
        sequences: This learner's; equally many for every learner.
        targets: What they are trained towards.
        knows_prior: Whether the KL term can be computed for a version of the prior's weights;
            None without a prior.
    """

    sequences: SequenceBatch
    targets: Targets
    knows_prior: Callable[[int], bool] | None


class TrainingPass:
    """Trains a module on iterations.

    Args:
        module: A `RecurrentRLModule`, or its distributed wrapper if there are several learners.
        options: Sizes of everything.
        stream: Brings minibatches to the module's device.
        gradient_step: Steps the optimizer.
        peers: The learners that train together.
        seed: Of the order of sequences, together with the iteration; the same for all learners.
        cloning: Adds the loss of demonstrations to each minibatch's, or None.
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
        """All epochs of an iteration.

        Args:
            prepared: What to train on.
            learn: Called for each chunk.
            collected: Takes the losses and what became of the steps.
            iteration: Iterations finished so far. Its orders depend on it and the seed alone, so
                that a resumed run draws those that come next.
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
            usable: Of each learner's sequences, in the order in which one learner would have them.
            generator: The same for all learners.
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
        """Stack one minibatch in the host's memory; without indices, one that does not count."""
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
        # The sequence that stands in for an empty minibatch may hold numbers that are not finite.
        return minibatch if indices else minibatch.map(torch.zeros_like)

    def _step(
        self,
        step: PlannedStep,
        minibatches: Iterator[TrainingBatch],
        learn: LearnFromChunk,
        collected: IterationMetrics,
    ) -> None:
        """One optimizer step on the mean gradient over its sequences."""
        count = len(step.minibatches)
        losses: list[Tensor] = []
        for i in range(count):
            if self._cloning is not None:
                with self._synchronised(False):
                    parts = self._cloning.accumulate(self._module, 1.0 / count)
                losses += parts.values()
                collected.add({name: part / count for name, part in parts.items()})
            self._minibatches.add()
            # Not given a name here, which would keep it in memory while the next one is prepared.
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
        """Add one minibatch's gradients to those accumulated so far.

        Args:
            minibatch: Whole sequences.
            learn: Called for each chunk.
            collected: Takes the losses.
            synchronise: Whether its last chunk ends the step, and so averages the gradients over
                the learners.

        Returns:
            The losses, without gradient.
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
        """Forward and backward in here average gradients over the learners, or do not."""
        if synchronise or self._peers.count == 1:
            return nullcontext()
        return self._module.no_sync()


def _known(version_bt: Tensor, knows: Callable[[int], bool]) -> Tensor:
    """Where a version of the prior is known, float32 of the same shape."""
    versions = version_bt.numpy()
    known = {version: knows(version) for version in np.unique(versions).tolist()}
    return torch.from_numpy(np.vectorize(known.__getitem__, otypes=[np.float32])(versions))


# -------------------------------------------------------- which sequences make which optimizer step
# A pure function, the same for every learner.
#
# An iteration is split into as few steps as `gradient_accumulation` allows, and all of them are of
# nearly equal size, whatever does not divide or had to be left out: a last step that averaged over
# two sequences instead of ten would give each of them five times the weight of the others.


class PlannedStep(NamedTuple):
    """One learner's part of one optimizer step.

    Attributes:
        minibatches: Sequences by index. Every learner has equally many minibatches; one that has
            run out of sequences has empty ones.
        num_sequences: Of all learners together.
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
    """Split the sequences that can be trained on into optimizer steps.

    A step holds the sequences that it would hold if one learner had them all.

    Args:
        order: The sequences of all learners in random order, each as (learner, index there); the
            same for every learner.
        num_learners: How many there are.
        rank: Which of the learners this is.
        per_minibatch: Sequences side by side in a learner's forward pass, at most.
        accumulation: Minibatches per step, of all learners together, at most, if each holds its
            share of the step. Who holds more may need more minibatches; the others get empty ones.

    Returns:
        ceil(minibatches / accumulation) steps, whose sizes differ by one sequence at most. Step s
        takes every n-th sequence, beginning with the s-th, for n steps.
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


# --------------------------------------------------------- what the learner reports of an iteration
# `docs/metrics.md` explains every name.
#
# Scalars are collected as tensors and read once, at the end, so that a GPU is waited for only then.
# Where a number is about the whole iteration it is made from the sums of all learners.

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
