"""MineStudio's filter, with MineStudio's arguments."""

from __future__ import annotations

import re

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import STATUS, EvaluatedEpisode
from rllib_minestudio.evaluation.filters.base import EpisodeFilter


class InfoBaseFilter(EpisodeFilter):
    """Labels an episode `yes` if the game counted enough of something.

    As MineStudio's `InfoBaseFilter` (inference/filter/info_base_filter.py), except that counts
    from before the episode's reset are subtracted, and that others are labelled `no`.

    Example:
        >>> InfoBaseFilter(key="mine_block", regex=".*diamond_ore.*", num=1)
    """

    def __init__(
        self,
        key: str,
        regex: str | None = None,
        num: int = 1,
        label: str = STATUS,
        *,
        val: str = "",
    ) -> None:
        """Keep the condition.

        Args:
            key: Info key of a statistic, such as `mine_block`.
            regex: Regular expression that names must match from their beginning.
            num: The least sum of the matching counts.
            label: Name of the label.
            val: Instead of `regex`, one exact name, as older versions of MineStudio have it.

        Raises:
            InvalidOptionsError: The expression is not one, or there are two conditions or none.
        """
        if (regex is None) == (not val):
            raise InvalidOptionsError(
                f"InfoBaseFilter takes either regex or val; got regex={regex!r}, val={val!r}."
            )
        expression = f"{re.escape(val)}$" if regex is None else regex
        try:
            self._regex = re.compile(expression)
        except re.error as error:
            raise InvalidOptionsError(
                f"InfoBaseFilter: regex is {regex!r}, which is no regular expression: {error}."
            ) from error
        self.key, self.regex, self.num, self.label = key, expression, num, label

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the counts suffice."""
        counters = episode.counter(self.key)
        return sum(n for name, n in counters.items() if self._regex.match(name)) >= self.num

    def __str__(self) -> str:
        """Return the arguments; the text form has no regular expressions."""
        return f"InfoBaseFilter(key={self.key!r}, regex={self.regex!r}, num={self.num})"
