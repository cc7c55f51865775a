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
        return for_inference(work.dtype, work.device, processor)
    return Path.TORCH


def for_inference(dtype: torch.dtype, device: str, processor: Processor) -> Path:
    """Chooses the path of a layer, of any kind, whose weights can be laid out beforehand."""
    computes = processor.onednn if dtype == torch.float32 else processor.onednn_bfloat16
    return Path.ONEDNN if device == "cpu" and computes else Path.TORCH


def _has_fast_kernels(work: Convolution, processor: Processor) -> bool:
    """Whether the kernels are compiled for this many channels, and are the fastest."""
    if processor.lanes == 0 or (processor.amx and work.dtype == torch.bfloat16):
        return False
    return all(channels % (PANEL_VECTORS * processor.lanes) == 0 for channels in work.channels)
