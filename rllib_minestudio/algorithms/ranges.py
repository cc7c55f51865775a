"""Between which bounds the numbers among an algorithm's options lie: the one place that says so.

RLlib takes nearly any number. A negative `grad_clip` then trains by ascending, and a NaN anywhere
shows after hours. Bounds above say what no machine has, so that a slip of the finger is noticed
before memory is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

_MANY, _EVER = 10**6, 10**12
"""More than anybody has of things held at once, and of what is only ever counted."""

INTEGERS: dict[str, tuple[int, int]] = {
    "num_env_runners": (0, 10_000),
    "num_learners": (0, 10_000),
    "num_envs_per_env_runner": (1, 10_000),
    "rollout_fragment_length": (1, _MANY),
    "num_epochs": (1, 10_000),
    "fragments_per_iteration": (1, _MANY),
    "fragments_per_minibatch": (1, _MANY),
    "gradient_accumulation": (1, _MANY),
    "context_length": (1, _MANY),
    "vf_warmup_iterations": (0, _EVER),
    "decorrelation_steps": (0, 10**9),
    "max_nonfinite_minibatches": (1, _EVER),
    "prior_update_interval": (0, _EVER),
    "max_requests_in_flight_per_env_runner": (1, 10_000),
    "max_restarts_per_hour": (0, _EVER),
    "learner_state_interval": (1, _EVER),
    "metrics_num_episodes_for_smoothing": (1, 10**7),
    "evaluation_num_env_runners": (0, 10_000),
    "window_length": (1, _MANY),
    "windows_per_batch": (1, _MANY),
    "shuffle_among": (0, _MANY),
    "num_readers": (1, 10_000),
    "validation_interval": (1, _EVER),
    "max_num_env_runner_restarts": (0, _EVER),
}
"""Option -> least and greatest; options that an algorithm does not have are passed over."""

OPTIONAL_INTEGERS: dict[str, tuple[int, int]] = {
    "seed": (0, 2**32 - 1),
    "evaluation_interval": (0, _EVER),
    "burn_in": (0, _MANY),
    "dataset_num_iters_per_learner": (1, _EVER),
    "lr_annealing_iterations": (1, _EVER),
}
"""The same, for options that may be null."""

NUMBERS: dict[str, tuple[float, float]] = {
    "gamma": (0.0, 1.0),
    "lambda_": (0.0, 1.0),
    "kl_decay": (0.0, 1.0),
    "kl_coeff": (0.0, 1e9),
    "vf_coeff": (0.0, 1e9),
    "entropy_coeff": (0.0, 1e9),
    "weight_decay": (0.0, 1e9),
    "clip_param": (1e-12, math.inf),
    "adam_eps": (1e-300, 1e9),
    "log_ratio_clamp": (1e-12, math.inf),
    "importance_weight_truncation": (1e-12, math.inf),
    "sample_timeout_s": (1e-6, math.inf),
    "learner_timeout_s": (1e-6, math.inf),
    "evaluation_sample_timeout_s": (1e-6, math.inf),
    "env_runner_restore_timeout_s": (0.0, math.inf),
    "env_runner_health_probe_timeout_s": (0.0, math.inf),
    "num_cpus_per_env_runner": (0.0, 1e6),
    "num_gpus_per_env_runner": (0.0, 1e6),
    "num_gpus_per_learner": (0.0, 1e6),
    "num_cpus_for_main_process": (0.0, 1e6),
    "validation_fraction": (0.0, 1.0),
}
OPTIONAL_NUMBERS: dict[str, tuple[float, float]] = {
    "grad_clip": (0.0, math.inf),
    "ema_decay": (0.0, 1.0),
    "min_time_s_per_iteration": (0.0, 1e9),
}

_LARGEST_RATE = 1e6


def range_problems(config: Any) -> list[str]:
    """Say which numbers of an AlgorithmConfig are outside their bounds, one sentence each."""
    problems = []
    for table, may_be_none in ((INTEGERS, False), (OPTIONAL_INTEGERS, True)):
        for name, bounds in table.items():
            if hasattr(config, name):
                value = getattr(config, name)
                if not (value is None and may_be_none):
                    problems += integer_problem(name, value, *bounds)
    for numbers, may_be_none in ((NUMBERS, False), (OPTIONAL_NUMBERS, True)):
        for name, limits in numbers.items():
            if hasattr(config, name):
                value = getattr(config, name)
                if not (value is None and may_be_none):
                    problems += number_problem(name, value, *limits)
    if config.evaluation_duration != "auto":
        problems += integer_problem("evaluation_duration", config.evaluation_duration, 1, _MANY)
    return [*problems, *_rate_problems(config.lr), *_nan_problems(vars(config))]


def integer_problem(name: str, value: Any, least: int, most: int = _EVER) -> list[str]:
    """Say what is wrong with one whole number, if anything is."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        return [f"{name} is {_shown(value)}: it must be an integer, at least {least}."]
    if value > most:
        return [f"{name} is {_shown(value)}: it must be an integer, at most {most}."]
    return []


def number_problem(name: str, value: Any, least: float, most: float = math.inf) -> list[str]:
    """Say what is wrong with one number, if anything is; NaN is within no bounds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and least <= value <= most:
        return []
    if most == math.inf:
        rule = "at least 0" if least == 0 else "positive"
    else:
        rule = f"between {least:g} and {most:g}"
    return [f"{name} is {_shown(value)}: it must be a number, {rule}."]


def _rate_problems(lr: Any) -> list[str]:
    """Judge the learning rate: a number, or RLlib's schedule [[env step, rate], ...]."""
    if not isinstance(lr, list | tuple):
        return number_problem("lr", lr, 0.0, _LARGEST_RATE)
    problems = []
    steps = []
    for i, pair in enumerate(lr):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            return [f"lr is {_shown(lr)}: a schedule is a list of [environment step, rate]."]
        problems += number_problem(f"lr[{i}][0]", pair[0], 0.0, float(_EVER))
        problems += number_problem(f"lr[{i}][1]", pair[1], 0.0, _LARGEST_RATE)
        steps.append(pair[0])
    if not problems and (not steps or steps[0] != 0 or steps != sorted(set(steps))):
        problems.append(f"lr is {_shown(lr)}: a schedule begins at step 0, and its steps rise.")
    return problems


def _nan_problems(options: Mapping[str, Any]) -> list[str]:
    """Find NaN in what is judged by no table, below any mapping or list."""
    named = {*NUMBERS, *OPTIONAL_NUMBERS, "lr"}
    return [
        f"{path} is nan: it must be a number."
        for name, value in options.items()
        if not name.startswith("_") and name not in named
        for path in _paths_of_nan(name, value)
    ]


def _paths_of_nan(path: str, value: Any) -> Iterable[str]:
    if isinstance(value, float) and math.isnan(value):
        yield path
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _paths_of_nan(f"{path}.{key}", part)
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield from _paths_of_nan(f"{path}[{i}]", part)


def _shown(value: Any) -> str:
    """Return a value as a message shows it: numbers of a thousand digits are cut."""
    text = "a very large number" if isinstance(value, int) and value > 10**300 else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
