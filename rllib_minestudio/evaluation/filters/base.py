"""What a filter is, and how filters combine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rllib_minestudio.evaluation.episode import STATUS, YES, EvaluatedEpisode

if TYPE_CHECKING:
    from rllib_minestudio.evaluation.filters.world_facts import WorldFact

NO = "no"


class EpisodeFilter(ABC):
    """A condition on episodes.

    Example:
        >>> class Rich(EpisodeFilter):
        ...     def accepts(self, episode):
        ...         return episode.undiscounted_return > 10
        >>> hunter_or_rich = Rich() | parse_filter("kill_entity:cow>=3")

    Attributes:
        label: Name of the label that `filter` writes: `yes` or `no`.
    """

    label: str = STATUS

    @abstractmethod
    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the episode meets the condition."""

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the facts of the world that have to be in the info; see `world_facts`."""
        return frozenset()

    def filter(self, episodes: Iterable[EvaluatedEpisode]) -> Iterator[EvaluatedEpisode]:
        """Label episodes as they come; none is dropped.

        An episode in which the environment failed for good is labelled `no`.
        """
        for episode in episodes:
            answer = YES if episode.error is None and self.accepts(episode) else NO
            yield replace(episode, labels={**episode.labels, self.label: answer})

    def __and__(self, other: EpisodeFilter) -> EpisodeFilter:
        """Both conditions hold."""
        return AllOf(self, other)

    def __or__(self, other: EpisodeFilter) -> EpisodeFilter:
        """At least one of the conditions holds."""
        return AnyOf(self, other)

    def __invert__(self) -> EpisodeFilter:
        """The condition does not hold."""
        return Not(self)


class Every(EpisodeFilter):
    """Accepts every episode."""

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return True."""
        return True

    def __str__(self) -> str:
        """Return its name; the text form has none."""
        return "every episode"


class AllOf(EpisodeFilter):
    """Accepts what all parts accept."""

    def __init__(self, *parts: EpisodeFilter) -> None:
        """Combine `parts`; those after the first that refuses are not asked."""
        self.parts = parts

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether all parts accept."""
        return all(part.accepts(episode) for part in self.parts)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return those of all parts."""
        return _facts_of(self.parts)

    def __str__(self) -> str:
        """Return the text form."""
        return " and ".join(_bracketed(part, AnyOf) for part in self.parts)


class AnyOf(EpisodeFilter):
    """Accepts what at least one part accepts."""

    def __init__(self, *parts: EpisodeFilter) -> None:
        """Combine `parts`; those after the first that accepts are not asked."""
        self.parts = parts

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether a part accepts."""
        return any(part.accepts(episode) for part in self.parts)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return those of all parts."""
        return _facts_of(self.parts)

    def __str__(self) -> str:
        """Return the text form."""
        return " or ".join(str(part) for part in self.parts)


class Not(EpisodeFilter):
    """Accepts what its part refuses."""

    def __init__(self, part: EpisodeFilter) -> None:
        """Negate `part`."""
        self.part = part

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the part refuses."""
        return not self.part.accepts(episode)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return those of the part."""
        return self.part.needed_facts()

    def __str__(self) -> str:
        """Return the text form."""
        return f"not {_bracketed(self.part, AnyOf, AllOf)}"


def _bracketed(part: EpisodeFilter, *weaker: type) -> str:
    """Return the text of `part`, in brackets if it binds less tightly than what holds it."""
    return f"({part})" if isinstance(part, weaker) else str(part)


def _facts_of(parts: Iterable[EpisodeFilter]) -> frozenset[WorldFact]:
    """Return what several conditions need."""
    return frozenset().union(*(part.needed_facts() for part in parts))
