"""Each public setting of RLlib's AlgorithmConfig is honoured, refused, or means nothing here."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from ray.rllib.algorithms.algorithm_config import DEPRECATED_VALUE, AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from rllib_minestudio import MineStudioPPOConfig
from rllib_minestudio.algorithms import MineStudioBCConfig
from rllib_minestudio.algorithms.rllib_settings import (
    HONOURED,
    MEANINGLESS,
    REFUSED,
    attribute_of,
    refused_by_cloning,
)
from rllib_minestudio.errors import InvalidOptionsError
from tests.rllib_contract.shown_by import SHOWN_BY

ROOT = Path(__file__).parents[2]

SETTERS = (
    "python_environment", "resources", "framework", "api_stack", "environment", "env_runners",
    "learners", "training", "callbacks", "evaluation", "offline_data", "multi_agent", "reporting",
    "checkpointing", "debugging", "fault_tolerance", "rl_module", "experimental",
)  # fmt: skip

KEPT_AS = {
    "framework_str": "framework",
    "stats_cls_lookup": "custom_stats_cls_lookup",
    "dataset_num_iters_per_eval_runner": "dataset_num_iters_per_offline_eval_runner",
    "callbacks_class": "callbacks_callbacks_class",
}
"""Attribute -> setting, or what becomes of it without `callbacks_` in front."""


def public_settings():
    """What RLlib's methods take, and what its config holds besides; nothing deprecated."""
    found = {
        parameter.name
        for method in SETTERS
        for parameter in inspect.signature(getattr(AlgorithmConfig, method)).parameters.values()
        if parameter.default != DEPRECATED_VALUE
    }
    for name, value in vars(AlgorithmConfig()).items():
        if not (isinstance(value, int | str) and value == DEPRECATED_VALUE):
            found.add(KEPT_AS.get(name, name).removeprefix("callbacks_"))
    return {name for name in found if not name.startswith("_")} - {"self", "kwargs"}


def test_the_walk_meets_what_rllib_has():
    """Else the next test could pass on a list of nothing."""
    found = public_settings()
    assert len(found) > 200
    assert {"lr", "batch_mode", "on_episode_end", "learner_class", "seed", "policies"} <= found


def test_every_public_setting_is_in_exactly_one_table():
    tables = (HONOURED, REFUSED, MEANINGLESS)
    for name in public_settings():
        assert sum(name in table for table in tables) == 1, name
    for name in set().union(*tables):
        assert name.startswith("_") or name in public_settings(), name


def test_what_is_honoured_names_a_test_that_exists():
    assert SHOWN_BY.keys() == HONOURED.keys()
    for name, where in SHOWN_BY.items():
        file, _, test = where.partition("::")
        functions = {
            node.name
            for node in ast.parse((ROOT / file).read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        assert test.startswith("test_") and test in functions, f"{name}: {where}"


def another(value):
    """A value that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, dict):
        return {"another": 1}
    return "another"


@pytest.mark.parametrize(
    "make, refused",
    [(MineStudioPPOConfig, REFUSED), (MineStudioBCConfig, refused_by_cloning())],
    ids=["ppo", "cloning"],
)
def test_each_refused_setting_is_refused_by_name_with_its_value_and_the_way_out(make, refused):
    for name, rule in refused.items():
        config = make()
        attribute = attribute_of(name, config)
        setattr(config, attribute, another(getattr(config, attribute)))
        with pytest.raises(InvalidOptionsError) as caught:
            config.validate()
        mine = [p for p in caught.value.problems if re.match(rf"{name} is .*: ", p)]
        assert mine and mine[0].endswith(f"{rule}."), (name, caught.value.problems)


@pytest.mark.parametrize("make", [MineStudioPPOConfig, MineStudioBCConfig])
def test_defaults_are_refused_nothing_however_they_come(make):
    refused = REFUSED if make is MineStudioPPOConfig else refused_by_cloning()
    config = make()
    for given in (config, config.copy(), make().update_from_dict(config.to_dict())):
        given.refuse_settings(make(), refused)


class Foreign(TorchRLModule):
    """Not VPT."""


class WithCreated(RLlibCallback):
    """Overrides what is never called."""

    def on_episode_created(self, **_):
        """Never called."""


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda c: c.api_stack(False, False), "enable_rl_module_and_learner is False"),
        (lambda c: c.framework("tf2"), "framework is 'tf2': VPT is written in torch"),
        (lambda c: c.multi_agent(policies={"a", "b"}), "there is one agent and one policy"),
        (lambda c: c.env_runners(batch_mode="complete_episodes"), "batch_mode is 'complete_epis"),
        (lambda c: c.env_runners(env_runner_cls=SingleAgentEnvRunner), "of MineStudioEnvRunner"),
        (lambda c: c.learners(learner_class=object), "a subclass of MineStudioPPOLearner"),
        (lambda c: c.callbacks(WithCreated), "callbacks_class has on_episode_created"),
        (
            lambda c: c.rl_module(rl_module_spec=RLModuleSpec(module_class=Foreign)),
            "rl_module_spec.module_class must be a subclass of RecurrentRLModule",
        ),
        (
            lambda c: c.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={})),
            "is a MultiRLModuleSpec: there is one module per policy",
        ),
        (
            lambda c: c.evaluation(evaluation_config={"clip_rewards": True}),
            "evaluation_config.clip_rewards is True",
        ),
    ],
)
def test_what_is_set_through_rllibs_methods_is_refused_too(make_config, change, said):
    with pytest.raises(InvalidOptionsError, match=re.escape(said)):
        change(make_config()).validate()


@pytest.mark.parametrize(
    "key, said",
    [
        ("rollout_fragment_lenght", "Did you mean 'rollout_fragment_length'?"),
        ("num_sgd_iter", "Use num_epochs."),
        ("nonsense", "unknown setting of MineStudioPPOConfig 'nonsense'."),
    ],
)
def test_an_unknown_key_of_a_mapping_is_refused(key, said):
    with pytest.raises(InvalidOptionsError, match=re.escape(said)):
        MineStudioPPOConfig().update_from_dict({"lr": 1e-3, key: 3})
    config = MineStudioPPOConfig().update_from_dict({"lambda": 0.5, "callbacks": RLlibCallback})
    assert config.lambda_ == 0.5
