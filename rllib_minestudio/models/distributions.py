"""Distributions over actions.

An action is one token per head, and the heads are independent: log-probability, entropy and KL
divergence are sums over the heads. A head's distribution has a score for each token
(`JointCategorical`), or for each choice that tokens are composed of (`FactoredCategorical`).
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
    """Actions and their log-probability."""

    actions: dict[str, Tensor]
    """Per head [...] tokens, int64."""

    log_prob: Tensor
    """[...] joint log-probability of the tokens, float32."""


class ActionDistribution:
    """The joint distribution of a policy's independent heads.

    Attributes:
        heads: Each head's distribution, all of the same batch shape [...], in the order of the
            columns that `sample` takes.
    """

    def __init__(self, heads: Mapping[str, Categorical]) -> None:
        self.heads = heads

    @property
    def logits(self) -> Mapping[str, Tensor]:
        """Per head [..., N] log-probabilities, each computed when it is first read."""
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
            uniform: [..., heads] float64 numbers in [0, 1) to draw with; None uses torch's
                generator.
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
    """The heads' `logits` by name, read only on access."""

    def __init__(self, heads: Mapping[str, Categorical]) -> None:
        self._heads = heads

    def __getitem__(self, name: str) -> Tensor:
        return self._heads[name].logits

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)


# ---------------------------------------------------------------------- tokens of a single head


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
            other: Has the same tokens and batch shape, but possibly another class.
        """
        return vecdot(self.logits.exp(), self.logits - other.logits)

    @abstractmethod
    def sample(self, uniform: Tensor | None = None) -> Tensor:
        """Draw a token per element, by inverse CDF in the order of the tokens.

        Args:
            uniform: [...] float64 numbers in [0, 1) to draw with: an element's token then depends
                on its own number only, not on the rest of the batch. None uses torch's generator.

        Returns:
            [...] int64.
        """

    @abstractmethod
    def mode(self) -> Tensor:
        """The most probable token: [...] int64."""


class JointCategorical(Categorical):
    """A distribution with a score for every token."""

    def __init__(self, scores: Tensor, normalised: bool = False) -> None:
        """Store the scores.

        Args:
            scores: [..., N] float32, up to a constant per row.
            normalised: Whether the scores are log-probabilities already.
        """
        self._scores = scores
        self._normalised = normalised

    @cached_property
    @torch.enable_grad()  # a later reader may need gradients
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
        """Draw a token per element from the unnormalised scores.

        Uses one random number per element where MineStudio uses one per token (Gumbel-max); the
        distribution is the same. The cumulative sum is float64: a float32 sum of 8641 terms
        misplaces rare tokens.
        """
        shifted = self._scores - self._scores.amax(dim=-1, keepdim=True)
        cumulative = shifted.exp().cumsum(dim=-1, dtype=torch.float64)
        return inverse_cdf(cumulative, places(uniform, cumulative)).squeeze(-1)

    def mode(self) -> Tensor:
        """The most probable token."""
        return self._scores.argmax(dim=-1)


def places(uniform: Tensor | None, scores: Tensor) -> Tensor:
    """[...] or None for torch's own, and scores [..., N] -> [..., 1] float64 numbers in [0, 1)."""
    if uniform is not None:
        return uniform.unsqueeze(-1)
    return torch.rand((*scores.shape[:-1], 1), dtype=torch.float64, device=scores.device)


def inverse_cdf(cumulative: Tensor, place: Tensor) -> Tensor:
    """[..., N] cumulative weights, [..., 1] numbers in [0, 1) -> [..., 1] indices, int64."""
    # Numbers below 1 never make the product as large as the total: only NaN needs the clamp.
    index = torch.searchsorted(cumulative, place * cumulative[..., -1:], right=True)
    return index.clamp_(max=cumulative.shape[-1] - 1)


# ---------------------------------------------------- combinations of choices, without listing them

LARGEST_BELOW_ONE = 1 - 2**-53

MERGED_CHOICES = 100
"""`FactoredCategorical.sample` merges neighbouring groups up to this many choices."""


class FactoredCategorical(Categorical):
    """A product of independent groups of choices, and possibly a token that excludes them all.

    With `q_g` the softmax over the choices of group g, and p the probability of the exclusive
    token::

        log P(combination)     = log(1 - p) + sum_g log q_g(choice)
        log P(exclusive token) = log p,    p = sigmoid(its score - sum_g logsumexp(scores of g))
        entropy                = H(p) + (1 - p) sum_g H(q_g)
        KL(P || P')            = KL(p || p') + (1 - p) sum_g KL(q_g || q_g')

    Up to rounding, this is the softmax over N tokens, each scored by the sum of its choices'
    scores. Nothing of width N is computed except `logits`.

    Cached values pass gradients on to the scores even if they were first computed under `no_grad`.
    """

    def __init__(self, scores: Tensor, sizes: Sequence[int], exclusive: bool = False) -> None:
        """Store the scores.

        Args:
            scores: [..., C] float32, a score per choice, group after group, then that of the
                exclusive token if there is one.
            sizes: Number of choices in each group. Tokens number the combinations, the last group
                fastest.
            exclusive: Whether there is one more token, the last, that excludes all choices.

        Raises:
            ValueError: The number of scores does not match the number of choices.
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
        """[..., N] normalised log-probabilities of all tokens."""
        *rest, joint = self._log_q.split(self._sizes, dim=-1)
        for group in reversed(rest):  # keeps the longer axis contiguous
            joint = (group.unsqueeze(-1) + joint.unsqueeze(-2)).flatten(-2)
        if not self._has_exclusive:
            return joint
        log_p, log_not_p = self._log_p
        return torch.cat([joint + log_not_p.unsqueeze(-1), log_p.unsqueeze(-1)], dim=-1)

    def log_prob(self, token: Tensor) -> Tensor:
        """Log-probability of one token per element."""
        layout = self._layout
        # The exclusive token has no choices: what is computed for it here is not used.
        choices = token.unsqueeze(-1) // layout.strides % layout.sizes
        of_choices = self._log_q.gather(-1, choices + layout.starts).sum(dim=-1)
        if not self._has_exclusive:
            return of_choices
        log_p, log_not_p = self._log_p
        return torch.where(token == self._combinations, log_p, log_not_p + of_choices)

    def entropy(self) -> Tensor:
        """The sum of the groups' entropies; see the class."""
        of_choices = -vecdot(self._log_q.exp(), self._log_q)
        if not self._has_exclusive:
            return of_choices
        log_p, log_not_p = self._log_p
        not_p = log_not_p.exp()
        return not_p * (of_choices - log_not_p) - log_p.exp() * log_p

    def kl_divergence(self, other: Categorical) -> Tensor:
        """The sum of the groups' divergences, if `other` has the same groups."""
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
        """Draw the token that the cumulative sum over all N tokens would give.

        Tokens with the same first choice are neighbours, so the number determines the first
        group's choice. Its position within that choice's interval determines the second group's,
        and so on. All in float64, because each step uses up some of the number's digits.
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
        """The most probable choices, or the exclusive token if that is more probable."""
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
        """[...] log p and log(1 - p) of the exclusive token, both always finite."""
        log_odds = self._exclusive_score - self._log_partition
        return F.logsigmoid(log_odds), F.logsigmoid(-log_odds)

    def _merged_groups(self) -> list[Tensor]:
        """The choices' probabilities, float64, with small neighbouring groups merged.

        VPT's nine groups of buttons become two, of 90 and 96 choices, which saves most calls.
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
    """The positions of groups among the choices and within a token, int64."""

    sizes: Tensor  # [groups]
    starts: Tensor  # [groups], the index of a group's first choice
    strides: Tensor  # [groups], by how much a token grows from one choice to the next
    group_of: Tensor  # [choices]


@cache
def _layout(sizes: tuple[int, ...], device: torch.device) -> _Layout:
    strides = list(accumulate(sizes[:0:-1], int.__mul__, initial=1))[::-1]
    starts = list(accumulate(sizes[:-1], initial=0))
    group_of = [group for group, size in enumerate(sizes) for _ in range(size)]
    # A tensor created in inference mode could not take part in autograd later.
    with torch.inference_mode(False):
        return _Layout(
            *(torch.tensor(x, device=device) for x in (sizes, starts, strides, group_of))
        )


def _within(place: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """The relative position of a number in [lower, upper): from 0 to below 1."""
    width = (upper - lower).clamp_(min=torch.finfo(torch.float64).tiny)
    return ((place - lower) / width).clamp_(0.0, LARGEST_BELOW_ONE)
