"""What evaluation's tests share: a small env runner, and environments with an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from tests.algorithms.toy_envs import tiny_model
from tests.evaluation.toy_envs import CoinToss


@pytest.fixture(scope="session")
def make_config() -> Callable[..., MineStudioPPOConfig]:
    """Builds a config for evaluation on `CoinToss`; other arguments go to the environment."""

    def make(
        env: Any = CoinToss,
        num_envs: int = 4,
        pool: str = "auto",
        max_restarts_per_hour: int = 20,
        **env_config: Any,
    ) -> MineStudioPPOConfig:
        torch.manual_seed(0)
        env_pool = {"mode": pool, "max_restarts_per_hour": max_restarts_per_hour}
        return (
            MineStudioPPOConfig()
            .environment(env, env_config=env_config)
            .env_runners(num_envs_per_env_runner=num_envs)
            .training(model=tiny_model(), kl_coeff=0.0, prior=None, env_pool=env_pool)
            .debugging(seed=0)
        )

    return make


@pytest.fixture
def make_runner(make_config) -> Iterator[Callable[..., EvaluationEnvRunner]]:
    """Builds env runners in this process, and stops them in the end."""
    runners = []

    def make(*args: Any, **kwargs: Any) -> EvaluationEnvRunner:
        config = make_config(*args, **kwargs)
        config.validate()
        runners.append(EvaluationEnvRunner(config=config, worker_index=0, num_workers=0))
        return runners[-1]

    yield make
    for runner in runners:
        runner.stop()
