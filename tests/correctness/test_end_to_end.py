"""The same in whole runs: remote env runners, two learners, one of them killed, a restored run."""

from __future__ import annotations

import pytest

from tests.algorithms.actors import kill, process_of
from tests.correctness.harness import config_of
from tests.correctness.problems import RewardOne

POLICY = "default_policy"


def config():
    """A warmup of the value head, in which policy and prior are the same network throughout."""
    config = config_of(
        RewardOne,
        {"length": 20},
        vf_warmup_iterations=99,
        vf_warmup_head_only=True,
        lr=1e-2,
        fragments_per_iteration=4,
        fragments_per_minibatch=1,
        gradient_accumulation=2,
        replay_buffer={"max_fragments": 16, "max_reuse": 2, "max_staleness": 2},
    )
    config = config.copy(copy_frozen=False).env_runners(num_env_runners=1)
    return config.learners(num_learners=2, num_cpus_per_learner=1)


def train(algorithm, iterations):
    """Train, and check every iteration; returns the value function's mean after the last."""
    for _ in range(iterations):
        result = algorithm.train()
        learner = result["learners"][POLICY]
        assert abs(learner["kl_to_prior"]) < 1e-5
        assert learner["kl_masked_fragments"] == 0
        assert learner["dropped_stale"] == 0
    return learner["value_mean"]


@pytest.mark.slow
def test_remote_runner_two_learners_a_kill_and_a_restore(local_ray, tmp_path):
    algorithm = config().build_algo()
    early = train(algorithm, 5)
    kill(process_of(algorithm.learner_group._workers[1]))
    train(algorithm, 2)
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()

    restored = config().build_algo()
    restored.restore_from_path(checkpoint)
    late = train(restored, 6)
    restored.stop()
    assert early < late < 12.0, "on its way to 10, which is what an endless episode is worth"


@pytest.mark.slow
def test_a_warmup_that_ends_drops_nothing(local_ray):
    """It lasted longer than anything may be stale."""
    short = config().training(vf_warmup_iterations=4).learners(num_learners=0)
    algorithm = short.build_algo()
    for _ in range(5):
        result = algorithm.train()
    assert result["learners"][POLICY]["dropped_stale"] == 0
    assert result["replay_buffer"]["dropped_stale"] == 0
    assert algorithm.weights_version == 1
    algorithm.stop()
