"""An experiment found to be in order, in the terms of Ray Tune."""

from dataclasses import dataclass, replace
from typing import Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments.outputs.trackers import tracker_problems
from rllib_minestudio.experiments.reading.config_section import (
    algorithm_of,
    check_variants,
    search_space,
)
from rllib_minestudio.experiments.reading.evaluation_section import with_evaluation
from rllib_minestudio.experiments.reading.experiment_file import Experiment
from rllib_minestudio.experiments.reading.scheduler import scheduler_options
from rllib_minestudio.experiments.reading.search_space import searched_paths
from rllib_minestudio.experiments.reading.small_sections import (
    CheckpointOptions,
    SummaryOptions,
    checkpoint_options,
    is_count,
    stop_criteria,
    summary_options,
    video_interval,
)
from rllib_minestudio.option_checks import broken_rule

_MOST_TRIALS = 100_000


@dataclass(frozen=True)
class Plan:
    """What will be run.

    Attributes:
        name: Name of its results folder.
        algorithm: The Algorithm class.
        space: Tune's parameter space: the options the author wrote, with searches in place.
        searched: Paths of the searched options in `space`.
        example: One concrete, validated AlgorithmConfig out of the space.
        stop: Metric (slashes for nesting) -> value; the first one reached ends a trial.
        num_samples: How often Tune repeats the space.
        scheduler: Which trials are stopped early, as `scheduler.make_scheduler` takes it.
        checkpoints: When to save, and what to keep.
        record_video_interval: Iterations between two videos of the agent; None for none.
        trackers: Where results go besides; the experiment's section, found to be in order.
        summary: What to measure around the run.
    """

    name: str
    algorithm: type
    space: dict[str, Any]
    searched: list[tuple[Any, ...]]
    example: Any
    stop: dict[str, float]
    num_samples: int
    scheduler: dict[str, Any]
    checkpoints: CheckpointOptions
    record_video_interval: int | None
    trackers: dict[str, Any]
    summary: SummaryOptions


def make_plan(experiment: Experiment) -> Plan:
    """Judge an experiment, before Ray starts, and turn it into a plan.

    Raises:
        InvalidOptionsError: Anything at all is wrong; it lists every problem by its dotted path.
    """
    problems: list[str] = []
    stop = stop_criteria(experiment, problems)
    checkpoints = checkpoint_options(experiment, problems)
    videos = video_interval(experiment, checkpoints, problems)
    summary = summary_options(experiment, problems)
    scheduler = scheduler_options(experiment, problems)
    problems += tracker_problems(experiment.trackers, f"{experiment.name}.trackers")
    if not is_count(experiment.num_samples, 1) or experiment.num_samples > _MOST_TRIALS:
        rule = f"must be a whole number from 1 to {_MOST_TRIALS}"
        problems.append(broken_rule(f"{experiment.name}.num_samples", experiment.num_samples, rule))
    experiment = replace(experiment, config=with_evaluation(experiment, problems))
    algorithm, default_config = algorithm_of(experiment, problems)
    space: dict[str, Any] = {}
    example = None
    if default_config is not None:
        space = search_space(experiment, default_config, problems)
        example = check_variants(experiment, space, default_config, problems)
    if problems or algorithm is None:
        raise InvalidOptionsError(list(dict.fromkeys(problems)))
    return Plan(
        name=experiment.name,
        algorithm=algorithm,
        space=space,
        searched=searched_paths(space),
        example=example,
        stop=stop,
        num_samples=experiment.num_samples,
        scheduler=scheduler,
        checkpoints=checkpoints,
        record_video_interval=videos,
        trackers=experiment.trackers,
        summary=summary,
    )
