"""The learner that imitates: windows in, one optimizer step per batch of them.

A reader's path: `update` -> `_train` -> `window_chunks` of `learner/forward.py`, which carries the
memory from chunk to chunk, as the PPO learner does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_TRAINED, NUM_ENV_STEPS_TRAINED_LIFETIME
from torch import Tensor

from rllib_minestudio.algorithms.cloning.data import Batch
from rllib_minestudio.algorithms.learner.allocator import keep_freed_memory
from rllib_minestudio.algorithms.learner.batch import Tensors
from rllib_minestudio.algorithms.learner.cloning_loss import CloningLoss, cloning_loss
from rllib_minestudio.algorithms.learner.distributed import Peers
from rllib_minestudio.algorithms.learner.forward import window_chunks
from rllib_minestudio.algorithms.learner.gradient_step import GradientStep, require_finite
from rllib_minestudio.algorithms.options.cloning import CloningOptions
from rllib_minestudio.algorithms.policy_learner import PolicyLearner
from rllib_minestudio.models.recurrent_rl_module import ACTION_DIST

VALIDATION = "validation"
"""Prefix of the metrics over held-out episodes."""


class MineStudioBCLearner(PolicyLearner):
    """Trains a `RecurrentRLModule` to do what was demonstrated."""

    config: CloningOptions

    def build(self) -> None:
        """Build module and optimizer."""
        super().build()
        if self._device.type == "cpu":
            keep_freed_memory()
        self._memory: Tensors | None = None
        self._step = GradientStep(
            self.policy.network,
            self.get_optimizer(DEFAULT_MODULE_ID),
            hooks=self,
            max_nonfinite=self.config.max_nonfinite_minibatches,
            peers=Peers(1),
        )

    def update(
        self, *, training_data: TrainingData, timesteps: dict[str, Any], num_iters: int, **_: Any
    ) -> dict[str, Any]:
        """Take `num_iters` optimizer steps.

        Args:
            training_data: Holds one iterator over batches of windows.
            timesteps: RLlib's count of environment steps, for the learning rate's schedule.
            num_iters: Batches to take from the iterator.

        Returns:
            The metrics.

        Raises:
            NonFiniteLossError: After `max_nonfinite_minibatches` batches in a row.
        """
        self._check_is_built()
        self.before_gradient_based_update(timesteps=timesteps)
        (batches,) = training_data.data_iterators
        sums: dict[str, float] = defaultdict(float)
        for _step in range(num_iters):
            for name, value in self._train(next(batches)).items():
                sums[name] += value
        self._weights_seq_no += 1
        require_finite(
            self.policy.network, self.get_optimizer(DEFAULT_MODULE_ID), self._weights_seq_no
        )
        steps = sums.pop("steps")
        norm = sums.pop("gradient_norm") / num_iters
        losses = {name: value / steps for name, value in sums.items()} if steps else {}
        self._log(losses | {"gradient_norm": norm})
        for key, reduce in (
            (NUM_ENV_STEPS_TRAINED, "sum"),
            (NUM_ENV_STEPS_TRAINED_LIFETIME, "lifetime_sum"),
        ):
            self.metrics.log_value((ALL_MODULES, key), int(steps), reduce=reduce)
        self.after_gradient_based_update(timesteps=timesteps)
        return self.metrics.reduce()

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore; other windows follow than those that the memory is of."""
        super().set_state(state)
        self._memory = None

    @torch.no_grad()
    def validate(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Return the mean losses over held-out windows, in nats per step.

        They are weighted means; {} if there is no step to imitate.
        """
        sums: dict[str, float] = defaultdict(float)
        memory: Tensors | None = None
        for batch in batches:
            for chunk, outputs in self._chunks(self._on_device(batch), memory):
                sums["steps"] += float(chunk["weight"].sum())
                for name, value in self._chunk_loss(chunk, outputs)._asdict().items():
                    sums[name] += float(value)
            memory = self._kept(outputs)
        steps_total = sums.pop("steps", 0.0)
        if not steps_total:
            return {}
        return {f"{VALIDATION}_{name}": value / steps_total for name, value in sums.items()}

    def _train(self, batch: Batch) -> dict[str, float]:
        """One optimizer step; returns sums over the batch's steps, and their number."""
        tensors = self._on_device(batch)
        total = tensors["weight"].sum()
        self._sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=self._device))
        losses = []
        for chunk, outputs in self._chunks(tensors, self._memory):
            chunk["num_steps"] = total.clamp(min=1)
            losses.append(self.learn_from_chunk(chunk, outputs))
        step = self._step.step(loss=torch.stack(losses).sum(), minibatches=1)
        # A memory that is not finite would spoil all that follows.
        self._memory = self._kept(outputs) if step.taken else None
        numbers = {**self._sums, "steps": total, "gradient_norm": step.gradient_norm}
        return {name: float(value) for name, value in numbers.items()}

    def _chunks(
        self, windows: Tensors, memory: Tensors | None
    ) -> Iterator[tuple[Tensors, dict[str, Any]]]:
        """Walk through a batch of windows; yields each chunk and what `forward_train` gave."""
        return window_chunks(
            self.module[DEFAULT_MODULE_ID],
            windows,
            burn_in=windows["first"].shape[1] - self.config.window_length,
            context_length=self.config.context_length,
            state=memory,
        )

    def _kept(self, outputs: dict[str, Any]) -> Tensors | None:
        """What the next batch's windows find: the memory after a batch's last chunk, or nothing."""
        if not self.config.carry_memory:
            return None
        return {name: tensor.detach() for name, tensor in outputs[Columns.STATE_OUT].items()}

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Tensors, fwd_out: dict[str, Any]
    ) -> Tensor:
        """The loss of one chunk: its part of the mean over the optimizer step's steps to imitate.

        Args:
            module_id: Of the one module.
            config: Of the module.
            batch: `image` and whatever else the policy reads, `first`, `buttons`, `camera` and
                `weight` (as in `Window`), all (B, T, ...), and `num_steps`, the
                sum of all weights of the optimizer step. A term of a subclass is to be weighted by
                `weight / num_steps` as well.
            fwd_out: What `forward_train` gave for it.

        Returns:
            A scalar with gradient.
        """
        parts = self._chunk_loss(batch, fwd_out)
        for name, value in parts._asdict().items():
            self._sums[name] += value.detach()
        return parts.loss / batch["num_steps"]

    def _chunk_loss(self, chunk: Tensors, outputs: dict[str, Any]) -> CloningLoss:
        return cloning_loss(
            outputs[ACTION_DIST],
            chunk,
            chunk["weight"],
            still_camera=self.config.still_camera,
        )

    def _on_device(self, batch: Batch) -> Tensors:
        return {
            name: torch.from_numpy(array).to(self._device, non_blocking=True)
            for name, array in batch.items()
        }

    def _log(self, scalars: dict[str, float]) -> None:
        for name, scalar in scalars.items():
            self.metrics.log_value((DEFAULT_MODULE_ID, name), scalar, window=1)
