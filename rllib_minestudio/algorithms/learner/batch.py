"""Fragments stacked into tensors on the learner's device.

Axes: `b` row, `t` step, `n` network-specific (image, memory). A row is one fragment, or several
contiguous ones of one environment joined end to end: the network's memory and the advantages then
run through their borders.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from rllib_minestudio.algorithms.fragment import Fragment

Tensors = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class FragmentBatch:
    """B rows of T steps; the fields mirror those of `Fragment`.

    Attributes:
        image: (B, T, H, W, 3) uint8.
        action: {"buttons", "camera"}: (B, T) int64.
        first: (B, T) bool.
        logp: (B, T) float32 of the behaviour policy.
        state_in: The network's memory before row 0, leading axis B.
    """

    image: Tensor
    action: Tensors
    first: Tensor
    logp: Tensor
    state_in: Tensors

    def __len__(self) -> int:
        """B."""
        return self.image.shape[0]

    @property
    def num_steps(self) -> int:
        """T."""
        return self.image.shape[1]

    def select(self, rows: Tensor) -> Self:
        """The rows that `rows`, a 1-d index tensor, picks."""
        return self._map(operator.itemgetter(rows))

    def chunks(self, length: int) -> Iterator[Self]:
        """Cut along time into pieces of `length` steps (the last may be shorter).

        Every chunk carries the `state_in` of the whole row: the caller replaces it with the
        memory that the previous chunk left.
        """
        for start in range(0, self.num_steps, length):
            chunk = self._map(operator.itemgetter((slice(None), slice(start, start + length))))
            yield replace(chunk, state_in=self.state_in)

    def tensors(self) -> Iterator[Tensor]:
        """All tensors of the batch."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, dict):
                yield from value.values()
            elif value is not None:
                yield value

    def _map(self, function: Callable[[Tensor], Tensor]) -> Self:
        mapped: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, dict):
                mapped[field.name] = {name: function(tensor) for name, tensor in value.items()}
            else:
                mapped[field.name] = None if value is None else function(value)
        return type(self)(**mapped)


@dataclass(frozen=True, eq=False)
class TrainingBatch(FragmentBatch):
    """A batch and what the learner needs to train on it (`targets.py`).

    Attributes:
        mask: (B, T) float32: 0 where a step must not be trained on. Elsewhere one factor, common
            to all learners, that makes means over all steps means over the usable ones.
        proximal_logp: (B, T) float32 of the policy the iteration started from.
        weight: (B, T) float32, truncated importance weights.
        advantage: (B, T) float32, normalised over the whole iteration.
        value_target: (B, T) float32 in units of return.
        prior_latent: (B, T, hidsize), the prior's features, or None without a prior.
    """

    mask: Tensor
    proximal_logp: Tensor
    weight: Tensor
    advantage: Tensor
    value_target: Tensor
    prior_latent: Tensor | None = None


def stack_fragments(
    fragments: Sequence[Fragment], device: torch.device | str, *, join: int = 1
) -> FragmentBatch:
    """Stack fragments of equal length and move them to `device`.

    Args:
        fragments: At least one; all of one length. `join` consecutive ones are contiguous.
        device: Where the tensors shall live. On a GPU they are sent without waiting for them.
        join: Fragments that make one row.

    Returns:
        len(fragments) / join rows.
    """
    pinned = torch.device(device).type == "cuda"

    def stack(arrays: Sequence[np.ndarray]) -> Tensor:
        tensor = torch.from_numpy(np.stack(arrays))
        return (tensor.pin_memory() if pinned else tensor).to(device, non_blocking=True)

    def rows(arrays: Sequence[np.ndarray]) -> Tensor:
        stacked = stack(arrays)  # (B * join, T, ...) -> (B, join * T, ...)
        return stacked.reshape(len(fragments) // join, -1, *stacked.shape[2:])

    return FragmentBatch(
        image=rows([f.obs for f in fragments]),
        action={name: rows([f.action[name] for f in fragments]) for name in fragments[0].action},
        first=rows([f.first for f in fragments]),
        logp=rows([f.logp for f in fragments]),
        state_in={
            name: stack([f.state_in[name] for f in fragments[::join]])
            for name in fragments[0].state_in
        },
    )
