"""The record of an evaluated episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

STATUS = "status"
"""The label that says whether an episode counts as a success."""

YES = "yes"

LARGEST_SEED = 2**31 - 1
"""Largest seed of an evaluation."""
LONGEST_EPISODE = 12_000
"""Steps after which whatever plays whole episodes truncates them, unless told otherwise. These are
ten minutes of game time, as in MineStudio's evaluations of VPT; some tasks have no end of their
own."""
OUTCOMES = SUCCESS, FAILURE = "success", "failure"
"""Outcomes by which recordings are kept."""


@dataclass(frozen=True)
class EvaluatedEpisode:
    """The record of an episode that has ended.

    Attributes:
        index: Index in the evaluation, which decides the seed.
        seed: Seed of the episode's reset.
        task: Name of the task.
        length: Steps.
        undiscounted_return: Sum of the rewards.
        success: Whether the task was solved; None if the environment does not report it.
        terminated: Whether the last step ended the episode.
        truncated: Whether it was cut off, by a time limit for instance.
        seconds: Wall time from the first observation to the last.
        attempts: Number of attempts: 1, plus 1 for each failure of the environment.
        error: Why the last attempt failed, if all failed; such an episode is not a success.
        first_info: The reset's info, plain.
        info: The last step's info, plain.
        recording: Folder or file of its recording, if there is one.
        recording_error: Why it could not be recorded, if it should have been.
        labels: Label -> answer of the filter that writes it; see `filters`.
    """

    index: int
    seed: int
    task: str
    length: int
    undiscounted_return: float
    success: bool | None = None
    terminated: bool = False
    truncated: bool = False
    seconds: float = 0.0
    attempts: int = 1
    error: str | None = None
    first_info: Mapping[str, Any] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    recording: str | None = None
    recording_error: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def counts_as_success(self) -> bool:
        """Whether it counts in the summary's `num_yes`: by its label, or else by `success`."""
        if self.error is not None:
            return False
        return self.labels.get(STATUS) == YES if STATUS in self.labels else bool(self.success)

    @property
    def outcome(self) -> str:
        """Which of `OUTCOMES` it is."""
        return SUCCESS if self.counts_as_success else FAILURE

    def counter(self, statistic: str) -> dict[str, float]:
        """Return the counts of a game statistic in this episode, name -> count.

        A fast reset does not clear the game's counters, so their values at the reset are
        subtracted.

        Args:
            statistic: Info key such as `kill_entity`.
        """
        before, after = self.first_info.get(statistic), self.info.get(statistic)
        start = before if isinstance(before, Mapping) else {}
        end = after if isinstance(after, Mapping) else {}
        return {name: count - start.get(name, 0) for name, count in end.items()}

    def to_json(self) -> dict[str, Any]:
        """Return all fields except the infos, which are in recordings."""
        facts = asdict(self)
        del facts["first_info"], facts["info"]
        return facts
