"""Where env runners begin: a run that goes on plays the episodes that come next, not its first.

Runners report how far they have come, and the newest of these reports is saved with a checkpoint.
What a runner had played beyond it counts as not played: nothing was trained on it.
"""

from __future__ import annotations

from typing import Any

from rllib_minestudio.algorithms.rollout_report import RolloutReport, RolloutStart, RunnerProgress
from rllib_minestudio.episode_seeds import derived_seed


class RolloutStarts:
    """Remembers how far each env runner has come.

    Args:
        seed: What the run's episodes derive from.
        trial: Number of this run among those of a search; None if it is alone.
    """

    def __init__(self, seed: int, trial: int | None = None) -> None:
        """Begin a run."""
        self._seed = seed
        self._trial = trial
        self._is_copy = False
        self._restores = 0
        self._progress: dict[int, RunnerProgress] = {}

    def of(self, worker_index: int) -> RolloutStart:
        """Where an env runner begins, if it has not begun."""
        # The copy of another trial would play on in that one's worlds, side by side with it.
        seed = derived_seed(self._seed, self._trial or 0) if self._is_copy else self._seed
        progress = self._progress.get(worker_index, RunnerProgress())
        return RolloutStart(self._restores, seed, progress)

    def note(self, report: RolloutReport) -> None:
        """Remember how far a runner has come, if it is a runner of the present state."""
        if report.restores == self._restores:
            self._progress[report.worker_index] = report.progress

    def get_state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        progress = {
            str(index): {"rollouts": runner.rollouts, "unplayed": list(runner.unplayed)}
            for index, runner in self._progress.items()
        }
        return {"trial": self._trial, "is_copy": self._is_copy, "env_runners": progress}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint: all env runners begin there with their next rollout.

        Args:
            state: Of this run, or of another trial of the same search, which this one copies.
        """
        others = state["trial"] is not None and state["trial"] != self._trial
        self._is_copy = self._trial is not None and (others or state["is_copy"])
        self._restores += 1
        self._progress = {
            int(index): RunnerProgress(runner["rollouts"], tuple(runner["unplayed"]))
            for index, runner in state["env_runners"].items()
        }


def trial_number(trial_id: str | None) -> int | None:
    """The number in an identifier that Tune gives a trial, as 2 in `f1c5a_00002`; None without."""
    _, underscore, number = (trial_id or "").rpartition("_")
    return int(number) if underscore and number.isdecimal() else None
