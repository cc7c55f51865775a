"""What a learner's hooks and an optimizer step exchange: gradients by parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

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
