"""From logits to actions: one token per head, and the log-probability of them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class TokenSample(NamedTuple):
    """Actions, and how probable they were."""

    actions: dict[str, Tensor]
    """Per head [..., 1] tokens, int64."""

    log_prob: Tensor
    """[...] joint log-probability of the tokens, float32."""


def sample(
    logits: Mapping[str, Tensor],
    *,
    explore: bool = True,
    uniform: Tensor | None = None,
) -> TokenSample:
    """Chooses a token per head.

    By inverse CDF: one uniform number per head and row instead of MineStudio's one per logit
    (Gumbel-max), for the same distribution. The exponentials that the cumulative sum is made of
    also give the normaliser, so the logits need not be normalised first. Sums are float64, because
    in float32 the cumulative sum of 8641 terms misplaces rare actions.

    Args:
        logits: Per head [..., N] float32, up to a constant per row.
        explore: Draw from the distribution; else take its mode.
        uniform: [..., heads] float64 numbers in [0, 1) to draw with, so that a row's actions depend
            on its own numbers only, not on the rows beside it; None: torch's own.
    """
    actions, log_probs = {}, []
    for head, (name, scores) in enumerate(logits.items()):
        shifted = scores - scores.amax(dim=-1, keepdim=True)
        cumulative = shifted.exp().cumsum(dim=-1, dtype=torch.float64)
        total = cumulative[..., -1:]
        if explore:
            if uniform is None:
                place = torch.rand(total.shape, dtype=torch.float64, device=total.device)
            else:
                place = uniform[..., head : head + 1]
            token = torch.searchsorted(cumulative, place * total, right=True)
            token.clamp_(max=scores.shape[-1] - 1)
        else:
            token = scores.argmax(dim=-1, keepdim=True)
        actions[name] = token
        log_probs.append(shifted.gather(-1, token) - total.log())
    return TokenSample(actions, torch.cat(log_probs, dim=-1).sum(dim=-1).float())
