"""The learner: one training iteration over a batch of fragments.

A reader's path: `update` -> `add_targets` (advantages, proximal policy) -> `_train_minibatch`
(chunks of `context_length` with the memory carried over and detached) -> `compute_loss_for_module`
-> one optimizer step per `gradient_accumulation` minibatches.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import torch
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_TRAINED, NUM_ENV_STEPS_TRAINED_LIFETIME
from torch import Tensor

from rllib_minestudio.algorithms import losses
from rllib_minestudio.algorithms.allocator import keep_freed_memory
from rllib_minestudio.algorithms.batch import FragmentBatch, Tensors, TrainingBatch, stack_fragments
from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.objective import objective
from rllib_minestudio.algorithms.prior import Prior
from rllib_minestudio.algorithms.schedule import LossCoefficients, loss_coefficients
from rllib_minestudio.algorithms.targets import Evaluation, TargetStatistics, add_targets
from rllib_minestudio.errors import NonFiniteLossError
from rllib_minestudio.models.vpt import heads
from rllib_minestudio.models.vpt.checkpoint import load_weights
from rllib_minestudio.models.vpt.fine_tuning import parameter_groups
from rllib_minestudio.models.vpt_rl_module import FIRST, LOGITS, VALUE, VPTRLModule

ITERATION = "training_iteration"
COMPONENT_PRIOR = "prior"
INITIAL_PRIOR = "initial"


class MineStudioPPOLearner(TorchLearner):
    """Trains a `VPTRLModule` with MineStudioPPO's objective."""

    def build(self) -> None:
        """Build module and optimizer, and freeze the prior."""
        super().build()
        if self._device.type == "cpu":
            keep_freed_memory()
        self._prior = self._build_prior()
        self._generator = torch.Generator().manual_seed(self.config.seed or 0)
        self._skipped_in_a_row = 0
        self._sums: dict[str, list[Tensor]] = defaultdict(list)
        self._coefficients = LossCoefficients(policy=1.0, kl=0.0, publish=True)

    @property
    def vpt(self) -> VPTRLModule:
        """The module in training, without its distributed wrapper."""
        return self.module[DEFAULT_MODULE_ID].unwrapped()

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """AdamW (MineStudio's choice) over all that is not frozen; rates follow `config.lr`."""
        groups = parameter_groups(
            self.module[module_id].unwrapped().network,
            config.lr_factors,
            weight_decay=config.weight_decay,
            eps=config.adam_eps,
        )
        self.register_optimizer(
            module_id=module_id,
            optimizer=torch.optim.AdamW(groups, lr=0.0),
            params=[parameter for group in groups for parameter in group["params"]],
            lr_or_lr_schedule=config.lr,
        )

    @staticmethod
    def _set_optimizer_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
        """Set the rate of every group to its share of `lr`."""
        for group in optimizer.param_groups:
            group["lr"] = lr * group["lr_factor"]

    # ---------------------------------------------------------------- the iteration

    def update(
        self, *, training_data: TrainingData, timesteps: dict[str, Any], **_: Any
    ) -> dict[str, Any]:
        """Train one iteration.

        Args:
            training_data: Fragments, or references to them.
            timesteps: Holds `training_iteration`, the iterations finished so far, and RLlib's
                count of environment steps for the learning rate's schedule.

        Returns:
            The metrics of the iteration.

        Raises:
            NonFiniteLossError: After `max_nonfinite_minibatches` of them in a row.
        """
        self._check_is_built()
        config = self.config
        self.before_gradient_based_update(timesteps=timesteps)
        training_data.solve_refs()
        fragments: list[Fragment] = training_data.episodes
        self._coefficients = loss_coefficients(
            timesteps[ITERATION],
            kl_coeff=config.kl_coeff,
            kl_decay=config.kl_decay,
            vf_warmup_iterations=config.vf_warmup_iterations,
        )
        batch, statistics = self._prepare(fragments)
        self._weights_seq_no += 1
        self._train(batch)
        self._log(fragments, statistics)
        self.after_gradient_based_update(timesteps=timesteps)
        return self.metrics.reduce()

    def _prepare(self, fragments: Sequence[Fragment]) -> tuple[TrainingBatch, TargetStatistics]:
        """Stack the fragments and compute everything that needs no gradient, once."""
        config = self.config
        batch = stack_fragments(fragments, self._device)
        return add_targets(
            batch,
            fragments,
            prior_latent=self._prior.latents(fragments, batch) if self._prior else None,
            evaluate=self._evaluate,
            weights_version=self._weights_seq_no,
            correction=config.off_policy_correction,
            truncation=config.importance_weight_truncation,
            gamma=config.gamma,
            lambda_=config.lambda_,
        )

    def _train(self, batch: TrainingBatch) -> None:
        """All epochs over all minibatches."""
        config = self.config
        size = config.fragments_per_minibatch
        for _ in range(config.num_epochs):
            order = torch.randperm(len(batch), generator=self._generator)
            minibatches = [rows.to(self._device) for rows in order.split(size)]
            for i, rows in enumerate(minibatches):
                # The last group may be smaller: divide by what it really holds.
                group = i - i % config.gradient_accumulation
                share = min(config.gradient_accumulation, len(minibatches) - group)
                finite = self._train_minibatch(batch.select(rows), share)
                last_of_group = i + 1 == group + share
                if last_of_group:
                    self._step_optimizer()
                self._count_skipped(finite)

    def _train_minibatch(self, minibatch: TrainingBatch, share: int) -> bool:
        """Accumulate the gradients of one minibatch, chunk by chunk.

        Args:
            minibatch: Whole fragments.
            share: Minibatches that contribute to the coming optimizer step.

        Returns:
            Whether all losses were finite. If not, the gradients accumulated for the coming step
            are dropped.
        """
        state = minibatch.state_in
        for chunk in minibatch.chunks(self.config.context_length):
            fwd_out = self._forward(self.module[DEFAULT_MODULE_ID], chunk.image, chunk.first, state)
            loss = self.compute_loss_for_module(
                module_id=DEFAULT_MODULE_ID, config=self.config, batch=chunk, fwd_out=fwd_out
            )
            if not torch.isfinite(loss):
                self._zero_gradients()
                return False
            (loss * (chunk.num_steps / minibatch.num_steps / share)).backward()
            state = {name: tensor.detach() for name, tensor in fwd_out[Columns.STATE_OUT].items()}
        return True

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: TrainingBatch, fwd_out: dict[str, Any]
    ) -> Tensor:
        """The loss of one chunk, a scalar; see `objective.py`."""
        prior_logits = None
        if self._prior is not None and batch.prior_latent is not None:
            prior_logits = self._prior.logits(batch.prior_latent)
        loss, parts = objective(
            logits=fwd_out[LOGITS],
            value=fwd_out[VALUE],
            batch=batch,
            value_head=self.vpt.network.value_head,
            prior_logits=prior_logits,
            coefficients=self._coefficients,
            options=config,
        )
        for name, part in parts.items():
            self._sums[name].append(part)
        return loss

    def _step_optimizer(self) -> None:
        """Clip by global norm and step; leaves the weights alone on a non-finite gradient."""
        parameters = [p for p in self.vpt.parameters() if p.grad is not None]
        if parameters:
            limit = self.config.grad_clip or math.inf
            norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
            if torch.isfinite(norm):
                self.get_optimizer(DEFAULT_MODULE_ID).step()
                self._sums["gradient_norm"].append(norm)
        self._zero_gradients()

    def _zero_gradients(self) -> None:
        self.get_optimizer(DEFAULT_MODULE_ID).zero_grad(set_to_none=True)

    def _count_skipped(self, finite: bool) -> None:
        if finite:
            self._skipped_in_a_row = 0
            return
        self._skipped_in_a_row += 1
        self.metrics.log_value((DEFAULT_MODULE_ID, "skipped_minibatches"), 1, reduce="sum")
        if self._skipped_in_a_row >= self.config.max_nonfinite_minibatches:
            raise NonFiniteLossError(
                f"The loss was NaN or infinite in {self._skipped_in_a_row} minibatches in a row "
                f"(max_nonfinite_minibatches={self.config.max_nonfinite_minibatches}). Look for "
                "rewards or observations that are not finite; else lower lr or raise kl_coeff."
            )

    # ---------------------------------------------------------------- helpers

    @torch.no_grad()
    def _evaluate(self, batch: FragmentBatch, last_image: Tensor, last_first: Tensor) -> Evaluation:
        """Log-probabilities and values of recorded steps under today's weights."""
        state = batch.state_in
        logp, value = [], []
        for chunk in batch.chunks(self.config.context_length):
            out = self._forward(self.vpt, chunk.image, chunk.first, state)
            action = {name: tokens.unsqueeze(-1) for name, tokens in chunk.action.items()}
            logp.append(heads.log_prob(out[LOGITS], action))
            value.append(out[Columns.VF_PREDS])
            state = out[Columns.STATE_OUT]
        last = self._forward(self.vpt, last_image[:, None], last_first[:, None], state)
        return Evaluation(
            torch.cat(logp, dim=1), torch.cat(value, dim=1), last[Columns.VF_PREDS][:, 0]
        )

    @staticmethod
    def _forward(module: Any, image: Tensor, first: Tensor, state: Tensors) -> dict[str, Any]:
        return module.forward_train(
            {Columns.OBS: {"image": image}, FIRST: first, Columns.STATE_IN: state}
        )

    def _build_prior(self) -> Prior | None:
        config = self.config
        if config.prior is None:
            return None
        network = copy.deepcopy(self.vpt.network)
        if config.prior != INITIAL_PRIOR:
            load_weights(network, config.prior)
        keeps = config.replay_buffer["max_reuse"] > 1
        return Prior(
            network,
            context_length=config.context_length,
            carry_state=config.carry_prior_state,
            cache_size=config.replay_buffer["max_fragments"] if keeps else 0,
        )

    def _log(self, fragments: Sequence[Fragment], statistics: TargetStatistics) -> None:
        """Log the means over the iteration; the one place where the device is waited for."""
        steps = sum(len(fragment) for fragment in fragments)
        age = [self._weights_seq_no - 1 - f.weights_version_min for f in fragments]
        scalars = {name: float(torch.stack(values).mean()) for name, values in self._sums.items()}
        self._sums.clear()
        scalars |= {
            "kl_coeff": self._coefficients.kl,
            "explained_variance": float(
                losses.explained_variance(statistics.value, statistics.value_target)
            ),
            "value_mean": float(statistics.value.mean()),
            "value_target_mean": float(statistics.value_target.mean()),
            "importance_weight_mean": statistics.importance_weight_mean,
            "recomputed_fragments": statistics.recomputed_fragments,
            "staleness_mean": sum(age) / len(age),
            "weights_version": self._weights_seq_no,
        }
        for name, scalar in scalars.items():
            self.metrics.log_value((DEFAULT_MODULE_ID, name), scalar, window=1)
        self.metrics.log_value((ALL_MODULES, NUM_ENV_STEPS_TRAINED), steps, reduce="sum")
        self.metrics.log_value(
            (ALL_MODULES, NUM_ENV_STEPS_TRAINED_LIFETIME), steps, reduce="lifetime_sum"
        )

    # ---------------------------------------------------------------- checkpoints

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """RLlib's state, and the prior's weights where nothing else could bring them back."""
        state = super().get_state(components, not_components=not_components, **kwargs)
        prior = self._own_prior()
        if prior is not None and self._check_component(COMPONENT_PRIOR, components, not_components):
            weights = prior.network.state_dict()
            state[COMPONENT_PRIOR] = {name: t.cpu().numpy() for name, t in weights.items()}
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore; unlike RLlib's, also to older weights than the present ones."""
        self._weights_seq_no = 0
        super().set_state(state)
        prior = self._own_prior()
        if prior is not None and COMPONENT_PRIOR in state:
            prior.network.load_state_dict(
                {name: torch.as_tensor(array) for name, array in state[COMPONENT_PRIOR].items()}
            )

    def _own_prior(self) -> Prior | None:
        """The prior, if it was drawn at random: then it exists nowhere but here."""
        at_random = not self.config.model_config.get("weights")
        return self._prior if self.config.prior == INITIAL_PRIOR and at_random else None
