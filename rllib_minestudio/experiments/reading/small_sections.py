"""Judges the small sections of an experiment: `stop`, `checkpoint_config`, `summary`, videos.

Each function appends one sentence per problem to `problems` and returns what is in order.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ray import tune

from rllib_minestudio.experiments.reading.experiment_file import TUNES_SAVE_INTERVAL, Experiment
from rllib_minestudio.option_checks import broken_rule, is_integer, is_number, unknown_name

STOP_METRICS = (
    "training_iteration",
    "time_total_s",
    "num_env_steps_sampled_lifetime",
    "env_runners/episode_return_mean",
    "env_runners/num_episodes_lifetime",
)
"""Metrics that every result holds, for messages; others below `METRIC_GROUPS` work too."""

_COUNTS = ("training_iteration", "time_total_s", "num_env_steps_sampled_lifetime")
"""Metrics that begin at 0 and rise."""

METRIC_GROUPS = (
    *("env_runners", "learners", "replay_buffer", "busy_fraction", "restarts", "evaluation"),
    "timers",
)

RLLIB_METRICS = {
    "episode_reward_mean": "env_runners/episode_return_mean",
    "timesteps_total": "num_env_steps_sampled_lifetime",
    "episodes_total": "env_runners/num_episodes_lifetime",
}
"""Metrics of RLlib's old API stack, and their names in the new one."""

DEFAULT_SAVE_INTERVAL = 10
"""Iterations; used where an experiment does not say otherwise, so that `--resume` finds some."""


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
        """Return what of it is Tune's to do."""
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
    """Flatten the stop criteria (`env_runners: {x: 1}` is `env_runners/x: 1`) and judge them."""
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
    """Fill in the defaults of the checkpoint options and judge them."""
    path = f"{experiment.name}.checkpoint_config"
    valid = [field.name for field in dataclasses.fields(CheckpointOptions)]
    known: dict[str, Any] = {}
    for key, value in experiment.checkpoint_config.items():
        name = "save_interval" if key == TUNES_SAVE_INTERVAL else key
        if name not in valid:
            problems.append(unknown_name("key", str(key), valid, path))
        elif name in known:
            problems.append(
                f"{path}: save_interval and {TUNES_SAVE_INTERVAL} are one; say it once."
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
    """Return the rule that a checkpoint option breaks, if it does."""
    if name == "checkpoint_at_end":
        return None if isinstance(value, bool) else "true or false"
    if value is None and name in _MAY_BE_NULL:
        return None
    return None if is_count(value, _LEAST[name]) else f"a whole number of at least {_LEAST[name]}"


def video_interval(
    experiment: Experiment, checkpoints: CheckpointOptions, problems: list[str]
) -> int | None:
    """Judge `record_video_interval`: the agent filmed is that of a checkpoint."""
    interval, path = experiment.record_video_interval, f"{experiment.name}.record_video_interval"
    if interval is None:
        return None
    if not is_count(interval, 1):
        problems.append(broken_rule(path, interval, "must be a whole number of at least 1"))
        return None
    problems += _multiple_problem(path, interval, checkpoints)
    return interval


def _multiple_problem(path: str, interval: int, checkpoints: CheckpointOptions) -> list[str]:
    """Complain about an interval at which there is no checkpoint."""
    save_interval = checkpoints.save_interval
    if save_interval and interval % save_interval == 0:
        return []
    rule = (
        f"must be a multiple of checkpoint_config.save_interval={save_interval}, since it is "
        "checkpoints that are taken"
    )
    return [broken_rule(path, interval, rule)]


def summary_options(experiment: Experiment, problems: list[str]) -> SummaryOptions:
    """Fill in the defaults of the summary's options and judge them."""
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
    """Return whether `value` is an int of at least `least`; a bool is not."""
    return is_integer(value) and value >= least
