"""3x3 convolutions of the same size: by Winograd's algorithm on CPUs, else by torch.

oneDNN computes these convolutions by their definition, at nearly all the operations per second
that a core has; the algorithm needs a quarter of the multiplications. Numbers differ from torch's
by rounding: float32 errors are about twice as large, and under bfloat16 autocast they are smaller,
because everything between reading and writing images is float32.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

if TYPE_CHECKING:
    from rllib_minestudio.models.vpt.winograd.kernels import Sizes

_logger = logging.getLogger(__name__)

_LEAST_CHANNELS = 32
_LEAST_PIXELS = 1024
"""Of all frames together, for preparing the filters to be worth it."""


class SameConv3x3(nn.Conv2d):
    """`nn.Conv2d` with 3x3 filters and a border of zeros, and perhaps a ReLU after it."""

    def __init__(self, channels_in: int, channels_out: int, bias: bool) -> None:
        """Creates the layer with torch's initial weights."""
        super().__init__(channels_in, channels_out, kernel_size=3, padding=1, bias=bias)

    def forward(self, x_nchw: Tensor, relu: bool = False) -> Tensor:
        """[N, C_in, H, W] -> [N, C, H, W]."""
        if torch.is_autocast_enabled("cpu") and x_nchw.device.type == "cpu":
            x_nchw = x_nchw.to(torch.get_autocast_dtype("cpu"))
        pixels = x_nchw.numel() // self.in_channels
        if self.bias is not None or pixels < _LEAST_PIXELS or not suits(self.weight, x_nchw.dtype):
            return _convolve_directly(x_nchw, self.weight, self.bias, relu)
        if torch.is_grad_enabled() and (x_nchw.requires_grad or self.weight.requires_grad):
            return _Convolution.apply(x_nchw, self.weight, relu)
        return _convolve(x_nchw, self.weight, relu)


def suits(weight: Tensor, dtype: torch.dtype) -> bool:
    """Whether the algorithm can be used, and is the faster one once the filters are prepared.

    Args:
        weight: [C, C_in, 3, 3].
        dtype: Of the images.
    """
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return False
    if min(weight.shape[:2]) < _LEAST_CHANNELS or torch.compiler.is_compiling():
        return False
    if dtype == torch.bfloat16 and torch.cpu._is_amx_tile_supported():
        return False
    kernels = _kernels()
    return (
        kernels.IS_FAST
        and dtype in (torch.float32, torch.bfloat16)
        and all(channels % kernels.PANEL == 0 for channels in weight.shape[:2])
        and _are_compiled()
    )


def _kernels() -> ModuleType:
    """Imports the kernels, late because small networks need no compiler."""
    from rllib_minestudio.models.vpt.winograd import kernels

    return kernels


@cache
def _are_compiled() -> bool:
    """Compiles the kernels if that is to be done; False if it cannot be."""
    try:
        _kernels().compile_once()
    except OSError as error:
        _logger.warning("Convolutions stay slow: their code cannot be kept (%s).", error)
        return False
    return True


class _Convolution(torch.autograd.Function):
    """Convolution and ReLU with gradients of the input and of the weights.

    The last bits of a number decide on which side of a ReLU or of a max pool it falls, and
    gradients that took another way differ a thousand times more than the outputs. Not that torch's
    are the exact ones, but those of other implementations take the same way: where gradients
    follow, float32 outputs are left to torch.
    """

    @staticmethod
    def forward(ctx: Any, x_nchw: Tensor, weight: Tensor, relu: bool) -> Tensor:
        if x_nchw.dtype == torch.float32:
            y_nchw = _convolve_directly(x_nchw, weight, None, relu)
        else:
            y_nchw = _convolve(x_nchw, weight, relu)
        ctx.save_for_backward(x_nchw, weight, y_nchw if relu else None)
        return y_nchw

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_nchw: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x_nchw, weight, y_nchw = ctx.saved_tensors
        if y_nchw is not None:
            dy_nchw = torch.ops.aten.threshold_backward(dy_nchw, y_nchw, 0)
        dx_nchw = dweight = None
        if ctx.needs_input_grad[0]:
            dx_nchw = _convolve(dy_nchw, weight.transpose(0, 1).flip(2, 3), relu=False)
        if ctx.needs_input_grad[1]:
            dweight = _weight_gradient(x_nchw, dy_nchw)
        return dx_nchw, dweight, None


def _convolve_directly(x_nchw: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
    y_nchw = F.conv2d(x_nchw, weight, bias, padding=1)
    return F.relu(y_nchw, inplace=True) if relu else y_nchw


def _convolve(x_nchw: Tensor, weight: Tensor, relu: bool) -> Tensor:
    """[N, C_in, H, W] and [C, C_in, 3, 3] -> [N, C, H, W] in channels-last layout."""
    return convolve_at_points(x_nchw, filters_at_points(weight), relu)


def filters_at_points(weight: Tensor) -> Tensor:
    """[C, C_in, 3, 3] -> [36, C / PANEL, C_in, PANEL], the form that the kernel reads."""
    panel = _kernels().PANEL
    channels_out, channels_in = weight.shape[:2]
    filters = weight.detach().permute(2, 3, 0, 1).reshape(9, -1, panel, channels_in)
    values = _product(_filter_matrix(), filters.transpose(2, 3).reshape(9, -1))
    return values.view(-1, channels_out // panel, channels_in, panel)


def convolve_at_points(x_nchw: Tensor, filters: Tensor, relu: bool) -> Tensor:
    """Convolves with `filters_at_points`: [N, C_in, H, W] -> [N, C, H, W], channels-last."""
    kernels = _kernels()
    frames, channels_in, height, width = x_nchw.shape
    channels_out = filters.shape[1] * filters.shape[3]
    sizes = kernels.Sizes(frames, height, width, channels_in, channels_out)
    y_nhwc = x_nchw.new_empty(frames, height, width, channels_out)
    arrays = _flat(x_nchw), filters.view(-1).numpy(), _flat(y_nhwc.permute(0, 3, 1, 2))
    _run([partial(kernels.convolve, *arrays, sizes, tiles, relu) for tiles in _shares(sizes)])
    return y_nhwc.permute(0, 3, 1, 2)


def _weight_gradient(x_nchw: Tensor, dy_nchw: Tensor) -> Tensor:
    """[N, C_in, H, W] and [N, C, H, W] -> [C, C_in, 3, 3] float32."""
    kernels = _kernels()
    frames, channels_in, height, width = x_nchw.shape
    channels_out = dy_nchw.shape[1]
    sizes = kernels.Sizes(frames, height, width, channels_in, channels_out)
    shares = _shares(sizes)
    at_points = torch.empty(len(shares), kernels.POINTS, channels_in * channels_out)
    image, gradient = _flat(x_nchw), _flat(dy_nchw)
    _run(
        [
            partial(kernels.filter_gradient, image, gradient, out.view(-1).numpy(), sizes, tiles)
            for out, tiles in zip(at_points, shares, strict=True)
        ]
    )
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


def _flat(x_nchw: Tensor) -> NDArray[Any]:
    """The numbers in channels-last order, not copied if that is their layout; bfloat16 as int16."""
    flat = x_nchw.detach().permute(0, 2, 3, 1).contiguous().view(-1)
    return (flat.view(torch.int16) if flat.dtype == torch.bfloat16 else flat).numpy()


def _shares(sizes: Sizes) -> list[tuple[int, int]]:
    """Splits the tiles into ranges, one per thread of torch's but none too small."""
    kernels = _kernels()
    tiles = kernels.count_tiles(sizes)
    groups = -(-tiles // kernels.ROWS)
    shares = min(torch.get_num_threads(), groups)
    bounds = [min(groups * i // shares * kernels.ROWS, tiles) for i in range(shares + 1)]
    return list(pairwise(bounds))


def _run(tasks: list[Callable[[], None]]) -> None:
    """Runs the first task here and each of the others in a thread."""
    first, *others = tasks
    futures = [_pool(os.getpid()).submit(task) for task in others]
    first()
    for future in futures:
        future.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process; a forked one inherits none."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="convolution")
