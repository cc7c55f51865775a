"""The CUDA engine where there is no GPU: all but its kernels, which torch stands in for.

What the kernels compute: test_cuda.py.
"""

from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional as F

from rllib_minestudio.models.kernels import cuda
from rllib_minestudio.models.kernels.cuda import CUDA, Normed
from rllib_minestudio.models.kernels.engine_choice import TORCH
from rllib_minestudio.models.vpt.layers import DownStack
from tests.models.kernels.stacks import random_stack


class _ByTorch:
    """`cuda._Kernels`; moments are not needed."""

    def __init__(self, device, dtype):
        pass

    def moments(self, x):
        return None

    def positive_(self, x):
        return x.relu_(), None

    def positive_added(self, x, skip):
        return x.relu() + skip, None

    def pool(self, x, keep):
        y, taps = F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True)
        return y.relu(), taps, None

    def normalise(self, x, moments, norm):
        return Normed(x, x.new_empty(0), F.group_norm(x, 1, norm.weight, norm.bias, norm.epsilon))

    def norm_backward(self, dy, normed, norm, *, relu=False, skip=None):
        inputs = [each.detach().requires_grad_() for each in (normed.x, norm.weight, norm.bias)]
        with torch.enable_grad():
            y = F.group_norm(inputs[0], 1, *inputs[1:], norm.epsilon)
        dx, dweight, dbias = torch.autograd.grad(y, inputs, dy)
        dx = dx * (normed.x > 0) if relu else dx
        return dx if skip is None else dx + skip, dweight, dbias

    def positive_backward(self, dy, x):
        return dy * (x > 0)

    def pool_backward(self, dy, taps, image):
        shape = (*dy.shape[:2], *image.shape[2:])
        dx = torch.zeros(shape).flatten(2)
        return dx.scatter_add(2, taps.flatten(2), dy.flatten(2)).view(shape)


@pytest.fixture(autouse=True)
def _kernels_by_torch(monkeypatch):
    monkeypatch.setattr(cuda, "_Kernels", _ByTorch)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())


def _example(channels_in, channels):
    stack = random_stack(channels_in, channels)
    x = torch.randn(3, channels_in, 10, 14, requires_grad=True)
    return stack, x, torch.randn(3, channels, 5, 7)


@pytest.mark.parametrize("channels", [(3, 8), (16, 24)])
def test_outputs_and_gradients_are_torchs(channels, monkeypatch):
    stack, x, dy = _example(*channels)
    inputs = [x, *stack.parameters()]
    y = CUDA.compute(x, stack.weights(), torch.float32)
    mine = torch.autograd.grad(y, inputs, dy)
    monkeypatch.setattr(DownStack, "engine_for", lambda *_: TORCH)
    expected = stack(x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-4)
    for found, gradient in zip(mine, torch.autograd.grad(expected, inputs, dy), strict=True):
        assert found.shape == gradient.shape
        assert (found - gradient).norm() <= 1e-4 * gradient.norm()


def test_inputs_are_scaled_by_the_first_filters():
    stack, x, _ = _example(3, 8)
    half, whole = (CUDA.pack(stack.weights(), torch.float32, scale) for scale in (0.5, 1.0))
    torch.testing.assert_close(CUDA.forward(2 * x, half), CUDA.forward(x, whole))


def test_parameters_changed_between_the_passes_are_noticed():
    stack, x, dy = _example(16, 24)
    y = CUDA.compute(x, stack.weights(), torch.float32)
    with torch.no_grad():
        stack.n.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(dy)
