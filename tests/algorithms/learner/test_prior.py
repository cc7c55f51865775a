"""The prior's latents with its own memory, and the learner's heads of every version."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.algorithms.prior import (
    Prior,
    PriorLatents,
    PriorWatch,
    PriorWeights,
    build_prior,
    is_nowhere_else,
)
from rllib_minestudio.models.rl_modules import VPTRLModule, spaces_of
from rllib_minestudio.models.vpt import VPTConfig
from rllib_minestudio.models.vpt.network import kl_divergence
from tests.algorithms.toy_envs import IMAGE_SIZE, AttackOnRed, tiny_model
from tests.correctness.harness import Harness, config_of

LENGTH, ENVS, FRAGMENTS = 8, 3, 3


def make_module(seed=0):
    torch.manual_seed(seed)
    spaces = spaces_of(VPTConfig.from_options(tiny_model()))
    return VPTRLModule(model_config=tiny_model(), **spaces)


@pytest.fixture
def frames():
    """Frames of three environments, (E, T, ...); an episode begins within the second fragment."""
    rng = np.random.default_rng(0)
    shape = (ENVS, FRAGMENTS * LENGTH, IMAGE_SIZE, IMAGE_SIZE, 3)
    first = np.zeros(shape[:2], bool)
    first[:, 0] = first[0, LENGTH + 3] = True
    return rng.integers(0, 256, shape, np.uint8), first


def whole_pass(module, obs, first):
    """The network run over everything at once."""
    with torch.no_grad():
        network = module.network
        state = network.initial_state(ENVS)
        return network.net(torch.from_numpy(obs), torch.from_numpy(first), state)[0].numpy()


def in_fragments(latents, obs, first, order):
    """The latents of fragments that are complete in `order`, groups of (env, index)."""
    found = np.full((*first.shape, 32), np.nan, np.float32)
    for group in order:
        spans = [(env, slice(index * LENGTH, (index + 1) * LENGTH)) for env, index in group]
        results = latents.advance(
            [env for env, _ in group],
            [{"image": obs[s]} for s in spans],
            [first[s] for s in spans],
        )
        for span, result in zip(spans, results, strict=True):
            found[span] = result
    return found


def make_latents(carry_state=True):
    return PriorLatents(
        make_module(), num_envs=ENVS, context_length=5, batch_size=2, carry_state=carry_state
    )


@pytest.mark.parametrize(
    "order",
    [
        [[(0, i), (1, i), (2, i)] for i in range(FRAGMENTS)],
        [[(2, 0)], [(2, 1), (0, 0)], [(0, 1)], [(1, 0), (0, 2), (2, 2)], [(1, 1)], [(1, 2)]],
    ],
    ids=["together", "each at its own pace"],
)
def test_latents_are_those_of_one_pass_over_everything(frames, order):
    """Whatever was complete first, and in whose company."""
    actual = in_fragments(make_latents(), *frames, order)
    np.testing.assert_allclose(actual, whole_pass(make_module(), *frames), rtol=0, atol=2e-5)


def test_without_carrying_each_fragment_stands_alone(frames):
    obs, first = frames
    order = [[(0, i), (1, i), (2, i)] for i in range(FRAGMENTS)]
    actual = in_fragments(make_latents(carry_state=False), obs, first, order)
    begins = first.copy()
    begins[:, ::LENGTH] = True
    np.testing.assert_allclose(actual, whole_pass(make_module(), obs, begins), rtol=0, atol=2e-5)


def test_weights_can_be_replaced(frames):
    """Memory runs on, as the policy's does when it gets new weights."""
    latents, prior = make_latents(), Prior(make_module())
    prior.follow(make_module(seed=1), version=7)
    latents.load(prior.weights())
    assert latents.version == 7
    order = [[(0, i), (1, i), (2, i)] for i in range(FRAGMENTS)]
    expected = whole_pass(make_module(seed=1), *frames)
    np.testing.assert_allclose(in_fragments(latents, *frames, order), expected, rtol=0, atol=2e-5)


def test_published_weights_do_not_change_with_the_network():
    prior = Prior(make_module())
    version, state = prior.weights()
    assert version == 0
    for name, tensor in make_module().network.state_dict().items():
        np.testing.assert_array_equal(state[name], tensor.numpy(), err_msg=name)


def test_each_step_gets_the_heads_of_its_version():
    modules = [make_module(seed) for seed in range(3)]
    prior = Prior(make_module(0), versions_kept=2)
    prior.follow(modules[1], version=4)
    prior.follow(modules[2], version=8)
    assert [prior.knows(version) for version in (0, 4, 8)] == [False, True, True]
    latent = torch.randn(1, 2, 32)
    own = make_module(3).action_head(torch.randn(1, 2, 32))
    actual = prior.divergence(own, latent, torch.tensor([[4, 8]]))
    for i in range(2):
        theirs = modules[i + 1].network.pi_head(latent).logits
        expected = kl_divergence(own.logits, theirs)[:, i]
        assert (expected > 1e-4).all()
        torch.testing.assert_close(actual[:, i], expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("max_staleness", "interval", "kept"), [(5, 2, 4), (3, 1, 5), (1, 4, 2), (0, 1, 2), (5, 0, 1)]
)
def test_heads_are_kept_for_the_oldest_fragment_that_is_trained_on(max_staleness, interval, kept):
    config = MineStudioPPOConfig().training(
        prior="initial",
        prior_update_interval=interval,
        replay_buffer={"max_staleness": max_staleness},
    )
    prior = build_prior(config, make_module(), torch.device("cpu"))
    versions = range(0, 20, max(interval, 1))
    for version in versions[1:]:
        prior.follow(make_module(), version=version)
    assert [version for version in versions if prior.knows(version)] == [*versions][-kept:]


def test_the_prior_follows_after_every_so_many_iterations():
    harness = Harness(
        config_of(AttackOnRed, prior="initial", prior_update_interval=2, num_epochs=1)
    )
    fragments, versions = harness.play(), []
    for _ in range(4):
        harness.update(fragments)
        versions.append(harness.learner.prior_weights().version)
    harness.close()
    assert versions == [0, 2, 2, 4]


def test_weights_taken_over_are_the_newest():
    latents = make_latents()
    latents.load(PriorWeights(3, Prior(make_module(1)).weights().state))
    assert latents.version == 3


@pytest.mark.parametrize(
    ("prior", "first", "kls", "warned"),
    [
        ("initial", 0, [0.0, 0.5, 1.9, 3.0], []),
        ("initial", 0, [1.9, 3.8, 5.9], ["from 3.80 to 5.90 nats"]),
        ("initial", 0, [15.0, 15.5], ["from 0.00 to 15.00 nats"]),
        (str(b"initial", "ascii"), 0, [15.0], ["from 0.00 to 15.00 nats"]),  # as read from a file
        ("initial", 0, [0.1, 15.0, 40.0], ["from 0.10 to 15.00 nats", "from 15.00 to 40.00 nats"]),
        ("initial", 7, [15.0, 15.5], []),  # restored
        ("initial", 0, [0.1, float("nan"), 15.0], []),
        ("of/another/policy", 0, [15.0, 15.5, 20.0], ["from 15.50 to 20.00 nats"]),
        ("another/policy", 0, [15.0, 15.5, 20.0], ["from 15.50 to 20.00 nats"]),
    ],
)
def test_leaving_the_prior_at_once_is_warned_of(prior, first, kls, warned, caplog):
    watch = PriorWatch()
    for iteration, kl in enumerate(kls, first):
        watch.note(kl, iteration, MineStudioPPOConfig().training(prior=prior))
    assert [
        text.partition("rose ")[2].partition(" in one")[0] for text in caplog.messages
    ] == warned


def test_a_learning_rate_that_destroys_the_policy_is_warned_of(caplog):
    for lr, warnings in ((1e-4, 0), (0.3, 1)):
        harness = Harness(config_of(AttackOnRed, lr=lr, prior="initial", kl_coeff=0.2))
        for _ in range(2):
            harness.update(harness.play())
        harness.close()
        assert sum("Lower lr" in text for text in caplog.messages) == warnings


@pytest.mark.parametrize(
    ("prior", "weights", "interval", "expected"),
    [
        ("initial", None, 0, True),
        (str(b"initial", "ascii"), None, 0, True),  # as read from a file
        ("initial", "some/weights", 0, False),
        ("some/prior", None, 0, False),
        ("some/prior", "some/weights", 0, False),
        ("some/prior", "some/weights", 2, True),
    ],
)
def test_a_prior_is_saved_where_no_file_holds_it(prior, weights, interval, expected):
    config = MineStudioPPOConfig().training(prior=prior, prior_update_interval=interval)
    config.training(model={"weights": weights} if weights else {})
    assert is_nowhere_else(config) is expected
