"""From the parts of an observation to features: frames, texts, and other numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rllib_minestudio.models.conv_gru.config import ConvGRUConfig

BYTES = 256


class FrameEncoder(nn.Module):
    """Three convolutions and a linear layer (Mnih et al. 2015, "Human-level control", Methods).

    Orthogonal weights keep what differs between frames as large from layer to layer (Saxe et al.
    2014); with PyTorch's own, frames would look all but alike to the heads.
    """

    def __init__(self, shape: tuple[int, ...], config: ConvGRUConfig) -> None:
        """Creates the layers for frames of one shape, (height, width, 3)."""
        super().__init__()
        layers: list[nn.Module] = []
        inputs = (3, *config.channels)
        for given, kernel, stride in zip(
            itertools.pairwise(inputs), config.kernels, config.strides, strict=True
        ):
            layers += [nn.Conv2d(*given, kernel, stride=stride), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers, nn.Flatten())
        height, width = (config.side_left(side) for side in shape[:2])
        self.linear = nn.Linear(config.channels[-1] * height * width, config.hidden_size)
        if self.linear.weight.is_meta:
            # No numbers to draw, and for their shapes PyTorch would import its compiler: a second.
            return
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                nn.init.orthogonal_(parameter, math.sqrt(2))
            else:
                nn.init.zeros_(parameter)

    def forward(self, image_bthwc: Tensor) -> Tensor:
        """[B, T, H, W, 3] uint8 -> [B, T, size]."""
        shape = image_bthwc.shape
        # The strides stay those of channels-last, which is what the convolutions are fastest with.
        # In place, and so on a copy: fresh memory for each operation would take longer than it.
        image_nchw = image_bthwc.flatten(0, 1).permute(0, 3, 1, 2).to(torch.float32, copy=True)
        image_nchw.div_(127.5).sub_(1)
        return self.linear(self.convolutions(image_nchw)).view(shape[0], shape[1], -1)


class TextEncoder(nn.Module):
    """A text of at most L bytes of UTF-8: every byte, at its place, has a part in the features.

    Zeros, which texts are filled up with, have none.
    """

    def __init__(self, length: int, embedding: int, size: int) -> None:
        """Creates the layers for texts of one length."""
        super().__init__()
        self.embedding = nn.Embedding(BYTES, embedding, padding_idx=0)
        self.linear = nn.Linear(length * embedding, size)

    def forward(self, text_btl: Tensor) -> Tensor:
        """[B, T, L] uint8 -> [B, T, size]."""
        return self.linear(self.embedding(text_btl.int()).flatten(2))


class NumbersEncoder(nn.Module):
    """All other numbers, of several parts and whatever shapes, side by side.

    With frequencies, each number x is told as sin(2^k pi x) and cos(2^k pi x) besides, k from 0
    (Mildenhall et al. 2020, "NeRF", eq. 4): one layer can then tell places apart that differ by
    2^-k, which x alone would leave nearly the same. They are meant for numbers from -1 to 1.
    """

    def __init__(self, numbers: int, size: int, frequencies: int) -> None:
        """Creates the layer for so many numbers."""
        super().__init__()
        self.frequencies = frequencies
        self.linear = nn.Linear(numbers * (1 + 2 * frequencies), size)

    def forward(self, parts_bt: Sequence[Tensor]) -> Tensor:
        """[B, T, ...] each -> [B, T, size]."""
        rows = [part.reshape(*part.shape[:2], -1).float() for part in parts_bt]
        numbers_btn = torch.cat(rows, dim=-1)
        # Degrees and counts reach into the hundreds: asinh leaves small numbers as they are.
        features = [numbers_btn.asinh()]
        for k in range(self.frequencies):
            phase_btn = (math.pi * 2**k) * numbers_btn
            features += [phase_btn.sin(), phase_btn.cos()]
        return self.linear(torch.cat(features, dim=-1))
