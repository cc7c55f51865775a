"""Judges the small sections of an experiment: `stop`, `checkpoint_config` and `summary`.

Each function appends one sentence per problem to `problems` and returns what is in order.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ray import tune

from rllib_minestudio.cli.experiment import Experiment
from rllib_minestudio.cli.names import closest

STOP_METRICS = (
    "training_iteration",
    "time_total_s",
    "num_env_steps_sampled_lifetime",
    "env_runners/episode_return_mean",
    "env_runners/num_episodes_lifetime",
)
"""Metrics that every result holds, for messages; others below `METRIC_GROUPS` work too."""

METRIC_GROUPS = ("env_runners", "learners", "replay_buffer", "evaluation", "timers")

DEAD_METRICS = {
    "episode_reward_mean": "env_runners/episode_return_mean",
    "timesteps_total": "num_env_steps_sampled_lifetime",
    "episodes_total": "env_runners/num_episodes_lifetime",
}

DEFAULT_CHECKPOINTS = {"checkpoint_frequency": 10, "checkpoint_at_end": True, "num_to_keep": 3}
"""Used where an experiment does not say otherwise, so that `--resume` has something to find."""


@dataclass(frozen=True)
class SummaryOptions:
    """What is measured before and after a run of one trial, for its summary.

    Attributes:
        random_policy_episodes: Episodes of the random policy to compare with; 0 leaves it out.
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
        if metric in DEAD_METRICS:
            problems.append(f"{path}: no longer reported; use {DEAD_METRICS[metric]}.")
        elif metric not in STOP_METRICS and (group == metric or group not in METRIC_GROUPS):
            problems.append(closest(metric, STOP_METRICS, "metric", path))
        elif isinstance(value, bool) or not isinstance(value, int | float):
            problems.append(f"{path}: must be a number, got {value!r}.")
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


def checkpoint_arguments(experiment: Experiment, problems: list[str]) -> dict[str, Any]:
    """Fill in the defaults of the checkpoint options and judge them."""
    path = f"{experiment.name}.checkpoint_config"
    valid = [
        field.name
        for field in dataclasses.fields(tune.CheckpointConfig)
        if not field.name.startswith("_")
    ]
    known = {}
    for key, value in experiment.checkpoint_config.items():
        if key in valid:
            known[key] = value
        else:
            problems.append(closest(str(key), valid, "key", f"{path}.{key}"))
    merged = {**DEFAULT_CHECKPOINTS, **known}
    for key, least in (("checkpoint_frequency", 0), ("num_to_keep", 1)):
        if merged[key] is not None and not is_count(merged[key], least):
            problems.append(
                f"{path}.{key}: must be a whole number of at least {least}, got {merged[key]!r}."
            )
    return merged


def summary_options(experiment: Experiment, problems: list[str]) -> SummaryOptions:
    """Fill in the defaults of the summary's options and judge them."""
    path = f"{experiment.name}.summary"
    valid = [field.name for field in dataclasses.fields(SummaryOptions)]
    for key, value in experiment.summary.items():
        if key not in valid:
            problems.append(closest(str(key), valid, "key", f"{path}.{key}"))
        elif not is_count(value, 0):
            problems.append(f"{path}.{key}: must be a whole number of at least 0, got {value!r}.")
    return SummaryOptions(**{k: v for k, v in experiment.summary.items() if k in valid})


def is_count(value: Any, least: int) -> bool:
    """Return whether `value` is an int of at least `least`; a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
