"""One optimizer step: agreed on by all learners, or left out when a number is not finite.

How a gradient is clipped and applied is up to the learner's hooks (`policy_learner.py`), which
users may override; that what comes of it is finite is checked here.

Gradients are averaged by DistributedDataParallel, so a NaN in one learner's share reaches all of
them; whether a *loss* was finite is exchanged. All learners decide together whether a step is
taken, so that none of them waits for others that have gone on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rllib_minestudio.algorithms.gradients import GradientHooks, total_norm
from rllib_minestudio.algorithms.learner.distributed import Peers
from rllib_minestudio.errors import NonFiniteLossError, NonFiniteWeightsError
from rllib_minestudio.models.fine_tuning import WeightAverage


@dataclass(frozen=True)
class StepOutcome:
    """What became of a step.

    Attributes:
        taken: Whether the weights changed.
        gradient_norm: Global norm before clipping, a scalar.
    """

    taken: bool
    gradient_norm: Tensor


class GradientStep:
    """Steps an optimizer, unless that would spoil the weights.

    Args:
        network: Whose weights they are.
        optimizer: Its groups hold all learning parameters.
        hooks: Of the learner.
        max_nonfinite: Minibatches in a row that may be skipped for a NaN or infinite number.
        peers: The learners that step together.
        average: Follows the weights, or None.

    Attributes:
        only: The parameters that learn in the present iteration; None: all.
        suspect: What was noticed before that may be the cause of numbers that are not finite.
    """

    def __init__(
        self,
        network: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        hooks: GradientHooks,
        max_nonfinite: int,
        peers: Peers,
        average: WeightAverage | None = None,
    ) -> None:
        """Start with no minibatch skipped."""
        self._network = network
        self._optimizer = optimizer
        self._hooks = hooks
        self._max_nonfinite = max_nonfinite
        self._peers = peers
        self._skipped_in_a_row = 0
        self.average = average
        self.only: frozenset[Tensor] | None = None
        self.suspect = ""

    def step(
        self,
        *,
        loss: Tensor,
        minibatches: int,
    ) -> StepOutcome:
        """Take the step that gradients were accumulated for, and zero them.

        Args:
            loss: Sum of this learner's losses since the last step.
            minibatches: Of all learners, since the last step.

        Raises:
            NonFiniteLossError: Too many minibatches in a row were skipped for a number that is
                not finite.
        """
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        for parameter in parameters:
            if self.only is not None and parameter not in self.only:
                parameter.grad = None  # AdamW leaves it alone, and so do its moments
        self._hooks.gradient_norm = None
        gradients = self._hooks.postprocess_gradients(
            {p: p.grad for p in parameters if p.grad is not None}
        )
        applied = total_norm(list(gradients.values()))
        norm = applied if self._hooks.gradient_norm is None else self._hooks.gradient_norm
        # AdamW keeps squares: a gradient whose square overflows would stay in its moments.
        finite = norm.square().isfinite() & applied.square().isfinite() & loss.isfinite()
        taken = not self._peers.total((~finite).float())
        if taken:
            self._hooks.apply_gradients(gradients)
            if self.average is not None:
                self.average.update(self._network)
        self._optimizer.zero_grad(set_to_none=True)
        if taken:
            self._skipped_in_a_row = 0
        else:
            self.skip(minibatches)
        return StepOutcome(taken, norm)

    def skip(self, minibatches: int) -> None:
        """Count minibatches that no step can be taken on because their numbers are not finite.

        Args:
            minibatches: Of all learners.

        Raises:
            NonFiniteLossError: They were too many in a row.
        """
        self._skipped_in_a_row += minibatches
        if self._skipped_in_a_row >= self._max_nonfinite:
            advice = "Look for rewards that are not finite; else lower lr or raise kl_coeff."
            if self.suspect:
                advice = (
                    f"{self.suspect} If that is the cause, mend the reward or set reward_clip; "
                    "else lower lr or raise kl_coeff."
                )
            raise NonFiniteLossError(
                f"A number was NaN or infinite in {self._skipped_in_a_row} minibatches in a row "
                f"(max_nonfinite_minibatches={self._max_nonfinite}). {advice}"
            )


def require_finite(network: torch.nn.Module, optimizer: torch.optim.Optimizer, update: int) -> None:
    """Refuse weights and moments that must be neither saved nor published.

    Args:
        network: With its buffers.
        optimizer: Of its parameters.
        update: How many updates made them; for the message.

    Raises:
        NonFiniteWeightsError: One of them is NaN or infinite.
    """
    tensors = list(network.state_dict().values())
    for moments in optimizer.state.values():
        tensors += [moment for moment in moments.values() if isinstance(moment, Tensor)]
    by_device = defaultdict(list)  # AdamW's step counts are on the CPU
    for tensor in tensors:
        if tensor.is_floating_point():
            by_device[tensor.device].append(tensor.detach())
    if not all(map(_are_finite, by_device.values())):
        raise NonFiniteWeightsError(
            f"After update {update} the weights or the optimizer's moments are NaN or infinite; "
            "they are neither published nor saved. Go on from the last checkpoint with a lower lr "
            "or a smaller grad_clip."
        )


def _are_finite(tensors: Sequence[Tensor]) -> bool:
    """Whether all values of tensors on one device are finite, with one look at the device."""
    if total_norm(tensors).isfinite():
        return True
    # A norm may overflow though no value has.
    return all(bool(tensor.isfinite().all()) for tensor in tensors)
