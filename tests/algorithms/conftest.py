"""What the algorithm's tests share: a config that trains in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rllib_minestudio.algorithms import MineStudioPPOConfig
from tests.algorithms.toy_envs import AttackOnRed, tiny_model

ConfigMaker = Callable[..., MineStudioPPOConfig]


@pytest.fixture
def make_config() -> ConfigMaker:
    """Builds a config on `AttackOnRed`; arguments go to `training`."""
    return quick_config


@pytest.fixture(scope="module")
def make_config_for_module() -> ConfigMaker:
    """The same, for what the tests of a module share."""
    return quick_config


def quick_config(env_config: dict[str, Any] | None = None, **training: Any) -> MineStudioPPOConfig:
    """A config on `AttackOnRed` that trains in seconds."""
    torch.manual_seed(0)
    options: dict[str, Any] = {
        "model": tiny_model(),
        "lr": 2e-3,
        "gamma": 0.9,
        "kl_coeff": 0.003,
        "weight_decay": 0.0,
        "fragments_per_iteration": 8,
        "fragments_per_minibatch": 4,
        "gradient_accumulation": 1,
        "context_length": 16,
        "num_epochs": 2,
        "replay_buffer": {"max_fragments": 64},
        "env_pool": {"mode": "inline"},
    }
    return (
        MineStudioPPOConfig()
        .environment(AttackOnRed, env_config=env_config or {})
        .env_runners(num_envs_per_env_runner=8, rollout_fragment_length=32)
        .training(**{**options, **training})
        .debugging(seed=0)
    )
