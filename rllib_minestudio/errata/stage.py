"""What a record tells of a run's training, and what is found in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Stage:
    """The training between two records of a run, as the later one tells it.

    Attributes:
        where: The later record, for messages.
        numerics: Revision of the learner's numerics that trained it.
        iteration: Training iterations at its end.
        config: Every option, as plain data.
        result: The last result.
        before: The stage before it; None if no record tells of one.
    """

    where: str
    numerics: int
    iteration: int
    config: Mapping[str, Any]
    result: Mapping[str, Any]
    before: Stage | None = None

    @property
    def start(self) -> int:
        """Training iterations at its beginning, as far as records tell."""
        if self.before is None or self.before.iteration >= self.iteration:
            return 0  # where a run goes on from an earlier checkpoint, iterations come again
        return self.before.iteration

    def metric(self, *path: str) -> float | None:
        """Look up a number in the last result; None where it is not reported."""
        node: Any = self.result
        for name in path:
            node = node.get(name) if isinstance(node, Mapping) else None
        return node if isinstance(node, int | float) else None


class Finding(NamedTuple):
    """Whether a stage was in the mode concerned, and the options that decide it."""

    affected: bool
    why: str
