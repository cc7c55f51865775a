"""MineStudioBC keeps the same contract, as far as it plays and learns."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.algorithms.cloning.learner import MineStudioBCLearner
from tests.algorithms.cloning.conftest import demonstrations, make_config

__all__ = ["demonstrations", "make_config"]


class Smoothed(MineStudioBCLearner):
    """Cross entropy with label smoothing on the camera; counts its hooks."""

    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
        loss = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        uniform = -fwd_out["logits"]["camera"].mean(-1)
        self.metrics.log_value((module_id, "chunks"), 1, reduce="sum")
        return loss + 10.0 * (uniform * batch["weight"]).sum() / batch["num_steps"]

    def postprocess_gradients(self, gradients_dict):
        self.metrics.log_value(("default_policy", "steps"), 1, reduce="sum")
        return super().postprocess_gradients(gradients_dict)


def test_a_learner_of_ones_own_and_evaluation_by_hand(local_ray, make_config):
    evaluated = []
    camera = {}
    for learner_class in (None, Smoothed):
        config = make_config().callbacks(
            on_evaluate_end=lambda *, evaluation_metrics, **_: evaluated.append(evaluation_metrics)
        )
        config.evaluation(evaluation_duration=2)
        if learner_class is not None:
            config.learners(learner_class=learner_class)
        algorithm = config.build_algo()
        for _ in range(2):
            result = algorithm.train()["learners"]["default_policy"]
        found = algorithm.evaluate()
        assert found["env_runners"]["num_episodes"] == 2
        assert evaluated[-1] == found
        module = algorithm.get_module().get_state()
        weights = algorithm.learner_group.get_weights()["default_policy"]
        for name, array in weights.items():
            np.testing.assert_array_equal(module[name], array)
        camera[learner_class] = float(result["camera"])
        algorithm.stop()
    assert result["steps"] == config.dataset_num_iters_per_learner
    chunks = -(-config.window_length // config.context_length)
    assert result["chunks"] == chunks * result["steps"]
    # Nothing but smoothing keeps a camera that never turns from being certain.
    assert camera[Smoothed] > camera[None] + 0.1


@pytest.mark.parametrize("callback", ["on_episode_step", "on_sample_end"])
def test_what_a_clones_training_never_calls_is_refused(make_config, callback):
    config = make_config().callbacks(**{callback: print})
    with pytest.raises(ValueError, match=f"{callback} is .*: cloning plays no environments"):
        config.validate()
