"""Refuses the settings of RLlib that `rllib_settings.py` lists, and keys that are no settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils import force_list

from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.algorithms.rllib_settings import OTHER_NAMES
from rllib_minestudio.errors import did_you_mean
from rllib_minestudio.models.recurrent_rl_module import RecurrentRLModule
from rllib_minestudio.option_checks import broken_rule, shown, unknown_name

_ATTRIBUTES = {
    "framework": "framework_str",
    "custom_stats_cls_lookup": "stats_cls_lookup",
    "dataset_num_iters_per_offline_eval_runner": "dataset_num_iters_per_eval_runner",
    "model": "_model_config",
}
"""Settings kept under another name than theirs, or theirs with `_` or `callbacks_` in front."""

_ALIASES = (
    "callbacks", "create_env_on_driver", "custom_eval_function", "exploration_config", "framework",
    "input", "lambda", "learner_class", "model", "multiagent", "num_cpus_for_driver",
    "train_batch_size_per_learner",
)  # fmt: skip
"""Keys that are no attributes, and that RLlib's or our `update_from_dict` knows."""


def attribute_of(name: str, config: AlgorithmConfig) -> str:
    """Return the attribute of a config that holds a setting."""
    for attribute in (_ATTRIBUTES.get(name, name), f"_{name}", f"callbacks_{name}"):
        if attribute in vars(config):
            return attribute
    raise KeyError(name)


def setting_problems(
    config: AlgorithmConfig, defaults: AlgorithmConfig, refused: Mapping[str, str]
) -> list[str]:
    """Say which settings of a config are refused, one sentence each.

    Args:
        config: What is about to be run.
        defaults: A config as its class makes it.
        refused: `REFUSED`, or what an algorithm has instead.
    """
    if config.in_evaluation:  # made by RLlib from one that was judged
        return []
    problems = []
    overrides = config.evaluation_config if isinstance(config.evaluation_config, dict) else {}
    for name, rule in refused.items():
        attribute = attribute_of(name, defaults)
        default, value = getattr(defaults, attribute), getattr(config, attribute)
        if name == "policies":  # Tune and checkpoints know the default by another notation
            default, value = list(default), list(value)
        if not _equal(value, default) and not _is_ours(value):
            problems.append(f"{name} is {shown(value)}: {rule}.")
        if attribute in overrides and not _equal(overrides[attribute], default):
            override = shown(overrides[attribute])
            problems.append(f"evaluation_config.{name} is {override}: {rule}.")
    return [*problems, *_class_problems(config, refused)]


def _class_problems(config: AlgorithmConfig, refused: Mapping[str, str]) -> list[str]:
    """Judge the classes that a config names."""
    problems = [
        f"callbacks_class has {name}: {refused[name]}."
        for name in refused
        if name.startswith("on_")
        and any(
            getattr(callbacks, name) is not getattr(RLlibCallback, name)
            for callbacks in force_list(config.callbacks_class)
        )
    ]
    default = config.get_default_learner_class()
    for name, given, base in (
        ("env_runner_cls", config.env_runner_cls, MineStudioEnvRunner),
        ("learner_class", config._learner_class, default),
    ):
        if name in refused:
            continue
        if given is not None and not (isinstance(given, type) and issubclass(given, base)):
            problems.append(broken_rule(name, given, f"must be a subclass of {base.__name__}"))
    return [*problems, *_module_problems(config._rl_module_spec)]


def _module_problems(spec: Any) -> list[str]:
    if spec is None:
        return []
    if not isinstance(spec, RLModuleSpec):
        return [f"rl_module_spec is a {type(spec).__name__}: there is one module per policy."]
    problems = []
    found = spec.module_class
    if found is not None and not (isinstance(found, type) and issubclass(found, RecurrentRLModule)):
        problems.append(
            broken_rule(
                "rl_module_spec.module_class",
                found,
                "must be a subclass of RecurrentRLModule (docs/policies.md), since env runner and "
                "learner carry the policy's memory",
            )
        )
    if spec.model_config is not None:
        problems.append("rl_module_spec.model_config is set: use training(model=...).")
    if spec.load_state_path is not None:
        problems.append("rl_module_spec.load_state_path is set: use the model's option weights.")
    return problems


def unknown_key_problems(keys: Iterable[str], config: AlgorithmConfig) -> list[str]:
    """Say which keys of a mapping are no settings of a config, one sentence each."""
    valid = {*vars(config), *_ALIASES}
    names = sorted(name for name in valid if not name.startswith("_"))
    problems = []
    for key in keys:
        if key not in valid:
            hint = did_you_mean(key, names)
            if key in OTHER_NAMES:
                hint = f" {OTHER_NAMES[key][0].upper()}{OTHER_NAMES[key][1:]}."
            problems.append(unknown_name(f"setting of {type(config).__name__}", key, ()) + hint)
    return problems


def _is_ours(value: Any) -> bool:
    """Whether a config has set a function of this package by itself."""
    return str(getattr(value, "__module__", "")).startswith("rllib_minestudio.")


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b) or a is b
    except Exception:  # an array has no single answer; nor is it a default
        return a is b
