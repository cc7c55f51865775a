"""What this processor offers to the network; which code uses it is chosen in `paths`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch


@dataclass(frozen=True)
class Processor:
    """What the choice of a path depends on.

    The number of cores is not among it: every path shares its work among
    ``torch.get_num_threads()`` threads.
    """

    lanes: int
    """Floats in a vector of Winograd's kernels as numba compiles them (16 with AVX-512, 8 with
    AVX2 or on ARM), 0 where it has no instruction that multiplies and adds."""

    amx: bool
    """Whether torch's convolutions multiply bfloat16 in tiles, many times as fast as float32."""

    onednn: bool
    """Whether torch was built with oneDNN."""

    onednn_bfloat16: bool
    """Whether oneDNN computes in bfloat16."""


@cache
def detected(with_kernels: bool) -> Processor:
    """Returns what is here.

    Args:
        with_kernels: Whether to look at the kernels, too: that imports the compiler, which small
            networks do not need. Otherwise ``lanes`` is 0.
    """
    lanes = 0
    if with_kernels:
        from rllib_minestudio.models.vpt.simd import FUSED_LANES

        lanes = FUSED_LANES
    onednn = torch.backends.mkldnn.is_available()
    return Processor(
        lanes=lanes,
        amx=torch.cpu._is_amx_tile_supported(),
        onednn=onednn,
        onednn_bfloat16=onednn and torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    )
