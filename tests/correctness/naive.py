"""The gradient of an iteration, computed as a textbook would: one batch, one loss, no machinery.

Nothing of `algorithms/learner` is used. One forward pass over all steps of all fragments, written
with the formulas of docs/learning.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rllib_minestudio.models.vpt import VPTState


def forward(network: Any, fragments: Sequence[Any]) -> Any:
    """The network over whole fragments, each from the memory that it began with."""
    image = torch.from_numpy(np.stack([f.obs["image"] for f in fragments]))
    first = torch.from_numpy(np.stack([f.first for f in fragments]))
    states = [f.state_in for f in fragments]
    state = {n: torch.from_numpy(np.stack([s[n] for s in states])) for n in states[0]}
    return network(image, first, VPTState(**state))


def log_prob(logits: dict[str, Tensor], fragments: Sequence[Any]) -> Tensor:
    """Of the actions that were taken, summed over both heads: (B, T)."""
    total: Any = 0.0
    for name, logit in logits.items():
        tokens = torch.from_numpy(np.stack([f.action[name] for f in fragments]))
        total = total + torch.log_softmax(logit, -1).gather(-1, tokens[..., None])[..., 0]
    return total


def loss(
    network: Any,
    prior: Any,
    fragments: Sequence[Any],
    targets: Any,
    config: Any,
    kl_coeff: float,
) -> Tensor:
    """PPO's clipped surrogate, value loss, KL to the prior and entropy: the mean over all steps.

    Args:
        network: In training.
        prior: The frozen network; all of its latents come from the memory that it carries.
        fragments: That count.
        targets: A mapping of (B, T) arrays: advantage, value_target, proximal_logp, weight.
        config: Of the algorithm.
        kl_coeff: Of this iteration.
    """
    output = forward(network, fragments)
    ratio = (log_prob(output.logits, fragments) - targets["proximal_logp"]).exp()
    clipped = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
    advantage = targets["advantage"]
    surrogate = torch.minimum(ratio * advantage, clipped * advantage) * targets["weight"]
    head = network.value_head
    value_error = (output.value_bt - head.normalize(targets["value_target"])) ** 2
    kl = entropy = 0.0
    latent = torch.from_numpy(np.stack([f.prior_latent for f in fragments]))
    for name, logit in output.logits.items():
        log_p = torch.log_softmax(logit, -1)
        log_q = torch.log_softmax(prior.pi_head[name](latent), -1)
        kl = kl + (log_p.exp() * (log_p - log_q)).sum(-1)
        entropy = entropy - (log_p.exp() * log_p).sum(-1)
    return (
        -surrogate
        + config.vf_coeff * 0.5 * value_error
        + kl_coeff * kl
        - config.entropy_coeff * entropy
    ).mean()
