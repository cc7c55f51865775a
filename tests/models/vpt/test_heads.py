"""Closed forms of the action heads and their distributions."""

import itertools
import math

import pytest
import torch

from rllib_minestudio.foundation.names import BUTTON_GROUPS, NUM_BUTTONS
from rllib_minestudio.models.vpt import VPTConfig
from rllib_minestudio.models.vpt.acting import sample
from rllib_minestudio.models.vpt.network import (
    BUTTON_SIZES,
    entropy,
    kl_divergence,
    log_prob,
    make_action_heads,
    product_membership,
)


def _logits(buttons: list[float], camera: list[float]) -> dict[str, torch.Tensor]:
    return {
        "buttons": torch.tensor([buttons]).log(),
        "camera": torch.tensor([camera]).log(),
    }


HALVES = _logits([0.5, 0.25, 0.25], [0.5, 0.5])
UNIFORM = _logits([1 / 3, 1 / 3, 1 / 3], [0.5, 0.5])


def test_log_prob_adds_the_heads():
    actions = {"buttons": torch.tensor([[1]]), "camera": torch.tensor([[0]])}
    assert log_prob(HALVES, actions).item() == pytest.approx(math.log(0.25 * 0.5))


def test_entropy_in_nats():
    expected = 1.5 * math.log(2) + math.log(2)
    assert entropy(HALVES).item() == pytest.approx(expected)


def test_kl_divergence_is_of_the_first_from_the_second():
    expected = 0.5 * math.log(1.5) + 0.5 * math.log(0.75)
    assert kl_divergence(HALVES, UNIFORM).item() == pytest.approx(expected)
    assert kl_divergence(HALVES, HALVES).item() == pytest.approx(0.0, abs=1e-7)


def test_kl_divergence_gradients():
    generator = torch.Generator().manual_seed(0)
    raw = [torch.randn(2, 3, 5, dtype=torch.float64, generator=generator) for _ in range(2)]

    def kl(raw_p, raw_q):
        return kl_divergence({"x": raw_p.log_softmax(-1)}, {"x": raw_q.log_softmax(-1)})

    assert torch.autograd.gradcheck(kl, [tensor.requires_grad_() for tensor in raw])


def test_sample_frequencies():
    torch.manual_seed(0)
    logits = {name: log_p.expand(20_000, -1) for name, log_p in HALVES.items()}
    actions = sample(logits).actions
    assert actions["buttons"].shape == (20_000, 1)
    frequencies = torch.bincount(actions["buttons"][:, 0], minlength=3) / 20_000
    torch.testing.assert_close(frequencies, torch.tensor([0.5, 0.25, 0.25]), rtol=0, atol=0.015)


def test_sample_never_draws_the_impossible():
    certain = torch.full((500, 4), -math.inf)
    certain[:, 2] = 0.0
    actions = sample({"buttons": certain}).actions
    assert torch.all(actions["buttons"] == 2)


def test_sample_repeats_with_the_seed():
    logits = {"buttons": torch.zeros(50, NUM_BUTTONS).log_softmax(-1)}
    draws = []
    for _ in range(2):
        torch.manual_seed(3)
        draws.append(sample(logits).actions["buttons"])
    assert torch.equal(*draws)


def test_argmax_keeps_the_action_axis():
    assert sample(HALVES, explore=False).actions["buttons"].tolist() == [[0]]


def test_product_membership_counts_like_itertools():
    membership = product_membership([2, 3])
    for row, (a, b) in zip(membership, itertools.product(range(2), range(3)), strict=True):
        assert row.nonzero()[:, 0].tolist() == [a, 2 + b]


def test_button_membership():
    membership = product_membership(BUTTON_SIZES, exclusive=True)
    assert membership.shape == (8641, 30)
    assert torch.all(membership[:-1].sum(1) == len(BUTTON_GROUPS))
    assert membership[-1].nonzero().tolist() == [[29]]
    # Token 1 is "camera" alone, the fastest group; the slowest starts at hotbar.9.
    camera_on = 10 + 3 + 3 + 3 + 2 + 2 + 2 + 2 + 1
    assert membership[1, camera_on] == 1 and membership[0, camera_on - 1] == 1
    assert membership[8639, 9] == 1


@pytest.mark.parametrize("kind", ["joint", "factored"])
def test_new_policies_are_nearly_uniform(kind):
    torch.manual_seed(0)
    heads = make_action_heads(VPTConfig.from_options({"preset": "nano", "action_head": kind}))
    latent = torch.nn.functional.layer_norm(torch.randn(1, 200, 128), (128,))
    logits = {name: head(latent) for name, head in heads.items()}
    shortfall = math.log(8641) + math.log(121) - entropy(logits)
    assert torch.all(shortfall < 2e-2)


def test_one_sample_teaches_actions_that_share_components():
    """After a step on one action, the others rank by the number of components in common."""
    torch.manual_seed(0)
    head = make_action_heads(VPTConfig.from_options({"preset": "nano"}))["buttons"]
    latent = torch.randn(1, 1, 128)
    before = head(latent)[0, 0].detach()
    token = 4321
    (-head(latent)[0, 0, token]).backward()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter -= 0.01 * parameter.grad
    gain = head(latent)[0, 0].detach() - before
    membership = product_membership(BUTTON_SIZES, exclusive=True)
    in_common = membership @ membership[token]
    means = [gain[in_common == n].mean().item() for n in range(10)]
    assert means == sorted(means)
    assert means[9] > 0 > means[0]


def test_temperature_divides_the_logits():
    torch.manual_seed(0)
    heads = make_action_heads(VPTConfig.from_options({"preset": "nano", "temperature": 1.0}))
    torch.manual_seed(0)
    cooler = make_action_heads(VPTConfig.from_options({"preset": "nano", "temperature": 0.5}))
    latent = torch.randn(1, 1, 128)
    warm, cool = heads["camera"](latent), cooler["camera"](latent)
    torch.testing.assert_close((2 * warm).log_softmax(-1), cool)
