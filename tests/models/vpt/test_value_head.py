"""The value head's running statistics against arithmetic."""

import pytest
import torch

from rllib_minestudio.models.value_head import DECAY, ValueHead
from tests.models.value_statistics import take_in


@pytest.fixture
def head():
    torch.manual_seed(0)
    return ValueHead(8)


def test_before_any_data_the_mean_is_zero_and_the_variance_its_minimum(head):
    mean, std = head.normalizer.mean_and_std()
    assert mean.item() == 0.0
    assert std.item() == pytest.approx(0.1)


def test_one_batch_is_debiased_to_its_own_moments(head):
    target = torch.tensor([[1.0, 5.0], [9.0, 5.0]])
    take_in(head, target)
    mean, std = head.normalizer.mean_and_std()
    assert mean.item() == pytest.approx(5.0, abs=1e-4)
    assert std.item() == pytest.approx(8.0**0.5, abs=1e-3)
    assert head.normalizer.debiasing_term.item() == pytest.approx(1 - DECAY, rel=1e-3)


def test_two_batches_weigh_almost_equally(head):
    take_in(head, torch.full((4,), 0.0))
    take_in(head, torch.full((4,), 2.0))
    mean, std = head.normalizer.mean_and_std()
    assert mean.item() == pytest.approx(1.0, abs=1e-3)
    assert std.item() == pytest.approx(1.0, abs=1e-3)


def test_normalize_and_denormalize_are_inverse(head):
    take_in(head, torch.randn(3, 50) * 20 + 100)
    value = torch.tensor([[80.0, 100.0], [130.0, -5.0]])
    torch.testing.assert_close(head.denormalize(head.normalize(value)), value)


def test_statistics_ignore_gradients(head):
    target = torch.ones(3, requires_grad=True)
    take_in(head, target * 2)
    assert not head.normalizer.running_mean.requires_grad


def test_reset_to_zero_predicts_zero(head):
    take_in(head, torch.randn(10) + 5)
    head.reset_to_zero()
    value = head.denormalize(head(torch.randn(2, 3, 8)))
    assert torch.equal(value, torch.zeros(2, 3))
