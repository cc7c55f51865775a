"""Env runners and learner in processes of their own."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_remote_env_runners_and_learner_train_and_get_the_weights(local_ray, make_config):
    config = make_config().env_runners(num_env_runners=2, num_envs_per_env_runner=4)
    algorithm = config.learners(num_learners=1, num_cpus_per_learner=1).build_algo()
    for _ in range(2):
        result = algorithm.train()
    steps = 2 * config.env_steps_per_iteration
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] == steps
    assert result["replay_buffer"]["used_up"] == 2 * config.fragments_per_iteration
    versions = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: (runner._env_ids[0], runner._weights_seq_no), local_env_runner=False
    )
    assert sorted(versions) == [("1-0", 2), ("2-0", 2)]
    algorithm.stop()
