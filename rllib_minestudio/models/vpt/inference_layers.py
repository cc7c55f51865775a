"""The layers of `inference.py`: their weights are laid out once for the processor that runs them.

In a rollout the same weights serve thousands of steps of few frames each. On the CPU oneDNN then
spends much of a linear layer's time on rearranging its weights; doing that once makes small
batches 2 to 5 times faster, with the same sums in another order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.vpt import convolution, paths, processors
from rllib_minestudio.models.vpt.paths import Convolution, Path

_ONEDNN = torch.ops.mkldnn


class Layout(NamedTuple):
    """What weights are laid out for."""

    dtype: torch.dtype
    """Precision of inputs and results."""

    batch: int
    """Rows per call that it is best for; others work as well."""

    def path(self, weight: Tensor) -> Path:
        """Of a layer with these weights, unless it has a better one."""
        return paths.for_inference(weight.device.type, processors.detected(with_kernels=False))

    def arithmetic(self, weight: Tensor) -> torch.dtype:
        """Precision of such a layer's weights and sums."""
        processor = processors.detected(with_kernels=False)
        return paths.arithmetic(self.dtype, weight.device.type, processor)

    def path_of_convolution(self, layer: nn.Conv2d) -> Path:
        """Of a 3x3 convolution of the same size."""
        work = Convolution(
            channels=(layer.in_channels, layer.out_channels),
            dtype=self.dtype,
            weight_dtype=layer.weight.dtype,
            device=layer.weight.device.type,
            has_bias=layer.bias is not None,
        )
        return convolution.path_of(work)


class PackedLinear:
    """x W^T + b, then perhaps ReLU."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, layout: Layout, relu: bool = False
    ) -> None:
        """Packs the layer.

        Args:
            weight: [out, in].
            bias: [out] or None.
            layout: How; inputs must have its precision.
            relu: Whether a ReLU follows.
        """
        self._dtype, self._arithmetic = layout.dtype, layout.arithmetic(weight)
        self._weight = weight.detach().to(self._arithmetic).contiguous()
        self._bias = None if bias is None else bias.detach().to(self._arithmetic).contiguous()
        self._relu = relu
        self._packed = layout.path(self._weight) is Path.ONEDNN
        if self._packed:
            self._weight = _ONEDNN._reorder_linear_weight(self._weight, layout.batch)

    def __call__(self, x: Tensor) -> Tensor:
        """[B, in] -> [B, out]."""
        x = x.to(self._arithmetic)
        if self._packed:
            after = "relu" if self._relu else "none"
            x = _ONEDNN._linear_pointwise(x, self._weight, self._bias, after, [], "")
            return x.to(self._dtype)
        x = F.linear(x, self._weight, self._bias).to(self._dtype)
        return x.relu_() if self._relu else x


class InferenceConv:
    """A 3x3 convolution, same size, with the group norm before it and perhaps the ReLU after it."""

    def __init__(
        self,
        layer: nn.Conv2d,
        norm: nn.GroupNorm | None,
        layout: Layout,
        relu: bool = True,
        input_scale: float = 1.0,
    ) -> None:
        """Copies the weights; ``input_scale`` multiplies the input, at no cost."""
        weight = layer.weight.detach() * input_scale
        self._relu = relu
        self._at_points: Tensor | None = None
        path = layout.path_of_convolution(layer)
        if path is Path.WINOGRAD:
            self._at_points = convolution.filters_at_points(weight)
            self._norm_at_points = None if norm is None else convolution.norm_at_points(norm)
            return
        self._dtype, self._arithmetic = layout.dtype, layout.arithmetic(weight)
        weight = weight.to(self._arithmetic)
        self._weight = weight.contiguous(memory_format=torch.channels_last)
        self._bias = None if layer.bias is None else layer.bias.detach().to(self._arithmetic)
        self._norm = None if norm is None else InferenceGroupNorm(norm, layout)
        self._fuses_relu = relu and path is Path.ONEDNN

    @property
    def is_by_winograd(self) -> bool:
        """Whether it is computed by the kernels of `convolution`, for which all is fit then."""
        return self._at_points is not None

    def __call__(self, x_nchw: Tensor, skip_nchw: Tensor | None = None) -> Tensor:
        """[N, C_in, H, W] in channels-last layout -> [N, C, H, W], likewise.

        ``skip_nchw``, of the result's shape, is added in the end.
        """
        if self._at_points is not None:
            return convolution.convolve_at_points(
                x_nchw, self._at_points, self._relu, self._norm_at_points, skip_nchw
            )
        y_nchw = self._directly(x_nchw if self._norm is None else self._norm(x_nchw))
        return y_nchw if skip_nchw is None else y_nchw.add_(skip_nchw)

    def _directly(self, x_nchw: Tensor) -> Tensor:
        x_nchw = x_nchw.to(self._arithmetic)
        if self._fuses_relu:
            x_nchw = _ONEDNN._convolution_pointwise(
                x_nchw, self._weight, self._bias, [1, 1], [1, 1], [1, 1], 1, "relu", [], ""
            )
            return x_nchw.to(self._dtype)
        x_nchw = F.conv2d(x_nchw, self._weight, self._bias, padding=1).to(self._dtype)
        return x_nchw.relu_() if self._relu else x_nchw


class InferenceGroupNorm:
    """Normalises each frame as a whole."""

    def __init__(self, norm: nn.GroupNorm, layout: Layout) -> None:
        """Copies the weights."""
        self._in_parts = norm.weight.device.type == "cuda"
        dtype = torch.float32 if self._in_parts else layout.dtype
        self._weight = norm.weight.detach().to(dtype)
        self._bias = norm.bias.detach().to(dtype)
        self._epsilon = norm.eps

    def __call__(self, x_nchw: Tensor) -> Tensor:
        """Shapes unchanged; a GPU takes channels-last layout, and leaves it."""
        if self._in_parts:
            return normalise_in_parts(x_nchw, self._weight, self._bias, self._epsilon)
        return F.group_norm(x_nchw, 1, self._weight, self._bias, self._epsilon)


PARTS = 64
"""Of each frame: with 16 environments a thousand, for a GPU of a hundred multiprocessors."""


def normalise_in_parts(x_nchw: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Group norm of one group, with the moments of each frame computed in parts side by side.

    torch's own kernel for GPUs has one block of threads go through a frame, which leaves nearly
    all of a GPU idle when the frames are few, and copies what is in channels-last layout.

    Args:
        x_nchw: [N, C, H, W] in channels-last layout.
        weight: [C] float32.
        bias: [C] float32.
        epsilon: Is added to the variance.

    Returns:
        The same shape, layout and dtype; moments and products are float32.
    """
    frames, channels, height, width = x_nchw.shape
    x_npm = x_nchw.permute(0, 2, 3, 1).reshape(frames, math.gcd(height * width, PARTS), -1)
    var_np, mean_np = torch.var_mean(x_npm.float(), dim=2, correction=0)
    var_of_means_n, mean_n = torch.var_mean(mean_np, dim=1, correction=0)
    std_n = (var_np.mean(1) + var_of_means_n + epsilon).sqrt_()
    scale_nc = weight / std_n.unsqueeze(1)
    shift_nc = torch.addcmul(bias, mean_n.unsqueeze(1), scale_nc, value=-1)
    shape = frames, channels, 1, 1
    y_nchw = torch.addcmul(shift_nc.view(shape), x_nchw, scale_nc.view(shape))
    return y_nchw.to(x_nchw.dtype)


class InferenceLayerNorm:
    """Normalises each row; the order of features may be changed on the way in."""

    def __init__(self, norm: nn.LayerNorm, dtype: torch.dtype, order: Tensor | None = None) -> None:
        """Copies the weights.

        Args:
            norm: The norm.
            dtype: Precision.
            order: [features], where each feature of the input stands in ``norm``.
        """
        weight, bias = norm.weight.detach(), norm.bias.detach()
        if order is not None:
            weight, bias = weight[order], bias[order]
        self._weight, self._bias = weight.to(dtype), bias.to(dtype)
        self._epsilon = norm.eps

    def __call__(self, x: Tensor) -> Tensor:
        """Shapes unchanged."""
        return F.layer_norm(x, self._weight.shape, self._weight, self._bias, self._epsilon)
