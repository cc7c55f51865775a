"""The group norm of rollouts on a GPU, which computes the same anywhere."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from rllib_minestudio.models.kernels.engine_choice import normalise_in_parts

SHAPES = ((3, 64, 16, 16), (2, 24, 16, 12), (1, 8, 5, 7), (4, 3, 1, 1))
"""Pixels that 64 parts share evenly, and others."""

EPSILON = 1e-5


def drawn(shape, mean):
    torch.manual_seed(0)
    x = torch.randn(shape) + mean
    return x.contiguous(memory_format=torch.channels_last), torch.randn(2, shape[1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("mean", "atol"), [(0.5, 5e-6), (100.0, 5e-5)])
def test_it_is_a_group_norm_of_one_group(shape, mean, atol):
    x, (weight, bias) = drawn(shape, mean)
    expected = F.group_norm(x.double(), 1, weight.double(), bias.double(), EPSILON)
    found = normalise_in_parts(x, weight, bias, EPSILON)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=atol)
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_bfloat16_is_rounded_once():
    x, (weight, bias) = drawn(SHAPES[0], 0.5)
    x = x.bfloat16()
    expected = normalise_in_parts(x.float(), weight, bias, EPSILON).bfloat16()
    found = normalise_in_parts(x, weight, bias, EPSILON)
    assert found.dtype == torch.bfloat16 and torch.equal(found, expected)
