"""Says early in a run whether the agent learns: its return beside the random policy's."""

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ray import tune

from rllib_minestudio.console import clock, stdout
from rllib_minestudio.experiments.outputs.progress import fraction_done, trial_label
from rllib_minestudio.experiments.outputs.result_metrics import (
    ENV_STEPS,
    ITERATION,
    TOTAL_SECONDS,
    metric,
)
from rllib_minestudio.experiments.outputs.run_curves import read_history

ENTROPY = "learners/default_policy/entropy"

CONFIDENCE = 0.99
"""Every iteration is another look, so that 95 % would soon be reached by chance."""

FEWEST_EPISODES = 10
"""Of the agent's, before its mean is compared."""

PART_OF_RUN = 0.25
"""So far into a run, it is said if the agent is no better than the random policy."""

SECONDS_OF_ENDLESS_RUN = 600.0
"""The same for a run that nothing but a return bounds."""

LEAST_FALL = 0.02
"""A policy whose entropy has fallen by less, relative to the first, has hardly moved."""

PAGE = "docs/learning.md, 'When nothing is learned'"


class Returns(NamedTuple):
    """What is known of an agent's last episodes."""

    mean: float
    least: float
    most: float
    episodes: int


def margin(agent: Returns, random_returns: Sequence[float]) -> float:
    """How far apart the two mean returns may lie by chance, at `CONFIDENCE`.

    Welch's t interval with the fewer degrees of freedom. Of the agent's returns only mean and
    extremes are known; their variance is at most (most - mean)(mean - least) (Bhatia and Davis
    2000, "A better bound on the variance"). So one success in twenty episodes proves nothing beside
    a random policy that has none.

    Args:
        agent: Its last episodes.
        random_returns: Of two episodes or more.
    """
    from scipy.special import stdtrit  # Student's t; all of scipy.stats takes a second to import

    count = len(random_returns)
    most_variance = max(0.0, (agent.most - agent.mean) * (agent.mean - agent.least))
    error = math.sqrt(
        statistics.variance(random_returns) / count + most_variance / (agent.episodes - 1)
    )
    return float(stdtrit(min(count, agent.episodes) - 1, (1 + CONFIDENCE) / 2)) * error


def what_to_look_at(
    agent: Returns, low: float, entropy: float | None, first_entropy: float | None
) -> str:
    """Choose the advice that fits the numbers of a run that does not learn.

    Args:
        agent: Its last episodes.
        low: A mean return below this is worse than the random policy's.
        entropy: Of the policy now, in nats.
        first_entropy: The same in the first iteration.
    """
    if agent.least == agent.most == 0.0:
        return "no episode had any reward: learn from demonstrations first, or reward smaller steps"
    if agent.mean < low:
        return "it is worse than random: a lower lr, or a higher kl_coeff or entropy_coeff"
    if entropy is None or not first_entropy:
        return "see the metrics of the learner"
    moved = f"its entropy is {entropy:.2f} nats, {first_entropy:.2f} at first"
    if entropy > (1 - LEAST_FALL) * first_entropy:
        return (
            f"the policy has hardly moved ({moved}): a higher lr, more steps of the optimizer, "
            "or a lower entropy_coeff"
        )
    return (
        f"the policy moves ({moved}), so far to no use: give it time, larger "
        "fragments_per_iteration with a lower entropy_coeff, or a lower lr"
    )


def _first_entropy(trial: Any, result: Mapping[str, Any]) -> float | None:
    """Look up a trial's first entropy: in its history, if it was resumed and this is not the first.

    Args:
        trial: Tune's.
        result: The first of this process.
    """
    is_resumed = (metric(result, ITERATION) or 1) > 1
    results = [*(read_history(Path(trial.path)) if is_resumed else []), result]
    return next((e for r in results if (e := metric(r, ENTROPY)) is not None), None)


class LearningSigns(tune.Callback):
    """Prints a line when a trial is better than the random policy, or one that it is not yet.

    Ray pickles it into the experiment's folder, as it does every callback.
    """

    def __init__(
        self,
        stop: Mapping[str, float],
        searched: Sequence[tuple[Any, ...]],
        random_returns: Sequence[float],
        window: int,
    ) -> None:
        """Remember what to compare with.

        Args:
            stop: The criteria that end a trial.
            searched: Paths of the settings that tell the trials apart.
            random_returns: Of the random policy's episodes; without two of them nothing is said.
            window: Over how many episodes a trial's mean return goes at most.
        """
        self._stop = dict(stop)
        self._searched = list(searched)
        self._random_returns = list(random_returns)
        self._window = window
        self._first_entropy: dict[str, float | None] = {}
        self._learns: set[str] = set()
        self._told: set[str] = set()

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Tune calls this with each iteration's result."""
        name = trial.trial_id
        if name not in self._first_entropy:
            self._first_entropy[name] = _first_entropy(trial, result)
        elif self._first_entropy[name] is None:  # MineStudioBC has none at all
            self._first_entropy[name] = metric(result, ENTROPY)
        if name in self._learns or len(self._random_returns) < 2:
            return
        line = self._compared(result, name)
        if line is not None:
            stdout.print(" ".join([trial_label(trial, self._searched), line]).strip())

    def _compared(self, result: Mapping[str, Any], name: str) -> str | None:
        """Write what there is to say about a trial now; None for nothing."""
        agent = self._last_episodes(result)
        if agent is None:
            return None
        chance, random = margin(agent, self._random_returns), statistics.fmean(self._random_returns)
        beside = (
            f"a return of {agent.mean:.2f} in the last {agent.episodes} episodes, the random "
            f"policy {random:.2f} in {len(self._random_returns)}; by chance they may differ by "
            f"{chance:.2f} ({CONFIDENCE:.0%}). So far: "
            f"{clock(metric(result, 'time_total_s') or 0.0)} and "
            f"{metric(result, ENV_STEPS) or 0:,.0f} steps"
        )
        if agent.mean > random + chance:
            self._learns.add(name)
            return f"It learns: {beside}."
        if name in self._told or not self._is_time(result):
            return None
        self._told.add(name)
        entropy = metric(result, ENTROPY)
        first = self._first_entropy.get(name)
        advice = what_to_look_at(agent, random - chance, entropy, first)
        return f"It does not learn yet: {beside}. Look at this: {advice} ({PAGE})."

    def _last_episodes(self, result: Mapping[str, Any]) -> Returns | None:
        """What a result says of the last episodes; None if they are too few."""
        names = ("mean", "min", "max")
        values = [metric(result, f"env_runners/episode_return_{name}") for name in names]
        ended = int(metric(result, "env_runners/episode_count") or 0)
        if None in values or ended < FEWEST_EPISODES:
            return None
        mean, least, most = (float(value) for value in values if value is not None)
        return Returns(mean, least, most, min(self._window, ended))

    def _is_time(self, result: Mapping[str, Any]) -> bool:
        """Whether an agent might be expected to have learned something."""
        if fraction_done(result, self._stop) > 0:
            return fraction_done(result, self._stop) >= PART_OF_RUN
        return (metric(result, TOTAL_SECONDS) or 0.0) >= SECONDS_OF_ENDLESS_RUN
