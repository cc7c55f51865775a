"""Progress output of a training run, as Ray Tune callbacks in the driver."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ray import tune
from ray.tune.experiment import Trial
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rllib_minestudio.algorithms.reporting import activity_of, key_of_trial, warnings_of
from rllib_minestudio.experiments.experiment_file import value_at
from rllib_minestudio.experiments.result_metrics import ENV_STEPS, ITERATION, TOTAL_SECONDS, metric
from rllib_minestudio.experiments.summary import read_history
from rllib_minestudio.foundation.console import (
    SECONDS_BETWEEN_MESSAGES,
    clock,
    notices,
    rounded,
    short,
    stdout,
)

SECONDS_BETWEEN_LINES = {"terminal": 2.0, "log": 10.0}
"""Least time between lines about a trial, whose iterations may take a fraction of a second."""

SECONDS_BETWEEN_LOOKS = 1.0
"""How often the trials' current activity is polled."""

MOST_WATCHED = 16
"""Most trials that are polled each time."""

LINES_BETWEEN_HEADERS = 20

WARNINGS_FILE = "warnings.txt"
"""File in a trial's folder with what its processes have warned of, a line for each."""

KL = "learners/default_policy/kl_to_prior"
LOSS = "learners/default_policy/loss"
COLUMNS = (
    ("return", "env_runners/episode_return_mean", "{:.2f}", 8),
    ("kl", KL, "{:.3f}", 7),
    ("entropy", "learners/default_policy/entropy", "{:.2f}", 8),
    ("loss", LOSS, "{:.3f}", 8),
    ("held-out", "learners/default_policy/validation_loss", "{:.3f}", 9),
)
"""(label, metric, format, width). A line has those that its first result has: there is no KL
without a prior, and only cloning has the losses. A metric that is missing later is shown as "-"."""


def fraction_done(result: Mapping[str, Any], stop: Mapping[str, float]) -> float:
    """Return a trial's progress towards its nearest stop criterion, from 0 to 1.

    Only steadily growing criteria count; a target return does not bound the time.
    """
    steady = (TOTAL_SECONDS, ITERATION, ENV_STEPS)
    fractions = [
        (metric(result, name) or 0.0) / stop[name] for name in steady if stop.get(name, 0) > 0
    ]
    return min(1.0, max(fractions, default=0.0))


def seconds_left(result: Mapping[str, Any], stop: Mapping[str, float]) -> float | None:
    """Estimate the training time left from the pace so far; None if nothing bounds it."""
    done = fraction_done(result, stop)
    elapsed = metric(result, TOTAL_SECONDS) or 0.0
    return elapsed * (1.0 - done) / done if done > 0 and elapsed > 0 else None


class Lines:
    """The lines about a run's iterations, in columns below a header.

    Args:
        stop: The criteria that end a trial.
        random_return: The random policy's mean return; None if it is not known.
    """

    def __init__(self, stop: Mapping[str, float], random_return: float | None) -> None:
        self._stop = stop
        self._random = random_return
        self._columns: list[tuple[str, str, str, int]] = []

    def header(self, result: Mapping[str, Any]) -> str:
        """Return the line of labels for the columns that a result has."""
        self._columns = [
            column
            for column in COLUMNS
            if column[0] == "return" or metric(result, column[1]) is not None
        ]
        cells = [f"{'iter':>5}", f"{'steps':>11}", f"{'steps/s':>8}"]
        for label, _, _, width in self._columns:
            cells.append(f"{label:>{width}}")
            if label == "return" and self._random is not None:
                cells.append(f"{'random':>7}")
        return "".join([*cells, f"{'time':>8}", f"{'left':>8}"])

    def line(self, result: Mapping[str, Any], steps_per_second: float | None) -> str:
        """Return the line of an iteration; `header` has to be called before.

        Args:
            result: Tune's result of the iteration.
            steps_per_second: Environment steps per second of training time; None if unknown.
        """
        pace = "-" if steps_per_second is None else f"{steps_per_second:,.0f}"
        steps = int(metric(result, ENV_STEPS) or 0)
        cells = [f"{int(metric(result, ITERATION) or 0):>5}", f"{steps:>11,}", f"{pace:>8}"]
        for label, path, layout, width in self._columns:
            value = metric(result, path)
            cells.append(f"{'-' if value is None else rounded(value, layout):>{width}}")
            if label == "return" and self._random is not None:
                cells.append(f"{self._random:>7.2f}")
        elapsed, left = metric(result, TOTAL_SECONDS) or 0.0, seconds_left(result, self._stop)
        cells.append(f"{clock(elapsed):>8}{'-' if left is None else clock(left):>8}")
        return "".join(cells)


def evaluation_line(result: Mapping[str, Any]) -> str | None:
    """Format a result's evaluation, with the 95 % interval of success; None if it has none."""

    def found(name: str) -> float | None:
        return metric(result, f"evaluation/env_runners/{name}")

    episodes, mean = found("num_episodes"), found("episode_return_mean")
    if episodes is None or mean is None:
        return None
    number = int(metric(result, ITERATION) or 0)
    line = f"{number:>5}  evaluated {episodes:.0f} episodes: return {mean:.2f}"
    rate, low, high = map(found, ("success_rate", "success_rate_low", "success_rate_high"))
    if rate is None or low is None or high is None:
        return line
    return f"{line}, success {rate:.0%} ({low:.0%} to {high:.0%})"


def within_iteration(trial: Any, doing: str, seconds: float) -> str:
    """Format what a trial is doing within its current iteration.

    Args:
        trial: Tune's trial.
        doing: Its activity, from `activity_of`.
        seconds: Seconds since its last result, or since its start.
    """
    number = int(metric(trial.last_result or {}, ITERATION) or 0) + 1
    return f"{number:>5}  {doing}, for {clock(seconds)}"


def trial_label(trial: Any, searched: Sequence[tuple[Any, ...]]) -> str:
    """Return a label of a trial's searched settings; "" if nothing is searched.

    Args:
        trial: Tune's trial.
        searched: Paths of the searched settings in its config.
    """
    settings = [
        f"{'.'.join(map(str, path))}={short(value_at(trial.config, path))}" for path in searched
    ]
    return f"[{', '.join(settings)}]" if settings else ""


class TrainingProgress(tune.Callback):
    """A callback that prints a line per iteration, rate-limited, and the activity within long ones.

    On a terminal the activity is shown on a progress bar, elsewhere as lines.

    Ray pickles the callback into the experiment's folder and unpickles it on `--resume`, so the
    live display is created when training starts and is not part of its state.
    """

    def __init__(
        self,
        stop: Mapping[str, float],
        searched: list[tuple[Any, ...]],
        random_return: float | None = None,
    ) -> None:
        """Set what the lines show.

        Args:
            stop: The criteria that end a trial.
            searched: Paths of the searched settings.
            random_return: The random policy's mean return; None if it is not known.
        """
        self._stop = dict(stop)
        self._searched = list(searched)
        self._random_return = random_return
        self._forget()

    def _forget(self) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, Any] = {}
        self._last: dict[str, tuple[float, float]] = {}
        self._last_printed: dict[str, float] = {}
        self._last_result: dict[str, float] = {}
        self._evaluations: dict[str, float | None] = {}
        self._warned: dict[str, int] = {}
        self._last_line = self._last_look = -math.inf
        self._lines, self._until_header = Lines(self._stop, self._random_return), 0

    def __getstate__(self) -> dict[str, Any]:
        """Return only what describes the experiment."""
        return {
            "stop": self._stop,
            "searched": self._searched,
            "random_return": self._random_return,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start again with the described experiment."""
        self.__init__(**state)  # type: ignore[misc]

    def setup(self, **info: Any) -> None:
        """Open the live display on a terminal; Tune calls this before the first trial."""
        if notices.is_terminal and not notices.quiet:
            label = TextColumn("{task.description}", markup=False)
            self._bars = Progress(
                label, BarColumn(), TimeElapsedColumn(), console=notices, transient=True
            )
            self._bars.start()

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Update the bar; Tune calls this when a trial has built its algorithm."""
        self._show_on_bar(trial, "")

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Show the activity within iterations; Tune calls this several times a second."""
        now = time.monotonic()
        if now - self._last_look < SECONDS_BETWEEN_LOOKS:
            return
        self._last_look = now
        # A trial stays pending while its process starts, which takes longest.
        under_way = [trial for trial in trials if trial.status == Trial.RUNNING]
        under_way += [trial for trial in trials if trial.status == Trial.PENDING]
        for trial in under_way[:MOST_WATCHED]:
            since = self._last_result.setdefault(trial.trial_id, now)
            self._tell_warnings(trial)
            doing = activity_of(key_of_trial(trial))
            if not doing and trial is under_way[0]:
                doing = "starting its process"
            if doing:
                self._tell_within(trial, within_iteration(trial, doing, now - since), now - since)

    def _tell_warnings(self, trial: Any) -> None:
        """Print what a trial's processes have warned of, and keep it in `WARNINGS_FILE`."""
        for process, number, text in warnings_of(key_of_trial(trial)):
            if number > self._warned.get(process, 0):
                self._warned[process] = number
                label = trial_label(trial, self._searched)
                stdout.print(f"{label} warning: {text}".strip(), style="yellow")
                with suppress(OSError), (Path(trial.path) / WARNINGS_FILE).open("a") as file:
                    file.write(f"{text}\n")

    def _tell_within(self, trial: Any, text: str, seconds: float) -> None:
        """Show a trial's activity on its bar, or, without bars, on a line if it takes long."""
        now = time.monotonic()
        if self._bars is not None:
            self._show_on_bar(trial, text)
        elif min(seconds, now - self._last_line) >= SECONDS_BETWEEN_MESSAGES:
            self._last_line = now
            self._print(trial, text)

    def _show_on_bar(self, trial: Any, text: str) -> None:
        if self._bars is None:
            return
        words = ["training", trial_label(trial, self._searched), text]
        if trial.trial_id not in self._tasks:
            self._tasks[trial.trial_id] = self._bars.add_task("", total=1.0)
        self._bars.update(self._tasks[trial.trial_id], description=" ".join(filter(None, words)))

    def _print(self, trial: Any, line: str) -> None:
        notices.print(f"{line}  {trial_label(trial, self._searched)}".rstrip())

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Print a trial's metrics; Tune calls this with each iteration's result."""
        name, now = trial.trial_id, time.monotonic()
        self._last_result[name] = now
        if self._bars is not None and name in self._tasks:
            self._bars.update(self._tasks[name], completed=fraction_done(result, self._stop))
        self._tell_evaluation(trial, result)
        pause = SECONDS_BETWEEN_LINES["terminal" if notices.is_terminal else "log"]
        finished = fraction_done(result, self._stop) >= 1.0
        if not finished and now - self._last_printed.get(name, -math.inf) < pause:
            return
        self._last_printed[name] = self._last_line = now
        if self._until_header == 0:
            notices.print(self._lines.header(result), style="bold")
            self._until_header = LINES_BETWEEN_HEADERS
        self._until_header -= 1
        self._print(trial, self._lines.line(result, self._pace(name, result)))

    def _tell_evaluation(self, trial: Any, result: Mapping[str, Any]) -> None:
        """Print an evaluation once, regardless of the rate limit."""
        line = evaluation_line(result)
        seconds = metric(result, "evaluation/env_runners/seconds")
        if line is not None and seconds != self._evaluations.get(trial.trial_id):
            self._evaluations[trial.trial_id] = seconds  # results repeat the last evaluation
            self._print(trial, line)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Print that a trial failed; Tune calls this."""
        self._tell_warnings(trial)
        name = trial_label(trial, self._searched) or "The trial"
        stdout.print(f"{name} failed", style="red", markup=False)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Print the last warnings; Tune calls this when a trial has trained to its end."""
        self._tell_warnings(trial)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Close the live display; Tune calls this at the end."""
        if self._bars is not None:
            self._bars.stop()
        self._forget()

    def _pace(self, name: str, result: Mapping[str, Any]) -> float | None:
        """Return the steps per second of training time since the last printed line."""
        steps, seconds = metric(result, ENV_STEPS), metric(result, TOTAL_SECONDS)
        if steps is None or seconds is None:
            return None
        steps_before, seconds_before = self._last.get(name, (0.0, 0.0))
        self._last[name] = (steps, seconds)
        return (steps - steps_before) / max(seconds - seconds_before, 1e-9)


# ----------------------------------------------------------------- signs of learning early in a run
# The agent's return is compared with the random policy's.

ENTROPY = "learners/default_policy/entropy"

CONFIDENCE = 0.99
"""Every iteration is another test, so 95 % would soon be reached by chance."""

FEWEST_EPISODES = 10
"""Episodes of the agent before its mean return is compared."""

PART_OF_RUN = 0.25
"""Fraction of a run after which a missing improvement over the random policy is reported."""

FEWEST_ITERATIONS = 20
"""Iterations before that, however short the run: a few updates are no evidence."""

SECONDS_OF_ENDLESS_RUN = 600.0
"""The same in seconds, for a run bounded only by a return."""

LEAST_FALL = 0.02
"""A smaller relative decrease of the entropy means that the policy has hardly changed."""

PAGE = "docs/learning.md, 'When nothing is learned'"


class Returns(NamedTuple):
    """Statistics of the returns of an agent's last episodes."""

    mean: float
    least: float
    most: float
    episodes: int


def margin(agent: Returns, random_returns: Sequence[float]) -> float:
    """Return how far the two mean returns may differ by chance, at `CONFIDENCE`.

    This is Welch's t interval with the smaller degrees of freedom. Only mean and extremes of the
    agent's returns are known; their variance is at most (most - mean)(mean - least) (Bhatia and
    Davis 2000, "A better bound on the variance"). So one success in twenty episodes is no evidence
    against a random policy with none.

    Args:
        agent: The agent's last episodes.
        random_returns: Returns of at least two episodes of the random policy.
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
    """Return advice for a run that does not learn, based on its metrics.

    Args:
        agent: The agent's last episodes.
        low: A mean return below this is worse than the random policy's.
        entropy: Entropy of the policy, in nats.
        first_entropy: Its entropy in the first iteration.
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
        f"the policy changes ({moved}), but does not improve yet: give it time, larger "
        "fragments_per_iteration with a lower entropy_coeff, or a lower lr"
    )


def _first_entropy(trial: Any, result: Mapping[str, Any]) -> float | None:
    """Return a trial's first entropy, from its history if it was resumed.

    Args:
        trial: Tune's trial.
        result: The first result in this process.
    """
    is_resumed = (metric(result, ITERATION) or 1) > 1
    results = [*(read_history(Path(trial.path)) if is_resumed else []), result]
    return next((e for r in results if (e := metric(r, ENTROPY)) is not None), None)


class LearningSigns(tune.Callback):
    """A callback that prints once whether a trial is better than the random policy, or not yet.

    Ray pickles it into the experiment's folder, like every callback.
    """

    def __init__(
        self,
        stop: Mapping[str, float],
        searched: Sequence[tuple[Any, ...]],
        random_returns: Sequence[float],
        window: int,
    ) -> None:
        """Set what to compare with.

        Args:
            stop: The criteria that end a trial.
            searched: Paths of the searched settings.
            random_returns: The random policy's returns; with fewer than two, nothing is printed.
            window: Largest number of episodes that a trial's mean return averages.
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
        """Compare a trial with the random policy; Tune calls this with each result."""
        name = trial.trial_id
        if name not in self._first_entropy:
            self._first_entropy[name] = _first_entropy(trial, result)
        elif self._first_entropy[name] is None:  # MineStudioBC never reports one
            self._first_entropy[name] = metric(result, ENTROPY)
        if name in self._learns or len(self._random_returns) < 2:
            return
        line = self._compared(result, name)
        if line is not None:
            notices.print(" ".join([trial_label(trial, self._searched), line]).strip())

    def _compared(self, result: Mapping[str, Any], name: str) -> str | None:
        """Return the line to print about a trial now, or None."""
        agent = self._last_episodes(result)
        if agent is None:
            return None
        chance, random = margin(agent, self._random_returns), statistics.fmean(self._random_returns)
        found = (
            f"a return of {agent.mean:.2f} in the last {agent.episodes} episodes, the random "
            f"policy {random:.2f} in {len(self._random_returns)}; by chance they may differ by "
            f"{chance:.2f} ({CONFIDENCE:.0%}). So far: "
            f"{clock(metric(result, 'time_total_s') or 0.0)} and "
            f"{metric(result, ENV_STEPS) or 0:,.0f} steps"
        )
        if agent.mean > random + chance:
            self._learns.add(name)
            return f"It learns: {found}."
        if name in self._told or not self._is_time(result):
            return None
        self._told.add(name)
        entropy = metric(result, ENTROPY)
        first = self._first_entropy.get(name)
        advice = what_to_look_at(agent, random - chance, entropy, first)
        return f"It does not learn yet: {found}. What to try: {advice} ({PAGE})."

    def _last_episodes(self, result: Mapping[str, Any]) -> Returns | None:
        """Return a result's statistics of the last episodes; None if they are too few."""
        names = ("mean", "min", "max")
        values = [metric(result, f"env_runners/episode_return_{name}") for name in names]
        ended = int(metric(result, "env_runners/episode_count") or 0)
        if None in values or ended < FEWEST_EPISODES:
            return None
        mean, least, most = (float(value) for value in values if value is not None)
        return Returns(mean, least, most, min(self._window, ended))

    def _is_time(self, result: Mapping[str, Any]) -> bool:
        """Return whether an agent should have learned something by now."""
        if (metric(result, ITERATION) or 0) < FEWEST_ITERATIONS:
            return False
        if fraction_done(result, self._stop) > 0:
            return fraction_done(result, self._stop) >= PART_OF_RUN
        return (metric(result, TOTAL_SECONDS) or 0.0) >= SECONDS_OF_ENDLESS_RUN
