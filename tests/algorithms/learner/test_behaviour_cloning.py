"""The auxiliary loss against its closed form, and a policy that demonstrations alone teach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_minestudio.algorithms.learner.imitation import cloning_loss
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.distributions import ActionDistribution, JointCategorical
from rllib_minestudio.models.vpt.network import NULL_CAMERA
from rllib_minestudio.recordings import EpisodeWriter
from tests.algorithms.toy_envs import ATTACK_STRIDE, IMAGE_SIZE

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
