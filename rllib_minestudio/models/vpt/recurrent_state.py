"""The recurrent state of VPT, and the mask that keeps episodes apart.

Axes of tensor names in this package: b batch, t time within the chunk, l layer, m memory slot
(oldest first), k = memory then chunk (what attention can read, m + t long), h head, d features
of a head, e = h * d.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class VPTState(NamedTuple):
    """What the network remembers of the last ``memory_length`` frames, oldest first.

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
    """Computes which frames may attend to which, in a chunk with episode starts anywhere.

    A frame sees at most M frames, itself included, never later ones and never across an episode
    start. With M = 3 and T = 4 and a new episode at t = 2::

                 memory    chunk
        first            0 0 1 0
        t = 0    . x x | x . . .      the oldest slot has already left the window of M
        t = 1    . . x | x x . .
        t = 2    . . . | . . x .      first: everything before is another episode
        t = 3    . . . | . . x x

        new mask           0 1 1      of the last M entries, those of the running episode

    Source: ``clipped_causal`` with ``get_mask`` of MineStudio, utils/vpt_lib/masked_attention.py.

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
