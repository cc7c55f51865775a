"""Distributions over actions: one token per head, the heads independent.

An action is one token per head, and the heads are independent, so log-probability, entropy and KL
divergence are sums over them. A head's own distribution has a score per token
(`JointCategorical`), or one per choice that tokens are made of (`FactoredCategorical`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor
from torch.linalg import vecdot
from torch.nn import functional as F

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
        """Keep the heads, whose order is that of the columns that `sample` takes."""
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
        """Draw a token per head.

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
    """The heads' `logits` by name, not read before they are asked for."""

    def __init__(self, heads: Mapping[str, Categorical]) -> None:
        self._heads = heads

    def __getitem__(self, name: str) -> Tensor:
        return self._heads[name].logits

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)


# what a distribution over one head's tokens offers, and the one with a score for every token


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
        """KL(self || other) in nats, `sum p (log p - log q)`: [...] float32.

        Args:
            other: Over the same tokens, for the same batch shape; possibly of another class.
        """
        return vecdot(self.logits.exp(), self.logits - other.logits)

    @abstractmethod
    def sample(self, uniform: Tensor | None = None) -> Tensor:
        """Draw a token per element, by inverse CDF in the order of the tokens.

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
        """Keep the scores.

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
        """`-sum p log p`."""
        return -vecdot(self.logits.exp(), self.logits)

    @torch.no_grad()
    def sample(self, uniform: Tensor | None = None) -> Tensor:
        """Draw a token per element, from the scores as they are.

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


# -------- a head that chooses from thousands of combinations of a few choices, without listing them

LARGEST_BELOW_ONE = 1 - 2**-53

MERGED_CHOICES = 100
"""Groups are merged to draw from as long as there are no more choices than these."""


class FactoredCategorical(Categorical):
    """A product of independent groups of choices, and possibly a token that excludes them all.

    With `q_g` the softmax over the choices of group g, and p the probability of the exclusive
    token::

        log P(combination)     = log(1 - p) + sum_g log q_g(choice)
        log P(exclusive token) = log p,    p = sigmoid(its score - sum_g logsumexp(scores of g))
        entropy                = H(p) + (1 - p) sum_g H(q_g)
        KL(P || P')            = KL(p || p') + (1 - p) sum_g KL(q_g || q_g')

    This is the softmax over the N tokens whose scores are the sums of their choices' scores, to
    rounding. Nothing N wide is computed except `logits`.

    What is kept has the gradients of the scores, whether or not those were wanted when it was first
    computed.
    """

    def __init__(self, scores: Tensor, sizes: Sequence[int], exclusive: bool = False) -> None:
        """Keep the scores.

        Args:
            scores: [..., C] float32, a score per choice, group after group, then that of the
                exclusive token if there is one.
            sizes: Choices of each group. Tokens count through their product, the last group
                fastest.
            exclusive: Whether there is one more token, the last, that goes with no choice.

        Raises:
            ValueError: There are not as many scores as choices.
        """
        self._sizes = tuple(sizes)
        self._has_exclusive = exclusive
        self._combinations = prod(self._sizes)
        choices = sum(self._sizes)
        if scores.shape[-1] != choices + exclusive:
            raise ValueError(f"{choices + exclusive} scores expected, not {scores.shape[-1]}.")
        self._choice_scores = scores[..., :choices]
        self._exclusive_score = scores[..., -1]
        self._layout = _layout(self._sizes, scores.device)

    @cached_property
    @torch.enable_grad()
    def logits(self) -> Tensor:
        """[..., N] normalised log-probabilities, of every combination."""
        *rest, joint = self._log_q.split(self._sizes, dim=-1)
        for group in reversed(rest):  # so that the longer axis is the one that is contiguous
            joint = (group.unsqueeze(-1) + joint.unsqueeze(-2)).flatten(-2)
        if not self._has_exclusive:
            return joint
        log_p, log_not_p = self._log_p
        return torch.cat([joint + log_not_p.unsqueeze(-1), log_p.unsqueeze(-1)], dim=-1)

    def log_prob(self, token: Tensor) -> Tensor:
        """Log-probability of one token per element."""
        layout = self._layout
        # The exclusive token has no choices, but finds some here; the result is then not used.
        choices = token.unsqueeze(-1) // layout.strides % layout.sizes
        of_choices = self._log_q.gather(-1, choices + layout.starts).sum(dim=-1)
        if not self._has_exclusive:
            return of_choices
        log_p, log_not_p = self._log_p
        return torch.where(token == self._combinations, log_p, log_not_p + of_choices)

    def entropy(self) -> Tensor:
        """The groups' entropies added up; see the class."""
        of_choices = -vecdot(self._log_q.exp(), self._log_q)
        if not self._has_exclusive:
            return of_choices
        log_p, log_not_p = self._log_p
        not_p = log_not_p.exp()
        return not_p * (of_choices - log_not_p) - log_p.exp() * log_p

    def kl_divergence(self, other: Categorical) -> Tensor:
        """The groups' divergences added up, if `other` has the same groups."""
        if not isinstance(other, FactoredCategorical) or not self._is_like(other):
            return super().kl_divergence(other)
        of_choices = vecdot(self._log_q.exp(), self._log_q - other._log_q)
        if not self._has_exclusive:
            return of_choices
        (log_p, log_not_p), (other_log_p, other_log_not_p) = self._log_p, other._log_p
        not_p = log_not_p.exp()
        return not_p * (of_choices + log_not_p - other_log_not_p) + log_p.exp() * (
            log_p - other_log_p
        )

    @torch.no_grad()
    def sample(self, uniform: Tensor | None = None) -> Tensor:
        """Draw the token that the cumulative sum over all N of them would give.

        Tokens that agree in their first choices lie side by side, so the number finds the first
        group's choice; its place within that choice's interval then finds the second's, and so on.
        In float64, because each step uses up a part of the number's digits.
        """
        place = places(uniform, self._choice_scores)
        token = torch.zeros_like(place, dtype=torch.int64)
        if self._has_exclusive:
            not_p = self._log_p[1].double().exp().unsqueeze(-1)
            is_exclusive = place >= not_p
            place = _within(place, torch.zeros_like(place), not_p)
        for q in self._merged_groups():
            cumulative = q.cumsum(dim=-1)
            choice = inverse_cdf(cumulative, place)
            bounds = F.pad(cumulative, (1, 0))
            place = _within(
                place * cumulative[..., -1:],
                bounds.gather(-1, choice),
                bounds.gather(-1, choice + 1),
            )
            token = token * q.shape[-1] + choice
        if self._has_exclusive:
            token = token.masked_fill(is_exclusive, self._combinations)
        return token.squeeze(-1)

    def mode(self) -> Tensor:
        """The most probable choices, or the exclusive token if that is more probable still."""
        best = [group.max(dim=-1) for group in self._choice_scores.split(self._sizes, dim=-1)]
        choices = torch.stack([group.indices for group in best], dim=-1)
        token = (choices * self._layout.strides).sum(dim=-1)
        if not self._has_exclusive:
            return token
        score = torch.stack([group.values for group in best], dim=-1).sum(dim=-1)
        return token.masked_fill(self._exclusive_score > score, self._combinations)

    @cached_property
    @torch.enable_grad()
    def _partitions(self) -> Tensor:
        """[..., groups] logarithms of the groups' normalisers."""
        groups = self._choice_scores.split(self._sizes, dim=-1)
        return torch.stack([group.logsumexp(dim=-1) for group in groups], dim=-1)

    @cached_property
    @torch.enable_grad()
    def _log_partition(self) -> Tensor:
        """[...] logarithm of the normaliser of all combinations."""
        return self._partitions.sum(dim=-1)

    @cached_property
    @torch.enable_grad()
    def _log_q(self) -> Tensor:
        """[..., C] log-probability of each choice within its group."""
        return self._choice_scores - self._partitions[..., self._layout.group_of]

    @cached_property
    @torch.enable_grad()
    def _log_p(self) -> tuple[Tensor, Tensor]:
        """[...] log p and log(1 - p) of the exclusive token, neither of them ever infinite."""
        log_odds = self._exclusive_score - self._log_partition
        return F.logsigmoid(log_odds), F.logsigmoid(-log_odds)

    def _merged_groups(self) -> list[Tensor]:
        """Probabilities of the choices, float64; small groups side by side become one.

        VPT's nine groups of buttons become two, 90 and 96 wide, which saves most of the calls.
        """
        first, *rest = self._log_q.double().exp().split(self._sizes, dim=-1)
        merged = [first]
        for group in rest:
            if merged[-1].shape[-1] * group.shape[-1] <= MERGED_CHOICES:
                merged[-1] = (merged[-1].unsqueeze(-1) * group.unsqueeze(-2)).flatten(-2)
            else:
                merged.append(group)
        return merged

    def _is_like(self, other: FactoredCategorical) -> bool:
        return (self._sizes, self._has_exclusive) == (other._sizes, other._has_exclusive)


class _Layout(NamedTuple):
    """Where groups lie among the choices and in a token; int64."""

    sizes: Tensor  # [groups]
    starts: Tensor  # [groups], the index of a group's first choice
    strides: Tensor  # [groups], by how much a token grows from one choice to the next
    group_of: Tensor  # [choices]


@cache
def _layout(sizes: tuple[int, ...], device: torch.device) -> _Layout:
    strides = list(accumulate(sizes[:0:-1], int.__mul__, initial=1))[::-1]
    starts = list(accumulate(sizes[:-1], initial=0))
    group_of = [group for group, size in enumerate(sizes) for _ in range(size)]
    # A tensor born in inference mode could not be used where gradients are wanted later.
    with torch.inference_mode(False):
        return _Layout(
            *(torch.tensor(x, device=device) for x in (sizes, starts, strides, group_of))
        )


def _within(place: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Where in [lower, upper) a number lies, from 0 to 1, without 1."""
    width = (upper - lower).clamp_(min=torch.finfo(torch.float64).tiny)
    return ((place - lower) / width).clamp_(0.0, LARGEST_BELOW_ONE)
