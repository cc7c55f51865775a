"""Training goes on through everything that the game does to its environments."""

import numpy as np
import pytest

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.env import MineStudioEnv
from tests.algorithms.toy_envs import tiny_model

FRAGMENT, FRAGMENTS, ITERATIONS = 16, 4, 5

FAULTS = [
    {"at": "step", "kind": "die", "count": 30, "launches": [0]},
    {"at": "step", "kind": "hang", "count": 50, "launches": [1]},
    {"at": "launch", "kind": "die", "launches": [2]},
    {"at": "peek", "kind": "garbage_json", "launches": [3]},
    {"at": "step", "kind": "short_frame", "count": 25, "launches": [4]},
    {"at": "step", "kind": "done", "count": 20, "launches": [5]},
    {"at": "step", "kind": "slow", "count": 10, "seconds": 0.01},
]


@pytest.fixture
def faulty(local_ray, engine):
    """Options of an environment whose first games fail in all ways."""
    for fault in FAULTS:
        engine.fail(**fault)
    return {
        **engine.with_limits(step_timeout_s=2.0),
        "obs_size": [16, 16],
        "render_size": [64, 64],
        "num_empty_frames": 1,
        "callbacks": [
            {"FastReset": {"biomes": ["plains"], "random_tp_range": 100}},
            {"JudgeReset": 12},
        ],
    }


def test_training_survives_the_games_faults(engine, faulty):
    config = (
        MineStudioPPOConfig()
        .environment(MineStudioEnv, env_config=faulty)
        .env_runners(num_envs_per_env_runner=2, rollout_fragment_length=FRAGMENT)
        .training(
            model=tiny_model(),
            fragments_per_iteration=FRAGMENTS,
            fragments_per_minibatch=2,
            gradient_accumulation=1,
            context_length=16,
            num_epochs=1,
            replay_buffer={"max_fragments": 8},
        )
        .debugging(seed=0)
    )
    algorithm = config.build_algo()
    try:
        results = [algorithm.train() for _ in range(ITERATIONS)]
    finally:
        algorithm.stop()
    steps = sum(result["env_runners"]["num_env_steps_sampled"] for result in results)
    assert steps >= ITERATIONS * FRAGMENTS * FRAGMENT
    assert results[-1]["env_runners"]["episodes_cut_short"] >= 3
    assert len(engine.launches) >= 7
    assert engine.living() == []
    for result in results:
        assert np.isfinite(result["learners"]["default_policy"]["policy_loss"])
