"""Which code computes a layer: a function of the layer and the processor, and of nothing else.

docs/vpt.md has it as a table.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import torch

from rllib_minestudio.models.vpt.processors import Processor
from rllib_minestudio.models.vpt.winograd import PANEL_VECTORS

LEAST_CHANNELS = 32
"""For Winograd's algorithm; fewer leave too little work between its transforms."""

LEAST_PIXELS = 1024
"""Of all frames together, for preparing the filters to be worth it."""

CUDA_CHANNELS = 8
"""Of a stack on a GPU, a multiple of so many: bfloat16 numbers in the 16 bytes of a read."""

DIRECT_CHANNELS = (8, 16, 24)
"""Of stacks that are computed frame by frame; more are worth a library's overhead."""

COLOURS = 3
"""Channels of an image."""


class Path(Enum):
    """What a layer is computed by."""

    TORCH = "torch"
    """torch's own operations, which use oneDNN as they see fit."""

    ONEDNN = "oneDNN"
    """oneDNN with weights laid out for it beforehand, and the ReLU in the same operation."""

    WINOGRAD = "Winograd"
    """The kernels in `winograd`: outputs and gradients."""

    WINOGRAD_BACKWARD = "Winograd backward"
    """torch's outputs, and gradients by the kernels."""

    DIRECT = "direct"
    """The kernels in `direct`, of whole stacks: outputs and gradients."""

    CUDA = "CUDA"
    """The kernels in `cuda` and cuDNN, of whole stacks: outputs and gradients."""


class Convolution(NamedTuple):
    """A 3x3 convolution of the same size."""

    channels: tuple[int, int]
    """In and out."""

    dtype: torch.dtype
    """Of the images; that of the weights is ``weight_dtype``."""

    weight_dtype: torch.dtype = torch.float32
    device: str = "cpu"
    """Its type."""

    has_bias: bool = False
    pixels: int | None = None
    """Of all frames together; None where filters are prepared once for many calls."""

    has_gradients: bool = False
    """Whether gradients follow."""

    is_traced: bool = False
    """Whether torch.compile is looking."""

    @property
    def suits_kernels(self) -> bool:
        """Whether Winograd's kernels can compute it at all, and gain by it on some processor."""
        return (
            self.device == "cpu"
            and self.weight_dtype == torch.float32
            and self.dtype in (torch.float32, torch.bfloat16)
            and min(self.channels) >= LEAST_CHANNELS
            and (self.pixels is None or self.pixels >= LEAST_PIXELS)
            and not self.has_bias
            and not self.is_traced
        )


class Stack(NamedTuple):
    """A stack of convolutions: `impala.DownStack`."""

    channels: tuple[int, int]
    """In and out; those of bytes are `COLOURS`."""

    weight_dtype: torch.dtype = torch.float32
    device: str = "cpu"
    """Its type."""

    is_traced: bool = False
    """Whether torch.compile is looking."""

    dtype: torch.dtype = torch.float32
    """Of the images."""

    @property
    def suits_cuda(self) -> bool:
        """Whether the kernels of `cuda` can compute it."""
        channels_in, channels = self.channels
        return (
            self.device == "cuda"
            and self.weight_dtype == torch.float32
            and self.dtype in (torch.float32, torch.bfloat16)
            and (channels_in == COLOURS or channels_in % CUDA_CHANNELS == 0)
            and channels % CUDA_CHANNELS == 0
            and not self.is_traced
        )

    @property
    def suits_kernels(self) -> bool:
        """Whether the kernels of `direct` can compute it, and gain by it on some processor."""
        channels_in, channels = self.channels
        return (
            self.device == "cpu"
            and self.weight_dtype == torch.float32
            and channels_in in (COLOURS, *DIRECT_CHANNELS)
            and channels in DIRECT_CHANNELS
            and not self.is_traced
        )


def of_stack(work: Stack, processor: Processor) -> Path:
    """Chooses the path of a stack; `Path.TORCH` is that of its layers, each by itself.

    The kernels compute in float32, also where the network is to compute in bfloat16: they are
    faster than torch is in either. Those for GPUs compute in the network's precision.
    """
    if work.suits_cuda:
        return Path.CUDA
    return Path.DIRECT if work.suits_kernels and processor.lanes else Path.TORCH


def of_convolution(work: Convolution, processor: Processor) -> Path:
    """Chooses the path of a convolution.

    Gradients of float32 follow torch's own outputs: the last bits of a number decide on which side
    of a ReLU or of a max pool it falls, and gradients that took another way differ a thousand times
    more than the outputs. Not that torch's are the exact ones, but those of other implementations
    take the same way.
    """
    if work.suits_kernels and _has_fast_kernels(work, processor):
        needs_torch = work.has_gradients and work.dtype == torch.float32
        return Path.WINOGRAD_BACKWARD if needs_torch else Path.WINOGRAD
    if work.pixels is None:
        return for_inference(work.device, processor)
    return Path.TORCH


def for_inference(device: str, processor: Processor) -> Path:
    """Chooses the path of a layer, of any kind, whose weights can be laid out beforehand."""
    return Path.ONEDNN if device == "cpu" and processor.onednn else Path.TORCH


def arithmetic(dtype: torch.dtype, device: str, processor: Processor) -> torch.dtype:
    """Chooses what a layer that is not the kernels' computes in; its images are of ``dtype``.

    Where oneDNN cannot multiply bfloat16, torch does it in plain loops, which take several times as
    long as rounding what goes into and comes out of float32.
    """
    is_emulated = device == "cpu" and processor.onednn and not processor.onednn_bfloat16
    return torch.float32 if is_emulated and dtype == torch.bfloat16 else dtype


def _has_fast_kernels(work: Convolution, processor: Processor) -> bool:
    """Whether the kernels are compiled for this many channels, and are the fastest."""
    if processor.lanes == 0 or (processor.amx and work.dtype == torch.bfloat16):
        return False
    return all(channels % (PANEL_VECTORS * processor.lanes) == 0 for channels in work.channels)
