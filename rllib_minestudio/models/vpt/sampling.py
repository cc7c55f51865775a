"""Acting on unnormalised logits: tokens and their log-probabilities with one exponential."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def act(
    logits: Mapping[str, Tensor],
    *,
    explore: bool,
    generator: torch.Generator | None = None,
    uniform_bh: Tensor | None = None,
) -> tuple[dict[str, Tensor], Tensor]:
    """Chooses a token per head.

    By inverse CDF, as ``heads.sample``; the exponentials that the cumulative sum is made of also
    give the normaliser, so the logits need not be normalised first. Sums are float64.

    Args:
        logits: Per head [B, N] float32, up to a constant per row.
        explore: Draw from the distribution; else take its mode.
        generator: Source of randomness on the logits' device; the global one if None.
        uniform_bh: [B, heads] float64 numbers in [0, 1) to draw with instead, so that what a row
            does depends on its own numbers and not on its company.

    Returns:
        Per head [B, 1] tokens (int64), and the joint log-probability [B] (float32).
    """
    tokens, log_probs = {}, []
    for head, (name, scores) in enumerate(logits.items()):
        shifted = scores - scores.amax(dim=-1, keepdim=True)
        cumulative = shifted.exp().cumsum(dim=-1, dtype=torch.float64)
        total = cumulative[:, -1:]
        if explore:
            if uniform_bh is not None:
                uniform = uniform_bh[:, head : head + 1]
            else:
                uniform = torch.rand(
                    total.shape, dtype=torch.float64, device=total.device, generator=generator
                )
            token = torch.searchsorted(cumulative, uniform * total, right=True)
            token.clamp_(max=scores.shape[-1] - 1)
        else:
            token = scores.argmax(dim=-1, keepdim=True)
        tokens[name] = token
        log_probs.append(shifted.gather(-1, token) - total.log())
    return tokens, torch.cat(log_probs, dim=-1).sum(dim=-1).float()
