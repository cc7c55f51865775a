"""The `scheduler` of an experiment: which of a search's trials are stopped early.

    scheduler: {asha: {grace_period: 20000, max_t: 100000, reduction_factor: 3}}

One name of `SCHEDULERS`, with the arguments of Tune's class. Trials are compared by their return
after equal numbers of environment steps, unless the arguments say otherwise.
"""

import inspect
import math
from typing import Any

from ray.tune.schedulers import ASHAScheduler, MedianStoppingRule, TrialScheduler

from rllib_minestudio.experiments.outputs.result_metrics import ENV_STEPS, RETURN
from rllib_minestudio.experiments.reading.experiment_file import Experiment
from rllib_minestudio.experiments.reading.small_sections import METRIC_GROUPS, STOP_METRICS
from rllib_minestudio.option_checks import broken_rule, unknown_name


class _SkipsUnmeasured:
    """Lets trials train on whose results lack the metric, as before their first episode has ended.

    Tune's own schedulers would fail, or compare a NaN. Nothing is said of such a trial, and it is
    compared as soon as there is something to compare.
    """

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """Judge a result, if it holds the metric."""
        if self._is_measured(result):
            decision: str = super().on_trial_result(tune_controller, trial, result)  # type: ignore[misc]
            return decision
        return str(TrialScheduler.CONTINUE)

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """Note a trial's last result, if it holds the metric."""
        if self._is_measured(result):
            super().on_trial_complete(tune_controller, trial, result)  # type: ignore[misc]

    def _is_measured(self, result: dict[str, Any]) -> bool:
        value = result.get(self.metric)  # type: ignore[attr-defined]
        return value is not None and not math.isnan(value)


class _ASHA(_SkipsUnmeasured, ASHAScheduler):
    """Asynchronous successive halving (Li et al. 2018, "Massively Parallel Hyperparameter Tuning").

    Args:
        time_attr: The metric that `max_t` and `grace_period` are given in; trials are compared at
            equal values of it.
        metric: The metric trials are compared by.
        mode: `max` if larger is better, otherwise `min`.
        max_t: Where a trial that never falls behind ends.
        grace_period: No trial is stopped before this point.
        reduction_factor: At each comparison, one in this many trials goes on. The first comparison
            is at `grace_period`, each later one at this many times the point before.
        brackets: Number of groups of trials; each group's first comparison comes later than that
            of the group before.
        stop_last_trials: Whether trials that reach `max_t` end there.
    """


class _MedianStopping(_SkipsUnmeasured, MedianStoppingRule):
    """Stops what is worse than the median of the others (Golovin et al. 2017, "Google Vizier").

    Args:
        time_attr: The metric that `grace_period` is given in; trials are compared at equal values
            of it.
        metric: The metric trials are compared by: a trial is stopped if its best value so far is
            worse than the median of the other trials' running means.
        mode: `max` if larger is better, otherwise `min`.
        grace_period: No trial is stopped before this point, and earlier results do not count
            towards the means.
        min_samples_required: Number of other trials without which no trial is stopped.
        min_time_slice: While there are too few trials to compare with: how long a trial runs
            before it makes room for one that waits.
        hard_stop: Whether to stop trials; false pauses them until all others have ended.
    """


SCHEDULERS = {"asha": _ASHA, "median_stopping_rule": _MedianStopping}
"""Those that only stop trials; none that pauses them or changes their options on the way."""

CONFIG_GROUP = "config"
"""Results hold the trial's options, too, below this name."""

DEFAULTS = {"time_attr": ENV_STEPS, "metric": RETURN, "mode": "max"}


def scheduler_options(experiment: Experiment, problems: list[str]) -> dict[str, Any]:
    """Judge the section.

    Args:
        experiment: Its `scheduler` is judged.
        problems: Receives one sentence per problem.

    Returns:
        What `make_scheduler` takes: a name and its arguments; empty for no scheduler.
    """
    section, path = experiment.scheduler, f"{experiment.name}.scheduler"
    if not section:
        return {}
    if len(section) > 1:
        problems.append(broken_rule(path, list(section), f"must be one of {', '.join(SCHEDULERS)}"))
        return {}
    ((name, arguments),) = section.items()
    if name not in SCHEDULERS:
        problems.append(unknown_name("scheduler", str(name), SCHEDULERS, path))
        return {}
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        problems.append(
            broken_rule(f"{path}.{name}", arguments, "must be a mapping of its arguments")
        )
        return {}
    valid = list(inspect.signature(SCHEDULERS[name]).parameters)
    unknown = [key for key in arguments if key not in valid]
    problems += [unknown_name("argument", str(key), valid, f"{path}.{name}") for key in unknown]
    if unknown:
        return {}
    problem = _metric_problem(arguments, f"{path}.{name}")
    if problem:
        problems.append(problem)
        return {}
    try:
        make_scheduler({name: arguments})
    except (TypeError, ValueError, AssertionError) as error:
        reason = str(error).rstrip(".") or "Tune refuses these arguments together"
        problems.append(f"{path}.{name}: {reason}; got {arguments}.")
        return {}
    return {name: arguments}


def _metric_problem(arguments: dict[str, Any], path: str) -> str | None:
    """Complain about a metric that no result ever holds: its trials would never be compared."""
    for name in ("metric", "time_attr"):
        metric = arguments.get(name)
        group, slash, _ = str(metric).partition("/")
        known = metric in STOP_METRICS or (slash and group in (*METRIC_GROUPS, CONFIG_GROUP))
        if metric is not None and not known:
            return unknown_name("metric", str(metric), STOP_METRICS, f"{path}.{name}")
    return None


def scheduled_end(options: dict[str, Any]) -> dict[str, float]:
    """Return metric -> value at which a trial ends that is never behind; empty if none is set."""
    for arguments in options.values():
        if "max_t" in arguments:
            return {arguments.get("time_attr", ENV_STEPS): arguments["max_t"]}
    return {}


def make_scheduler(options: dict[str, Any]) -> Any | None:
    """Build Tune's scheduler out of what `scheduler_options` returned; None for none."""
    if not options:
        return None
    ((name, arguments),) = options.items()
    return SCHEDULERS[name](**{**DEFAULTS, **arguments})
