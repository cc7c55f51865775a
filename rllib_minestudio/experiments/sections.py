"""Validation of an experiment's sections other than `config`.

Each function appends one sentence per problem to `problems` and returns the valid options.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ray import tune
from ray.tune.schedulers import ASHAScheduler, MedianStoppingRule, TrialScheduler

from rllib_minestudio.experiments.experiment_file import TUNES_SAVE_INTERVAL, Experiment
from rllib_minestudio.experiments.result_metrics import ENV_STEPS, RETURN
from rllib_minestudio.foundation.options import broken_rule, is_integer, is_number, unknown_name

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

STOP_METRICS = (
    "training_iteration",
    "time_total_s",
    "num_env_steps_sampled_lifetime",
    "env_runners/episode_return_mean",
    "env_runners/num_episodes_lifetime",
)
"""Metrics in every result, for messages; others below `METRIC_GROUPS` work too."""

_COUNTS = ("training_iteration", "time_total_s", "num_env_steps_sampled_lifetime")
"""Metrics that start at 0 and increase."""

METRIC_GROUPS = (
    *("env_runners", "learners", "replay_buffer", "busy_fraction", "restarts", "evaluation"),
    "timers",
)

RLLIB_METRICS = {
    "episode_reward_mean": "env_runners/episode_return_mean",
    "timesteps_total": "num_env_steps_sampled_lifetime",
    "episodes_total": "env_runners/num_episodes_lifetime",
}
"""Metrics of RLlib's old API stack -> their names in the new one."""

DEFAULT_SAVE_INTERVAL = 10
"""Default in iterations, so that `--resume` finds checkpoints."""


_MOST_EPISODES = 100_000
_LEAST = {"save_interval": 0, "keep_interval": 1, "num_to_keep": 1}
_MAY_BE_NULL = ("keep_interval", "num_to_keep")


@dataclass(frozen=True)
class CheckpointOptions:
    """Which checkpoints a trial leaves; the best by return is always kept.

    Attributes:
        save_interval: Iterations from one checkpoint to the next; 0 saves only the one at the end.
        keep_interval: Checkpoints of its multiples are kept permanently; None for none.
        num_to_keep: How many of the newest others are kept; None for all.
        checkpoint_at_end: Whether the last iteration is saved, whatever its number.
    """

    save_interval: int = DEFAULT_SAVE_INTERVAL
    keep_interval: int | None = None
    num_to_keep: int | None = 3
    checkpoint_at_end: bool = True

    def for_tune(self) -> tune.CheckpointConfig:
        """Return the part that Tune carries out."""
        return tune.CheckpointConfig(
            checkpoint_frequency=self.save_interval,
            num_to_keep=self.num_to_keep,
            checkpoint_at_end=self.checkpoint_at_end,
        )


@dataclass(frozen=True)
class SummaryOptions:
    """What is measured before and after a run of one trial, for its summary.

    Attributes:
        random_policy_episodes: Episodes of the random policy, for comparison; 0 leaves it out.
        video_episodes: Episodes of the trained agent in the video; 0 leaves it out.
    """

    random_policy_episodes: int = 20
    video_episodes: int = 1


def stop_criteria(experiment: Experiment, problems: list[str]) -> dict[str, float]:
    """Flatten (`env_runners: {x: 1}` is `env_runners/x: 1`) and validate the stop criteria."""
    stop: dict[str, float] = {}
    for metric, value in _flattened(experiment.stop).items():
        path = f"{experiment.name}.stop.{metric}"
        group = metric.partition("/")[0]
        if metric in RLLIB_METRICS:
            problems.append(f"{path}: is not reported; use {RLLIB_METRICS[metric]}.")
        elif metric not in STOP_METRICS and (group == metric or group not in METRIC_GROUPS):
            problems.append(unknown_name("metric", metric, STOP_METRICS, path))
        elif not is_number(value):
            problems.append(broken_rule(path, value, "must be a finite number"))
        elif value <= 0 and metric in _COUNTS:
            problems.append(broken_rule(path, value, "must be positive, or it would end at once"))
        else:
            stop[metric] = value
    return stop


def _flattened(tree: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(_flattened(value, f"{prefix}{key}/"))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def checkpoint_options(experiment: Experiment, problems: list[str]) -> CheckpointOptions:
    """Validate the checkpoint options and fill in defaults."""
    path = f"{experiment.name}.checkpoint_config"
    valid = [field.name for field in dataclasses.fields(CheckpointOptions)]
    known: dict[str, Any] = {}
    for key, value in experiment.checkpoint_config.items():
        name = "save_interval" if key == TUNES_SAVE_INTERVAL else key
        if name not in valid:
            problems.append(unknown_name("key", str(key), valid, path))
        elif name in known:
            problems.append(
                f"{path}: save_interval and {TUNES_SAVE_INTERVAL} are the same option; give one."
            )
        elif rule := _broken_rule(name, value):
            problems.append(broken_rule(f"{path}.{key}", value, f"must be {rule}"))
        else:
            known[name] = value
    options = CheckpointOptions(**known)
    if options.keep_interval:
        problems += _multiple_problem(f"{path}.keep_interval", options.keep_interval, options)
    return options


def _broken_rule(name: str, value: Any) -> str | None:
    """Return the rule that a checkpoint option breaks, or None."""
    if name == "checkpoint_at_end":
        return None if isinstance(value, bool) else "true or false"
    if value is None and name in _MAY_BE_NULL:
        return None
    return None if is_count(value, _LEAST[name]) else f"a whole number of at least {_LEAST[name]}"


def video_interval(
    experiment: Experiment, checkpoints: CheckpointOptions, problems: list[str]
) -> int | None:
    """Validate `record_video_interval`; videos are filmed with checkpoints."""
    interval, path = experiment.record_video_interval, f"{experiment.name}.record_video_interval"
    if interval is None:
        return None
    if not is_count(interval, 1):
        problems.append(broken_rule(path, interval, "must be a whole number of at least 1"))
        return None
    problems += _multiple_problem(path, interval, checkpoints)
    return interval


def _multiple_problem(path: str, interval: int, checkpoints: CheckpointOptions) -> list[str]:
    """Return a problem if an interval is not a multiple of the checkpoint interval."""
    save_interval = checkpoints.save_interval
    if save_interval and interval % save_interval == 0:
        return []
    rule = (
        f"must be a multiple of checkpoint_config.save_interval={save_interval}, since it "
        "applies to saved checkpoints"
    )
    return [broken_rule(path, interval, rule)]


def summary_options(experiment: Experiment, problems: list[str]) -> SummaryOptions:
    """Validate the summary's options and fill in defaults."""
    path = f"{experiment.name}.summary"
    valid = [field.name for field in dataclasses.fields(SummaryOptions)]
    for key, value in experiment.summary.items():
        if key not in valid:
            problems.append(unknown_name("key", str(key), valid, path))
        elif not is_count(value, 0) or value > _MOST_EPISODES:
            rule = f"must be a whole number from 0 to {_MOST_EPISODES}"
            problems.append(broken_rule(f"{path}.{key}", value, rule))
    return SummaryOptions(**{k: v for k, v in experiment.summary.items() if k in valid})


def is_count(value: Any, least: int) -> bool:
    """Return whether `value` is an int (not a bool) of at least `least`."""
    return is_integer(value) and value >= least


# -------------------------------------------------------------------------- the section `scheduler`
# Decides which trials of a search are stopped early.
#
#     scheduler: {asha: {grace_period: 20000, max_t: 100000, reduction_factor: 3}}
#
# One name of `SCHEDULERS`, with the arguments of Tune's class. Trials are compared by their return
# after equal numbers of environment steps, unless the arguments say otherwise.


class _SkipsUnmeasured:
    """A mixin that lets trials continue until their results contain the metric.

    Before any episode has ended, Tune's own schedulers would fail, or compare NaN.
    """

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """Pass a result to the scheduler if it contains the metric."""
        if self._is_measured(result):
            decision: str = super().on_trial_result(tune_controller, trial, result)  # type: ignore[misc]
            return decision
        return str(TrialScheduler.CONTINUE)

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """Pass a trial's last result to the scheduler if it contains the metric."""
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
"""Schedulers that only stop trials; none that pauses them or changes their options."""

CONFIG_GROUP = "config"
"""Group of a result that contains the trial's options."""

DEFAULTS = {"time_attr": ENV_STEPS, "metric": RETURN, "mode": "max"}


def scheduler_options(experiment: Experiment, problems: list[str]) -> dict[str, Any]:
    """Validate the section `scheduler`.

    Args:
        experiment: The experiment.
        problems: Receives one sentence per problem.

    Returns:
        Name -> arguments, for `make_scheduler`; empty for no scheduler.
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
    """Return a problem if no result has the metric, since trials would never be compared."""
    for name in ("metric", "time_attr"):
        metric = arguments.get(name)
        group, slash, _ = str(metric).partition("/")
        known = metric in STOP_METRICS or (slash and group in (*METRIC_GROUPS, CONFIG_GROUP))
        if metric is not None and not known:
            return unknown_name("metric", str(metric), STOP_METRICS, f"{path}.{name}")
    return None


def scheduled_end(options: dict[str, Any]) -> dict[str, float]:
    """Return metric -> value at which the scheduler ends even the best trials; empty if unset."""
    for arguments in options.values():
        if "max_t" in arguments:
            return {arguments.get("time_attr", ENV_STEPS): arguments["max_t"]}
    return {}


def make_scheduler(options: dict[str, Any]) -> Any | None:
    """Build Tune's scheduler from the result of `scheduler_options`; None if it is empty."""
    if not options:
        return None
    ((name, arguments),) = options.items()
    return SCHEDULERS[name](**{**DEFAULTS, **arguments})


# ------------------------------------------------------------------------- the section `evaluation`
# Decides how the agent is evaluated during training.
#
#     evaluation:
#       interval: 50                        # iterations between two evaluations
#       episodes: 20
#       workers: 1                          # separate env runners; 0 plays in the driver
#       parallel: true                      # during the next iteration, not before it
#       filter: kill_entity:cow>=3          # what counts as a success
#       record: true                        # or options of the recorder, such as {overlay: true}
#
# It is an alternative to RLlib's `evaluation_...` options and `evaluation_options` in `config`.

RLLIB_NAMES = {
    "interval": "evaluation_interval",
    "episodes": "evaluation_duration",
    "workers": "evaluation_num_env_runners",
    "parallel": "evaluation_parallel_to_training",
}
"""Keys of the section -> RLlib's options."""

_DETERMINISTIC = "deterministic"


def with_evaluation(experiment: Experiment, problems: list[str]) -> dict[str, Any]:
    """Return the experiment's `config`, merged with the section `evaluation`.

    Appends one sentence per problem to `problems`; values are validated with the config.
    """
    from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions

    path = f"{experiment.name}.evaluation"
    own = [option.name for option in fields(EvaluationOptions) if option.name != "episodes"]
    said: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in experiment.evaluation.items():
        if key in RLLIB_NAMES:
            said[RLLIB_NAMES[key]] = value
        elif key == _DETERMINISTIC:
            said["evaluation_config"] = {"explore": not value}
        elif key in own:
            options[key] = value
        else:
            problems.append(unknown_name("key", str(key), (*RLLIB_NAMES, *own), path))
    if experiment.evaluation and "interval" not in experiment.evaluation:
        problems.append(
            f"{path}.interval: give the number of iterations between evaluations, such as 50."
        )
    if options:
        said["evaluation_options"] = options
    twice = [name for name in said if name in experiment.config]
    problems += [f"{path}: config.{name} is the same option; give one." for name in twice]
    return {**experiment.config, **said}


# ---------- checks that the resources a trial requests exist, since Ray would wait for them forever
# Each process of a trial requests a bundle of CPUs and GPUs, and Ray starts them together once
# every bundle has a node. If a bundle fits no node, the trial stays pending silently.

Bundle = Mapping[str, float]

SLACK = 1e-6
"""Tolerance, since fractions of GPUs do not always add up to whole ones."""


def machine_gpus() -> int:
    """Return how many GPUs this process may use."""
    import torch

    return torch.cuda.device_count()


def unplaced(bundles: Sequence[Bundle], nodes: Sequence[Bundle]) -> list[Bundle]:
    """Place bundles on nodes, the largest first, and return those that do not fit.

    Args:
        bundles: Resource -> amount, one mapping per process.
        nodes: Resource -> free amount, one mapping per machine.
    """
    free = [dict(node) for node in nodes]
    left = []
    for bundle in sorted(bundles, key=lambda b: (b.get("GPU", 0), b.get("CPU", 0)), reverse=True):
        node = next((node for node in free if _fits(bundle, node)), None)
        if node is None:
            left.append(bundle)
            continue
        for name, amount in bundle.items():
            node[name] = node.get(name, 0) - amount
    return left


def _fits(bundle: Bundle, node: Bundle) -> bool:
    return all(amount <= node.get(name, 0) + SLACK for name, amount in bundle.items())


def resource_problems(
    config: AlgorithmConfig, bundles: Sequence[Bundle], nodes: Sequence[Bundle], where: str
) -> list[str]:
    """Return one sentence per kind of resource that a trial requests but cannot get.

    Args:
        config: The trial's AlgorithmConfig, whose options the sentences name.
        bundles: The request (`Algorithm.default_resource_request(...).bundles`).
        nodes: Resource -> amount, one mapping per machine.
        where: What the nodes are, for messages, such as "this machine".
    """
    left = unplaced(bundles, nodes)
    problems = []
    for name in sorted({name for bundle in left for name in bundle}):
        asked, there = _total(bundles, name), _total(nodes, name)
        largest = max(node.get(name, 0) for node in nodes)
        biggest = max(bundle.get(name, 0) for bundle in bundles)
        if asked > there + SLACK:
            problem = f"{asked:g} {name}s are asked for, and {where} has {there:g}"
        elif biggest > largest + SLACK:
            problem = f"one process asks for {biggest:g} {name}s, and no node has over {largest:g}"
        else:
            continue
        problems.append(f"{problem}. {_options(config, name)}")
    if left and not problems:
        problems.append(
            f"the {len(bundles)} processes do not fit on the nodes of {where} side by side: "
            f"{_as_text(left[0])} finds no room. {_options(config, 'CPU')}"
        )
    return problems


def _total(bundles: Sequence[Bundle], name: str) -> float:
    return sum(bundle.get(name, 0) for bundle in bundles)


def _as_text(bundle: Bundle) -> str:
    return " + ".join(f"{amount:g} {name}" for name, amount in bundle.items())


def _options(config: AlgorithmConfig, name: str) -> str:
    """Return the options that request a resource, with their values, and the way out."""
    if name not in ("CPU", "GPU"):
        return f"It is asked for by custom_resources_per_env_runner; start nodes with {name}."
    kind = name.lower()
    names = [
        "num_learners",
        f"num_{kind}s_per_learner",
        "num_env_runners",
        f"num_{kind}s_per_env_runner",
        "evaluation_num_env_runners",
    ]
    if kind == "cpu":
        names.append("num_cpus_for_main_process")
    given = ", ".join(f"{option}={getattr(config, option)}" for option in names)
    return f"Lower one of {given}, or use a machine or cluster (--address) that has them."
