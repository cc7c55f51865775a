"""The layers of `inference.py`: their weights are laid out once for the processor that runs them.

In a rollout the same weights serve thousands of steps of few frames each. On the CPU oneDNN then
spends much of a linear layer's time on rearranging its weights; doing that once makes small
batches 2 to 5 times faster, with the same sums in another order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.kernels import engines
from rllib_minestudio.models.kernels.convolutions import choose
from rllib_minestudio.models.kernels.engines import Convolution, ConvolutionLayer

_ONEDNN = torch.ops.mkldnn


class WeightLayout(NamedTuple):
    """What weights are laid out for."""

    dtype: torch.dtype
    """Precision of inputs and results."""

    batch: int
    """Rows per call that it is best for; others work as well."""

    def arithmetic(self, weight: Tensor) -> torch.dtype:
        """Precision of a linear layer's weights and sums."""
        processor = engines.detected(with_kernels=False)
        return processor.arithmetic(self.dtype, weight.device)


class PackedLinear:
    """x W^T + b, then perhaps ReLU."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, layout: WeightLayout, relu: bool = False
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
        self._packed = engines.detected(with_kernels=False).has_onednn_for(self._weight.device)
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
        layout: WeightLayout,
        relu: bool = True,
        input_scale: float = 1.0,
    ) -> None:
        """Copies the weights; ``input_scale`` multiplies the input, at no cost."""
        of_norm = () if norm is None else (norm.weight, norm.bias)
        epsilon = 0.0 if norm is None else norm.eps
        self.engine = choose(
            Convolution(
                channels=(layer.in_channels, layer.out_channels),
                dtype=layout.dtype,
                weight_dtype=layer.weight.dtype,
                device=layer.weight.device,
                has_bias=layer.bias is not None,
            )
        )
        weights = ConvolutionLayer((layer.weight, layer.bias, *of_norm), epsilon, relu)
        self._packed: Any = self.engine.pack(weights, layout.dtype, input_scale)

    def __call__(self, x_nchw: Tensor, skip_nchw: Tensor | None = None) -> Tensor:
        """[N, C_in, H, W] in channels-last layout -> [N, C, H, W], likewise.

        ``skip_nchw``, of the result's shape, is added in the end.
        """
        return self.engine.forward(x_nchw, self._packed, skip_nchw)


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
