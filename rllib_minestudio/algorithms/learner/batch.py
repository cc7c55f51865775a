"""From fragments to tensors: sequences of contiguous fragments, and minibatches of sequences.

Axes: `b` sequence, `t` step. A sequence is what is trained on as one row: a fragment, or several
contiguous ones of one environment joined end to end, through whose borders the network's memory
and the advantages run. Sequences stay where the fragments lie (Ray's object store); only
minibatches are stacked, and moved to the learner's device.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import Self

from rllib_minestudio.algorithms.fragment import Fragment

Tensors = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class FragmentSequence:
    """Contiguous fragments of one environment, trained on as one row.

    Attributes:
        fragments: In playing order.
    """

    fragments: tuple[Fragment, ...]

    def array(self, name: str) -> NDArray:
        """A field of all fragments end to end, time (or, of `final_obs`, its own axis) first."""
        arrays = [getattr(fragment, name) for fragment in self.fragments]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def action(self, name: str) -> NDArray[np.int64]:
        """The tokens of one head."""
        return np.concatenate([fragment.action[name] for fragment in self.fragments])

    @property
    def state_in(self) -> dict[str, NDArray]:
        """The network's memory before the first step."""
        return self.fragments[0].state_in

    @property
    def last(self) -> Fragment:
        """The fragment that ends last."""
        return self.fragments[-1]

    @property
    def num_steps(self) -> int:
        """T."""
        return sum(map(len, self.fragments))

    @property
    def bootstraps(self) -> NDArray[np.bool_]:
        """(T,) whether a step's episode was cut short, and goes on with one of `final_obs`."""
        return self.array("truncated") & ~self.array("terminated")

    @property
    def prior_version(self) -> NDArray[np.int64]:
        """(T,) the version of the prior's weights that computed each step's latent."""
        return np.concatenate([np.full(len(f), f.prior_version) for f in self.fragments])

    def was_played_by(self, version: int | None) -> bool:
        """Whether these weights made every decision in it."""
        return all(
            f.weights_version_min == version == f.weights_version_max for f in self.fragments
        )

    def is_finite(self) -> bool:
        """Whether all that the network is given beside images is finite."""
        arrays = [*self.state_in.values(), *(f.logp for f in self.fragments)]
        arrays += [f.prior_latent for f in self.fragments if f.prior_latent is not None]
        # A sum is finite only if all terms are; it is made in one pass without a copy.
        with np.errstate(invalid="ignore", over="ignore"):
            return all(np.isfinite(array.sum(dtype=np.float64)) for array in arrays)


def sequences_of(fragments: Sequence[Fragment], join: int) -> list[FragmentSequence]:
    """Sequences of `join` consecutive fragments each."""
    return [
        FragmentSequence(tuple(fragments[i : i + join])) for i in range(0, len(fragments), join)
    ]


@dataclass(frozen=True, eq=False)
class Minibatch:
    """B sequences of T steps, as tensors.

    Attributes:
        image: (B, T, H, W, 3) uint8.
        action: {"buttons", "camera"}: (B, T) int64.
        first: (B, T) bool.
        state_in: The network's memory before the first step, leading axis B.
    """

    image: Tensor
    action: Tensors
    first: Tensor
    state_in: Tensors

    def __len__(self) -> int:
        """B."""
        return self.image.shape[0]

    @property
    def num_steps(self) -> int:
        """T."""
        return self.image.shape[1]

    def chunks(self, length: int) -> Iterator[Self]:
        """Cut along time into pieces of `length` steps (the last may be shorter).

        Every chunk carries the `state_in` of the whole: the caller replaces it with the memory
        that the previous chunk left.
        """
        for start in range(0, self.num_steps, length):
            chunk = self.map(operator.itemgetter((slice(None), slice(start, start + length))))
            yield replace(chunk, state_in=self.state_in)

    def tensors(self) -> Iterator[Tensor]:
        """All tensors."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, dict):
                yield from value.values()
            elif value is not None:
                yield value

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function to every tensor."""
        mapped: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, dict):
                mapped[field.name] = {name: function(tensor) for name, tensor in value.items()}
            else:
                mapped[field.name] = None if value is None else function(value)
        return type(self)(**mapped)


@dataclass(frozen=True, eq=False)
class TrainingBatch(Minibatch):
    """A minibatch and what the learner needs to train on it (`targets.py`).

    Attributes:
        share: (B, T) float32, the part of each step in the mean over its optimizer step: one
            number where a step counts, 0 where it does not. A sum weighted with it over all
            minibatches, averaged over the learners, is the mean over the steps that count.
        proximal_logp: (B, T) float32 of the policy the iteration started from.
        weight: (B, T) float32, truncated importance weights.
        advantage: (B, T) float32, normalised over the whole iteration.
        value_target: (B, T) float32 in units of return.
        prior_latent: (B, T, hidsize) float32, the prior's features, or None without a prior.
        prior_version: (B, T) int64, of the weights that computed them, or None.
        kl_share: `share` where the prior's version is still known, else 0; or None.
    """

    share: Tensor
    proximal_logp: Tensor
    weight: Tensor
    advantage: Tensor
    value_target: Tensor
    prior_latent: Tensor | None = None
    prior_version: Tensor | None = None
    kl_share: Tensor | None = None


def stacked(arrays: Sequence[NDArray]) -> Tensor:
    """Arrays of one shape as one tensor with a new leading axis; a copy."""
    return torch.from_numpy(np.stack(arrays))


def stacked_states(sequences: Sequence[FragmentSequence]) -> Tensors:
    """The memories that sequences begin with, leading axis B; a copy."""
    return {name: stacked([s.state_in[name] for s in sequences]) for name in sequences[0].state_in}
