"""The engine for convolutions of many channels on CPUs, by the kernels in `winograd`.

oneDNN computes these convolutions by their definition, near a core's peak; Winograd's algorithm
needs a quarter of the multiplications. Numbers differ from torch's by rounding: float32 errors are
about twice as large, and under bfloat16 autocast they are smaller, because everything between
reading and writing images is float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rllib_minestudio.models.kernels.engines import (
    Convolution,
    ConvolutionLayer,
    EngineWithGradients,
    Kept,
    Processor,
    convolve_by_torch,
    is_compiled,
)

LEAST_CHANNELS = 32
"""Fewer channels leave too little work between the transforms."""

LEAST_PIXELS = 1024
"""Pixels of all frames together; with fewer, preparing the filters is not worth it."""


class WinogradWeights(NamedTuple):
    """A convolution as the kernels read it."""

    filters: Tensor
    """[36, C / PANEL, C_in, PANEL] float32: values at the points, in panels of output channels."""

    norm: Tensor | None
    """[2 * C_in + 1] float32: weights and biases of the norm, and what it adds to the variance."""

    relu: bool


class Winograd(EngineWithGradients):
    """Outputs and gradients by the kernels, whose sums are float32 whatever the images' dtype."""

    name = "Winograd"
    by_numba = True

    def why_not(self, work: Convolution) -> str:
        """Return a reason, also if gradients are float32: `WinogradBackward` is for those."""
        if work.has_gradients and work.dtype == torch.float32:
            return "gradients of float32 follow torch's own outputs"
        return self.why_not_kernels(work)

    @staticmethod
    def why_not_kernels(work: Convolution) -> str:
        """Return why work does not suit the kernels, with or without gradients."""
        if work.device.type != "cpu":
            return "it is for CPUs"
        if work.weight_dtype != torch.float32:
            return f"weights must be float32, not {work.weight_dtype}"
        if work.dtype not in (torch.float32, torch.bfloat16):
            return f"images must be float32 or bfloat16, not {work.dtype}"
        if min(work.channels) < LEAST_CHANNELS:
            return f"fewer than {LEAST_CHANNELS} channels gain nothing"
        if work.pixels is not None and work.pixels < LEAST_PIXELS:
            return f"fewer than {LEAST_PIXELS} pixels gain nothing"
        return "it adds no bias" if work.has_bias else ""

    def is_fast(self, work: Convolution, processor: Processor) -> bool:
        """Whether the channels fill the kernels' panels, and the kernels are the fastest."""
        if processor.lanes == 0 or (processor.amx and work.dtype == torch.bfloat16):
            return False
        from rllib_minestudio.models.kernels.winograd import PANEL_VECTORS

        return all(channels % (PANEL_VECTORS * processor.lanes) == 0 for channels in work.channels)

    def is_ready(self, work: Convolution) -> bool:
        """Compile the kernels once per machine."""
        return is_compiled(_kernels().CODE)

    def pack(
        self, layer: ConvolutionLayer, dtype: torch.dtype, input_scale: float = 1.0
    ) -> WinogradWeights:
        """Copy the weights; `dtype` makes no difference."""
        filters, bias, *norm = layer.parameters
        assert filters is not None
        if bias is not None:
            raise ValueError(f"bias: must be None for {self}, whose kernels add none.")
        if input_scale != 1.0:
            filters = filters.detach() * input_scale
        of_norm = [each.detach().float() for each in norm if each is not None]
        return WinogradWeights(
            _at_points(filters),
            torch.cat([*of_norm, torch.tensor([layer.epsilon])]) if of_norm else None,
            layer.relu,
        )

    def forward(self, x: Tensor, packed: WinogradWeights, skip: Tensor | None = None) -> Tensor:
        """Normalise each frame in float32, convolve, and add `skip`.

        Args:
            x: [N, C_in, H, W].
            packed: The weights.
            skip: [N, C, H, W], of the images' dtype, added at the end.

        Returns:
            [N, C, H, W] in channels-last layout.
        """
        # Rollouts of few environments call this 14 times a step: every torch operation counts.
        kernels, x, threads = _kernels(), _channels_last(x), torch.get_num_threads()
        filters = packed.filters
        frames, channels_in, height, width = x.shape
        channels_out = filters.shape[1] * filters.shape[3]
        sizes = kernels.ConvolutionShape(frames, height, width, channels_in, channels_out)
        is_bfloat16 = x.dtype == torch.bfloat16
        y = _empty(x, frames, channels_out, height, width)
        image, affine, skipped = _array(x), kernels.NOTHING, kernels.NOTHING
        if packed.norm is not None:
            scalings = torch.empty(frames, 2, channels_in)
            affine = _array(scalings)
            kernels.normalise(image, _array(packed.norm), affine, frames, is_bfloat16, threads)
        if skip is not None:
            skip = _channels_last(skip)
            skipped = _array(skip)
        arrays = image, affine, _array(filters), skipped, _array(y)
        kernels.convolve(*arrays, sizes, packed.relu, is_bfloat16, threads)
        return y

    def pool_positive(self, x: Tensor) -> Tensor:
        """Max pool of 3x3 with stride 2 and ReLU, in channels-last layout."""
        x = _channels_last(x)
        frames, channels, height, width = x.shape
        y = _empty(x, frames, channels, (height + 1) // 2, (width + 1) // 2)
        shape, is_bfloat16 = (frames, height, width, channels), x.dtype == torch.bfloat16
        _kernels().pool(_array(x), _array(y), shape, is_bfloat16, torch.get_num_threads())
        return y

    def forward_keeping(self, x: Tensor, layer: ConvolutionLayer) -> tuple[Tensor, Kept]:
        """Keep the input, and the output if a ReLU follows."""
        y = self._outputs(x, layer)
        return y, Kept((x, y if layer.relu else None))

    def _outputs(self, x: Tensor, layer: ConvolutionLayer) -> Tensor:
        return self.forward(x, self.pack(layer, x.dtype))

    def backward(
        self, dy: Tensor, kept: Kept, layer: ConvolutionLayer, needs_dx: bool, needs_weights: bool
    ) -> tuple[Tensor | None, Sequence[Tensor | None]]:
        """Compute gradients; that of the input is also a convolution, with the filters turned."""
        x, y = kept.tensors
        assert x is not None
        if y is not None:
            dy = torch.ops.aten.threshold_backward(dy, y, 0)
        dx = dfilters = None
        if needs_dx:
            turned = layer.filters.transpose(0, 1).flip(2, 3)
            dx = self.forward(dy, WinogradWeights(_at_points(turned), None, relu=False))
        if needs_weights:
            dfilters = _filter_gradient(x, dy)
        return dx, [dfilters, None]


class WinogradBackward(Winograd):
    """torch's own outputs, with gradients by the kernels.

    A number's last bits may decide a ReLU or a max pool, and gradients that then take another path
    differ a thousand times more than the outputs. torch's path is not more exact, but it is the one
    that other implementations take.
    """

    name = "torch, gradients by Winograd"

    def why_not(self, work: Convolution) -> str:
        """Return a reason unless gradients are float32; `Winograd` is for all others."""
        if not (work.has_gradients and work.dtype == torch.float32):
            return "it is for gradients of float32"
        return self.why_not_kernels(work)

    def _outputs(self, x: Tensor, layer: ConvolutionLayer) -> Tensor:
        return convolve_by_torch(x, layer)


WINOGRAD, WINOGRAD_BACKWARD = Winograd(), WinogradBackward()


def _at_points(filters: Tensor) -> Tensor:
    """[C, C_in, 3, 3] -> `WinogradWeights.filters`."""
    panel = _kernels().PANEL
    channels_out, channels_in = filters.shape[:2]
    filters = filters.detach().permute(2, 3, 0, 1).reshape(9, -1, panel, channels_in)
    values = _product(_filter_matrix(), filters.transpose(2, 3).reshape(9, -1))
    return values.view(-1, channels_out // panel, channels_in, panel)


def _filter_gradient(x: Tensor, dy: Tensor) -> Tensor:
    """[N, C_in, H, W] and [N, C, H, W] -> [C, C_in, 3, 3] float32."""
    kernels, threads = _kernels(), torch.get_num_threads()
    x, dy = _channels_last(x), _channels_last(dy)
    frames, channels_in, height, width = x.shape
    channels_out = dy.shape[1]
    sizes = kernels.ConvolutionShape(frames, height, width, channels_in, channels_out)
    shares = kernels.count_shares(sizes, threads)
    at_points = torch.empty(shares, kernels.POINTS, channels_in * channels_out)
    arrays = _array(x), _array(dy), _array(at_points)
    kernels.filter_gradient(*arrays, sizes, x.dtype == torch.bfloat16, threads)
    dfilters = _product(_filter_matrix().T, at_points.sum(0))
    return dfilters.view(3, 3, channels_in, channels_out).permute(3, 2, 0, 1).contiguous()


def _product(left: Tensor, right: Tensor) -> Tensor:
    """The matrix product in float32, even under autocast."""
    with torch.autocast("cpu", enabled=False):
        return left @ right


@cache
def _filter_matrix() -> Tensor:
    """[36, 9] float32."""
    from rllib_minestudio.models.kernels.winograd import filter_matrix

    return torch.from_numpy(filter_matrix()).float()


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _empty(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=like.dtype, memory_format=torch.channels_last)


def _array(x: Tensor) -> Any:
    """A contiguous tensor as the kernels take it; the caller keeps `x` alive."""
    return _kernels().Array(x.data_ptr(), x.numel())


def _kernels() -> ModuleType:
    """Import the kernels late, because small networks need no compiler."""
    from rllib_minestudio.models.kernels import winograd_calls

    return winograd_calls
