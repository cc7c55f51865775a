"""What several learners must agree on, beyond the gradients that DistributedDataParallel averages.

Every learner trains on its share of an iteration's fragments. Means over "the whole iteration",
the running statistics of the values, and the decision to skip a step concern all shares: they are
made from sums over the learners, so that two learners do what one would do with all fragments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
import torch.distributed
from torch import Tensor

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
        """Remember the number of learners."""
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
