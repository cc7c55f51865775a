"""A learner on a GPU does what one on the processor does, and their states are interchangeable."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.correctness.harness import Harness


def make_harness(make_config, device):
    """AdamW would make a full step of a gradient that is nothing but rounding; not with its eps."""
    config = make_config(adam_eps=1e-4, fragments_per_minibatch=4, gradient_accumulation=2)
    config.learners(num_gpus_per_learner=int(device == "cuda"))
    config.validate()
    return Harness(config)


def weights_of(harness):
    return {name: array.copy() for name, array in harness.learner.policy.get_state().items()}


def assert_close(actual, expected):
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-3, atol=2e-5, err_msg=name)


@pytest.mark.slow
def test_a_learner_on_any_device_learns_the_same(local_ray, make_config, device):
    on_processor, other = make_harness(make_config, "cpu"), make_harness(make_config, device)
    assert other.learner.policy.device.type == device
    assert other.runner.module.device == torch.device("cpu")
    before = weights_of(on_processor)
    for _ in range(2):
        fragments = on_processor.play()
        for harness in (on_processor, other):
            harness.update(fragments)
    learned = weights_of(on_processor)
    moved = max(np.abs(learned[name] - before[name]).max() for name in learned)
    assert moved > 1e-3, "a step is about 2e-3"
    assert_close(weights_of(other), learned)

    on_processor.learner.set_state(other.learner.get_state())
    for harness in (on_processor, other):
        harness.update(fragments)
    assert_close(weights_of(on_processor), weights_of(other))
    for harness in (on_processor, other):
        harness.close()
