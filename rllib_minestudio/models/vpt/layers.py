"""The layer that VPT is made of: optional normalisation, then weights, then an optional ReLU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.kernels.engine_choice import choose
from rllib_minestudio.models.kernels.engines import Convolution, ConvolutionLayer


class SameConv3x3(nn.Conv2d):
    """`nn.Conv2d` with 3x3 filters and a border of zeros, optionally followed by a ReLU."""

    def __init__(self, channels_in: int, channels_out: int, bias: bool) -> None:
        super().__init__(channels_in, channels_out, kernel_size=3, padding=1, bias=bias)

    def forward(self, x_nchw: Tensor, relu: bool = False) -> Tensor:
        """[N, C_in, H, W] -> [N, C, H, W]."""
        if torch.is_autocast_enabled("cpu") and x_nchw.device.type == "cpu":
            x_nchw = x_nchw.to(torch.get_autocast_dtype("cpu"))
        weight, bias = self.weight, self.bias
        learns = x_nchw.requires_grad or weight.requires_grad
        engine = choose(
            Convolution(
                channels=(self.in_channels, self.out_channels),
                dtype=x_nchw.dtype,
                weight_dtype=weight.dtype,
                device=weight.device,
                has_bias=bias is not None,
                pixels=x_nchw.numel() // self.in_channels,
                has_gradients=torch.is_grad_enabled() and learns,
                is_traced=torch.compiler.is_compiling(),
            )
        )
        return engine.compute(x_nchw, ConvolutionLayer((weight, bias), relu=relu), x_nchw.dtype)


class FanInLayer(nn.Module):
    """Convolution or linear layer with fan-in initialisation, normalised before the weights.

    The weights of each output unit are drawn at random and rescaled to L2 norm `scale`. There is a
    bias (initially 0) only without a norm, which has its own. Source: openai/Video-Pre-Training,
    lib/util.py, `FanInInitReLULayer`; the attribute names `norm` and `layer` are those of its
    checkpoints.
    """

    def __init__(
        self, layer: nn.Linear | nn.Conv2d, norm: nn.Module | None, scale: float, relu: bool = True
    ) -> None:
        super().__init__()
        self.norm = norm
        self.layer = layer
        self.relu = relu
        rescale_fan_in(layer, scale)

    def forward(self, x: Tensor) -> Tensor:
        """Apply norm, weights and ReLU; x: [N, in, H, W] or [..., in]."""
        if self.norm is not None:
            x = self.norm(x)
        if isinstance(self.layer, SameConv3x3):
            return self.layer(x, self.relu)
        x = self.layer(x)
        return F.relu(x, inplace=True) if self.relu else x


def rescale_fan_in(layer: nn.Linear | nn.Conv2d, scale: float) -> None:
    """Rescale each output unit's weights to L2 norm `scale` and zero the bias, in place."""
    if layer.weight.is_meta:
        # There is nothing to rescale, and PyTorch would import its compiler, which takes a second.
        return
    with torch.no_grad():
        flat = layer.weight.view(layer.weight.shape[0], -1)
        flat.mul_(scale / flat.norm(dim=1, keepdim=True))
        if layer.bias is not None:
            layer.bias.zero_()


def normed_linear(features_in: int, features_out: int, scale: float = 1.0) -> FanInLayer:
    """Return layer norm -> linear (no bias) -> ReLU."""
    linear = nn.Linear(features_in, features_out, bias=False)
    return FanInLayer(linear, nn.LayerNorm(features_in), scale)


def fan_in_linear(
    features_in: int, features_out: int, scale: float = 1.0, bias: bool = True
) -> nn.Linear:
    """Return a plain linear layer with fan-in initialisation."""
    linear = nn.Linear(features_in, features_out, bias=bias)
    rescale_fan_in(linear, scale)
    return linear


def conv3x3(
    channels_in: int, channels_out: int, scale: float, norm: bool, relu: bool = True
) -> FanInLayer:
    """Return [group norm of one group] -> 3x3 convolution, same size -> [ReLU]."""
    conv = SameConv3x3(channels_in, channels_out, bias=not norm)
    return FanInLayer(conv, nn.GroupNorm(1, channels_in) if norm else None, scale, relu)
