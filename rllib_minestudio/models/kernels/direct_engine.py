"""The engine for stacks of few channels on CPUs, by the kernels in `direct`.

Sums are float32 whatever the network's precision: the kernels are faster than torch in either.
Their order differs from torch's, so the last bit may decide a ReLU or a pool differently. Outputs
and gradients are consistent nevertheless, because both come from the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rllib_minestudio.models.kernels.engines import (
    COLOURS,
    ConvolutionLayer,
    ConvolutionStack,
    EngineWithGradients,
    Kept,
    Processor,
    is_compiled,
)

CHANNELS = (8, 16, 24)
"""Channels of stacks that are computed frame by frame; more are worth a library's overhead."""


class DirectWeights(NamedTuple):
    """A stack's parameters, laid out as the kernels read them."""

    values: Tensor
    """In the order of `direct.count_parameters`, then the norms' epsilon."""

    channels: int
    """Output channels."""


class Direct(EngineWithGradients):
    """Whole stacks of even sides; without a first norm, images are [N, H, W, 3] uint8."""

    name = "direct"
    by_numba = True
    reads_bytes = True

    def why_not(self, work: ConvolutionStack) -> str:
        """Return a reason unless there are few channels, in whole blocks."""
        channels_in, channels = work.channels
        if work.device.type != "cpu":
            return "it is for CPUs"
        if work.weight_dtype != torch.float32:
            return f"weights must be float32, not {work.weight_dtype}"
        if channels_in not in (COLOURS, *CHANNELS) or channels not in CHANNELS:
            return f"channels must be among {CHANNELS}"
        return ""

    def is_fast(self, work: ConvolutionStack, processor: Processor) -> bool:
        """Whether the processor has the kernels' instruction."""
        return processor.lanes > 0

    def is_ready(self, work: ConvolutionStack) -> bool:
        """Compile the kernels once per machine."""
        return is_compiled(_kernels().CODE)

    def pack(
        self, layer: ConvolutionLayer, dtype: torch.dtype, input_scale: float = 1.0
    ) -> DirectWeights:
        """Copy the weights, in float32."""
        return _packed(layer, _blocked)

    @torch.no_grad()
    def forward(self, x: Tensor, packed: DirectWeights) -> Tensor:
        """Return [N, C, H / 2, W / 2] float32."""
        return _forward(self.as_read(x, torch.float32), packed)

    def as_read(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return contiguous bytes or float32 numbers."""
        return (x if x.dtype == torch.uint8 else x.float()).contiguous()

    def forward_keeping(self, x: Tensor, layer: ConvolutionLayer) -> tuple[Tensor, Kept]:
        """Keep the convolutions' results, the pool's choices and the norms' statistics."""
        packed, kernels = _packed(layer, _blocked), _kernels()
        sizes = _sizes(x, packed)
        kept = (
            _empty(sizes.frames * kernels.kept_size.py_func(sizes), np.float32),
            _empty(sizes.frames * kernels.taps_size.py_func(sizes), np.int16),
            _empty(sizes.frames * kernels.NORMS * 2, np.float32),
        )
        return _forward(x, packed, kept), Kept((x, packed.values, *kept))

    def backward(
        self, dy: Tensor, kept: Kept, layer: ConvolutionLayer, needs_dx: bool, needs_weights: bool
    ) -> tuple[Tensor | None, Sequence[Tensor | None]]:
        """Compute all weights' gradients in one pass, whichever are needed."""
        x, values, *of_layers = (each for each in kept.tensors if each is not None)
        kernels, dy = _kernels(), dy.contiguous()
        sizes = _sizes(x, DirectWeights(values, dy.shape[1]))
        turned = _packed(layer, _turned).values
        dx = torch.empty_like(x) if needs_dx else None
        gradients = torch.empty(kernels.count_shares(sizes.frames), len(values) - 1)
        kernels.backward(
            *_images(x),
            *map(_array, (values, turned, *of_layers, dy)),
            kernels.NOTHING if dx is None else _array(dx),
            _array(gradients),
            sizes,
            torch.get_num_threads(),
        )
        return dx, list(_split(gradients.sum(0), layer, sizes))


DIRECT = Direct()


def _packed(layer: ConvolutionLayer, order: Callable[[Tensor], Tensor]) -> DirectWeights:
    first, bias, *norm = layer.parameters[:4]
    assert first is not None
    channels, channels_in = first.shape[:2]
    parts = [order(first), torch.zeros(channels) if bias is None else bias]
    parts += [torch.zeros(channels_in) if part is None else part for part in norm]
    for part in layer.parameters[4:]:
        assert part is not None
        parts.append(order(part) if part.dim() == 4 else part)
    values = torch.cat([*(part.detach() for part in parts), torch.tensor([layer.epsilon])])
    return DirectWeights(values, channels)


def _blocked(filters: Tensor) -> Tensor:
    """[C, C_in, 3, 3] -> [C / CHANNELS * C_in * 3 * CHANNELS * 3]: rows by output channel."""
    block = _kernels().CHANNELS
    channels, channels_in = filters.shape[:2]
    parts = filters.reshape(channels // block, block, channels_in, 3, 3)
    return parts.permute(0, 2, 3, 1, 4).flatten()


def _unblocked(values: Tensor, shape: torch.Size) -> Tensor:
    """The inverse of `_blocked`."""
    block = _kernels().CHANNELS
    parts = values.view(shape[0] // block, shape[1], 3, block, 3)
    return parts.permute(0, 3, 1, 2, 4).reshape(shape)


def _turned(filters: Tensor) -> Tensor:
    """The filters that map gradients of outputs to gradients of inputs, blocked."""
    if filters.shape[1] == COLOURS:
        return torch.zeros(filters.numel())  # images need no gradient
    return _blocked(filters.transpose(0, 1).flip(2, 3))


def _empty(size: int, dtype: type[np.generic]) -> Tensor:
    """Allocate as NumPy does: in huge pages, where Linux has them.

    Getting these numbers' memory in small pages would take longer than computing them.
    """
    return torch.from_numpy(np.empty(size, dtype))


def _split(gradient: Tensor, layer: ConvolutionLayer, sizes: Any) -> Iterator[Tensor | None]:
    lacking = (0, sizes.channels, sizes.channels_in, sizes.channels_in)
    for number, parameter in enumerate(layer.parameters):
        size = lacking[number] if parameter is None else parameter.numel()
        mine, gradient = gradient[:size], gradient[size:]
        if parameter is None:
            yield None
        else:
            yield _unblocked(mine, parameter.shape) if parameter.dim() == 4 else mine


def _forward(x: Tensor, packed: DirectWeights, kept: Sequence[Tensor] = ()) -> Tensor:
    """Call the kernel; `kept`, where gradients follow, receives what they need."""
    kernels, sizes = _kernels(), _sizes(x, packed)
    y = torch.empty(sizes.frames, sizes.channels, sizes.height // 2, sizes.width // 2)
    kernels.forward(
        *_images(x),
        _array(packed.values),
        _array(y),
        *([_array(each) for each in kept] or [kernels.NOTHING] * 3),
        sizes,
        torch.get_num_threads(),
    )
    return y


def _sizes(x: Tensor, packed: DirectWeights) -> Any:
    if x.dtype == torch.uint8:
        frames, height, width, channels_in = x.shape
    else:
        frames, channels_in, height, width = x.shape
    if height % 2 or width % 2:
        raise ValueError(f"Images must have even sides, but these are {height} x {width}.")
    return _kernels().StackShape(frames, height, width, channels_in, packed.channels)


def _images(x: Tensor) -> tuple[Any, Any]:
    """The image as bytes and as numbers, of which one is `NOTHING`."""
    array, nothing = _array(x), _kernels().NOTHING
    return (array, nothing) if x.dtype == torch.uint8 else (nothing, array)


def _array(x: Tensor) -> Any:
    """A contiguous tensor as the kernels take it; the caller keeps `x` alive."""
    return _kernels().Array(x.data_ptr(), x.numel())


def _kernels() -> ModuleType:
    """Import the kernels late, because that imports the compiler."""
    from rllib_minestudio.models.kernels import direct_calls

    return direct_calls
