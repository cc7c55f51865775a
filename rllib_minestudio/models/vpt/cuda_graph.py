"""One rollout step as a CUDA graph.

A step of one frame is hundreds of tiny kernels, whose launches alone take longer than their work.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rllib_minestudio.models.vpt.ring import RingMemory

WARMUP_STEPS = 3
"""Runs before the capture, in which cuDNN and cuBLAS choose their algorithms and workspaces."""

Outputs = tuple[dict[str, Tensor], Tensor]


class GraphedStep:
    """Replays ``step`` for all environments; its inputs and outputs stay at fixed addresses."""

    def __init__(
        self,
        step: Callable[[Tensor, Tensor], Outputs],
        memory: RingMemory,
        image_shape: tuple[int, int, int],
    ) -> None:
        """Captures the graph; ``memory`` is as before afterwards.

        Args:
            step: Takes images [N, H, W, 3] and firsts [N]; reads and writes ``memory`` in place.
            memory: What the warm-up must leave no traces in.
            image_shape: (H, W, 3).
        """
        num_envs, device = len(memory.slot_n), memory.slot_n.device
        self._image = torch.zeros((num_envs, *image_shape), dtype=torch.uint8, device=device)
        self._first = torch.zeros(num_envs, dtype=torch.bool, device=device)
        before = memory.snapshot()
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(WARMUP_STEPS):
                step(self._image, self._first)
        torch.cuda.current_stream(device).wait_stream(stream)
        memory.restore(before)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._outputs = step(self._image, self._first)

    def __call__(self, image_nhwc: Tensor, first_n: Tensor) -> Outputs:
        """Runs the step; the outputs are overwritten by the next call."""
        self._image.copy_(image_nhwc)
        self._first.copy_(first_n)
        self._graph.replay()
        return self._outputs
