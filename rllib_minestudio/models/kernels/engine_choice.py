"""The choice of an engine for a convolution or a stack, and torch's own engines.

The choice depends on nothing but the work and the processor; docs/vpt.md has it as a table.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor
from torch.nn import functional as F

from rllib_minestudio.models.kernels import engines
from rllib_minestudio.models.kernels.cuda import CUDA
from rllib_minestudio.models.kernels.direct_engine import DIRECT
from rllib_minestudio.models.kernels.engines import (
    Convolution,
    ConvolutionLayer,
    ConvolutionStack,
    Engine,
    Processor,
    Work,
    convolve_by_torch,
)
from rllib_minestudio.models.kernels.winograd_engine import WINOGRAD, WINOGRAD_BACKWARD, Winograd

_logger = logging.getLogger(__name__)

# ---------------------------------------------------------------------------- torch's own


class TorchWeights(NamedTuple):
    """A convolution whose weights are laid out for torch."""

    filters: Tensor
    """[C, C_in, 3, 3] in channels-last layout, in the dtype that sums are computed in."""

    bias: Tensor | None
    norm: FrameNorm | None
    relu: bool
    dtype: torch.dtype
    """The results' dtype."""


class Torch(Engine):
    """torch's operations, which use oneDNN or cuDNN as they see fit; suits all work.

    For a stack, it means that `impala.DownStack` computes each layer by an engine of its own.
    """

    name = "torch"

    def why_not(self, work: Any) -> str:
        """Return no reason: all work suits it."""
        return ""

    def pack(
        self, layer: ConvolutionLayer, dtype: torch.dtype, input_scale: float = 1.0
    ) -> TorchWeights:
        """Lay a convolution out in channels-last layout."""
        filters, bias, *norm = layer.parameters
        assert filters is not None
        processor = engines.detected(with_kernels=False)
        arithmetic = processor.arithmetic(dtype, filters.device)
        filters = (filters.detach() * input_scale).to(arithmetic)
        of_norm = [each for each in norm if each is not None]
        return TorchWeights(
            filters.contiguous(memory_format=torch.channels_last),
            None if bias is None else bias.detach().to(arithmetic),
            FrameNorm(of_norm, layer.epsilon, dtype) if of_norm else None,
            layer.relu,
            dtype,
        )

    def forward(self, x: Tensor, packed: TorchWeights, skip: Tensor | None = None) -> Tensor:
        """Normalise each frame, convolve, and add `skip`, of the result's shape, if any."""
        if packed.norm is not None:
            x = packed.norm(x)
        y = self._convolved(x.to(packed.filters.dtype), packed)
        return y if skip is None else y.add_(skip)

    def _convolved(self, x: Tensor, packed: TorchWeights) -> Tensor:
        y = F.conv2d(x, packed.filters, packed.bias, padding=1).to(packed.dtype)
        return y.relu_() if packed.relu else y

    def pool_positive(self, x: Tensor) -> Tensor:
        """Max pool of 3x3 with stride 2 and ReLU: [N, C, H, W] -> [N, C, H / 2, W / 2]."""
        return F.max_pool2d(x, kernel_size=3, stride=2, padding=1).relu_()

    def compute(self, x: Tensor, layer: ConvolutionLayer, dtype: torch.dtype) -> Tensor:
        """Compute a convolution without a norm, with torch's own gradients; lay nothing out."""
        return convolve_by_torch(x, layer)


class OneDNN(Torch):
    """oneDNN with the ReLU in the same operation, for weights laid out beforehand."""

    name = "oneDNN"

    def why_not(self, work: Convolution) -> str:
        """Return a reason if weights serve only one call."""
        return "" if work.pixels is None else "it is for weights that serve many calls"

    def is_fast(self, work: Convolution, processor: Processor) -> bool:
        """Whether there is oneDNN."""
        return processor.has_onednn_for(work.device)

    def _convolved(self, x: Tensor, packed: TorchWeights) -> Tensor:
        if not packed.relu:
            return super()._convolved(x, packed)
        padding = stride = dilation = [1, 1]
        y = torch.ops.mkldnn._convolution_pointwise(
            x, packed.filters, packed.bias, padding, stride, dilation, 1, "relu", [], ""
        )
        return y.to(packed.dtype)


TORCH, ONEDNN = Torch(), OneDNN()


class FrameNorm:
    """A group norm of one group: normalises each frame as a whole."""

    def __init__(self, norm: Sequence[Tensor], epsilon: float, dtype: torch.dtype) -> None:
        """Copy weight and bias unless they already have the images' `dtype`."""
        weight, bias = norm
        self._in_parts = weight.device.type == "cuda"
        dtype = torch.float32 if self._in_parts else dtype
        self._weight, self._bias = weight.detach().to(dtype), bias.detach().to(dtype)
        self._epsilon = epsilon

    def __call__(self, x: Tensor) -> Tensor:
        """Keep the shape; on a GPU, take and return channels-last layout."""
        if self._in_parts:
            return normalise_in_parts(x, self._weight, self._bias, self._epsilon)
        return F.group_norm(x, 1, self._weight, self._bias, self._epsilon)


PARTS = 64
"""Parts of a frame: a thousand with 16 environments, for a GPU of a hundred multiprocessors."""


def normalise_in_parts(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Apply a group norm of one group, with the moments of a frame's parts computed in parallel.

    torch's own GPU kernel uses one block of threads per frame, which leaves nearly all of a GPU
    idle when there are few frames, and copies images out of channels-last layout.

    Args:
        x: [N, C, H, W] in channels-last layout.
        weight: [C] float32.
        bias: [C] float32.
        epsilon: Added to the variance.

    Returns:
        The same shape, layout and dtype; moments and products are float32.
    """
    frames, channels, height, width = x.shape
    x_npm = x.permute(0, 2, 3, 1).reshape(frames, math.gcd(height * width, PARTS), -1)
    var_np, mean_np = torch.var_mean(x_npm.float(), dim=2, correction=0)
    var_of_means_n, mean_n = torch.var_mean(mean_np, dim=1, correction=0)
    std_n = (var_np.mean(1) + var_of_means_n + epsilon).sqrt_()
    scale_nc = weight / std_n.unsqueeze(1)
    shift_nc = torch.addcmul(bias, mean_n.unsqueeze(1), scale_nc, value=-1)
    shape = frames, channels, 1, 1
    y = torch.addcmul(shift_nc.view(shape), x, scale_nc.view(shape))
    return y.to(x.dtype)


# ---------------------------------------------------------------------------- the choice

ENGINES: dict[type, tuple[Engine, ...]] = {
    ConvolutionStack: (CUDA, DIRECT, TORCH),
    Convolution: (WINOGRAD, WINOGRAD_BACKWARD, ONEDNN, TORCH),
}
"""The engines for each kind of work, in order of preference."""


@overload
def choose(work: ConvolutionStack) -> Engine: ...


@overload
def choose(work: Convolution) -> Torch | Winograd: ...


def choose(work: Work) -> Engine:
    """Return the engine for some work on this processor, ready to use.

    Kernels are compiled before their first use. If that fails, or their code cannot be stored, the
    next engine takes over.
    """
    if work.is_traced:
        return TORCH  # torch.compile cannot trace anything else, not even the choice
    for engine in ENGINES[type(work)]:
        if not engine.why_not(work):
            processor = engines.detected(with_kernels=engine.by_numba)
            if engine.is_fast(work, processor) and engine.is_ready(work):
                break
    if _logger.isEnabledFor(logging.DEBUG):
        _tell(work, engine)
    return engine


@cache
def _tell(work: Work, chosen: Engine) -> None:
    """Log, once, which engine computes some work, and why no preferred one does."""
    preferred = ENGINES[type(work)][: ENGINES[type(work)].index(chosen)]
    reasons = [
        f"not {engine}: {engine.why_not(work) or 'slow on this processor, or not compiled'}"
        for engine in preferred
    ]
    _logger.debug("%s is computed by %s.", work, "; ".join([chosen.name, *reasons]))
