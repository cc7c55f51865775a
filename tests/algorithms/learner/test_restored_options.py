"""A restored optimizer has the config's options, and takes its next step with them."""

from __future__ import annotations

from functools import partial

import pytest

from tests.algorithms.optimizer_steps import FirstStep, check_restored_with_other_options


@pytest.fixture
def make_short_config(make_config):
    """An iteration is one step of the optimizer, on one fragment."""
    return partial(make_config, fragments_per_iteration=1, fragments_per_minibatch=1, num_epochs=1)


def test_a_restored_learner_takes_its_steps_with_the_configs_options(
    local_ray, make_short_config, tmp_path
):
    check_restored_with_other_options(make_short_config, lambda a: a.train(), tmp_path)


@pytest.mark.slow
def test_the_first_step_after_a_restore_has_the_rate_that_the_schedule_has_by_then(
    local_ray, make_short_config, tmp_path
):
    """A schedule over environment steps, 256 of which were played, and one over iterations."""
    algorithm = make_short_config(lr=2e-3).build_algo()
    algorithm.train()
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()
    for options, expected in (
        ({"lr": [[0, 1e-3], [1024, 5e-4]]}, 7.5e-4),
        ({"lr": 1e-3, "lr_annealing_iterations": 4}, 7.5e-4),
    ):
        algorithm = make_short_config(**options).build_algo()
        algorithm.restore_from_path(checkpoint)
        step = FirstStep(algorithm)
        metrics = algorithm.train()["learners"]["default_policy"]
        step.assert_taken_with(lambda name, lr=expected: lr, weight_decay=0.0, eps=1e-8)
        assert metrics["default_optimizer_learning_rate"] == pytest.approx(expected)
        algorithm.stop()
