"""The distribution over actions that a policy's heads offer together.

An action is one token per head, and the heads are independent, so log-probability, entropy and KL
divergence are sums over them. A head's own distribution has a score per token
(``JointCategorical``), or one per choice that tokens are made of (``FactoredCategorical``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from rllib_minestudio.models.categorical import Categorical, JointCategorical
from rllib_minestudio.models.factored_categorical import FactoredCategorical

__all__ = [
    "ActionDistribution",
    "ActionSample",
    "Categorical",
    "FactoredCategorical",
    "JointCategorical",
]


class ActionSample(NamedTuple):
    """Actions, and how probable they were."""

    actions: dict[str, Tensor]
    """Per head [...] tokens, int64."""

    log_prob: Tensor
    """[...] joint log-probability of the tokens, float32."""


class ActionDistribution:
    """The distributions of a policy's heads, which are independent of each other.

    Attributes:
        heads: Each head's distribution, all of the same batch shape [...].
    """

    def __init__(self, heads: Mapping[str, Categorical]) -> None:
        """Keeps the heads, whose order is that of the columns that ``sample`` takes."""
        self.heads = heads

    @property
    def logits(self) -> Mapping[str, Tensor]:
        """Per head [..., N] log-probabilities; those of a head are computed when it is read."""
        return _JointLogits(self.heads)

    def log_probs(self, actions: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Each head's log-probability of its tokens: per head [...] int64 -> [...] float32."""
        return {name: head.log_prob(actions[name]) for name, head in self.heads.items()}

    def log_prob(self, actions: Mapping[str, Tensor]) -> Tensor:
        """Log-probability of joint actions: per head [...] int64 -> [...] float32.

        The camera's term counts even when the action's camera flag is off and its token is
        ignored, as in MineStudio.
        """
        return torch.stack(list(self.log_probs(actions).values())).sum(dim=0)

    def entropy(self) -> Tensor:
        """Entropy in nats: [...] float32."""
        return torch.stack([head.entropy() for head in self.heads.values()]).sum(dim=0)

    def kl_divergence(self, other: ActionDistribution) -> Tensor:
        """KL(self || other) in nats: [...] float32."""
        terms = [head.kl_divergence(other.heads[name]) for name, head in self.heads.items()]
        return torch.stack(terms).sum(dim=0)

    def sample(self, uniform: Tensor | None = None) -> ActionSample:
        """Draws a token per head.

        Args:
            uniform: [..., heads] float64 numbers in [0, 1) to draw with, one column per head;
                None: torch's own.
        """
        columns = [None] * len(self.heads) if uniform is None else uniform.unbind(dim=-1)
        drawn = zip(self.heads.items(), columns, strict=True)
        return self._with_log_prob({name: head.sample(column) for (name, head), column in drawn})

    def mode(self) -> ActionSample:
        """The most probable token of each head."""
        return self._with_log_prob({name: head.mode() for name, head in self.heads.items()})

    def _with_log_prob(self, actions: dict[str, Tensor]) -> ActionSample:
        return ActionSample(actions, self.log_prob(actions))


class _JointLogits(Mapping[str, Tensor]):
    """The heads' ``logits`` by name, not read before they are asked for."""

    def __init__(self, heads: Mapping[str, Categorical]) -> None:
        self._heads = heads

    def __getitem__(self, name: str) -> Tensor:
        return self._heads[name].logits

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)
