"""The passes over an iteration's batch: epochs, minibatches, chunks, and when learners synchronise.

A row is walked through in chunks of `context_length`, the memory carried from one to the next and
detached (truncated backpropagation through time). The gradients of all chunks of a group of
minibatches add up to one optimizer step. With several learners each has its share of the group;
only the group's last chunk sends gradients, those of all chunks before included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from ray.rllib.core.columns import Columns
from torch import Tensor

from rllib_minestudio.algorithms.learner.batch import TrainingBatch
from rllib_minestudio.algorithms.learner.behaviour_cloning import BehaviourCloning
from rllib_minestudio.algorithms.learner.distributed import Peers
from rllib_minestudio.algorithms.learner.forward import forward
from rllib_minestudio.algorithms.learner.gradient_step import GradientStep
from rllib_minestudio.algorithms.learner.metrics import IterationMetrics
from rllib_minestudio.algorithms.learner.objective import Objective

ChunkLoss = Callable[[TrainingBatch, dict[str, Any]], Objective]
"""(chunk, outputs of `forward_train`) -> loss and its parts."""


class PassOptions(Protocol):
    """The options that passes depend on; `MineStudioPPOConfig` has them."""

    num_epochs: int
    fragments_per_minibatch: int
    gradient_accumulation: int
    context_length: int


class TrainingPass:
    """Trains a module on batches.

    Args:
        module: A `VPTRLModule`, or its distributed wrapper if there are several learners.
        options: Sizes of everything.
        gradient_step: Steps the optimizer.
        peers: The learners that train together.
        seed: Of the order of rows; the same for all learners.
        cloning: Adds the loss of demonstrations to each minibatch's, or None.
    """

    def __init__(
        self,
        module: Any,
        options: PassOptions,
        *,
        gradient_step: GradientStep,
        peers: Peers,
        seed: int,
        cloning: BehaviourCloning | None = None,
    ) -> None:
        """Train nothing yet."""
        self._cloning = cloning
        self._module = module
        self._options = options
        self._gradient_step = gradient_step
        self._peers = peers
        self._generator = torch.Generator().manual_seed(seed)

    def run(
        self,
        batch: TrainingBatch,
        nonfinite: Tensor,
        chunk_loss: ChunkLoss,
        collected: IterationMetrics,
    ) -> None:
        """All epochs over all minibatches of an iteration.

        Args:
            batch: Equally many rows for every learner.
            nonfinite: For each row, whether it is masked because a number in it is not finite.
            chunk_loss: The objective.
            collected: Takes the losses and what became of the steps.
        """
        options = self._options
        per_step = options.gradient_accumulation // self._peers.count
        for _ in range(options.num_epochs):
            order = torch.randperm(len(batch), generator=self._generator)
            minibatches = order.to(batch.image.device).split(options.fragments_per_minibatch)
            for i in range(0, len(minibatches), per_step):
                group = minibatches[i : i + per_step]
                self._step(batch, group, nonfinite, chunk_loss, collected)

    def _step(
        self,
        batch: TrainingBatch,
        minibatches: Sequence[Tensor],
        nonfinite: Tensor,
        chunk_loss: ChunkLoss,
        collected: IterationMetrics,
    ) -> None:
        """One optimizer step on the mean gradient of some minibatches, each given by its rows."""
        losses: list[Tensor] = []
        for i, rows in enumerate(minibatches):
            losses += self._accumulate(
                batch.select(rows),
                chunk_loss,
                collected,
                share=1.0 / len(minibatches),
                synchronise=i == len(minibatches) - 1,
            )
        rows = torch.cat(list(minibatches))
        step = self._gradient_step.step(
            loss=torch.stack(losses).sum(),
            usable=batch.mask[rows].count_nonzero(),
            nonfinite=nonfinite[rows].sum(),
            minibatches=len(minibatches) * self._peers.count,
        )
        collected.finish_step(
            taken=step.taken, gradient_norm=step.gradient_norm, minibatches=len(minibatches)
        )

    def _accumulate(
        self,
        minibatch: TrainingBatch,
        chunk_loss: ChunkLoss,
        collected: IterationMetrics,
        *,
        share: float,
        synchronise: bool,
    ) -> list[Tensor]:
        """Add one minibatch's gradients to those accumulated so far.

        Args:
            minibatch: Whole rows.
            chunk_loss: The objective.
            collected: Takes the losses.
            share: Of this minibatch in the coming optimizer step.
            synchronise: Whether its last chunk ends the group, and so averages the gradients over
                the learners.

        Returns:
            The losses, without gradient.
        """
        losses: list[Tensor] = []
        if self._cloning is not None:
            with self._synchronised(False):
                parts = self._cloning.accumulate(self._module, share)
            losses += parts.values()
            collected.add(parts, 1.0)
        state = minibatch.state_in
        chunks = list(minibatch.chunks(self._options.context_length))
        for i, chunk in enumerate(chunks):
            part = chunk.num_steps / minibatch.num_steps
            with self._synchronised(synchronise and i == len(chunks) - 1):
                outputs = forward(self._module, chunk.image, chunk.first, state)
                loss, parts = chunk_loss(chunk, outputs)
                (loss * (part * share)).backward()
            state = {name: tensor.detach() for name, tensor in outputs[Columns.STATE_OUT].items()}
            losses.append(loss.detach())
            collected.add(parts, part)
        return losses

    def _synchronised(self, synchronise: bool) -> AbstractContextManager[None]:
        """Forward and backward in here average gradients over the learners, or do not."""
        if synchronise or self._peers.count == 1:
            return nullcontext()
        return self._module.no_sync()
