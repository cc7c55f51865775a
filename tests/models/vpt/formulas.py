"""MineStudio's formulas of joint actions (utils/vpt_lib/action_head.py), on "logits" of its kind.

An independent statement of what `models.distributions` computes: its log-probabilities, entropies
and KL divergences are compared with these, and these with recorded and live numbers of MineStudio.
"""

import torch
from torch import Tensor
from torch.linalg import vecdot

from rllib_minestudio.models.vpt.network import Actions, Logits


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
    """Entropy in nats, `-sum p log p`, summed over the heads: [..., N] each -> [...]."""
    return -torch.stack([vecdot(log_p.exp(), log_p) for log_p in logits.values()]).sum(dim=0)


def kl_divergence(logits_p: Logits, logits_q: Logits) -> Tensor:
    """KL(p || q) in nats, `sum p (log p - log q)`, summed over the heads.

    Args:
        logits_p: Per head [..., N]; the expectation is taken under it.
        logits_q: Per head [..., N].

    Returns:
        [...] float32.
    """
    terms = [vecdot(logits_p[name].exp(), logits_p[name] - logits_q[name]) for name in logits_p]
    return torch.stack(terms).sum(dim=0)
