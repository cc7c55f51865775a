"""Self-attention over memory and chunk with relative positions, and the transformer block.

Axes are explained in `memory.py`. Weights are named as in openai/Video-Pre-Training,
lib/xf.py and lib/util.py.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.layers import FanInLayer, fan_in_linear, normed_linear

POSITION_BASES = 10
"""Basis functions of the relative position logits."""

MASKED_LOGIT = -1e9
"""Added to the logits of invisible entries; finite, as in VPT, so no row can become NaN."""

# Fan-in scales at initialisation: openai/Video-Pre-Training, lib/xf.py.
QUERY_SCALE = 0.1
KEY_SCALE = 0.2
POSITION_SCALE = 0.1
BASIS_SCALE = 0.2


class SelfAttention(nn.Module):
    """Multi-head attention with muP-scaled logits and relative positions.

    For frame t and entry k of age a = t - k (0 is the frame itself)::

        logit[t, k] = q[t] . k[k] / d  +  r[t] . b[:, a]

    with d the features of a head: 1/d, not 1/sqrt(d) (muP, Yang et al. 2022, arXiv:2203.03466).
    r[t] has POSITION_BASES components per head; b is shared by the heads.
    """

    def __init__(self, width: int, heads: int, memory: int, scale: float) -> None:
        """Create the projections; `scale` is the block's residual scale."""
        super().__init__()
        self.heads = heads
        root = math.sqrt(scale)
        self.q_layer = fan_in_linear(width, width, QUERY_SCALE)
        self.k_layer = fan_in_linear(width, width, KEY_SCALE, bias=False)
        self.v_layer = fan_in_linear(width, width, root, bias=False)
        self.proj_layer = fan_in_linear(width, width, root)
        self.r_layer = fan_in_linear(width, POSITION_BASES * heads, POSITION_SCALE)
        self.b_nd = nn.Parameter(torch.empty(POSITION_BASES, memory))
        if not self.b_nd.is_meta:  # see `rescale_fan_in`
            nn.init.normal_(self.b_nd, std=BASIS_SCALE)

    def forward(
        self, x_bte: Tensor, keys_bme: Tensor, values_bme: Tensor, bias_b1tk: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from a chunk to memory and chunk.

        Args:
            x_bte: [B, T, E] normalised input.
            keys_bme: [B, M, E] keys of the memory.
            values_bme: [B, M, E] values of the memory.
            bias_b1tk: [B, 1, T, M + T] added to the logits: 0 or `MASKED_LOGIT`.

        Returns:
            The projected result [B, T, E] and the memory after the chunk, keys and values.
        """
        memory = keys_bme.shape[1]
        keys_bke = torch.cat([keys_bme, self.k_layer(x_bte)], dim=1)
        values_bke = torch.cat([values_bme, self.v_layer(x_bte)], dim=1)
        q_bhtd = self._split_heads(self.q_layer(x_bte))
        k_bhkd, v_bhkd = self._split_heads(keys_bke), self._split_heads(values_bke)

        logits_bhtk = torch.matmul(q_bhtd, k_bhkd.transpose(-1, -2)) / q_bhtd.shape[-1]
        logits_bhtk = logits_bhtk + self._position_logits(x_bte) + bias_b1tk
        out_bhtd = torch.matmul(torch.softmax(logits_bhtk, dim=-1), v_bhkd)
        out_bte = self.proj_layer(out_bhtd.transpose(1, 2).flatten(2))
        return out_bte, keys_bke[:, -memory:], values_bke[:, -memory:]

    def _split_heads(self, x_bke: Tensor) -> Tensor:
        """[B, K, H * D] -> [B, H, K, D]."""
        return x_bke.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _position_logits(self, x_bte: Tensor) -> Tensor:
        """[B, T, E] -> [B, H, T, M + T]: the term r . b of the logits, placed by age."""
        r_bhtn = self._split_heads(self.r_layer(x_bte))
        # Oldest first, like the entries.
        by_age_bhtm = torch.matmul(r_bhtn, self.b_nd.flip(-1))
        return shift_into_band(by_age_bhtm)


def shift_into_band(x_tm: Tensor) -> Tensor:
    """Move row t right by t + 1 columns: from "by age" to "by entry" coordinates.

    With T = 3 and M = 3 (letters oldest to newest, 0 is fill)::

        a b c        0 a b c 0 0
        d e f   ->   0 0 d e f 0
        g h i        0 0 0 g h i

    Done by padding and reinterpreting the flat memory, which costs one copy in each direction
    (Huang et al. 2018, Music Transformer, arXiv:1809.04281, section 3.4.1).

    Args:
        x_tm: [..., T, M].

    Returns:
        [..., T, M + T].
    """
    *leading, time, memory = x_tm.shape
    entries = memory + time
    padded = F.pad(x_tm, (1, time))  # rows one entry longer than the result's
    flat = padded.flatten(-2)[..., : time * entries]
    return flat.reshape(*leading, time, entries)


class RecurrentCell(nn.Module):
    """Holds the attention under the name it has in checkpoints (`r.orc_block`)."""

    def __init__(self, attention: SelfAttention) -> None:
        super().__init__()
        self.orc_block = attention


class TransformerBlock(nn.Module):
    """Attention and a pointwise MLP, each with a layer norm before and a residual around.

    The attention's residual starts *after* its layer norm, unlike the usual pre-norm block: that
    is how VPT was trained (lib/util.py, `ResidualRecurrentBlock.forward`).
    """

    def __init__(self, config: VPTConfig) -> None:
        super().__init__()
        width = config.hidsize
        # Two residual branches in each of n blocks: variances of 1 / 2n add up to 1.
        scale = (2 * config.n_recurrence_layers) ** -0.5
        self.pre_r_ln = nn.LayerNorm(width)
        self.r = RecurrentCell(
            SelfAttention(width, config.attention_heads, config.memory_length, scale)
        )
        inner = width * config.pointwise_ratio
        self.mlp0 = normed_linear(width, inner)
        self.mlp1 = FanInLayer(nn.Linear(inner, width), None, scale, relu=False)

    def forward(
        self, x_bte: Tensor, keys_bme: Tensor, values_bme: Tensor, bias_b1tk: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the block's output and its new memory; arguments as `SelfAttention`."""
        x_bte = self.pre_r_ln(x_bte)
        out_bte, keys_bme, values_bme = self.r.orc_block(x_bte, keys_bme, values_bme, bias_b1tk)
        x_bte = x_bte + out_bte
        return x_bte + self.mlp1(self.mlp0(x_bte)), keys_bme, values_bme
