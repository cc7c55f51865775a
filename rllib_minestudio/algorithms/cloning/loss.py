"""What cloning minimises: the negative log-likelihood of the demonstrated actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor


class CloningLoss(NamedTuple):
    """Sums over the steps to imitate, in nats; divide by their number.

    Attributes:
        loss: Of both heads together, with gradient.
        buttons: Of the buttons alone, without gradient.
        camera: Of the camera alone, without gradient.
    """

    loss: Tensor
    buttons: Tensor
    camera: Tensor


def cloning_loss(
    logits: Mapping[str, Tensor], action: Mapping[str, Tensor], weight: Tensor
) -> CloningLoss:
    """Negative log-likelihood of demonstrated tokens.

    VPT's objective (Baker et al. 2022, section 4.1). As there, the camera's term counts in every
    step; where the mouse does not move its token is the one that does not turn.

    Args:
        logits: Log-probabilities per head, (B, T, N), with gradient.
        action: Tokens per head, (B, T) int64.
        weight: (B, T), 1 for a step to imitate, else 0.
    """
    terms = {
        name: -(logits[name].gather(-1, tokens.unsqueeze(-1)).squeeze(-1) * weight).sum()
        for name, tokens in action.items()
    }
    loss = terms["buttons"] + terms["camera"]
    return CloningLoss(loss, terms["buttons"].detach(), terms["camera"].detach())
