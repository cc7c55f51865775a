"""Which keys an algorithm's `config:` may hold, and of which type each value is.

RLlib's own `update_from_dict` takes any key in silence, so a typo would train the default
for hours. The truth about keys is the algorithm's default config object; this module adds
the aliases that RLlib translates and the keys that look alive but do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ray.rllib.algorithms.algorithm_config import DEPRECATED_VALUE

from rllib_minestudio.algorithms.rllib_settings import OTHER_NAMES
from rllib_minestudio.errors import did_you_mean
from rllib_minestudio.experiments.reading.minestudio_names import name_here
from rllib_minestudio.option_checks import broken_rule, is_integer, unknown_name

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

ALIASES = {"callbacks": "callbacks_class", "framework": "framework_str", "lambda": "lambda_"}
"""Names RLlib's setters use -> attribute of the config object."""


def valid_keys(default_config: AlgorithmConfig) -> list[str]:
    """List the keys that `config:` may hold for an algorithm.

    Args:
        default_config: What the algorithm class's `get_default_config()` returned.
    """
    alive = [
        name
        for name, value in vars(default_config).items()
        if not name.startswith("_") and value is not DEPRECATED_VALUE
    ]
    return sorted({*alive, *ALIASES} - set(OTHER_NAMES))


def key_problems(
    config: Mapping[str, Any], default_config: AlgorithmConfig, path: str
) -> list[str]:
    """Return one sentence per key of `config` that the algorithm does not have or not heed."""
    valid = valid_keys(default_config)
    own_attributes = vars(default_config)
    problems = []
    for key in config:
        if key in valid:
            continue
        if key in OTHER_NAMES:
            problems.append(f"{path}.{key}: has no effect here; {OTHER_NAMES[key]}.")
        elif key in own_attributes:
            problems.append(f"{path}.{key}: is deprecated in RLlib and has no effect.")
        elif (here := name_here(str(key))) is not None:
            problems.append(f"{path}.{key}: is MineStudio's name of it; use {here}.")
        else:
            hint = did_you_mean(key, valid) or " No valid key is close to it."  # they are hundreds
            problems.append(unknown_name("key", key, (), path) + hint)
    return problems


_SHARES = ("num_cpus_per_env_runner", "num_gpus_per_env_runner", "num_gpus_per_learner")
"""Resources of which Ray gives out fractions; their defaults are whole numbers all the same."""


def type_problems(
    config: Mapping[str, Any], default_config: AlgorithmConfig, path: str
) -> list[str]:
    """Return one sentence per value whose type differs from its default's.

    A default of None says nothing about the type, and None ("switched off") is accepted
    anywhere; both are left to the config's own `validate()`.
    """
    problems = []
    for key, value in config.items():
        default = getattr(default_config, ALIASES.get(key, key), None)
        if key in _SHARES and default is not None:
            default = float(default)
        rule = _broken_rule(value, default)
        if rule:
            problems.append(broken_rule(f"{path}.{key}", value, f"must be {rule}"))
    return problems


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_RULES: tuple[tuple[Callable[[Any], bool], Callable[[Any], bool], str], ...] = (
    (lambda default: isinstance(default, bool), lambda v: isinstance(v, bool), "true or false"),
    (is_integer, lambda v: is_integer(v) or v == "auto", "a whole number"),
    (_is_number, lambda v: _is_number(v) or isinstance(v, list), "a number"),
    (
        lambda default: isinstance(default, Mapping),
        lambda v: isinstance(v, Mapping),
        "a mapping",
    ),
    (
        lambda default: isinstance(default, list | tuple),
        lambda v: isinstance(v, list | tuple),
        "a list",
    ),
)
"""(does this row apply to the default?, is the value right?, how to say it); first match wins.

"auto" stands for a number in several of RLlib's options, and a list for a schedule.
"""


def _broken_rule(value: Any, default: Any) -> str | None:
    if value is None:
        return None
    for applies, is_right, rule in _RULES:
        if applies(default):
            return None if is_right(value) else rule
    return None
