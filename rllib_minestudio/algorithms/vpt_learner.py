"""What the learners of all algorithms share: the network, and its optimizer."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from rllib_minestudio.algorithms.moments import restore_moments
from rllib_minestudio.models.vpt.fine_tuning import parameter_groups
from rllib_minestudio.models.vpt_rl_module import VPTRLModule


class VPTLearner(TorchLearner):
    """Holds a `VPTRLModule` and AdamW."""

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
        optimizer = torch.optim.AdamW(groups, lr=0.0)
        self.register_optimizer(
            module_id=module_id,
            optimizer=optimizer,
            params=[parameter for group in optimizer.param_groups for parameter in group["params"]],
            lr_or_lr_schedule=self._rate_or_schedule(config),
        )

    @staticmethod
    def _rate_or_schedule(config: Any) -> Any:
        """What RLlib sets the learning rate by; None if it shall leave it alone."""
        return config.lr

    @staticmethod
    def _set_optimizer_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
        """Set the rate of every group to its share of `lr`."""
        for group in optimizer.param_groups:
            group["lr"] = lr * group["lr_factor"]

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Set the learning rate that the config's `lr` has now.

        RLlib does so after an update only, and would begin with a rate of another time, or after
        a restore of another config.
        """
        super().before_gradient_based_update(timesteps=timesteps)
        now = timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
        for optimizer, schedule in self._optimizer_lr_schedules.items():
            self._set_optimizer_lr(optimizer, schedule.update(now))

    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        """Take over the moments; unlike with RLlib's, options stay those of the config."""
        parameters = self.vpt.network.named_parameters()
        learning = {name: parameter for name, parameter in parameters if parameter.requires_grad}
        for name, optimizer in self._named_optimizers.items():
            if name in state:
                restore_moments(optimizer, state[name]["state"], learning)
