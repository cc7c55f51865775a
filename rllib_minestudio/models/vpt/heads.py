"""Action heads: from the latent to log-probabilities of VPT's joint actions, and their sums.

An action is ``{"buttons": token, "camera": token}`` (``env/actions.py`` defines the tokens). The
two heads are independent categoricals, so log-probability, entropy and KL divergence are sums over
them. What MineStudio and this package call "logits" are *normalised* log-probabilities in float32.
Source of the formulas: MineStudio, utils/vpt_lib/action_head.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.linalg import vecdot
from torch.nn import functional as F

from rllib_minestudio.buttons import BUTTON_GROUPS, NUM_BUTTONS
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.layers import fan_in_linear

Logits = Mapping[str, Tensor]
"""Per head: [..., N] normalised log-probabilities, float32."""

Actions = Mapping[str, Tensor]
"""Per head: [..., 1] tokens, int64."""

CAMERA_BINS = 11
NUM_CAMERA = CAMERA_BINS**2

NULL_CAMERA = NUM_CAMERA // 2
"""The token of a camera that does not turn."""

INITIAL_LOGIT_SCALE = 0.01
"""Fan-in scale of the heads: a new policy is all but uniform (MineStudio resets to the same)."""


class JointHead(nn.Module):
    """One linear logit for every joint action, as in VPT."""

    def __init__(self, width: int, choices: int, temperature: float) -> None:
        """Creates the layer from a latent of ``width`` to ``choices``."""
        super().__init__()
        self.temperature = temperature
        self.linear_layer = fan_in_linear(width, choices, INITIAL_LOGIT_SCALE)

    def forward(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T, N] log-probabilities in float32."""
        scaled = self.linear_layer(latent_bte) / self.temperature
        return F.log_softmax(scaled.float(), dim=-1)


class FactoredHead(nn.Module):
    """A linear logit per component; a joint action's logit is the sum of its components'.

    The distribution over joint actions is the same kind of object as ``JointHead``'s, but a
    sample of one action teaches every joint action that shares a component with it: 30
    components stand behind the 8641 buttons, 22 behind the 121 camera positions.
    """

    def __init__(self, width: int, membership: Tensor, temperature: float) -> None:
        """Creates the layer.

        Args:
            width: Size of the latent.
            membership: [N, components], 1 where the joint action has the component.
            temperature: Divides the logits.
        """
        super().__init__()
        self.temperature = temperature
        self.linear_layer = fan_in_linear(width, membership.shape[1], INITIAL_LOGIT_SCALE)
        self.membership_cn: Tensor
        self.register_buffer("membership_cn", membership.T.contiguous(), persistent=False)

    def forward(self, latent_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, T, N] log-probabilities in float32."""
        components_btc = (self.linear_layer(latent_bte) / self.temperature).float()
        return F.log_softmax(torch.matmul(components_btc, self.membership_cn), dim=-1)


def make_action_heads(config: VPTConfig) -> nn.ModuleDict:
    """Returns the ``buttons`` and ``camera`` heads of the kind that ``config`` asks for."""
    width, temperature = config.hidsize, config.temperature
    if config.action_head == "factored":
        memberships = {
            "buttons": button_membership(),
            "camera": product_membership([CAMERA_BINS, CAMERA_BINS]),
        }
        return nn.ModuleDict(
            {
                name: FactoredHead(width, membership, temperature)
                for name, membership in memberships.items()
            }
        )
    return nn.ModuleDict(
        {
            "buttons": JointHead(width, NUM_BUTTONS, temperature),
            "camera": JointHead(width, NUM_CAMERA, temperature),
        }
    )


def product_membership(sizes: list[int]) -> Tensor:
    """Returns which choice of each group every element of their product consists of.

    Args:
        sizes: Choices of each group.

    Returns:
        [product of sizes, sum of sizes] float32, one 1 per group and row. The order is that of
        ``itertools.product``: the last group counts fastest.
    """
    choice_of = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)
    columns = choice_of + np.cumsum([0, *sizes[:-1]])
    membership = np.zeros((len(columns), sum(sizes)), dtype=np.float32)
    np.put_along_axis(membership, columns, 1.0, axis=1)
    return torch.from_numpy(membership)


def button_membership() -> Tensor:
    """Returns [8641, 30]: the groups' choices, and the inventory key as a component of its own."""
    combinations = product_membership([len(choices) for choices in BUTTON_GROUPS.values()])
    membership = torch.zeros(NUM_BUTTONS, combinations.shape[1] + 1)
    membership[:-1, :-1] = combinations
    membership[-1, -1] = 1.0
    return membership


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
