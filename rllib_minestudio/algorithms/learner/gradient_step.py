"""One optimizer step, taken by all learners together or skipped if a number is not finite.

The learner's hooks (`policy_learner.py`), which users may override, clip and apply the gradient;
this module checks that the result is finite.

DistributedDataParallel averages gradients, so a NaN in one learner's gradient reaches all learners;
whether a *loss* was finite is exchanged. All learners decide together whether a step is taken, so
that none waits for others that have moved on.
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

from rllib_minestudio.errors import CheckpointError, NonFiniteLossError, NonFiniteWeightsError
from rllib_minestudio.models.fine_tuning import WeightAverage


@dataclass(frozen=True)
class StepOutcome:
    """The outcome of a step.

    Attributes:
        taken: Whether the weights changed.
        gradient_norm: Global norm before clipping, a scalar.
    """

    taken: bool
    gradient_norm: Tensor


class GradientStep:
    """Steps an optimizer, unless that would make the weights NaN or infinite.

    Args:
        network: The network that is trained.
        optimizer: Its groups hold all parameters that learn.
        hooks: The learner's hooks.
        max_nonfinite: How many minibatches in a row with a NaN or infinite number end the run.
        peers: The learners that step together.
        average: The moving average to update, or None.

    Attributes:
        only: The parameters that learn in the current iteration; None: all.
        suspect: A sentence about the possible cause of NaN or infinite numbers, or "".
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
        """Take a step with the accumulated gradients, and clear them.

        Args:
            loss: Sum of this learner's losses since the last step.
            minibatches: Minibatches of all learners since the last step.

        Raises:
            NonFiniteLossError: If too many minibatches in a row were skipped.
        """
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        for parameter in parameters:
            if self.only is not None and parameter not in self.only:
                parameter.grad = None  # AdamW then changes neither it nor its moments
        self._hooks.gradient_norm = None
        gradients = self._hooks.postprocess_gradients(
            {p: p.grad for p in parameters if p.grad is not None}
        )
        applied = total_norm(list(gradients.values()))
        norm = applied if self._hooks.gradient_norm is None else self._hooks.gradient_norm
        # AdamW's moments hold squares, in which an overflow would persist.
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
        """Count minibatches of all learners, skipped because a number is NaN or infinite.

        Raises:
            NonFiniteLossError: If too many in a row were skipped.
        """
        self._skipped_in_a_row += minibatches
        if self._skipped_in_a_row >= self._max_nonfinite:
            advice = "Look for rewards that are not finite; else lower lr or raise kl_coeff."
            if self.suspect:
                advice = (
                    f"{self.suspect} If that is the cause, fix the reward or set reward_clip; "
                    "else lower lr or raise kl_coeff."
                )
            raise NonFiniteLossError(
                f"A number was NaN or infinite in {self._skipped_in_a_row} minibatches in a row "
                f"(max_nonfinite_minibatches={self._max_nonfinite}). {advice}"
            )


def require_finite(network: torch.nn.Module, optimizer: torch.optim.Optimizer, update: int) -> None:
    """Check that weights, buffers and optimizer moments may be saved and published.

    Raises:
        NonFiniteWeightsError: If one of them is NaN or infinite.
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
    """Whether all values of tensors on one device are finite; usually waits for the device once."""
    if total_norm(tensors).isfinite():
        return True
    # The norm may overflow although all values are finite.
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


# ---------------------------------------- communication between learners, beyond averaged gradients
# Every learner trains on its share of an iteration's fragments. Means over the whole iteration, the
# running statistics of the values, and the decision to skip a step concern all shares: they are
# computed from sums over the learners, so that two learners do what one would do with all
# fragments.

Item = TypeVar("Item")

AllReduce = Callable[[Tensor], Tensor]
"""Sums a tensor over all learners; `Peers.total`, or `single_learner`."""


def single_learner(tensor: Tensor) -> Tensor:
    """Return the tensor, which is the sum over all learners if there is only one."""
    return tensor


class Peers:
    """The learners that train one network together.

    All learners must make the same calls in the same order. With one learner nothing is sent.

    Args:
        count: The number of learners. More than one need torch's default process group (gloo, or
            nccl on GPUs), which RLlib's `LearnerGroup` sets up.
        device: The learners' device, to which tensors are moved because nccl needs them there.
    """

    def __init__(self, count: int, device: torch.device | str = "cpu") -> None:
        self.count = max(1, count)
        self._device = device

    @property
    def rank(self) -> int:
        """This learner's rank, from 0."""
        return torch.distributed.get_rank() if self.count > 1 else 0

    def total(self, tensor: Tensor) -> Tensor:
        """Return the elementwise sum over all learners, on the tensor's device."""
        if self.count == 1:
            return tensor
        summed = tensor.detach().to(self._device, copy=True)
        torch.distributed.all_reduce(summed)
        return summed.to(tensor.device)

    def gather(self, item: Item) -> list[Item]:
        """Return the items of all learners, by rank; they are pickled, so keep them small."""
        if self.count == 1:
            return [item]
        items: list[Item | None] = [None] * self.count
        torch.distributed.all_gather_object(items, item)
        return items  # type: ignore[return-value]


# ------------------------------------------------------------------------------ the learner's hooks

Gradients = dict[Tensor, Tensor]
"""Parameter -> gradient of the same shape; RLlib's `ParamDict`."""


class GradientHooks(Protocol):
    """What a learner does with the gradients of an optimizer step.

    Attributes:
        gradient_norm: Norm before clipping, set by `postprocess_gradients`; None if it did not
            compute it.
    """

    gradient_norm: Tensor | None

    def postprocess_gradients(self, gradients_dict: Gradients) -> Gradients:
        """Clip or otherwise change the gradients, possibly in place."""

    def apply_gradients(self, gradients_dict: Gradients) -> None:
        """Step the optimizer."""


def total_norm(gradients: Sequence[Tensor]) -> Tensor:
    """Return the global L2 norm, a scalar."""
    return torch.nn.utils.get_total_norm(gradients)


# ----------------------------------------------------------------- restoring an optimizer's moments
# torch numbers parameters group by group, so its saved state would be assigned to other parameters
# once `lr_factors` or `freeze` group them differently; and its `load_state_dict` restores the
# groups' old `lr`, `weight_decay` and `eps`. Here moments are matched by name, and options are
# kept.


_ADAMW_MOMENTS = frozenset({"step", "exp_avg", "exp_avg_sq"})
"""What AdamW looks up for a parameter that has moments."""

_MALFORMED = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""Exceptions that a state of another form makes Python and NumPy raise."""


def restore_optimizers(optimizers: Mapping[str, torch.optim.Optimizer], state: Any) -> None:
    """Restore the moments of optimizers from a learner's state; see `restore_moments`.

    Args:
        optimizers: Name -> optimizer.
        state: Name -> {"state": the optimizer's `state_dict()`}; optimizers that are not in it are
            left alone.

    Raises:
        CheckpointError: The state has another form, or moments that do not fit their parameters.
    """
    try:
        for name in optimizers.keys() & state.keys():
            restore_moments(optimizers[name], state[name]["state"])
    except _MALFORMED as error:
        raise CheckpointError(
            f"The checkpoint's optimizer state is damaged ({type(error).__name__}: {error}). Take "
            "another checkpoint, or start a new run from the weights of this one (model.weights)."
        ) from error


def restore_moments(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any]) -> None:
    """Replace an optimizer's moments with saved ones, and keep its groups and options.

    The moments are copied: arrays from Ray's object store are in shared memory, where all learners
    on one machine would update the same ones.

    Args:
        optimizer: Its groups name their parameters (`param_names`).
        saved: `state_dict()` of an optimizer, with arrays instead of tensors.

    Raises:
        AttributeError, LookupError, OverflowError, TypeError, ValueError: `saved` has another form,
            or moments that do not fit their parameters; the optimizer is unchanged.
    """
    groups = optimizer.state_dict()["param_groups"]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    required = _ADAMW_MOMENTS if isinstance(optimizer, torch.optim.AdamW) else frozenset()
    found = _moments_by_name(saved)
    state = {
        number: _copied(name, found[name], tuple(parameter.shape), required)
        for (number, name), parameter in zip(_names(groups).items(), parameters, strict=True)
        if name in found
    }
    # torch moves moments to their parameters' devices, and leaves step counts on the CPU.
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _moments_by_name(saved: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return saved moments by parameter name; parameters without moments are left out."""
    moments = saved["state"]
    names, numbers = _names(saved["param_groups"]), moments.keys()
    return {name: moments[number] for number, name in names.items() if number in numbers}


def _names(groups: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return each parameter's name by its number in `state_dict()["param_groups"]`."""
    return {
        number: name
        for group in groups
        for number, name in zip(group["params"], group["param_names"], strict=True)
    }


def _copied(
    name: str, moments: Mapping[str, Any], shape: tuple[int, ...], required: frozenset[str]
) -> dict[str, Tensor]:
    """Copy a parameter's moments into float32 tensors on the CPU.

    Args:
        name: The parameter's name.
        moments: Key -> array; `step` may be a number.
        shape: The parameter's shape, which all but `step` must have.
        required: Keys without which the optimizer cannot step.

    Raises:
        ValueError: A moment is missing, of another shape or type, or not finite.
    """
    copies = {}
    for key, value in moments.items():
        array, wanted = np.asarray(value), () if key == "step" else shape
        if array.shape != wanted or array.dtype.kind not in "fiu":
            raise ValueError(f"{key} of {name} is {array.dtype} {array.shape}, not float {wanted}")
        copies[key] = torch.from_numpy(array.astype(np.float32))
        if not torch.isfinite(copies[key]).all():
            raise ValueError(f"{key} of {name} has values that are not finite")
    if copies and not required <= copies.keys():
        raise ValueError(f"{name} has only {', '.join(copies)}, not {', '.join(sorted(required))}")
    return copies
