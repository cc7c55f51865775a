"""Behaviour cloning's loss, for MineStudioBC and for the demonstrations beside PPO: pure functions.

Both learn from windows of recorded episodes (`demonstrations/windows.py`): frames of burn-in, which
rebuild the memory, and then the steps to imitate, whose `weight` is 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from rllib_minestudio.models.action_distribution import ActionDistribution
from rllib_minestudio.models.vpt.heads import NULL_CAMERA


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
    distribution: ActionDistribution,
    action: Mapping[str, Tensor],
    weight: Tensor,
    *,
    still_camera: bool = True,
) -> CloningLoss:
    """Negative log-likelihood of demonstrated tokens.

    VPT's objective (Baker et al. 2022, section 4.1) counts the camera's term in every step; where
    the mouse does not move its token is the one that does not turn. MineStudio's auxiliary loss
    (`BehaviorCloneCallback`) leaves those steps out of the camera's term.

    Args:
        distribution: Of the policy, (B, T), with gradient.
        action: Tokens per head, (B, T) int64; a chunk of windows, for instance.
        weight: (B, T), how much a step counts; 0 for one that is not to be imitated.
        still_camera: Whether the camera's term counts in steps in which the camera does not turn.
    """
    logp = distribution.log_probs(action)
    if not still_camera:
        logp["camera"] = logp["camera"] * (action["camera"] != NULL_CAMERA)
    buttons, camera = (-(logp[name] * weight).sum() for name in ("buttons", "camera"))
    return CloningLoss(buttons + camera, buttons.detach(), camera.detach())
