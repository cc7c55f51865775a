"""3x3 convolutions of the same size: by Winograd's algorithm on CPUs, else by torch.

oneDNN computes these convolutions by their definition, at nearly all the operations per second
that a core has; the algorithm needs a quarter of the multiplications. Numbers differ from torch's
by rounding: float32 errors are about twice as large, and under bfloat16 autocast they are smaller,
because everything between reading and writing images is float32.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from rllib_minestudio.models.vpt import paths, processors
from rllib_minestudio.models.vpt.paths import Convolution, Path

_logger = logging.getLogger(__name__)

_BY_KERNELS = (Path.WINOGRAD, Path.WINOGRAD_BACKWARD)


class SameConv3x3(nn.Conv2d):
    """`nn.Conv2d` with 3x3 filters and a border of zeros, and perhaps a ReLU after it."""

    def __init__(self, channels_in: int, channels_out: int, bias: bool) -> None:
        """Creates the layer with torch's initial weights."""
        super().__init__(channels_in, channels_out, kernel_size=3, padding=1, bias=bias)

    def forward(self, x_nchw: Tensor, relu: bool = False) -> Tensor:
        """[N, C_in, H, W] -> [N, C, H, W]."""
        if torch.is_autocast_enabled("cpu") and x_nchw.device.type == "cpu":
            x_nchw = x_nchw.to(torch.get_autocast_dtype("cpu"))
        work = Convolution(
            channels=(self.in_channels, self.out_channels),
            dtype=x_nchw.dtype,
            weight_dtype=self.weight.dtype,
            device=self.weight.device.type,
            has_bias=self.bias is not None,
            pixels=x_nchw.numel() // self.in_channels,
            has_gradients=_have_gradients(x_nchw, self.weight),
            is_traced=torch.compiler.is_compiling(),
        )
        return convolve(x_nchw, self.weight, self.bias, relu, path_of(work))


def path_of(work: Convolution) -> Path:
    """Returns the path of a convolution on this processor, ready to be taken.

    The kernels are compiled where they are to be used for the first time; where their code cannot
    be kept, it is as if the processor had none.
    """
    processor = processors.detected(work.suits_kernels)
    path = paths.of_convolution(work, processor)
    if path in _BY_KERNELS and not _are_compiled():
        return paths.of_convolution(work, replace(processor, lanes=0))
    return path


def convolve(x_nchw: Tensor, weight: Tensor, bias: Tensor | None, relu: bool, path: Path) -> Tensor:
    """Convolves, and perhaps takes positive parts, on a path that the caller asks for.

    Args:
        x_nchw: [N, C_in, H, W].
        weight: [C, C_in, 3, 3].
        bias: [C] or None.
        relu: Whether negative results are replaced by 0.
        path: `Path.ONEDNN` counts as `Path.TORCH`, because the weights are not laid out.

    Returns:
        [N, C, H, W].

    Raises:
        ValueError: If the kernels are asked for a bias.
    """
    if bias is not None and path in _BY_KERNELS:
        raise ValueError(f"bias: must be None on {path}, whose kernels add none; use {Path.TORCH}.")
    if path in _BY_KERNELS and _have_gradients(x_nchw, weight):
        return _Convolution.apply(x_nchw, weight, relu, path)
    return _outputs(x_nchw, weight, bias, relu, path)


def _have_gradients(x_nchw: Tensor, weight: Tensor) -> bool:
    return torch.is_grad_enabled() and (x_nchw.requires_grad or weight.requires_grad)


def _outputs(x_nchw: Tensor, weight: Tensor, bias: Tensor | None, relu: bool, path: Path) -> Tensor:
    if path is Path.WINOGRAD:
        return convolve_at_points(x_nchw, filters_at_points(weight), relu)
    y_nchw = F.conv2d(x_nchw, weight, bias, padding=1)
    return F.relu(y_nchw, inplace=True) if relu else y_nchw


def _winograd() -> ModuleType:
    """Imports the kernels, late because small networks need no compiler."""
    from rllib_minestudio.models.vpt.winograd import compiled

    return compiled


@cache
def _are_compiled() -> bool:
    """Compiles the kernels if that is to be done; False if it cannot be."""
    try:
        _winograd().CODE.compile_once()
    except OSError as error:
        _logger.warning("Convolutions stay slow: their code cannot be kept (%s).", error)
        return False
    return True


class _Convolution(torch.autograd.Function):
    """Convolution and ReLU with gradients of the input and of the weights by the kernels."""

    @staticmethod
    def forward(ctx: Any, x_nchw: Tensor, weight: Tensor, relu: bool, path: Path) -> Tensor:
        y_nchw = _outputs(x_nchw, weight, None, relu, path)
        ctx.save_for_backward(x_nchw, weight, y_nchw if relu else None)
        return y_nchw

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_nchw: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x_nchw, weight, y_nchw = ctx.saved_tensors
        if y_nchw is not None:
            dy_nchw = torch.ops.aten.threshold_backward(dy_nchw, y_nchw, 0)
        dx_nchw = dweight = None
        if ctx.needs_input_grad[0]:
            turned = weight.transpose(0, 1).flip(2, 3)
            dx_nchw = convolve_at_points(dy_nchw, filters_at_points(turned), relu=False)
        if ctx.needs_input_grad[1]:
            dweight = _weight_gradient(x_nchw, dy_nchw)
        return dx_nchw, dweight, None, None


def filters_at_points(weight: Tensor) -> Tensor:
    """[C, C_in, 3, 3] -> [36, C / PANEL, C_in, PANEL], the form that the kernel reads."""
    panel = _winograd().PANEL
    channels_out, channels_in = weight.shape[:2]
    filters = weight.detach().permute(2, 3, 0, 1).reshape(9, -1, panel, channels_in)
    values = _product(_filter_matrix(), filters.transpose(2, 3).reshape(9, -1))
    return values.view(-1, channels_out // panel, channels_in, panel)


def norm_at_points(norm: nn.GroupNorm) -> Tensor:
    """[2 * C + 1] float32, the form in which the kernel reads a group norm of one group."""
    epsilon = torch.tensor([norm.eps])
    return torch.cat([norm.weight.detach().float(), norm.bias.detach().float(), epsilon])


def convolve_at_points(
    x_nchw: Tensor,
    filters: Tensor,
    relu: bool,
    norm: Tensor | None = None,
    skip_nchw: Tensor | None = None,
) -> Tensor:
    """Normalises, convolves, and adds what skipped the convolution.

    Args:
        x_nchw: [N, C_in, H, W].
        filters: From `filters_at_points`.
        relu: Whether negative results of the convolution are replaced by 0.
        norm: From `norm_at_points`; normalises each frame before it is convolved, in float32.
        skip_nchw: [N, C, H, W], of the images' type, added in the end.

    Returns:
        [N, C, H, W] in channels-last layout.
    """
    # Rollouts of few environments come here 14 times a step: every operation of torch's counts.
    winograd, x_nchw, threads = _winograd(), _channels_last(x_nchw), torch.get_num_threads()
    frames, channels_in, height, width = x_nchw.shape
    channels_out = filters.shape[1] * filters.shape[3]
    sizes = winograd.Sizes(frames, height, width, channels_in, channels_out)
    is_bfloat16 = x_nchw.dtype == torch.bfloat16
    y_nchw = _empty(x_nchw, frames, channels_out, height, width)
    image, affine, skip = _array(x_nchw), winograd.NOTHING, winograd.NOTHING
    if norm is not None:
        scalings = torch.empty(frames, 2, channels_in)
        affine = _array(scalings)
        winograd.normalise(image, _array(norm), affine, frames, is_bfloat16, threads)
    if skip_nchw is not None:
        skip_nchw = _channels_last(skip_nchw)
        skip = _array(skip_nchw)
    arrays = image, affine, _array(filters), skip, _array(y_nchw)
    winograd.convolve(*arrays, sizes, relu, is_bfloat16, threads)
    return y_nchw


def pool_positive(x_nchw: Tensor) -> Tensor:
    """Max pool of 3x3 with stride 2 and ReLU: [N, C, H, W] -> [N, C, H / 2, W / 2], channels-last.

    For images of a kind and with channels that are convolved by `Path.WINOGRAD`.
    """
    x_nchw = _channels_last(x_nchw)
    frames, channels, height, width = x_nchw.shape
    y_nchw = _empty(x_nchw, frames, channels, (height + 1) // 2, (width + 1) // 2)
    shape, is_bfloat16 = (frames, height, width, channels), x_nchw.dtype == torch.bfloat16
    _winograd().pool(_array(x_nchw), _array(y_nchw), shape, is_bfloat16, torch.get_num_threads())
    return y_nchw


def _weight_gradient(x_nchw: Tensor, dy_nchw: Tensor) -> Tensor:
    """[N, C_in, H, W] and [N, C, H, W] -> [C, C_in, 3, 3] float32."""
    winograd, threads = _winograd(), torch.get_num_threads()
    x_nchw, dy_nchw = _channels_last(x_nchw), _channels_last(dy_nchw)
    frames, channels_in, height, width = x_nchw.shape
    channels_out = dy_nchw.shape[1]
    sizes = winograd.Sizes(frames, height, width, channels_in, channels_out)
    shares = winograd.count_shares(sizes, threads)
    at_points = torch.empty(shares, winograd.POINTS, channels_in * channels_out)
    arrays = _array(x_nchw), _array(dy_nchw), _array(at_points)
    winograd.filter_gradient(*arrays, sizes, x_nchw.dtype == torch.bfloat16, threads)
    dweight = _product(_filter_matrix().T, at_points.sum(0))
    return dweight.view(3, 3, channels_in, channels_out).permute(3, 2, 0, 1).contiguous()


def _product(left: Tensor, right: Tensor) -> Tensor:
    """In float32, also where autocast is on."""
    with torch.autocast("cpu", enabled=False):
        return left @ right


@cache
def _filter_matrix() -> Tensor:
    """[36, 9] float32."""
    from rllib_minestudio.models.vpt.winograd.tiles import filter_matrix

    return torch.from_numpy(filter_matrix()).float()


def _channels_last(x_nchw: Tensor) -> Tensor:
    """Not copied if that is its layout."""
    return x_nchw.contiguous(memory_format=torch.channels_last)


def _empty(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=like.dtype, memory_format=torch.channels_last)


def _array(x: Tensor) -> Any:
    """The numbers as the kernels take them; ``x`` has to stay, and has no gaps."""
    return _winograd().Array(x.data_ptr(), x.numel())
