"""One optimizer step: agreed on by all learners, or left out when a number is not finite.

How a gradient is clipped and applied is up to the learner's hooks (`policy_learner.py`), which
users may override; that what comes of it is finite is checked here.

Gradients are averaged by DistributedDataParallel, so a NaN in one learner's share reaches all of
them; whether a *loss* was finite is exchanged. All learners decide together whether a step is
taken, so that none of them waits for others that have gone on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
import torch.distributed
from torch import Tensor

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


# what several learners must agree on, beyond the gradients that DistributedDataParallel averages
# Every learner trains on its share of an iteration's fragments. Means over "the whole iteration",
# the running statistics of the values, and the decision to skip a step concern all shares: they are
# made from sums over the learners, so that two learners do what one would do with all fragments.

Item = TypeVar("Item")

AllReduce = Callable[[Tensor], Tensor]
"""Sums a tensor over all learners; `Peers.total`, or `single_learner`."""


def single_learner(tensor: Tensor) -> Tensor:
    """The sum over all learners when there is but one."""
    return tensor


class Peers:
    """The learners that train one network together.

    All of them must make the same calls in the same order. With one learner nothing is sent.

    Args:
        count: How many there are; more than one need torch's default process group (gloo, or nccl
            on GPUs), which RLlib's `LearnerGroup` sets up.
        device: Of the learners; nccl sums nothing elsewhere.
    """

    def __init__(self, count: int, device: torch.device | str = "cpu") -> None:
        self.count = max(1, count)
        self._device = device

    @property
    def rank(self) -> int:
        """Which of the learners this one is, from 0."""
        return torch.distributed.get_rank() if self.count > 1 else 0

    def total(self, tensor: Tensor) -> Tensor:
        """The elementwise sum over all learners, on the same device."""
        if self.count == 1:
            return tensor
        summed = tensor.detach().to(self._device, copy=True)
        torch.distributed.all_reduce(summed)
        return summed.to(tensor.device)

    def gather(self, item: Item) -> list[Item]:
        """Every learner's item, in the learners' order; items are pickled, so keep them small."""
        if self.count == 1:
            return [item]
        items: list[Item | None] = [None] * self.count
        torch.distributed.all_gather_object(items, item)
        return items  # type: ignore[return-value]


# -------------------------------------------- what a learner's hooks and an optimizer step exchange
# Gradients by parameter.

Gradients = dict[Tensor, Tensor]
"""Parameter -> gradient of the same shape; RLlib's `ParamDict`."""


class GradientHooks(Protocol):
    """What a learner does with the gradients of an optimizer step.

    Attributes:
        gradient_norm: As `postprocess_gradients` found it before clipping; None if it did not look.
    """

    gradient_norm: Tensor | None

    def postprocess_gradients(self, gradients_dict: Gradients) -> Gradients:
        """Clip, or whatever else is to be done; the tensors may be changed in place."""

    def apply_gradients(self, gradients_dict: Gradients) -> None:
        """Step the optimizer."""


def total_norm(gradients: Sequence[Tensor]) -> Tensor:
    """Global L2 norm, a scalar."""
    return torch.nn.utils.get_total_norm(gradients)


# ---------------------------------------------------------- an optimizer's moments across a restore
# They follow their parameters, and nothing else does.
#
# torch numbers parameters group by group, so its saved state belongs to other parameters as soon as
# `lr_factors` or `freeze` sort them differently; and its `load_state_dict` brings back the groups'
# old `lr`, `weight_decay` and `eps`. Here moments are matched by name, and options stay as they
# are.


def restore_moments(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any]) -> None:
    """Replace an optimizer's moments by saved ones, and leave its groups and options alone.

    The moments are copied: those that came through Ray's object store lie in shared memory, where
    learners on one machine would all update the same ones, and part ways.

    Args:
        optimizer: Its groups name their parameters (`param_names`).
        saved: `state_dict()` of an optimizer, with arrays in the place of tensors.
    """
    groups = optimizer.state_dict()["param_groups"]
    found = _moments_by_name(saved)
    state = {
        number: {key: _copied(value) for key, value in found[name].items()}
        for number, name in _names(groups).items()
        if name in found
    }
    # torch puts moments where their parameters are, and leaves counts of steps on the CPU.
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _moments_by_name(saved: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Name saved moments; parameters that had none are left out."""
    moments = saved["state"]
    names = _names(saved["param_groups"])
    return {name: moments[number] for number, name in names.items() if number in moments}


def _names(groups: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Name each parameter's number in groups of `state_dict()["param_groups"]`."""
    return {
        number: name
        for group in groups
        for number, name in zip(group["params"], group["param_names"], strict=True)
    }


def _copied(value: Any) -> Tensor:
    """Make a float32 tensor of an array or a number, on the CPU and in memory of its own."""
    return torch.from_numpy(np.array(value, dtype=np.float32))
