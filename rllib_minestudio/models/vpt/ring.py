"""VPT's memory as a ring of slots that stays where it is.

``VPTState`` moves every key and value by one slot at each step. Here a frame overwrites the
oldest slot instead, which no frame may attend to any more. With M = 4 (letters are frames)::

    step            slots         as VPTState (oldest first)
    after d         a b c d       a b c d
    after e         e b c d       b c d e
    after f         e f c d       c d e f
"""

from __future__ import annotations

import torch
from torch import Tensor

from rllib_minestudio.models.vpt.attention import MASKED_LOGIT
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.recurrent_state import VPTState


class RingMemory:
    """The memories of several environments on one device, never reallocated.

    Axes beyond ``recurrent_state.py``'s: n all environments.
    """

    def __init__(self, config: VPTConfig, num_envs: int, device: torch.device) -> None:
        """Allocates empty memories."""
        heads, memory = config.attention_heads, config.memory_length
        shape = (config.n_recurrence_layers, num_envs, heads, memory, config.hidsize // heads)
        self.keys_lnhmd = torch.zeros(shape, device=device)
        self.values_lnhmd = torch.zeros(shape, device=device)
        self.bias_nm = torch.full((num_envs, memory), MASKED_LOGIT, device=device)
        """0 where a slot holds a frame of the running episode."""
        self.slot_n = torch.full((num_envs,), memory - 1, device=device)
        """Of each environment's newest frame."""
        self._all = torch.arange(num_envs, device=device)

    def advance(self, first_b: Tensor, rows: Tensor | None = None) -> RingView:
        """Makes room for one frame.

        Args:
            first_b: [B] bool, True where the frame begins an episode.
            rows: [B] the environments that have a frame; all if None.

        Returns:
            Where to put the frame's keys and values.
        """
        rows_b = self._all if rows is None else rows
        slot_b = (self.slot_n[rows_b] + 1) % self.bias_nm.shape[1]
        bias_bm = self.bias_nm[rows_b].masked_fill(first_b[:, None], MASKED_LOGIT)
        bias_bm.scatter_(1, slot_b[:, None], 0.0)
        self.slot_n[rows_b] = slot_b
        self.bias_nm[rows_b] = bias_bm
        return RingView(self, rows, rows_b, slot_b, bias_bm[:, None])

    def bookmark(self) -> tuple[Tensor, Tensor]:
        """Returns what ``rewind`` needs."""
        return self.slot_n.clone(), self.bias_nm.clone()

    def rewind(self, bookmark: tuple[Tensor, Tensor], except_n: Tensor | None = None) -> None:
        """Takes back at most one frame of each environment.

        That frame stays in the slot of the oldest one, which nothing may attend to any more.

        Args:
            bookmark: From before the frame.
            except_n: [N] bool, environments that keep it; None: none.
        """
        slot_n, bias_nm = bookmark
        if except_n is not None:
            slot_n = torch.where(except_n, self.slot_n, slot_n)
            bias_nm = torch.where(except_n[:, None], self.bias_nm, bias_nm)
        self.slot_n.copy_(slot_n)
        self.bias_nm.copy_(bias_nm)

    def snapshot(self) -> list[Tensor]:
        """Returns a copy of everything, for ``restore``."""
        return [tensor.clone() for tensor in self._tensors()]

    def restore(self, snapshot: list[Tensor]) -> None:
        """Puts everything back, in place."""
        for tensor, saved in zip(self._tensors(), snapshot, strict=True):
            tensor.copy_(saved)

    def _tensors(self) -> tuple[Tensor, ...]:
        return self.keys_lnhmd, self.values_lnhmd, self.bias_nm, self.slot_n

    def to_state(self, rows: Tensor | None = None) -> VPTState:
        """Returns a copy in the network's form: [B, ...], oldest first.

        Args:
            rows: [B] of which environments; all if None.
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
        """Takes over memories in the network's form, for all environments."""
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
        """Made by ``RingMemory.advance``."""
        self._ring = ring
        self._rows = rows
        self._rows_b = rows_b
        self.slot_b = slot_b
        """[B] slot of the new frame."""
        self.bias_b1m = bias_b1m
        """[B, 1, M] added to the logits: 0 or ``MASKED_LOGIT``."""

    def add(self, layer: int, key_bhd: Tensor, value_bhd: Tensor) -> tuple[Tensor, Tensor]:
        """Stores the frame in one layer; returns that layer's keys and values [B, H, M, D]."""
        keys_nhmd, values_nhmd = self._ring.keys_lnhmd[layer], self._ring.values_lnhmd[layer]
        keys_nhmd[self._rows_b, :, self.slot_b] = key_bhd
        values_nhmd[self._rows_b, :, self.slot_b] = value_bhd
        if self._rows is None:
            return keys_nhmd, values_nhmd
        return keys_nhmd[self._rows], values_nhmd[self._rows]
