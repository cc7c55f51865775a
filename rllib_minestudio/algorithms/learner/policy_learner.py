"""What the learners of all algorithms share: the network, its optimizer, and RLlib's hooks.

RLlib's learner takes one optimizer step per minibatch. Ours first accumulates the gradients of many
chunks, so its hooks are called at two rates. Per chunk: `compute_losses`, which calls
`compute_loss_for_module`, and `compute_gradients`. Per optimizer step: `postprocess_gradients`,
which calls `postprocess_gradients_for_module`, and `apply_gradients`. docs/rllib.md describes the
arguments and return value of each.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping
from typing import Any

import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from torch import Tensor

from rllib_minestudio.algorithms.learner.gradient_step import (
    Gradients,
    restore_optimizers,
    total_norm,
)
from rllib_minestudio.algorithms.options import Schedule
from rllib_minestudio.models.fine_tuning import parameter_groups
from rllib_minestudio.models.float_precision import advise, set_arithmetic
from rllib_minestudio.models.policy import RecurrentRLModule


class PolicyLearner(TorchLearner):
    """A learner with a `RecurrentRLModule` and AdamW.

    Attributes:
        gradient_norm: Global norm of the last optimizer step's gradient before clipping, a scalar;
            None if a subclass postprocesses gradients without calling this class.
    """

    gradient_norm: Tensor | None = None

    @property
    def policy(self) -> RecurrentRLModule:
        """The module in training, without its distributed wrapper."""
        return self.module[DEFAULT_MODULE_ID].unwrapped()

    def build(self) -> None:
        """Build module and optimizer, and set torch's arithmetic to the policy's `precision`."""
        super().build()
        if self.policy.precision is not None:
            set_arithmetic(self.policy.precision)  # for backward, outside the network's contexts
            advise(self.policy.precision, self.policy.device.type)

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Build AdamW (as in MineStudio) over all parameters that are not frozen."""
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
            lr_or_lr_schedule=self._rate_or_schedule(),
        )

    def _rate_or_schedule(self) -> Schedule | None:
        """Return the rate or schedule that RLlib is to set; None if it is not to set any."""
        rate: Schedule = self.config.lr
        return rate

    @staticmethod
    def _set_optimizer_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
        """Set the rate of every group to `lr` times its factor."""
        for group in optimizer.param_groups:
            group["lr"] = lr * group.get("lr_factor", 1.0)

    # ---------------------------------------------------------------- RLlib's hooks

    def learn_from_chunk(self, chunk: Any, outputs: dict[str, Any]) -> Tensor:
        """Accumulate the gradients of one chunk.

        Args:
            chunk: The `batch` of `compute_loss_for_module`.
            outputs: The outputs of `forward_train`, with gradient.

        Returns:
            The chunk's loss, a scalar without gradient.
        """
        losses = self.compute_losses(
            fwd_out={DEFAULT_MODULE_ID: outputs}, batch={DEFAULT_MODULE_ID: chunk}
        )
        for parameter, gradient in self.compute_gradients(losses).items():
            if gradient is not parameter.grad:
                parameter.grad = gradient
        return torch.stack([loss.detach() for loss in losses.values()]).sum()

    def compute_gradients(self, loss_per_module: Mapping[str, Tensor], **_: Any) -> Gradients:
        """Accumulate one chunk's gradients; called once per chunk.

        Args:
            loss_per_module: The result of `compute_losses` for the chunk.

        Returns:
            Parameter -> gradient accumulated so far, including this chunk's. What a subclass
            returns replaces the accumulated gradients.
        """
        torch.stack(list(loss_per_module.values())).sum().backward()
        parameters = self._params.values()
        return {p: p.grad for p in parameters if p.grad is not None}

    def postprocess_gradients_for_module(
        self, *, module_id: str, config: Any = None, module_gradients_dict: Gradients
    ) -> Gradients:
        """Clip the optimizer step's gradient by its global norm; called once per step.

        Args:
            module_id: Id of the only module.
            config: Its `grad_clip` is the maximum norm; None or 0: no limit.
            module_gradients_dict: Parameter -> gradient, summed over the step's chunks and
                averaged over the learners. Changed in place.
        """
        gradients = list(module_gradients_dict.values())
        self.gradient_norm = total_norm(gradients)
        limit = config.grad_clip or math.inf
        if limit < math.inf:
            factor = (limit / (self.gradient_norm + 1e-6)).clamp(max=1.0)
            torch._foreach_mul_(gradients, factor)
        return module_gradients_dict

    def apply_gradients(self, gradients_dict: Gradients) -> None:
        """Step the optimizer; called once per step, if all numbers are finite.

        Args:
            gradients_dict: The result of `postprocess_gradients`. Parameters that are not in it
                stay unchanged.
        """
        for parameter in self._params.values():
            parameter.grad = gradients_dict.get(parameter)
        self.get_optimizer(DEFAULT_MODULE_ID).step()

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Set the current learning rate of the config's `lr`.

        RLlib only does so after an update, so the first update would use the rate of an earlier
        step, or after a restore that of another config.
        """
        super().before_gradient_based_update(timesteps=timesteps)
        now = timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
        for optimizer, schedule in self._optimizer_lr_schedules.items():
            self._set_optimizer_lr(optimizer, schedule.update(now))

    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        """Restore the moments; unlike RLlib's version, keep the config's options."""
        restore_optimizers(self._named_optimizers, state)


# -------------------------------------- keeping freed memory in the process while training on a CPU
# glibc returns every large block to the kernel as soon as it is freed, and faults it in again, page
# by page, at the next allocation. A training step frees and allocates hundreds of megabytes of
# activations, so these faults can take more than half of its time.

# Parameter numbers of mallopt(3), glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

_LARGE = 2**31 - 1


def keep_freed_memory() -> bool:
    """Raise this process's glibc thresholds for returning memory to the kernel.

    Returns:
        Whether it took effect; False where the C library is not glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGE)) & bool(mallopt(_M_TRIM_THRESHOLD, _LARGE))
