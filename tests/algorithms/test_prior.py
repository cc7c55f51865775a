"""The prior's memory across fragments, and its cache."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.learner.batch import stack_fragments
from rllib_minestudio.algorithms.learner.prior import Prior
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from tests.algorithms.toy_envs import IMAGE_SIZE, tiny_model

LENGTH = 8


@pytest.fixture
def network():
    torch.manual_seed(0)
    return VPTNetwork(VPTConfig.from_options(tiny_model()))


def make_fragments(count):
    """`count` contiguous fragments of two environments; an episode begins within the second."""
    rng = np.random.default_rng(0)
    fragments = []
    for index in range(count):
        for env_id in "ab":
            first = np.arange(LENGTH) == (0 if index == 0 else LENGTH)
            first[3] |= index == 1 and env_id == "a"
            obs = rng.integers(0, 256, (LENGTH, IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8)
            zeros = np.zeros(LENGTH, np.float32)
            fragments.append(
                Fragment(
                    obs=obs,
                    action={name: np.zeros(LENGTH, np.int64) for name in ("buttons", "camera")},
                    **dict.fromkeys(("reward", "logp", "value", "bootstrap_value"), zeros),
                    first=first,
                    **dict.fromkeys(("terminated", "truncated"), np.zeros(LENGTH, bool)),
                    state_in={"mask": np.zeros(1, bool)},
                    last_obs=obs[0],
                    last_first=False,
                    last_value=0.0,
                    weights_version_min=0,
                    weights_version_max=0,
                    env_id=env_id,
                    index=index,
                )
            )
    return fragments


def make_prior(network, **options):
    return Prior(network, context_length=5, batch_size=2, max_memories=4, **options)


def latents(prior, fragments):
    return prior.latents(fragments, stack_fragments(fragments, "cpu"))


def whole_pass(network, fragments, env_id):
    """The network run over all fragments of one environment at once."""
    own = [fragment for fragment in fragments if fragment.env_id == env_id]
    image = torch.from_numpy(np.concatenate([f.obs for f in own]))[None]
    first = torch.from_numpy(np.concatenate([f.first for f in own]))[None]
    with torch.no_grad():
        return network.net(image, first, network.initial_state(1))[0][0]


@pytest.mark.parametrize("together", [True, False], ids=["one batch", "two batches"])
def test_memory_is_carried_from_fragment_to_fragment(network, together):
    fragments = make_fragments(2)
    prior = make_prior(network, carry_state=True, cache_size=0)
    if together:  # in any order within the batch
        order = [3, 0, 2, 1]
        result = latents(prior, [fragments[i] for i in order])
        found = {fragments[i].key: result[row] for row, i in enumerate(order)}
    else:
        parts = [latents(prior, fragments[:2]), latents(prior, fragments[2:])]
        found = {f.key: latent for f, latent in zip(fragments, torch.cat(parts), strict=True)}
    for env_id in "ab":
        expected = whole_pass(network, fragments, env_id)
        actual = torch.cat([found[env_id, 0], found[env_id, 1]])
        torch.testing.assert_close(actual, expected, rtol=0, atol=2e-5)


def test_without_carrying_each_fragment_stands_alone(network):
    fragments = make_fragments(2)
    prior = make_prior(network, carry_state=False, cache_size=0)
    latents(prior, fragments[:2])
    second = latents(prior, fragments[2:])
    alone = whole_pass(network, fragments[2:], "b")
    torch.testing.assert_close(second[1], alone, rtol=0, atol=2e-5)


def test_a_missing_fragment_means_an_empty_memory(network):
    fragments = make_fragments(3)
    prior = make_prior(network, carry_state=True, cache_size=0)
    latents(prior, fragments[:2])
    third = latents(prior, fragments[4:])
    torch.testing.assert_close(third[1], whole_pass(network, fragments[4:], "b"), rtol=0, atol=2e-5)


def test_reused_fragments_come_from_the_cache(network):
    fragments = make_fragments(1)
    prior = make_prior(network, carry_state=True, cache_size=2)
    first = latents(prior, fragments)
    with torch.no_grad():
        next(network.parameters()).zero_()
    torch.testing.assert_close(latents(prior, fragments), first, rtol=0, atol=0)


def test_fragments_joined_to_a_row_give_the_same_latents(network):
    fragments = sorted(make_fragments(2), key=lambda fragment: fragment.key)
    prior = make_prior(network, carry_state=True, cache_size=0)
    rows = prior.latents(fragments, stack_fragments(fragments, "cpu", join=2))
    for row, env_id in zip(rows, "ab", strict=True):
        expected = whole_pass(network, fragments, env_id)
        torch.testing.assert_close(row, expected, rtol=0, atol=2e-5)


def test_following_the_policy_forgets_what_the_old_weights_remembered(network):
    fragments = make_fragments(2)
    policy = VPTNetwork(VPTConfig.from_options(tiny_model()))
    prior = make_prior(network, carry_state=True, cache_size=8)
    latents(prior, fragments[:2])
    prior.follow(policy)
    again = latents(prior, fragments[:2])
    torch.testing.assert_close(again[0], whole_pass(policy, fragments[:2], "a"), rtol=0, atol=2e-5)
    second = latents(prior, fragments[2:])
    expected = whole_pass(policy, fragments, "b")[LENGTH:]
    torch.testing.assert_close(second[1], expected, rtol=0, atol=2e-5)


def test_memories_of_environments_not_met_for_long_are_dropped(network):
    fragments = make_fragments(1)
    prior = Prior(
        network, context_length=5, batch_size=1, max_memories=1, carry_state=True, cache_size=0
    )
    latents(prior, fragments)
    assert list(prior._memories) == ["b"]
