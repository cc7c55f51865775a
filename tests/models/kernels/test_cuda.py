"""Stacks on a GPU give torch's numbers, and its gradients, in float32 and in bfloat16."""

import pytest
import torch

from rllib_minestudio.models.kernels.cuda import CUDA
from rllib_minestudio.models.kernels.engine_choice import TORCH
from rllib_minestudio.models.vpt.layers import DownStack
from tests.models.kernels.stacks import random_stack

pytestmark = pytest.mark.gpu

# Frames, height and width, channels in and out: images and what follows them, odd sides, fewer
# vectors than a block has threads, more groups of channels than fit a block, large batches.
SIZES = [
    (3, 10, 22, 3, 8),
    (2, 5, 7, 8, 16),
    (1, 64, 64, 3, 64),
    (16, 32, 32, 64, 128),
    (2, 16, 16, 192, 384),
    (2, 4, 4, 8, 1032),
    (70, 16, 16, 16, 24),
]
BOUND = 1e-5
"""Of the largest output."""

OF_GRADIENTS = 1e-2
"""Of their norm: a ReLU or a pool may fall to the other side for one number in a million, which
changes the gradients of all pixels around it."""


@pytest.fixture(autouse=True)
def _full_precision(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def _example(frames, height, width, channels_in, channels):
    """A stack, its input, and a gradient of its output."""
    stack = random_stack(channels_in, channels)
    x = torch.randn(frames, channels_in, height, width)
    dy = torch.randn(frames, channels, (height + 1) // 2, (width + 1) // 2)
    return stack.cuda(), x.cuda(), dy.cuda()


def _with_gradients(stack, x, dy):
    """Output, and gradients of input and parameters."""
    x = x.detach().requires_grad_()
    inputs = [x, *stack.parameters()]
    y = stack(x)
    return y, *torch.autograd.grad(y, inputs, dy.to(y.dtype))


def _exactly(stack, x, dy):
    """The same by torch in float64."""
    stack.double()
    results = _with_gradients(stack, x.double(), dy.double())
    stack.float()
    return results


@pytest.mark.parametrize("size", SIZES)
def test_outputs_and_gradients_equal_those_in_float64(size):
    stack, x, dy = _example(*size)
    assert stack.engine_for(torch.float32) is CUDA
    actual = _with_gradients(stack, x, dy)
    exact = _exactly(stack, x, dy)
    assert (actual[0] - exact[0]).abs().max() <= BOUND * exact[0].abs().max()
    for mine, exact_each in zip(actual, exact, strict=True):
        assert mine.shape == exact_each.shape
        assert _error(mine, exact_each) <= OF_GRADIENTS


def _error(actual, exact):
    difference = actual.detach().double() - exact.detach()
    return float(difference.norm() / exact.detach().norm())


@pytest.mark.parametrize("size", SIZES[3:5])
def test_bfloat16_is_no_further_from_the_truth_than_torchs(size, monkeypatch):
    stack, x, dy = _example(*size)
    exact = _exactly(stack, x, dy)
    with torch.autocast("cuda", torch.bfloat16):
        assert stack.engine_for(torch.bfloat16) is CUDA
        mine = _with_gradients(stack, x, dy)
        monkeypatch.setattr(DownStack, "engine_for", lambda *_: TORCH)
        torchs = _with_gradients(stack, x, dy)
    assert mine[0].dtype == torch.bfloat16
    for mine_each, torchs_each, exact_each in zip(mine, torchs, exact, strict=True):
        assert _error(mine_each, exact_each) <= 1.5 * _error(torchs_each, exact_each) + 0.004


def test_the_same_inputs_give_the_same_bits_with_gradients_and_without():
    stack, x, dy = _example(*SIZES[3])
    first, second = _with_gradients(stack, x, dy), _with_gradients(stack, x, dy)
    assert torch.equal(first[0], second[0])
    with torch.no_grad():
        assert torch.equal(stack(x), first[0])
        packed = CUDA.pack(stack.weights(), torch.float32)
        assert torch.equal(CUDA.forward(x, packed), first[0])


def test_a_mean_far_from_zero_costs_no_precision():
    stack, x, dy = _example(*SIZES[3])
    x = x + 1000.0
    exact = _exactly(stack, x, dy)[0]
    # The input itself is rounded to 1/16,000 of its spread.
    assert (stack(x) - exact).abs().max() <= 3e-4 * exact.abs().max()


def test_a_nan_is_not_hidden_and_stays_in_its_frame():
    stack, x, _ = _example(*SIZES[3])
    x[3, 5, 6, 7] = float("nan")
    with torch.no_grad():
        y = stack(x)
    assert y[3].isnan().any()
    assert torch.equal(y.isnan().flatten(1).any(1).nonzero().flatten(), torch.tensor([3]).cuda())


def test_parameters_changed_between_the_passes_are_noticed():
    stack, x, dy = _example(*SIZES[3])
    y = stack(x)
    with torch.no_grad():
        stack.n.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(dy)


def test_there_may_be_no_frames():
    stack, x, _ = _example(*SIZES[3])
    y = stack(x[:0])
    y.sum().backward()
    packed = CUDA.pack(stack.weights(), torch.float32)
    assert CUDA.forward(x[:0], packed).shape == y.shape == (0, 128, 16, 16)


def test_other_precisions_are_torchs():
    stack, x, _ = _example(*SIZES[0])
    with torch.autocast("cuda", torch.float16):
        assert stack.engine_for(torch.float16) is TORCH
        assert stack(x).isfinite().all()
