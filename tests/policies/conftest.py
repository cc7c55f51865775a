"""Both policies: harnesses that end with their test, and algorithms that a session shares."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from numpy.typing import NDArray

from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig
from tests.correctness.harness import Harness, config_of
from tests.policies.kinds import FOREIGN, harness_of, policy_options
from tests.policies.parts_env import PartsEnv


@pytest.fixture(params=["ConvGRU", FOREIGN], ids=["ConvGRU", "foreign"])
def policy(request: pytest.FixtureRequest) -> str:
    """The name of a policy."""
    return str(request.param)


@pytest.fixture
def make_harness() -> Iterator[Callable[..., Harness]]:
    """Builds a harness; arguments are those of `harness_of`."""
    made: list[Harness] = []

    def make(*args: Any, **options: Any) -> Harness:
        made.append(harness_of(*args, **options))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


class Trained(NamedTuple):
    """An algorithm after two iterations.

    Attributes:
        algorithm: It learns from its own experience only, in this process.
        policy: The policy's name.
        checkpoint: Its folder.
        before: The policy's weights before training.
    """

    algorithm: MineStudioPPO
    policy: str
    checkpoint: str
    before: dict[str, NDArray]


FROZEN = {"ConvGRU": "gru.*", FOREIGN: "encoder.*"}
SLOW_PART = "action_head.*"


@pytest.fixture(scope="session", params=["ConvGRU", FOREIGN], ids=["ConvGRU", "foreign"])
def trained(
    request: pytest.FixtureRequest, local_ray: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trained]:
    """Part of the network is frozen, another learns slowly, and the weights are averaged."""
    policy = request.param
    algorithm = algorithm_config(policy).build_algo()
    before = copy.deepcopy(algorithm.learner_group._learner.policy.get_state())
    for _ in range(2):
        algorithm.train()
    checkpoint = algorithm.save_to_path(str(tmp_path_factory.mktemp("trained") / "checkpoint"))
    yield Trained(algorithm, policy, checkpoint, before)
    algorithm.stop()


def algorithm_config(policy: str, **training: Any) -> MineStudioPPOConfig:
    """A config that trains in a moment; arguments go to `training`."""
    options = {
        "prior": "initial",
        "kl_coeff": 0.1,
        "ema_decay": 0.5,
        "lr": 1e-2,
        "lr_factors": {SLOW_PART: 0.5},
        "fragments_per_minibatch": 2,
        "gradient_accumulation": 1,
        **policy_options(policy, freeze=[FROZEN[policy]]),
        **training,
    }
    config = config_of(PartsEnv, {"anonymous": True}, num_envs=4, fragment_length=12, **options)
    return config.evaluation(evaluation_duration=4)
