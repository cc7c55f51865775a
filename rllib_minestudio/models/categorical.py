"""What a distribution over one head's tokens offers, and the one with a score for every token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import torch
from torch import Tensor
from torch.linalg import vecdot
from torch.nn import functional as F


class Categorical(ABC):
    """A distribution over the N tokens of one head, for every element of a batch shape [...]."""

    @property
    @abstractmethod
    def logits(self) -> Tensor:
        """[..., N] normalised log-probabilities, float32; computed when first read, then kept."""

    @abstractmethod
    def log_prob(self, token: Tensor) -> Tensor:
        """Log-probability of one token per element: [...] int64 -> [...] float32."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """Entropy in nats: [...] float32."""

    def kl_divergence(self, other: Categorical) -> Tensor:
        """KL(self || other) in nats, ``sum p (log p - log q)``: [...] float32.

        Args:
            other: Over the same tokens, for the same batch shape; possibly of another class.
        """
        return vecdot(self.logits.exp(), self.logits - other.logits)

    @abstractmethod
    def sample(self, uniform: Tensor | None = None) -> Tensor:
        """Draws a token per element, by inverse CDF in the order of the tokens.

        Args:
            uniform: [...] float64 numbers in [0, 1) to draw with, so that an element's token
                depends on its own number only, not on the elements beside it; None: torch's own.

        Returns:
            [...] int64.
        """

    @abstractmethod
    def mode(self) -> Tensor:
        """The most probable token: [...] int64."""


class JointCategorical(Categorical):
    """A score for every token."""

    def __init__(self, scores: Tensor, normalised: bool = False) -> None:
        """Keeps the scores.

        Args:
            scores: [..., N] float32, up to a constant per row.
            normalised: Whether they are log-probabilities already.
        """
        self._scores = scores
        self._normalised = normalised

    @cached_property
    @torch.enable_grad()  # who reads them later may want gradients
    def logits(self) -> Tensor:
        """[..., N] normalised log-probabilities."""
        return self._scores if self._normalised else F.log_softmax(self._scores, dim=-1)

    def log_prob(self, token: Tensor) -> Tensor:
        """Log-probability of one token per element."""
        return self.logits.gather(-1, token.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """``-sum p log p``."""
        return -vecdot(self.logits.exp(), self.logits)

    @torch.no_grad()
    def sample(self, uniform: Tensor | None = None) -> Tensor:
        """Draws a token per element, from the scores as they are.

        One number per element instead of MineStudio's one per token (Gumbel-max), for the same
        distribution. The sum is float64, because in float32 the cumulative sum of 8641 terms
        misplaces rare tokens.
        """
        shifted = self._scores - self._scores.amax(dim=-1, keepdim=True)
        cumulative = shifted.exp().cumsum(dim=-1, dtype=torch.float64)
        return inverse_cdf(cumulative, places(uniform, cumulative)).squeeze(-1)

    def mode(self) -> Tensor:
        """The most probable token."""
        return self._scores.argmax(dim=-1)


def places(uniform: Tensor | None, scores: Tensor) -> Tensor:
    """[...] or None, and scores [..., N] -> [..., 1] float64 numbers in [0, 1)."""
    if uniform is not None:
        return uniform.unsqueeze(-1)
    return torch.rand((*scores.shape[:-1], 1), dtype=torch.float64, device=scores.device)


def inverse_cdf(cumulative: Tensor, place: Tensor) -> Tensor:
    """[..., N] cumulative weights, [..., 1] numbers in [0, 1) -> [..., 1] indices, int64."""
    # No number below 1 makes the product as large as the total; only not-a-number needs the clamp.
    index = torch.searchsorted(cumulative, place * cumulative[..., -1:], right=True)
    return index.clamp_(max=cumulative.shape[-1] - 1)
