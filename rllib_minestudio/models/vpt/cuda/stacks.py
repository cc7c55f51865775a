"""A stack's outputs and gradients on a GPU, step by step.

Images are [N, C, H, W] in channels-last layout, of float32 or bfloat16. Suffixes beyond the usual
axes: p PARTS of a frame, 3 moments, 2 mean and scale, or sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rllib_minestudio.models.vpt.cuda.program import PARTS, Program, program

BYTES = 16
"""That a thread reads at once."""

CONVOLUTION = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}


class Norm(NamedTuple):
    """A group norm of one group."""

    weight: Tensor
    """[C] float32."""

    bias: Tensor
    """[C] float32."""

    epsilon: float


class Weights(NamedTuple):
    """A stack's parameters, filters in the images' dtype and layout."""

    first: Tensor
    """[C, C_in, 3, 3]."""

    first_bias: Tensor | None
    """[C]."""

    first_norm: Norm | None
    pooled_norm: Norm
    blocks: list[tuple[Norm, Tensor, Norm, Tensor]]
    """Of each residual block: norm and filters of the first convolution, and of the second."""


class Normed(NamedTuple):
    """What the gradient of a norm and the convolution after it needs."""

    x: Tensor
    """The norm's input."""

    stats_n2: Tensor
    y: Tensor
    """The norm's output, and the convolution's input."""


class Kept(NamedTuple):
    """What gradients need of a forward pass."""

    image: Tensor
    """The first convolution's input."""

    taps: Tensor
    """[N, H / 2, W / 2, C] uint8: which pixel of a window was the largest."""

    outputs: list[Tensor]
    """Of each block's second convolution, before the ReLU."""

    norms: list[Normed]
    """All norms in the order of the pass."""

    def flat(self) -> list[Tensor]:
        """All tensors."""
        of_norms = [tensor for normed in self.norms for tensor in normed]
        return [self.image, self.taps, *self.outputs, *of_norms]

    @classmethod
    def of(cls, tensors: Sequence[Tensor], blocks: int) -> Kept:
        """The inverse of `flat`, of a stack of so many blocks."""
        image, taps, *rest = tensors
        outputs, of_norms = rest[:blocks], rest[blocks:]
        size = len(Normed._fields)
        norms = [Normed(*of_norms[i : i + size]) for i in range(0, len(of_norms), size)]
        return cls(image, taps, outputs, norms)


def forward(x: Tensor, weights: Weights, *, keep: bool = False) -> tuple[Tensor, Kept | None]:
    """Computes a stack.

    Args:
        x: [N, C_in, H, W].
        weights: The stack's.
        keep: Whether gradients are to follow.

    Returns:
        [N, C, (H + 1) / 2, (W + 1) / 2], and what `backward` needs.
    """
    with torch.cuda.device(x.device):
        kernels = _Kernels(x.device, x.dtype)
        x, norms, outputs = _channels_last(x), [], []
        if weights.first_norm is not None:
            norms.append(kernels.normalise(x, kernels.moments(x), weights.first_norm))
            x = norms[0].y
        y, taps, moments = kernels.pool(_convolved(x, weights.first, weights.first_bias), keep)
        pooled = kernels.normalise(y, moments, weights.pooled_norm)
        y, moments = pooled.y, kernels.moments(pooled.y)
        norms.append(pooled)
        for norm0, filters0, norm1, filters1 in weights.blocks:
            normed0 = kernels.normalise(y, moments, norm0)
            y0, moments = kernels.positive_(_convolved(normed0.y, filters0))
            normed1 = kernels.normalise(y0, moments, norm1)
            y1 = _convolved(normed1.y, filters1)
            y, moments = kernels.positive_added(y1, y)
            if keep:  # else their memory is free for the next
                norms += [normed0, normed1]
                outputs.append(y1)
        return y, Kept(x, taps, outputs, norms) if keep else None


def backward(
    dy: Tensor, kept: Kept, weights: Weights, *, needs_dx: bool
) -> tuple[Tensor | None, list[Tensor | None]]:
    """Computes a stack's gradients.

    Args:
        dy: [N, C, H / 2, W / 2], of the output.
        kept: Of the forward pass.
        weights: Those it went through.
        needs_dx: Whether the gradient of the input is wanted.

    Returns:
        That gradient, and those of the parameters: filters and bias of the first convolution,
        weight and bias of its norm, of the norm after the pool, then norm and filters of each
        convolution in the blocks. None is for what there is not.
    """
    with torch.cuda.device(dy.device):
        kernels = _Kernels(dy.device, dy.dtype)
        dy = _channels_last(dy)
        norms, of_blocks = list(kept.norms), list[Tensor | None]()
        for block, y1 in zip(reversed(weights.blocks), reversed(kept.outputs), strict=True):
            norm0, filters0, norm1, filters1 = block
            normed1, normed0 = norms.pop(), norms.pop()
            d = kernels.positive_backward(dy, y1)
            d, dfilters1, _ = _convolution_gradients(d, normed1.y, filters1)
            d, *dnorm1 = kernels.norm_backward(d, normed1, norm1, relu=True)
            d, dfilters0, _ = _convolution_gradients(d, normed0.y, filters0)
            dy, *dnorm0 = kernels.norm_backward(d, normed0, norm0, skip=dy)
            of_blocks = [*dnorm0, dfilters0, *dnorm1, dfilters1, *of_blocks]
        d, *dpooled = kernels.norm_backward(dy, norms.pop(), weights.pooled_norm, relu=True)
        d = kernels.pool_backward(d, kept.taps, kept.image)
        d, *dfirst = _convolution_gradients(
            d,
            kept.image,
            weights.first,
            needs_dx=needs_dx or weights.first_norm is not None,
            has_bias=weights.first_bias is not None,
        )
        dnorm: list[Tensor | None] = [None, None]
        if weights.first_norm is not None:
            d, *dnorm = kernels.norm_backward(d, norms.pop(), weights.first_norm)
        return d if needs_dx else None, [*dfirst, *dnorm, *dpooled, *of_blocks]


class _Kernels:
    """`kernels.cu` on tensors."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        loaded = program(device, dtype)
        assert loaded is not None, "this path is taken only where they could be compiled"
        self._program: Program = loaded

    def moments(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, PARTS, 3]."""
        return self._positive(x, None, None, relu=False)

    def positive_(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """ReLU in place, and the moments afterwards."""
        return x, self._positive(x, None, x, relu=True)

    def positive_added(self, x: Tensor, skip: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of positive parts and ``skip``, and its moments."""
        y = torch.empty_like(x)
        return y, self._positive(x, skip, y, relu=True)

    def _positive(self, x: Tensor, skip: Tensor | None, y: Tensor | None, relu: bool) -> Tensor:
        moments_np3 = _numbers(x, len(x), PARTS, 3)
        arguments = x, skip, y, moments_np3, _vectors(x), int(relu)
        self._program.launch("positive", len(x), *arguments)
        return moments_np3

    def pool(self, x: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Max pool and ReLU; taps [N, H / 2, W / 2, C] (none unless ``keep``); moments."""
        frames, channels, height, width = x.shape
        rows, columns = (height + 1) // 2, (width + 1) // 2
        y = torch.empty(
            (frames, channels, rows, columns),
            dtype=x.dtype,
            device=x.device,
            memory_format=torch.channels_last,
        )
        shape = (frames, rows, columns, channels) if keep else (0,)
        taps = torch.empty(shape, dtype=torch.uint8, device=x.device)
        moments_np3 = _numbers(x, frames, PARTS, 3)
        arguments = x, y, taps if keep else None, moments_np3, height, width, _groups(x)
        self._program.launch("pool", frames, *arguments)
        return y, taps, moments_np3

    def normalise(self, x: Tensor, moments_np3: Tensor, norm: Norm) -> Normed:
        """Group norm of an input whose moments are known."""
        y, stats_n2 = torch.empty_like(x), _numbers(x, len(x), 2)
        arguments = x, moments_np3, norm.weight, norm.bias, y, stats_n2
        self._program.launch("normalise", len(x), *arguments, _vectors(x), _groups(x), norm.epsilon)
        return Normed(x, stats_n2, y)

    def norm_backward(
        self,
        dy: Tensor,
        normed: Normed,
        norm: Norm,
        *,
        relu: bool = False,
        skip: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the input (through the ReLU before it), of the weight and of the bias."""
        x, stats_n2, _ = normed
        dy = _channels_last(dy)
        frames, channels, height, width = x.shape
        sums_np2c = _numbers(x, frames, PARTS, 2, channels)
        sums_n2c, means_n2 = _numbers(x, frames, 2, channels), _numbers(x, frames, 2)
        launch, groups = self._program.launch, _groups(x)
        launch("norm_sums", frames, dy, x, stats_n2, sums_np2c, height * width, groups)
        numbers = float(channels * height * width)
        arguments = sums_np2c, norm.weight, sums_n2c, means_n2, channels, numbers
        launch("norm_means", frames, *arguments, parts=1)
        dx = torch.empty_like(x)
        gradients = dy, x, stats_n2, means_n2, norm.weight, skip, dx
        launch("norm_backward", frames, *gradients, _vectors(x), groups, int(relu))
        dweight, dbias = sums_n2c.sum(0)
        return dx, dweight, dbias

    def positive_backward(self, dy: Tensor, x: Tensor) -> Tensor:
        """Gradient of a ReLU's input ``x``."""
        dx = torch.empty_like(x)
        self._program.launch("positive_backward", len(x), dy, x, dx, _vectors(x))
        return dx

    def pool_backward(self, dy: Tensor, taps: Tensor, image: Tensor) -> Tensor:
        """Gradient of the pool's input, which has the sides of ``image``."""
        frames, channels, height, width = len(dy), dy.shape[1], *image.shape[2:]
        dx = torch.empty(
            (frames, channels, height, width),
            dtype=dy.dtype,
            device=dy.device,
            memory_format=torch.channels_last,
        )
        self._program.launch("pool_backward", frames, dy, taps, dx, height, width, _groups(dy))
        return dx


def _convolved(x: Tensor, filters: Tensor, bias: Tensor | None = None) -> Tensor:
    """3x3, of the same size."""
    return _channels_last(torch.nn.functional.conv2d(x, filters, bias, padding=1))


def _convolution_gradients(
    dy: Tensor, x: Tensor, filters: Tensor, *, needs_dx: bool = True, has_bias: bool = False
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Of input (if needed), filters and bias (if there is one); the latter two float32."""
    dx, dfilters, dbias = torch.ops.aten.convolution_backward(
        dy,
        x,
        filters,
        [len(filters)] if has_bias else None,
        **CONVOLUTION,
        transposed=False,
        output_padding=[0, 0],
        groups=1,
        output_mask=[needs_dx, True, has_bias],
    )
    return dx, dfilters.float(), None if dbias is None else dbias.float()


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _numbers(beside: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=beside.device)


def _vectors(x: Tensor) -> int:
    """Of a frame."""
    return x[0].numel() * x.element_size() // BYTES


def _groups(x: Tensor) -> int:
    """Vectors of a pixel."""
    return x.shape[1] * x.element_size() // BYTES
