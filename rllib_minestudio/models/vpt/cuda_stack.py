"""Stacks on NVIDIA GPUs through the kernels in `cuda`: outputs and gradients.

Sums are float32; images between the layers are of the network's precision. A ReLU or a pool may
decide otherwise than torch's where it is a matter of the last bit; outputs and gradients belong
together nevertheless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rllib_minestudio.models.vpt.cuda import stacks
from rllib_minestudio.models.vpt.cuda.program import program
from rllib_minestudio.models.vpt.cuda.stacks import Kept, Norm, Weights

Parameters = Sequence[Tensor | None]
"""A stack's, as `DownStack.kernel_parameters` lists them."""

PER_CONVOLUTION = 3
"""Parameters: weight and bias of the norm, filters."""


def is_ready(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernels are compiled for images of ``dtype``; the first call does that."""
    return program(device, dtype) is not None


def compute(x: Tensor, parameters: Parameters, epsilon: float, dtype: torch.dtype) -> Tensor:
    """Computes a stack's output, with gradients where they are asked for.

    Args:
        x: [N, C_in, H, W]; at least one frame.
        parameters: Of the stack, float32.
        epsilon: What its norms add to the variance.
        dtype: Of the images; float32 or bfloat16.

    Returns:
        [N, C, (H + 1) / 2, (W + 1) / 2] of ``dtype``, in channels-last layout.
    """
    tensors = (x, *(parameter for parameter in parameters if parameter is not None))
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        y: Tensor = _Stack.apply(x.to(dtype), epsilon, *parameters)
        return y
    return compute_packed(x, pack(parameters, epsilon, dtype))


def pack(
    parameters: Parameters, epsilon: float, dtype: torch.dtype, input_scale: float = 1.0
) -> Weights:
    """Lays a stack's parameters out for images of ``dtype``.

    Args:
        parameters: Of the stack, float32; filters in another layout or dtype are copied.
        epsilon: What its norms add to the variance.
        dtype: Of the images.
        input_scale: Multiplies the input, at no cost, where the first convolution has no norm.
    """
    first, first_bias, *first_norm = parameters[:4]
    pooled_norm, of_blocks = parameters[4:6], parameters[6:]
    assert first is not None
    if input_scale != 1.0:
        first = first.detach() * input_scale

    def filters(weight: Any) -> Tensor:
        laid_out: Tensor = weight.detach().to(dtype, memory_format=torch.channels_last)
        return laid_out

    def norm(pair: Sequence[Any]) -> Norm:
        weight, bias = pair
        return Norm(weight.detach(), bias.detach(), epsilon)

    convolutions = [
        (norm(of_blocks[i : i + 2]), filters(of_blocks[i + 2]))
        for i in range(0, len(of_blocks), PER_CONVOLUTION)
    ]
    return Weights(
        filters(first),
        None if first_bias is None else first_bias.detach().to(dtype),
        None if first_norm[0] is None else norm(first_norm),
        norm(pooled_norm),
        [(*a, *b) for a, b in zip(convolutions[::2], convolutions[1::2], strict=True)],
    )


@torch.no_grad()
def compute_packed(x: Tensor, weights: Weights) -> Tensor:
    """As `compute`, without gradients; there may be no frames."""
    frames, _, height, width = x.shape
    if not frames:
        return x.new_empty(0, len(weights.first), (height + 1) // 2, (width + 1) // 2)
    return stacks.forward(x.to(weights.first.dtype), weights)[0]


class _Stack(torch.autograd.Function):
    """A stack whose gradients are the kernels' as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, epsilon: float, *parameters: Tensor | None) -> Tensor:
        weights = pack(parameters, epsilon, x.dtype)
        y, kept = stacks.forward(x, weights, keep=True)
        assert kept is not None
        tensors = kept.flat()
        ctx.save_for_backward(*tensors, *parameters)  # those, to know if they are changed
        ctx.weights, ctx.count = weights, len(tensors)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        kept = Kept.of(ctx.saved_tensors[: ctx.count], len(ctx.weights.blocks))
        needs_dx = ctx.needs_input_grad[0]
        dx, gradients = stacks.backward(dy, kept, ctx.weights, needs_dx=needs_dx)
        return dx, None, *gradients
