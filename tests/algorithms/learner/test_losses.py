"""Every loss term against its closed form, and its gradient where the form has corners."""

from __future__ import annotations

import math

import pytest
import torch

from rllib_minestudio.algorithms.learner import objective


def policy_loss(log_ratio, advantage, weight=1.0, clip_param=0.2, log_ratio_clamp=50.0):
    """The loss of one action and its gradient with respect to log pi."""
    logp = torch.tensor([log_ratio], requires_grad=True)
    result = objective.policy_loss(
        logp,
        torch.zeros(1),
        torch.tensor([advantage]),
        torch.tensor([weight]),
        torch.ones(1),
        clip_param=clip_param,
        log_ratio_clamp=log_ratio_clamp,
    )
    (gradient,) = torch.autograd.grad(result.loss, logp)
    return result, gradient.item()


def test_policy_loss_inside_the_trust_region_is_the_importance_weighted_advantage():
    result, gradient = policy_loss(math.log(1.1), 2.0)
    assert result.loss.item() == pytest.approx(-2.2)
    assert gradient == pytest.approx(-2.2)
    assert result.clip_fraction.item() == 0.0


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [(1.5, 2.0, -2.4), (0.5, -2.0, 1.6)],
    ids=["raised-good-action", "lowered-bad-action"],
)
def test_policy_loss_gives_no_gradient_for_going_further(ratio, advantage, expected):
    result, gradient = policy_loss(math.log(ratio), advantage)
    assert result.loss.item() == pytest.approx(expected)
    assert gradient == 0.0
    assert result.clip_fraction.item() == 1.0


@pytest.mark.parametrize(
    ("ratio", "advantage"), [(0.5, 2.0), (1.5, -2.0)], ids=["lowered-good", "raised-bad"]
)
def test_policy_loss_lets_mistakes_be_undone(ratio, advantage):
    result, gradient = policy_loss(math.log(ratio), advantage)
    assert result.loss.item() == pytest.approx(-ratio * advantage)
    assert gradient == pytest.approx(-ratio * advantage)


def test_policy_loss_scales_with_the_importance_weight():
    result, gradient = policy_loss(0.0, 3.0, weight=0.25)
    assert result.loss.item() == pytest.approx(-0.75)
    assert gradient == pytest.approx(-0.75)


def test_policy_loss_stays_finite_for_absurd_ratios():
    result, gradient = policy_loss(1000.0, -1.0, log_ratio_clamp=50.0)
    assert math.isfinite(result.loss.item())
    assert gradient == 0.0


def test_approximate_kl_is_the_k3_estimate():
    result, _ = policy_loss(math.log(1.25), 1.0)
    assert result.approximate_kl.item() == pytest.approx(0.25 - math.log(1.25))


def test_importance_weight_is_truncated_and_has_no_gradient():
    proximal = torch.tensor([math.log(0.5), math.log(8.0)], requires_grad=True)
    weight = objective.importance_weight(proximal, torch.zeros(2), truncation=2.0)
    torch.testing.assert_close(weight, torch.tensor([0.5, 2.0]))
    assert not weight.requires_grad


def test_value_loss_is_half_the_mean_square():
    loss = objective.value_loss(
        torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]), torch.full((2,), 0.5)
    )
    assert loss.item() == pytest.approx(0.5 * (1 + 4) / 2)


def test_what_a_step_without_a_share_holds_does_not_matter():
    """Means are those over the other steps, and nothing flows back."""
    share = torch.tensor([0.0, 0.5, 0.5])
    good = torch.tensor([0.3, -0.2])
    spoilt = torch.cat([torch.tensor([1e6]), good]).requires_grad_()
    ones = torch.ones(3)
    policy = objective.policy_loss(
        spoilt, torch.zeros(3), ones, ones, share, clip_param=0.2, log_ratio_clamp=50.0
    )
    alone = objective.policy_loss(
        good, torch.zeros(2), ones[1:], ones[1:], share[1:], clip_param=0.2, log_ratio_clamp=50.0
    )
    for masked, expected in zip(policy, alone, strict=True):
        torch.testing.assert_close(masked, expected)
    value = objective.value_loss(spoilt, torch.zeros(3), share)
    torch.testing.assert_close(value, objective.value_loss(good, torch.zeros(2), share[1:]))
    (gradient,) = torch.autograd.grad(policy.loss + value, spoilt)
    assert gradient[0] == 0.0 and gradient[1] != 0.0


def test_normalised_advantages_have_mean_zero_and_deviation_one():
    advantage = torch.arange(12.0).reshape(3, 4)
    everything = torch.ones(3, 4, dtype=torch.bool)
    normalised = objective.normalise_advantage(advantage, everything)
    assert normalised.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert normalised.std().item() == pytest.approx(1.0)


def test_unusable_steps_have_no_part_in_normalising():
    usable = torch.tensor([True, True, False])
    normalised = objective.normalise_advantage(torch.tensor([1.0, 3.0, 1e9]), usable)
    expected = objective.normalise_advantage(torch.tensor([1.0, 3.0]), usable[:2])
    torch.testing.assert_close(normalised, torch.cat([expected, torch.zeros(1)]))


def test_explained_variance_knows_its_landmarks():
    target, usable = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, dtype=torch.bool)
    assert objective.explained_variance(target, target, usable).item() == pytest.approx(1.0)
    assert objective.explained_variance(torch.zeros(3), target, usable).item() == pytest.approx(0.0)
    assert math.isnan(objective.explained_variance(target, torch.ones(3), usable).item())
