"""The `scheduler` of an experiment: which of a search's trials are stopped early.

    scheduler: {asha: {grace_period: 20000, max_t: 100000, reduction_factor: 3}}

One name of `SCHEDULERS`, with the arguments of Tune's class. Trials are compared by their return
after equal numbers of environment steps, unless the arguments say otherwise.
"""

import inspect
from typing import Any

from ray.tune.schedulers import ASHAScheduler, MedianStoppingRule

from rllib_minestudio.experiments.outputs.result_metrics import ENV_STEPS, RETURN
from rllib_minestudio.experiments.reading.experiment_file import Experiment
from rllib_minestudio.option_checks import broken_rule, unknown_name

SCHEDULERS = {"asha": ASHAScheduler, "median_stopping_rule": MedianStoppingRule}
"""Those that only stop trials; none that pauses them or changes their options on the way."""

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
    try:
        make_scheduler({name: arguments})
    except (TypeError, ValueError, AssertionError) as error:
        reason = str(error).rstrip(".") or "Tune refuses these arguments together"
        problems.append(f"{path}.{name}: {reason}; got {arguments}.")
        return {}
    return {name: arguments}


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
