"""The auxiliary loss against its closed form, and a policy that demonstrations alone teach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_minestudio.algorithms.learner.imitation import (
    BehaviourCloning,
    BehaviourCloningOptions,
    cloning_loss,
)
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.distributions import ActionDistribution, JointCategorical
from rllib_minestudio.models.rl_modules import VPTRLModule, spaces_of
from rllib_minestudio.models.vpt import VPTConfig
from rllib_minestudio.models.vpt.network import NULL_CAMERA
from rllib_minestudio.recordings import EpisodeWriter
from tests.algorithms.toy_envs import ATTACK_STRIDE, IMAGE_SIZE, AttackOnRed, tiny_model
from tests.correctness.harness import Harness, config_of

STEPS = 40


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Two episodes of `AttackOnRed` played as well as can be."""
    root = tmp_path_factory.mktemp("recordings")
    rng = np.random.default_rng(0)
    for number in range(2):
        writer = EpisodeWriter(root / f"episode-{number}")
        red = rng.random(STEPS + 1) < 0.5
        frames = np.zeros((STEPS + 1, IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8)
        frames[red, ..., 0] = frames[~red, ..., 2] = 255
        writer.begin(frames[0], {})
        for t in range(STEPS):
            action = {"buttons": ATTACK_STRIDE * int(red[t]), "camera": NULL_CAMERA}
            last = t == STEPS - 1
            writer.add(action, 1.0, False, last, frame=frames[t + 1], info={})
        writer.finish({})
    return root


def test_the_camera_counts_where_it_moves_and_nothing_where_the_weight_is_zero():
    torch.manual_seed(0)
    logits = {"buttons": torch.randn(1, 3, 5), "camera": torch.randn(1, 3, 121)}
    # As they are: the closed form below reads them as log-probabilities.
    distribution = ActionDistribution(
        {name: JointCategorical(scores, normalised=True) for name, scores in logits.items()}
    )
    action = {
        "buttons": torch.tensor([[1, 2, 3]]),
        "camera": torch.tensor([[7, NULL_CAMERA, 9]]),
    }
    weight = torch.tensor([[1.0, 1.0, 0.0]])
    moving = cloning_loss(distribution, action, weight, still_camera=False)
    buttons, camera = logits["buttons"][0], logits["camera"][0]
    torch.testing.assert_close(moving.loss, -(buttons[0, 1] + camera[0, 7] + buttons[1, 2]))
    every = cloning_loss(distribution, action, weight)
    torch.testing.assert_close(every.loss, moving.loss - camera[1, NULL_CAMERA])
    assert cloning_loss(distribution, action, torch.zeros(1, 3)).loss == 0.0


def make_cloning(recordings, **options):
    """A module's gradients by name after one minibatch, and the loss."""
    torch.manual_seed(0)
    spaces = spaces_of(VPTConfig.from_options(tiny_model()))
    module = VPTRLModule(model_config=tiny_model(), **spaces)
    order = BehaviourCloningOptions(
        recordings=str(recordings), fragment_length=16, fragments_per_minibatch=2, **options
    )
    return module, BehaviourCloning(module, order, context_length=8, seed=0, rank=0)


def gradients(recordings, *, share, **options):
    """Gradients by name of one minibatch of demonstrations, and the loss."""
    module, cloning = make_cloning(recordings, **options)
    cloning.go_on_at(0)
    loss = cloning.accumulate(module, share)["behaviour_cloning_loss"]
    cloning.close()
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}, loss


def test_gradients_are_those_of_the_share_of_the_coefficient_and_the_loss_is_without(recordings):
    whole, loss = gradients(recordings, share=1.0, coeff=1.0)
    part, same = gradients(recordings, share=0.25, coeff=0.5)
    torch.testing.assert_close(same, loss)
    assert max(gradient.abs().max() for gradient in whole.values()) > 1e-3
    for name, gradient in whole.items():
        torch.testing.assert_close(part[name], gradient / 8, msg=name)


def test_demonstrations_do_not_teach_to_keep_the_camera_still(recordings):
    """It is still in all of them, as it mostly is in people's."""
    of_camera = [g for name, g in gradients(recordings, share=1.0)[0].items() if "camera" in name]
    assert of_camera
    for gradient in of_camera:
        assert not gradient.any()


def test_a_minibatch_without_an_action_to_imitate_has_no_loss_and_no_gradient(recordings):
    module, cloning = make_cloning(recordings)
    cloning.go_on_at(0)
    drawn = cloning._next.result()
    drawn["weight"][:] = 0.0
    loss = cloning.accumulate(module, 1.0)["behaviour_cloning_loss"]
    cloning.close()
    assert loss == 0.0
    assert not any(p.grad.any() for p in module.parameters() if p.grad is not None)


@pytest.mark.parametrize("accumulation", [1, 2])
def test_the_loss_that_is_told_is_the_mean_of_a_steps_minibatches(recordings, accumulation):
    harness = Harness(
        config_of(
            AttackOnRed,
            fragments_per_minibatch=4 // accumulation,
            gradient_accumulation=accumulation,
            num_epochs=1,
            lr=1e-9,
            behaviour_cloning={"recordings": str(recordings)},
        )
    )
    metrics = harness.update(harness.play())
    harness.close()
    uniform = np.log(8641)
    assert metrics["behaviour_cloning_loss"] == pytest.approx(uniform, abs=0.5)


def test_the_null_camera_is_the_one_that_does_not_turn():
    assert ActionMapper().to_env(0, NULL_CAMERA)["camera"] == pytest.approx([0.0, 0.0])


@pytest.mark.slow
def test_demonstrations_teach_the_policy(local_ray, make_config, recordings):
    """PPO's own term is off, and what is demonstrated is what pays."""
    config = make_config(
        behaviour_cloning={"recordings": str(recordings), "coeff": 1.0, "fragment_length": 20},
        vf_warmup_iterations=5,
        prior=None,
        kl_coeff=0.0,
    )
    algorithm = config.build_algo()
    losses = []
    for _ in range(6):
        metrics = algorithm.train()
        losses.append(metrics["learners"]["default_policy"]["behaviour_cloning_loss"])
    algorithm.stop()
    assert losses[0] > 8.0, "a uniform choice among 8641 tokens costs 9.06"
    assert losses[-1] < 0.3 * losses[0]


def test_bad_options_are_refused(make_config, tmp_path):
    cases = [
        ({"recordings": "nowhere"}, r"recordings is 'nowhere': There is no folder"),
        ({"recordings": str(tmp_path)}, r"holds no files\. Give the folder"),
        ({"coef": 1.0}, r"behaviour_cloning: unknown option 'coef'. Did you mean 'coeff'"),
        ({"coeff": -1}, r"coeff must be a number, at least 0; got -1\."),
        ({"fragment_length": 0}, r"fragment_length must be an integer, at least 1; got 0\."),
    ]
    for options, message in cases:
        with pytest.raises(InvalidOptionsError, match=message):
            make_config(behaviour_cloning=options).validate()
