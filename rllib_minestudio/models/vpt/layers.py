"""The layer that VPT is made of: optional normalisation, then weights, then an optional ReLU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.vpt.convolution import SameConv3x3


class FanInLayer(nn.Module):
    """Convolution or linear layer with fan-in initialisation, normalised before the weights.

    The weights of each output unit are drawn at random and rescaled to L2 norm ``scale``; there
    is a bias (initially 0) only where no normalisation precedes, because otherwise the norm
    carries one. Source: openai/Video-Pre-Training, lib/util.py, ``FanInInitReLULayer``; the
    attribute names ``norm`` and ``layer`` are those of its checkpoints.
    """

    def __init__(
        self, layer: nn.Linear | nn.Conv2d, norm: nn.Module | None, scale: float, relu: bool = True
    ) -> None:
        """Wraps ``layer`` and rescales its weights in place."""
        super().__init__()
        self.norm = norm
        self.layer = layer
        self.relu = relu
        rescale_fan_in(layer, scale)

    def forward(self, x: Tensor) -> Tensor:
        """Applies norm, weights and ReLU; x: [N, in, H, W] or [..., in]."""
        if self.norm is not None:
            x = self.norm(x)
        if isinstance(self.layer, SameConv3x3):
            return self.layer(x, self.relu)
        x = self.layer(x)
        return F.relu(x, inplace=True) if self.relu else x


def rescale_fan_in(layer: nn.Linear | nn.Conv2d, scale: float) -> None:
    """Rescales each output unit's weights to L2 norm ``scale`` and zeroes the bias, in place."""
    if layer.weight.is_meta:
        # There are no numbers, and for their shapes PyTorch would import its compiler: a second.
        return
    with torch.no_grad():
        flat = layer.weight.view(layer.weight.shape[0], -1)
        flat.mul_(scale / flat.norm(dim=1, keepdim=True))
        if layer.bias is not None:
            layer.bias.zero_()


def normed_linear(features_in: int, features_out: int, scale: float = 1.0) -> FanInLayer:
    """Returns layer norm -> linear (no bias) -> ReLU."""
    linear = nn.Linear(features_in, features_out, bias=False)
    return FanInLayer(linear, nn.LayerNorm(features_in), scale)


def fan_in_linear(
    features_in: int, features_out: int, scale: float = 1.0, bias: bool = True
) -> nn.Linear:
    """Returns a plain linear layer with fan-in initialisation."""
    linear = nn.Linear(features_in, features_out, bias=bias)
    rescale_fan_in(linear, scale)
    return linear


def conv3x3(
    channels_in: int, channels_out: int, scale: float, norm: bool, relu: bool = True
) -> FanInLayer:
    """Returns [group norm of one group] -> 3x3 convolution, same size -> [ReLU]."""
    conv = SameConv3x3(channels_in, channels_out, bias=not norm)
    return FanInLayer(conv, nn.GroupNorm(1, channels_in) if norm else None, scale, relu)
