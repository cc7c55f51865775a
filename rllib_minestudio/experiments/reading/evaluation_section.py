"""The section `evaluation` of an experiment: how the agent is evaluated while it is trained.

    evaluation:
      interval: 50                        # iterations between two evaluations
      episodes: 20
      workers: 1                          # env runners of its own; 0 plays in the driver
      parallel: true                      # beside the next iteration, not before it
      filter: kill_entity:cow>=3          # what counts as a success
      record: true                        # or options of the recorder, such as {overlay: true}

It is another way to write RLlib's `evaluation_...` options and `evaluation_options` of the config.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rllib_minestudio.experiments.reading.experiment_file import Experiment
from rllib_minestudio.option_checks import unknown_name

RLLIB_NAMES = {
    "interval": "evaluation_interval",
    "episodes": "evaluation_duration",
    "workers": "evaluation_num_env_runners",
    "parallel": "evaluation_parallel_to_training",
}
"""Keys of the section that RLlib has options for."""

_DETERMINISTIC = "deterministic"


def with_evaluation(experiment: Experiment, problems: list[str]) -> dict[str, Any]:
    """Return the experiment's `config` with what the section `evaluation` says.

    Appends one sentence per problem to `problems`; values are judged with the config.
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
        problems.append(f"{path}.interval: say every how many iterations to evaluate, such as 50.")
    if options:
        said["evaluation_options"] = options
    twice = [name for name in said if name in experiment.config]
    problems += [f"{path}: config.{name} says the same; say it once." for name in twice]
    return {**experiment.config, **said}
