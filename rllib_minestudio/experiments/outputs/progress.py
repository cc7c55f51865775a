"""The lines that tell how a training run is going, as a Ray Tune callback in the driver."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ray import tune
from ray.tune.experiment import Trial
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rllib_minestudio.algorithms.activity import activity_of, key_of_trial
from rllib_minestudio.console import SECONDS_BETWEEN_MESSAGES, clock, rounded, short, stdout
from rllib_minestudio.experiments.outputs.result_metrics import (
    ENV_STEPS,
    ITERATION,
    TOTAL_SECONDS,
    metric,
)
from rllib_minestudio.experiments.reading.assignments import value_at

SECONDS_BETWEEN_LINES = {"terminal": 2.0, "log": 10.0}
"""Lines about one trial come no faster than this; iterations can take a fraction of a second."""

SECONDS_BETWEEN_LOOKS = 1.0
"""How often it is looked up what trials do within their iterations."""

MOST_WATCHED = 16
"""Trials that are looked at each time."""

COLUMNS = (
    ("return", "env_runners/episode_return_mean", "{:.2f}"),
    ("kl", "learners/default_policy/kl_to_prior", "{:.3f}"),
    ("entropy", "learners/default_policy/entropy", "{:.2f}"),
    ("staleness", "replay_buffer/staleness_mean", "{:.1f}"),
    ("learner busy", "busy_fraction/learner", "{:.0%}"),
)
"""(name on the line, metric, format); a metric that a result lacks shows as "-"."""

CLONING_COLUMNS = (
    ("return", "env_runners/episode_return_mean", "{:.2f}"),
    ("loss", "learners/default_policy/loss", "{:.3f}"),
    ("validation loss", "learners/default_policy/validation_loss", "{:.3f}"),
)
"""The same for runs that imitate; the loss of the buttons tells them apart."""


def fraction_done(result: Mapping[str, Any], stop: Mapping[str, float]) -> float:
    """Return how far a trial is towards its nearest stop criterion, from 0 to 1.

    Only criteria that grow steadily count; a return to be reached says nothing about time.
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


def progress_line(
    result: Mapping[str, Any], stop: Mapping[str, float], steps_per_second: float | None
) -> str:
    """Write one iteration's numbers on one line."""
    cells = [
        f"iteration {int(metric(result, 'training_iteration') or 0):4d}",
        f"{int(metric(result, ENV_STEPS) or 0):,} steps",
        "- steps/s" if steps_per_second is None else f"{steps_per_second:,.0f} steps/s",
    ]
    clones = metric(result, "learners/default_policy/buttons") is not None
    for name, path, layout in CLONING_COLUMNS if clones else COLUMNS:
        value = metric(result, path)
        cells.append(f"{name} {'-' if value is None else rounded(value, layout)}")
    elapsed, left = metric(result, TOTAL_SECONDS) or 0.0, seconds_left(result, stop)
    cells.append(clock(elapsed) + (f", {clock(left)} left" if left is not None else ""))
    return "  ".join(cells)


def evaluation_line(result: Mapping[str, Any]) -> str | None:
    """Write what an evaluation found, and the 95 % interval of its success rate; None without one.

    Args:
        result: Of the iteration after which it was made.
    """

    def found(name: str) -> float | None:
        return metric(result, f"evaluation/env_runners/{name}")

    episodes, mean = found("num_episodes"), found("episode_return_mean")
    if episodes is None or mean is None:
        return None
    number = int(metric(result, ITERATION) or 0)
    line = f"iteration {number:4d}  evaluated: {episodes:.0f} episodes  return {mean:.2f}"
    rate, low, high = map(found, ("success_rate", "success_rate_low", "success_rate_high"))
    if rate is None or low is None or high is None:
        return line
    return f"{line}  success {rate:.0%} ({low:.0%} to {high:.0%})"


def within_iteration(trial: Any, doing: str, seconds: float) -> str:
    """Say what a trial is doing until its next result.

    Args:
        trial: Tune's.
        doing: What `activity_of` it says.
        seconds: Since its last result, or since it began.
    """
    number = int(metric(trial.last_result or {}, ITERATION) or 0) + 1
    return f"iteration {number:4d}  {doing}  {clock(seconds)}"


def trial_label(trial: Any, searched: Sequence[tuple[Any, ...]]) -> str:
    """Name a trial by the settings that tell it from the others; "" if it is alone.

    Args:
        trial: Tune's.
        searched: The paths of those settings in its config.
    """
    settings = [
        f"{'.'.join(map(str, path))}={short(value_at(trial.config, path))}" for path in searched
    ]
    return f"[{', '.join(settings)}]" if settings else ""


class TrainingProgress(tune.Callback):
    """Prints a line per iteration, rate-limited, and others within iterations that take long.

    On a terminal a bar below the lines says what is going on; elsewhere lines do.

    Ray pickles it into the experiment's folder and unpickles it on `--resume`, so the live
    display is made when training starts and is no part of its state.
    """

    def __init__(self, stop: Mapping[str, float], searched: list[tuple[Any, ...]]) -> None:
        """Remember the stop criteria, and which settings tell the trials apart."""
        self._stop = dict(stop)
        self._searched = list(searched)
        self._forget()

    def _forget(self) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, Any] = {}
        self._last: dict[str, tuple[float, float]] = {}
        self._last_printed: dict[str, float] = {}
        self._last_result: dict[str, float] = {}
        self._evaluations: dict[str, float | None] = {}
        self._last_line = self._last_look = -math.inf

    def __getstate__(self) -> dict[str, Any]:
        """Keep only what describes the experiment."""
        return {"stop": self._stop, "searched": self._searched}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start afresh with the described experiment."""
        self.__init__(state["stop"], state["searched"])  # type: ignore[misc]

    def setup(self, **info: Any) -> None:
        """Tune calls this before the first trial: open the live display on a terminal."""
        if stdout.is_terminal:
            label = TextColumn("{task.description}", markup=False)
            self._bars = Progress(
                label, BarColumn(), TimeElapsedColumn(), console=stdout, transient=True
            )
            self._bars.start()

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Tune calls this when a trial has built its algorithm, and again after a failure."""
        self._show_on_bar(trial, "")

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Tune calls this several times a second: say what goes on within iterations."""
        now = time.monotonic()
        if now - self._last_look < SECONDS_BETWEEN_LOOKS:
            return
        self._last_look = now
        # A trial is pending while its process starts, which takes longest of all, and before.
        under_way = [trial for trial in trials if trial.status == Trial.RUNNING]
        under_way += [trial for trial in trials if trial.status == Trial.PENDING]
        for trial in under_way[:MOST_WATCHED]:
            since = self._last_result.setdefault(trial.trial_id, now)
            doing = activity_of(key_of_trial(trial))
            if not doing and trial is under_way[0]:
                doing = "starting its process"
            if doing:
                self._tell_within(trial, within_iteration(trial, doing, now - since), now - since)

    def _tell_within(self, trial: Any, text: str, seconds: float) -> None:
        """Write what a trial is doing on its bar; without bars on a line if it takes long."""
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
        # The label's brackets are no markup.
        stdout.print(" ".join([trial_label(trial, self._searched), line]).strip(), markup=False)

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Tune calls this with each iteration's result."""
        name, now = trial.trial_id, time.monotonic()
        self._last_result[name] = now
        if self._bars is not None and name in self._tasks:
            self._bars.update(self._tasks[name], completed=fraction_done(result, self._stop))
        self._tell_evaluation(trial, result)
        pause = SECONDS_BETWEEN_LINES["terminal" if stdout.is_terminal else "log"]
        finished = fraction_done(result, self._stop) >= 1.0
        if not finished and now - self._last_printed.get(name, -math.inf) < pause:
            return
        self._last_printed[name] = self._last_line = now
        self._print(trial, progress_line(result, self._stop, self._pace(name, result)))

    def _tell_evaluation(self, trial: Any, result: Mapping[str, Any]) -> None:
        """Write what an evaluation found, once, however soon after another line it comes."""
        line = evaluation_line(result)
        seconds = metric(result, "evaluation/env_runners/seconds")
        if line is not None and seconds != self._evaluations.get(trial.trial_id):
            self._evaluations[trial.trial_id] = seconds  # never twice the same; results may be
            self._print(trial, line)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Tune calls this when a trial fails."""
        name = trial_label(trial, self._searched) or "The trial"
        stdout.print(f"{name} failed", style="red", markup=False)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Tune calls this at the very end: close the live display."""
        if self._bars is not None:
            self._bars.stop()
        self._forget()

    def _pace(self, name: str, result: Mapping[str, Any]) -> float | None:
        """Return steps per second of training time since the last line printed."""
        steps, seconds = metric(result, ENV_STEPS), metric(result, TOTAL_SECONDS)
        if steps is None or seconds is None:
            return None
        steps_before, seconds_before = self._last.get(name, (0.0, 0.0))
        self._last[name] = (steps, seconds)
        return (steps - steps_before) / max(seconds - seconds_before, 1e-9)
