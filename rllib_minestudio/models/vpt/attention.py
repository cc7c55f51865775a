"""Self-attention over memory and chunk, the transformer block, and the memory itself.

Axes are explained below, above `VPTState`. Weights are named as in openai/Video-Pre-Training,
lib/xf.py and lib/util.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

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


# ---------------------------------- VPT's memory: the network's state, and a ring buffer for acting
# `VPTState` moves every key and value by one slot at each step. In `RingMemory`, a frame instead
# overwrites the oldest slot, to which no frame may attend any more. With M = 4 (letters are
# frames)::
#
#     step            slots         as VPTState (oldest first)
#     after d         a b c d       a b c d
#     after e         e b c d       b c d e
#     after f         e f c d       c d e f


class RingMemory:
    """The memories of several environments on one device, never reallocated.

    Axis n: all environments; for the others see `VPTState`.
    """

    def __init__(self, config: VPTConfig, num_envs: int, device: torch.device) -> None:
        heads, memory = config.attention_heads, config.memory_length
        shape = (config.n_recurrence_layers, num_envs, heads, memory, config.hidsize // heads)
        self.keys_lnhmd = torch.zeros(shape, device=device)
        self.values_lnhmd = torch.zeros(shape, device=device)
        self.bias_nm = torch.full((num_envs, memory), MASKED_LOGIT, device=device)
        """0 where a slot holds a frame of the current episode, else `MASKED_LOGIT`."""
        self.slot_n = torch.full((num_envs,), memory - 1, device=device)
        """The slot of each environment's newest frame."""
        self._all = torch.arange(num_envs, device=device)

    def advance(self, first_b: Tensor, rows: Tensor | None = None) -> RingView:
        """Make room for one frame.

        Args:
            first_b: [B] bool, True where the frame begins an episode.
            rows: [B] indices of the environments that have a frame; all if None.

        Returns:
            The view that takes the frame's keys and values.
        """
        rows_b = self._all if rows is None else rows
        slot_b = (self.slot_n[rows_b] + 1) % self.bias_nm.shape[1]
        bias_bm = self.bias_nm[rows_b].masked_fill(first_b[:, None], MASKED_LOGIT)
        bias_bm.scatter_(1, slot_b[:, None], 0.0)
        self.slot_n[rows_b] = slot_b
        self.bias_nm[rows_b] = bias_bm
        return RingView(self, rows, rows_b, slot_b, bias_bm[:, None])

    def bookmark(self) -> tuple[Tensor, Tensor]:
        """Return what `rewind` needs."""
        return self.slot_n.clone(), self.bias_nm.clone()

    def rewind(self, bookmark: tuple[Tensor, Tensor], except_n: Tensor | None = None) -> None:
        """Undo at most one frame of each environment.

        Its keys and values stay in the oldest slot, to which no frame may attend any more.

        Args:
            bookmark: From before the frame.
            except_n: [N] bool, environments that keep the frame; None means none.
        """
        slot_n, bias_nm = bookmark
        if except_n is not None:
            slot_n = torch.where(except_n, self.slot_n, slot_n)
            bias_nm = torch.where(except_n[:, None], self.bias_nm, bias_nm)
        self.slot_n.copy_(slot_n)
        self.bias_nm.copy_(bias_nm)

    def snapshot(self) -> list[Tensor]:
        """Return a copy of everything, for `restore`."""
        return [tensor.clone() for tensor in self._tensors()]

    def restore(self, snapshot: list[Tensor]) -> None:
        """Restore a snapshot, in place."""
        for tensor, saved in zip(self._tensors(), snapshot, strict=True):
            tensor.copy_(saved)

    def _tensors(self) -> tuple[Tensor, ...]:
        return self.keys_lnhmd, self.values_lnhmd, self.bias_nm, self.slot_n

    def to_state(self, rows: Tensor | None = None) -> VPTState:
        """Return a copy in the network's form: [B, ...], oldest frame first.

        Args:
            rows: [B] indices of environments; all if None.
        """
        take = slice(None) if rows is None else rows
        memory = self.bias_nm.shape[1]
        ages = torch.arange(1, memory + 1, device=self.slot_n.device)
        order_bm = (self.slot_n[take, None] + ages) % memory  # the oldest follows the newest
        mask_bm = self.bias_nm[take].gather(1, order_bm) == 0
        keys, values = (
            _in_order(x[:, take], order_bm) for x in (self.keys_lnhmd, self.values_lnhmd)
        )
        return VPTState(mask_bm, keys, values)

    def load_state(self, state: VPTState) -> None:
        """Set the memories of all environments, given in the network's form."""
        self.slot_n.fill_(self.bias_nm.shape[1] - 1)
        self.bias_nm.copy_(torch.where(state.mask, 0.0, MASKED_LOGIT))
        for ours, theirs in ((self.keys_lnhmd, state.keys), (self.values_lnhmd, state.values)):
            # [N, L, M, H * D] -> [L, N, H, M, D]
            ours.copy_(theirs.unflatten(-1, (ours.shape[2], -1)).permute(1, 0, 3, 2, 4))


def _in_order(x_lnhmd: Tensor, order_nm: Tensor) -> Tensor:
    """[L, N, H, M, D] -> [N, L, M, H * D], slots in the given order."""
    index = order_nm[None, :, None, :, None].expand_as(x_lnhmd)
    return x_lnhmd.gather(3, index).permute(1, 0, 3, 2, 4).flatten(3)


class RingView:
    """One step's access to the memories of the environments that take part in it."""

    def __init__(
        self,
        ring: RingMemory,
        rows: Tensor | None,
        rows_b: Tensor,
        slot_b: Tensor,
        bias_b1m: Tensor,
    ) -> None:
        self._ring = ring
        self._rows = rows
        self._rows_b = rows_b
        self.slot_b = slot_b
        """[B] slot of the new frame."""
        self.bias_b1m = bias_b1m
        """[B, 1, M] added to the logits: 0 or `MASKED_LOGIT`."""

    def add(self, layer: int, key_bhd: Tensor, value_bhd: Tensor) -> tuple[Tensor, Tensor]:
        """Store the frame in one layer; return that layer's keys and values [B, H, M, D]."""
        keys_nhmd, values_nhmd = self._ring.keys_lnhmd[layer], self._ring.values_lnhmd[layer]
        keys_nhmd[self._rows_b, :, self.slot_b] = key_bhd
        values_nhmd[self._rows_b, :, self.slot_b] = value_bhd
        if self._rows is None:
            return keys_nhmd, values_nhmd
        return keys_nhmd[self._rows], values_nhmd[self._rows]


# ------------------------------- the recurrent state of VPT, and the mask that keeps episodes apart
# Axes of tensor names in this package: b batch, t time within the chunk, l layer, m memory slot
# (oldest first), k = memory then chunk (what attention can read, m + t long), h head, d features of
# a head, e = h * d.


class VPTState(NamedTuple):
    """What the network remembers of the last `memory_length` frames, oldest first.

    The batch axis comes first everywhere, so states of single environments stack and index like
    observations.
    """

    mask: Tensor
    """[B, M] bool: slot holds a frame of the current episode."""

    keys: Tensor
    """[B, L, M, E] attention keys; slots outside the mask hold anything finite."""

    values: Tensor
    """[B, L, M, E] attention values, likewise."""


class Visibility(NamedTuple):
    """Which frames attention may read, shared by all layers."""

    visible_btk: Tensor
    """[B, T, M + T] bool: frame t may attend to entry k of memory and chunk."""

    mask_bm: Tensor
    """[B, M] bool: the state's mask after the chunk."""


def visibility(first_bt: Tensor, mask_bm: Tensor) -> Visibility:
    """Compute which frames may attend to which, in a chunk with episode starts anywhere.

    A frame sees at most M frames, itself included, never later ones and never across an episode
    start. With M = 3 and T = 4 and a new episode at t = 2::

                 memory    chunk
        first            0 0 1 0
        t = 0    . x x | x . . .      the oldest slot has already left the window of M
        t = 1    . . x | x x . .
        t = 2    . . . | . . x .      first: everything before is another episode
        t = 3    . . . | . . x x

        new mask           0 1 1      of the last M entries, those of the current episode

    Source: `clipped_causal` with `get_mask` of MineStudio, utils/vpt_lib/masked_attention.py.

    Args:
        first_bt: [B, T] bool, True where a frame begins an episode.
        mask_bm: [B, M] bool, the mask of the incoming state.
    """
    time, memory = first_bt.shape[1], mask_bm.shape[1]
    device = first_bt.device
    # Episodes are numbered within the chunk; the memory belongs to number 0, which a chunk that
    # starts with `first` never shares.
    episode_bt = first_bt.to(torch.int32).cumsum(dim=1)
    episode_bk = torch.cat([episode_bt.new_zeros(mask_bm.shape), episode_bt], dim=1)
    usable_bk = torch.cat([mask_bm, torch.ones_like(first_bt)], dim=1)

    age_tk = (
        torch.arange(memory, memory + time, device=device)[:, None]
        - torch.arange(memory + time, device=device)[None, :]
    )
    in_window_tk = (age_tk >= 0) & (age_tk < memory)
    same_episode_btk = episode_bt[:, :, None] == episode_bk[:, None, :]
    visible_btk = in_window_tk & same_episode_btk & usable_bk[:, None, :]

    last_b1 = first_bt.sum(dim=1, keepdim=True)  # also of a chunk of no frames
    usable_after_bk = usable_bk & (episode_bk == last_b1)
    return Visibility(visible_btk, usable_after_bk[:, -memory:])
