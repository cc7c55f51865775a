"""Room for the backward pass of one frame, and what is known of each part of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rllib_minestudio.models.vpt.direct.blocks import TAPS
from rllib_minestudio.models.vpt.direct.planes import bare, bordered
from rllib_minestudio.models.vpt.direct.stacks import CONVOLUTIONS
from rllib_minestudio.models.vpt.simd import LANES


class Work(NamedTuple):
    """Room for the numbers of one frame; of the pooled size unless something else is said."""

    slope: Any
    """`Channels` of the gradient that runs back along the residual blocks."""

    inputs: Any
    """[BLOCKS] `Channels`: what goes into each block."""

    normal: Any
    """`Channels` with a border of a convolution's normalised input."""

    gated: Any
    """`Channels` with a border of the gradient of a convolution's output."""

    back: Any
    """`Channels` of the gradient of a norm's output."""

    slopes: Any
    """[channels + 2], of `norms.norm_slopes`."""

    none: Any
    """[channels] zeros, in place of a bias."""

    sums: Any
    """Gradients of all filters, lane by lane, of the share so far."""

    pooled_slope: Any
    """`Channels` with a border of the gradient of the pool's output."""

    whole_slope: Any
    """`Channels` with a border of the gradient of the pool's input, of the whole size."""

    raw: Any
    """`Channels` of the stack's input, of the whole size."""

    read: Any
    """`Channels` with a border of what the first convolution reads, of the whole size."""

    whole_back: Any
    """`Channels` of the gradient of what the first convolution reads, of the whole size."""


@numba.njit
def make_work(channels_in: int, channels: int, whole: Any, halved: Any) -> Any:
    """Makes room for one thread."""
    widest = max(channels, channels_in)
    filters = (channels_in + (CONVOLUTIONS - 1) * channels) * channels
    return Work(
        bare(channels, halved),
        (bare(channels, halved), bare(channels, halved)),
        bordered(channels, halved),
        bordered(channels, halved),
        bare(channels, halved),
        np.empty(widest + 2, np.float32),
        np.zeros(widest, np.float32),
        np.empty(filters * TAPS * LANES, np.float32),
        bordered(channels, halved),
        bordered(channels, whole),
        bare(channels_in, whole),
        bordered(channels_in, whole),
        bare(channels_in, whole),
    )
