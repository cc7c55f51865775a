"""Action heads: from the latent to log-probabilities of VPT's joint actions, and their sums.

An action is ``{"buttons": token, "camera": token}`` (``env/actions.py`` defines the tokens). The
two heads are independent categoricals, so log-probability, entropy and KL divergence are sums over
them. What MineStudio and this package call "logits" are *normalised* log-probabilities in float32.
Source of the formulas: MineStudio, utils/vpt_lib/action_head.py.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.linalg import vecdot
from torch.nn import functional as F

from rllib_minestudio.buttons import BUTTON_GROUPS, NUM_BUTTONS
from rllib_minestudio.models.action_distribution import (
    ActionDistribution,
    Categorical,
    FactoredCategorical,
    JointCategorical,
)
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.layers import fan_in_linear

Logits = Mapping[str, Tensor]
"""Per head: [..., N] normalised log-probabilities, float32."""

Actions = Mapping[str, Tensor]
"""Per head: [..., 1] tokens, int64."""

BUTTON_SIZES = tuple(len(choices) for choices in BUTTON_GROUPS.values())

CAMERA_BINS = 11
CAMERA_SIZES = (CAMERA_BINS, CAMERA_BINS)
NUM_CAMERA = CAMERA_BINS**2

NULL_CAMERA = NUM_CAMERA // 2
"""The token of a camera that does not turn."""

INITIAL_LOGIT_SCALE = 0.01
"""Fan-in scale of the heads: a new policy is all but uniform (MineStudio resets to the same)."""


class ActionHead(nn.Module, ABC):
    """A layer from the latent to a distribution over one head's tokens."""

    @abstractmethod
    def distribution(self, latent_bte: Tensor) -> Categorical:
        """[B, T, E] -> a distribution of batch shape [B, T]; other batch shapes work as well."""


class JointHead(ActionHead):
    """One linear logit for every joint action, as in VPT."""

    def __init__(self, width: int, choices: int, temperature: float) -> None:
        """Creates the layer from a latent of ``width`` to ``choices``."""
        super().__init__()
        self.temperature = temperature
        self.linear_layer = fan_in_linear(width, choices, INITIAL_LOGIT_SCALE)

    def distribution(self, latent_bte: Tensor) -> JointCategorical:
        """[B, T, E] -> a distribution whose ``logits`` are those of ``forward``."""
        return JointCategorical((self.linear_layer(latent_bte) / self.temperature).float())

    def forward(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T, N] log-probabilities in float32."""
        return self.distribution(latent_bte).logits


class FactoredHead(ActionHead):
    """A linear logit per component; a joint action's logit is the sum of its components'.

    The distribution over joint actions is the same kind of object as ``JointHead``'s, but a
    sample of one action teaches every joint action that shares a component with it: 30
    components stand behind the 8641 buttons, 22 behind the 121 camera positions.
    """

    def __init__(
        self, width: int, sizes: Sequence[int], temperature: float, exclusive: bool = False
    ) -> None:
        """Creates the layer.

        Args:
            width: Size of the latent.
            sizes: Choices of each group; joint actions are numbered as in ``product_membership``.
            temperature: Divides the logits.
            exclusive: Whether a last joint action is a component of its own.
        """
        super().__init__()
        self.sizes = tuple(sizes)
        self.exclusive = exclusive
        self.temperature = temperature
        self.linear_layer = fan_in_linear(width, sum(sizes) + exclusive, INITIAL_LOGIT_SCALE)
        self.membership_cn: Tensor
        membership_nc = product_membership(sizes, exclusive)
        self.register_buffer("membership_cn", membership_nc.T.contiguous(), persistent=False)

    def distribution(self, latent_bte: Tensor) -> FactoredCategorical:
        """[B, T, E] -> a distribution that is ``forward``'s, up to rounding."""
        return FactoredCategorical(self._scores(latent_bte), self.sizes, self.exclusive)

    def forward(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T, N] log-probabilities in float32."""
        joint_btn = torch.matmul(self._scores(latent_bte), self.membership_cn)
        return F.log_softmax(joint_btn, dim=-1)

    def _scores(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T, components] in float32."""
        return (self.linear_layer(latent_bte) / self.temperature).float()


class ActionHeads(nn.ModuleDict):
    """The heads of a policy by name, each an ``ActionHead``."""

    def forward(self, latent_bte: Tensor) -> ActionDistribution:
        """[B, T, E] -> the distribution over actions, of batch shape [B, T]."""
        heads = cast("Mapping[str, ActionHead]", self)
        return ActionDistribution(
            {name: head.distribution(latent_bte) for name, head in heads.items()}
        )


def make_action_heads(config: VPTConfig) -> ActionHeads:
    """Returns the ``buttons`` and ``camera`` heads of the kind that ``config`` asks for."""
    width, temperature = config.hidsize, config.temperature
    if config.action_head == "factored":
        return ActionHeads(
            {
                "buttons": FactoredHead(width, BUTTON_SIZES, temperature, exclusive=True),
                "camera": FactoredHead(width, CAMERA_SIZES, temperature),
            }
        )
    return ActionHeads(
        {
            "buttons": JointHead(width, NUM_BUTTONS, temperature),
            "camera": JointHead(width, NUM_CAMERA, temperature),
        }
    )


def product_membership(sizes: Sequence[int], exclusive: bool = False) -> Tensor:
    """Returns which choice of each group every joint action consists of.

    Args:
        sizes: Choices of each group.
        exclusive: Whether one more joint action comes last, with a component of its own; VPT's
            buttons have the inventory key.

    Returns:
        [product of sizes, sum of sizes] float32, one 1 per group and row; with ``exclusive`` a row
        and a column more. The order is that of ``itertools.product``: the last group counts
        fastest.
    """
    combinations, choices = math.prod(sizes), sum(sizes)
    choice_of = np.stack(np.unravel_index(np.arange(combinations), sizes), axis=1)
    columns = choice_of + np.cumsum([0, *sizes[:-1]])
    membership = np.zeros((combinations + exclusive, choices + exclusive), dtype=np.float32)
    np.put_along_axis(membership[:combinations], columns, 1.0, axis=1)
    membership[combinations:, choices:] = 1.0
    return torch.from_numpy(membership)


def log_prob(logits: Logits, actions: Actions) -> Tensor:
    """Log-probability of joint actions: the sum of the heads'.

    The camera's term counts even when the action's camera flag is off and its token is ignored,
    as in MineStudio.

    Args:
        logits: Per head [..., N].
        actions: Per head [..., 1] tokens.

    Returns:
        [...] float32.
    """
    terms = [logits[name].gather(-1, actions[name]).squeeze(-1) for name in logits]
    return torch.stack(terms).sum(dim=0)


def entropy(logits: Logits) -> Tensor:
    """Entropy in nats, ``-sum p log p``, summed over the heads: [..., N] each -> [...]."""
    return -torch.stack([vecdot(log_p.exp(), log_p) for log_p in logits.values()]).sum(dim=0)


def kl_divergence(logits_p: Logits, logits_q: Logits) -> Tensor:
    """KL(p || q) in nats, ``sum p (log p - log q)``, summed over the heads.

    Args:
        logits_p: Per head [..., N]; the expectation is taken under it.
        logits_q: Per head [..., N].

    Returns:
        [...] float32.
    """
    terms = [vecdot(logits_p[name].exp(), logits_p[name] - logits_q[name]) for name in logits_p]
    return torch.stack(terms).sum(dim=0)
