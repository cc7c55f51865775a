"""MineStudioBC keeps the same contract, as far as it plays and learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ray.rllib.core.learner.training_data import TrainingData

from rllib_minestudio.algorithms.learner.imitation import MineStudioBCLearner
from tests.algorithms.cloning.conftest import demonstrations, make_config
from tests.algorithms.toy_envs import IMAGE_SIZE

__all__ = ["demonstrations", "make_config"]

PENALTY = 0.03


class Watching(MineStudioBCLearner):
    """Notes every call, and what the optimizer is given."""

    penalty = 0.0

    def build(self):
        self.calls, self.applied = [], []
        super().build()

    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
        self.calls.append("loss")
        loss = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        squares = sum(p.square().sum() for p in self._params.values())
        share = (batch["weight"] / batch["num_steps"]).sum()
        return loss + self.penalty * 0.5 * squares * share

    def compute_gradients(self, loss_per_module, **kwargs):
        self.calls.append("gradients")
        return super().compute_gradients(loss_per_module, **kwargs)

    def apply_gradients(self, gradients_dict):
        self.calls.append("apply")
        self.applied.append({p: gradient.clone() for p, gradient in gradients_dict.items()})
        super().apply_gradients(gradients_dict)


class Penalised(Watching):
    """Its gradient has PENALTY times the weight in it, however the batch is cut."""

    penalty = PENALTY


def windows(config):
    """One batch of random windows."""
    rng = np.random.default_rng(0)
    shape = (2, config.window_length)
    return {
        "image": rng.integers(0, 255, (*shape, IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8),
        "first": np.zeros(shape, np.bool_),
        "buttons": rng.integers(0, 8641, shape),
        "camera": rng.integers(0, 121, shape),
        "weight": np.ones(shape, np.float32),
    }


def trained(make_config, learner_class):
    """A learner after one optimizer step, and its weights before."""
    torch.manual_seed(0)
    config = make_config(window_length=8, context_length=4, grad_clip=None)
    config.learners(learner_class=learner_class).validate()
    spaces = {"default_policy": (config.observation_space, config.action_space)}
    learner = config.build_learner(spaces=spaces)
    weights = [p.detach().clone() for p in learner._params.values()]
    data = TrainingData(data_iterators=[iter([windows(config)])])
    learner.update(training_data=data, timesteps={}, num_iters=1)
    return learner, weights


def test_hooks_are_called_and_an_auxiliary_loss_counts(make_config):
    plain, _ = trained(make_config, Watching)
    penalised, weights = trained(make_config, Penalised)
    assert plain.calls == [*["loss", "gradients"] * 2, "apply"]
    (without,), (with_it,) = plain.applied, penalised.applied
    compared = 0
    for p, q, weight in zip(
        plain._params.values(), penalised._params.values(), weights, strict=True
    ):
        if p in without:
            compared += 1
            torch.testing.assert_close(
                with_it[q] - without[p], PENALTY * weight, rtol=1e-3, atol=1e-5
            )
    assert compared > 20


@pytest.mark.slow
def test_a_clone_is_evaluated_by_hand_and_can_be_had(local_ray, make_config):
    evaluated = []
    config = make_config().callbacks(
        on_evaluate_end=lambda *, evaluation_metrics, **_: evaluated.append(evaluation_metrics)
    )
    algorithm = config.evaluation(evaluation_duration=2).build_algo()
    algorithm.train()
    found = algorithm.evaluate()
    assert found["env_runners"]["num_episodes"] == 2
    assert evaluated[-1] is found
    module = algorithm.get_module().get_state()
    for name, array in algorithm.learner_group.get_weights()["default_policy"].items():
        np.testing.assert_array_equal(module[name], array)
    algorithm.stop()


@pytest.mark.parametrize("callback", ["on_episode_step", "on_sample_end"])
def test_what_a_clones_training_never_calls_is_refused(make_config, callback):
    config = make_config().callbacks(**{callback: print})
    with pytest.raises(ValueError, match=f"{callback} is .*: cloning plays no environments"):
        config.validate()
