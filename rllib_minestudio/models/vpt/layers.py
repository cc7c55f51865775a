"""The layers of VPT: optional normalisation, weights and ReLU; and the image encoder."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.kernels.engine_choice import TORCH, choose
from rllib_minestudio.models.kernels.engines import (
    Convolution,
    ConvolutionLayer,
    ConvolutionStack,
    Engine,
)
from rllib_minestudio.models.vpt.config import VPTConfig


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


# ----------------- the image encoder: three stacks of residual convolutions, then two linear layers
# For 128 x 128 images and channels (c0, c1, c2), the shapes of one frame are::
#
#     image [128, 128, 3] -> stack 0 [c0, 64, 64] -> stack 1 [c1, 32, 32] -> stack 2 [c2, 16, 16]
#                         -> flatten -> dense [256] -> linear [hidsize]
#
# Axes: N frames, C channels, H height, W width. Architecture: Espeholt et al. 2018 (IMPALA,
# arXiv:1802.01561, figure 3) with the normalisation of Baker et al. 2022 (VPT, arXiv:2206.11795,
# appendix D.1); weights are named as in openai/Video-Pre-Training, lib/impala_cnn.py.

DENSE_WIDTH = 256
"""Width between the convolutions and the transformer, the same at every size of VPT."""

BLOCKS_PER_STACK = 2
DENSE_SCALE = 1.4


class ResidualBlock(nn.Module):
    """x + conv(conv(x)), shapes unchanged."""

    def __init__(self, channels: int, scale: float) -> None:
        """Create the two convolutions; each takes the square root of the block's `scale`."""
        super().__init__()
        self.conv0 = conv3x3(channels, channels, math.sqrt(scale), norm=True)
        self.conv1 = conv3x3(channels, channels, math.sqrt(scale), norm=True)

    def forward(self, x_nchw: Tensor) -> Tensor:
        """x: [N, C, H, W]."""
        return x_nchw + self.conv1(self.conv0(x_nchw))


class DownStack(nn.Module):
    """Convolution, max pool that halves the image, norm, residual blocks."""

    def __init__(self, channels_in: int, channels: int, scale: float, is_first: bool) -> None:
        """Create the layers; the first stack reads the image itself, which needs no norm."""
        super().__init__()
        # The ReLU comes after the pool: max and ReLU commute, and a quarter of the pixels is left.
        self.firstconv = conv3x3(channels_in, channels, 1.0, norm=not is_first, relu=False)
        self.n = nn.GroupNorm(1, channels)
        block_scale = scale / math.sqrt(BLOCKS_PER_STACK)
        self.blocks = nn.ModuleList(
            ResidualBlock(channels, block_scale) for _ in range(BLOCKS_PER_STACK)
        )

    def forward(self, x_nchw: Tensor) -> Tensor:
        """[N, C_in, H, W] -> [N, C, H/2, W/2]; bytes [N, H, W, 3] if `reads_bytes`."""
        dtype = _dtype_of_images()
        engine = self.engine_for(dtype, len(x_nchw))
        if engine is not TORCH:
            return engine.compute(x_nchw, self.weights(), dtype)
        x_nchw = F.max_pool2d(self.firstconv(x_nchw), kernel_size=3, stride=2, padding=1)
        x_nchw = self.n(F.relu(x_nchw, inplace=True))
        for block in self.blocks:
            x_nchw = block(x_nchw)
        return x_nchw

    def engine_for(self, dtype: torch.dtype, frames: int | None = None) -> Engine:
        """Return the engine that computes the whole stack; `TORCH` means layer by layer.

        Args:
            dtype: The images' dtype on a GPU.
            frames: The number of frames; None where weights are laid out once for many calls.
        """
        weight = self.firstconv.layer.weight
        return choose(
            ConvolutionStack(
                channels=(weight.shape[1], weight.shape[0]),
                dtype=dtype,
                weight_dtype=weight.dtype,
                device=weight.device,
                frames=frames,
                is_traced=torch.compiler.is_compiling(),
            )
        )

    @property
    def reads_bytes(self) -> bool:
        """Whether images should be passed as bytes, [N, H, W, 3] uint8."""
        return self.firstconv.norm is None and self.engine_for(_dtype_of_images()).reads_bytes

    def weights(self) -> ConvolutionLayer:
        """All weights, as an engine takes them."""
        first, norm = self.firstconv.layer, self.firstconv.norm
        of_norm = (None, None) if norm is None else (norm.weight, norm.bias)
        # For each convolution in the blocks: its norm's weights and biases, its filters.
        of_blocks = self.blocks.parameters()
        of_pool = self.n.weight, self.n.bias
        return ConvolutionLayer(
            [first.weight, first.bias, *of_norm, *of_pool, *of_blocks], self.n.eps
        )


class ImpalaCNN(nn.Module):
    """The convolution stacks and the dense layer after them."""

    def __init__(self, config: VPTConfig) -> None:
        super().__init__()
        scale = math.sqrt(len(config.channels))
        self.stacks = nn.ModuleList(
            DownStack(channels_in, channels, scale, is_first=index == 0)
            for index, (channels_in, channels) in enumerate(
                pairwise((config.img_shape[2], *config.channels))
            )
        )
        shrink = 2 ** len(config.channels)
        pixels = (config.img_shape[0] // shrink) * (config.img_shape[1] // shrink)
        self.dense = normed_linear(config.channels[-1] * pixels, DENSE_WIDTH, DENSE_SCALE)

    def forward(self, x_nchw: Tensor) -> Tensor:
        """[N, 3, H, W] floats in [0, 1], or what the first stack reads -> [N, 256]."""
        for stack in self.stacks:
            x_nchw = stack(x_nchw)
        return self.dense(x_nchw.flatten(1))


class ImageEncoder(nn.Module):
    """From images of bytes to the transformer's input."""

    def __init__(self, config: VPTConfig) -> None:
        super().__init__()
        self.cnn = ImpalaCNN(config)
        self.linear = normed_linear(DENSE_WIDTH, config.hidsize)

    def forward(self, image_bthwc: Tensor) -> Tensor:
        """[B, T, H, W, 3] uint8 -> [B, T, hidsize] float32."""
        check_bytes(image_bthwc)
        x = image_bthwc.flatten(0, 1)
        if not self.cnn.stacks[0].reads_bytes:
            # Permuting leaves channels-last strides, the layout the convolutions are fastest in.
            x = x.permute(0, 3, 1, 2).to(torch.float32) / 255.0
        return self.linear(self.cnn(x)).unflatten(0, image_bthwc.shape[:2])


def _dtype_of_images() -> torch.dtype:
    """The dtype between the layers of a stack on a GPU."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else torch.float32


def check_bytes(image: Tensor) -> None:
    """Refuse floating-point images, whose range may be 0 to 1 or 0 to 255.

    Raises:
        TypeError: The images are not uint8.
    """
    if image.dtype != torch.uint8:
        raise TypeError(
            f"Images must be bytes (torch.uint8, 0 to 255), not {image.dtype}; "
            "(image * 255).round().to(torch.uint8) converts them if they are from 0 to 1."
        )
