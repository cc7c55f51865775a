"""What is played and learnt on a GPU is what is played and learnt on the processor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.correctness.harness import Harness, config_of
from tests.policies.kinds import policy_options
from tests.policies.parts_env import PartsEnv
from tests.policies.test_behaviour_policy import assert_recorded_is_recomputed

TOLERANCE = {"rtol": 0, "atol": 5e-5}


@pytest.fixture
def make_on(policy, local_ray):
    """Builds a harness whose env runner and learner are both on a device."""
    made = []

    def make(device):
        config = config_of(
            PartsEnv,
            num_envs=3,
            fragment_length=12,
            prior="initial",
            kl_coeff=0.1,
            adam_eps=1e-4,  # AdamW makes a full step of a gradient that is nothing but rounding
            zero_init_value_head=False,
            **policy_options(policy),
        )
        share = int(device == "cuda")
        config.env_runners(num_gpus_per_env_runner=share).learners(num_gpus_per_learner=share)
        config.validate()
        made.append(Harness(config, worker_index=1))
        assert made[-1].learner.policy.device.type == made[-1].runner.module.device.type == device
        return made[-1]

    yield make
    for harness in made:
        harness.close()


def test_the_learner_recomputes_what_the_runner_recorded(make_on, device):
    harness = make_on(device)
    for _ in range(2):  # the second time with other weights
        fragments = harness.play(2)
        assert_recorded_is_recomputed(harness, fragments, tolerance=TOLERANCE)
        harness.update(fragments)
        harness.publish()


def test_any_device_learns_the_same_from_what_another_played(make_on, device):
    on_processor, other = make_on("cpu"), make_on(device)
    before = on_processor.weights()
    for _ in range(2):
        fragments = on_processor.play()
        found = [harness.update(fragments) for harness in (on_processor, other)]
        for name in ("policy_loss", "value_loss", "kl_to_prior", "entropy"):
            assert found[1][name] == pytest.approx(found[0][name], rel=1e-3, abs=1e-5), name
    learned = other.learner.policy.get_state()
    expected = on_processor.learner.policy.get_state()
    for name, weights in expected.items():
        np.testing.assert_allclose(learned[name], weights, rtol=1e-3, atol=2e-5, err_msg=name)
    after = on_processor.weights()
    assert max(np.abs(after[name] - before[name]).max() for name in after) > 1e-3
