"""Stacks of few channels through the kernels in `direct`: outputs and gradients.

Sums are float32 whatever the network's precision. They run in another order than torch's, so a
ReLU or a pool may decide otherwise where it is a matter of the last bit; outputs and gradients
belong together nevertheless, because both are the kernels'.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rllib_minestudio.models.vpt import paths, processors
from rllib_minestudio.models.vpt.paths import Path, Stack

_logger = logging.getLogger(__name__)

Parameters = Sequence[Tensor | None]
"""A stack's, in the order of `direct.stacks`: filters [C, C_in, 3, 3], and numbers by channel.

The first four are filters, bias and norm of the first convolution; None is for what it lacks.
"""


def path_of(work: Stack) -> Path:
    """Returns the path of a stack on this processor, ready to be taken.

    As in `convolution.path_of`, where the machine code cannot be kept it is as if the processor
    had none.
    """
    processor = processors.detected(work.suits_kernels)
    path = paths.of_stack(work, processor)
    if path is Path.DIRECT and not _are_compiled():
        return paths.of_stack(work, replace(processor, lanes=0))
    return path


class Packed(NamedTuple):
    """A stack's parameters, laid out as the kernels read them."""

    values: Tensor
    """In the order of `direct.stacks.count_parameters`, and the epsilon of the norms."""

    channels: int
    """Out."""


def compute(x: Tensor, parameters: Parameters, epsilon: float) -> Tensor:
    """Computes a stack's output, with gradients where they are asked for.

    Args:
        x: [N, H, W, 3] uint8 where the first convolution has no norm, else [N, C_in, H, W]; sides
            are even.
        parameters: Of the stack.
        epsilon: What its norms add to the variance.

    Returns:
        [N, C, H / 2, W / 2] float32.
    """
    tensors = (x, *(parameter for parameter in parameters if parameter is not None))
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        y: Tensor = _Stack.apply(_as_read(x), epsilon, *parameters)
        return y
    return compute_packed(x, pack(parameters, epsilon))


def pack(parameters: Parameters, epsilon: float) -> Packed:
    """Lays a stack's parameters out; they are copied."""
    return _packed(parameters, epsilon, _blocked)


@torch.no_grad()
def compute_packed(x: Tensor, packed: Packed) -> Tensor:
    """As `compute`, without gradients."""
    return _forward(_as_read(x), packed)


def _as_read(x: Tensor) -> Tensor:
    """Bytes, or float32 numbers, without gaps."""
    return (x if x.dtype == torch.uint8 else x.float()).contiguous()


def _packed(parameters: Parameters, epsilon: float, order: Callable[[Tensor], Tensor]) -> Packed:
    first, bias, *norm = parameters[:4]
    assert first is not None
    channels, channels_in = first.shape[:2]
    parts = [order(first), torch.zeros(channels) if bias is None else bias]
    parts += [torch.zeros(channels_in) if part is None else part for part in norm]
    for part in parameters[4:]:
        assert part is not None
        parts.append(order(part) if part.dim() == 4 else part)
    values = torch.cat([*(part.detach() for part in parts), torch.tensor([epsilon])])
    return Packed(values, channels)


def _blocked(filters: Tensor) -> Tensor:
    """[C, C_in, 3, 3] -> [C / CHANNELS * C_in * 3 * CHANNELS * 3]: rows by output channel."""
    block = _direct().CHANNELS
    channels, channels_in = filters.shape[:2]
    parts = filters.reshape(channels // block, block, channels_in, 3, 3)
    return parts.permute(0, 2, 3, 1, 4).flatten()


def _unblocked(values: Tensor, shape: torch.Size) -> Tensor:
    """The inverse."""
    block = _direct().CHANNELS
    parts = values.view(shape[0] // block, shape[1], 3, block, 3)
    return parts.permute(0, 3, 1, 2, 4).reshape(shape)


def _turned(filters: Tensor) -> Tensor:
    """The filters that lead from gradients of outputs to gradients of inputs, blocked."""
    if filters.shape[1] == paths.COLOURS:
        return torch.zeros(filters.numel())  # images need no gradient
    return _blocked(filters.transpose(0, 1).flip(2, 3))


class _Stack(torch.autograd.Function):
    """A stack whose gradients are the kernels' as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, epsilon: float, *parameters: Tensor | None) -> Tensor:
        packed, direct = pack(parameters, epsilon), _direct()
        sizes = _sizes(x, packed)
        kept = (
            _empty(sizes.frames * direct.kept_size.py_func(sizes), np.float32),
            _empty(sizes.frames * direct.taps_size.py_func(sizes), np.int16),
            _empty(sizes.frames * direct.NORMS * 2, np.float32),
        )
        y_nchw = _forward(x, packed, kept)
        ctx.save_for_backward(x, packed.values, *kept, *parameters)
        ctx.epsilon = epsilon
        return y_nchw

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_nchw: Tensor) -> tuple[Tensor | None, ...]:
        x, values, *kept_and_parameters = ctx.saved_tensors
        kept, parameters = kept_and_parameters[:3], kept_and_parameters[3:]
        direct, dy_nchw = _direct(), dy_nchw.contiguous()
        packed = Packed(values, dy_nchw.shape[1])
        sizes = _sizes(x, packed)
        turned = _packed(parameters, ctx.epsilon, _turned).values
        dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        gradients = torch.empty(direct.count_shares(sizes.frames), len(values) - 1)
        direct.backward(
            *_images(x),
            *map(_array, (values, turned, *kept, dy_nchw)),
            direct.NOTHING if dx is None else _array(dx),
            _array(gradients),
            sizes,
            torch.get_num_threads(),
        )
        return dx, None, *_split(gradients.sum(0), parameters, sizes)


def _empty(size: int, dtype: type[np.generic]) -> Tensor:
    """Allocates as NumPy does: in huge pages, where Linux has them.

    To get these numbers' memory in small pages takes longer than to compute them.
    """
    return torch.from_numpy(np.empty(size, dtype))


def _split(gradient: Tensor, parameters: Parameters, sizes: Any) -> Iterator[Tensor | None]:
    """The gradient of each parameter."""
    lacking = (0, sizes.channels, sizes.channels_in, sizes.channels_in)
    for number, parameter in enumerate(parameters):
        size = lacking[number] if parameter is None else parameter.numel()
        mine, gradient = gradient[:size], gradient[size:]
        if parameter is None:
            yield None
        else:
            yield _unblocked(mine, parameter.shape) if parameter.dim() == 4 else mine


def _forward(x: Tensor, packed: Packed, kept: Sequence[Tensor] = ()) -> Tensor:
    """Calls the kernel; ``kept``, where gradients follow, receives what they need."""
    direct, sizes = _direct(), _sizes(x, packed)
    y_nchw = torch.empty(sizes.frames, sizes.channels, sizes.height // 2, sizes.width // 2)
    direct.forward(
        *_images(x),
        _array(packed.values),
        _array(y_nchw),
        *([_array(each) for each in kept] or [direct.NOTHING] * 3),
        sizes,
        torch.get_num_threads(),
    )
    return y_nchw


def _sizes(x: Tensor, packed: Packed) -> Any:
    if x.dtype == torch.uint8:
        frames, height, width, channels_in = x.shape
    else:
        frames, channels_in, height, width = x.shape
    if height % 2 or width % 2:
        raise ValueError(f"Images have even sides here, but these are {height} x {width}.")
    return _direct().Sizes(frames, height, width, channels_in, packed.channels)


def _images(x: Tensor) -> tuple[Any, Any]:
    """Bytes and numbers as the kernels take them: the one or the other."""
    array, nothing = _array(x), _direct().NOTHING
    return (array, nothing) if x.dtype == torch.uint8 else (nothing, array)


def _array(x: Tensor) -> Any:
    """The numbers as the kernels take them; ``x`` has to stay, and has no gaps."""
    return _direct().Array(x.data_ptr(), x.numel())


def _direct() -> ModuleType:
    """Imports the kernels, late because they bring the compiler."""
    from rllib_minestudio.models.vpt.direct import compiled

    return compiled


@cache
def _are_compiled() -> bool:
    """Compiles the kernels if that is to be done; False if it cannot be."""
    try:
        _direct().CODE.compile_once()
    except OSError as error:
        _logger.warning("Convolutions stay slow: their code cannot be kept (%s).", error)
        return False
    return True
