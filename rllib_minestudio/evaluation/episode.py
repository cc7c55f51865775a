"""One evaluated episode, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

STATUS = "status"
"""The label that says whether an episode counts as a success."""

YES = "yes"

LARGEST_SEED = 2**31 - 1
"""Of an evaluation; the seeds of its episodes derive from it."""
OUTCOMES = SUCCESS, FAILURE = "success", "failure"
"""What recordings are told apart by."""


@dataclass(frozen=True)
class EvaluatedEpisode:
    """What is known of an episode after it has ended.

    Attributes:
        index: Which of the evaluation's episodes it is; decides its seed.
        seed: What world, task and the policy's random numbers derive from.
        task: Name of the task.
        length: Steps.
        undiscounted_return: Sum of the rewards.
        success: Whether the task was solved, if the environment tells.
        terminated: Whether the last step ended the episode.
        truncated: Whether it was cut off, by a time limit for instance.
        seconds: Wall time from the first observation to the last.
        attempts: How often it was begun: 1, and 1 for each time the environment failed.
        error: Why the last attempt failed, if all did; such an episode counts as no success.
        first_info: The reset's info, plain.
        info: The last step's info, plain.
        recording: Folder or file it was recorded in, if it was.
        recording_error: Why it was not, if it should have been.
        labels: What filters said, by label; see `filters`.
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
        """Whether it is one of the summary's `num_yes`: labelled so, or else solved."""
        if self.error is not None:
            return False
        return self.labels.get(STATUS) == YES if STATUS in self.labels else bool(self.success)

    @property
    def outcome(self) -> str:
        """Which of `OUTCOMES` it is."""
        return SUCCESS if self.counts_as_success else FAILURE

    def counter(self, statistic: str) -> dict[str, float]:
        """What a statistic of the game counted in this episode, name -> count.

        A fast reset does not clear the game's counters, so that the reset's are subtracted.

        Args:
            statistic: Info key such as `kill_entity`.
        """
        before, after = self.first_info.get(statistic), self.info.get(statistic)
        start = before if isinstance(before, Mapping) else {}
        end = after if isinstance(after, Mapping) else {}
        return {name: count - start.get(name, 0) for name, count in end.items()}

    def to_json(self) -> dict[str, Any]:
        """Return all fields but the infos, which recordings hold."""
        facts = asdict(self)
        del facts["first_info"], facts["info"]
        return facts

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> EvaluatedEpisode:
        """Return what `to_json` was called on, without its infos; unknown fields are ignored."""
        known = {option.name for option in fields(cls)}
        return cls(**{name: value for name, value in facts.items() if name in known})
