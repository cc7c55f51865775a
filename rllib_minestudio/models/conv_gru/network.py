"""The ConvGRU network: encoders of what it is shown, a GRU, and the heads.

Shapes for frames of 64 x 64, a text, and a chunk of T::

    image [B, T, 64, 64, 3] -> FrameEncoder, task_text [B, T, 64] -> TextEncoder, ...
        -> summed [B, T, 128] -> LayerNorm, ReLU -> + GRU -> LayerNorm [B, T, 128] -> heads
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.arithmetic import FLOAT32, arithmetic
from rllib_minestudio.models.conv_gru.config import ConvGRUConfig
from rllib_minestudio.models.conv_gru.encoders import FrameEncoder, NumbersEncoder, TextEncoder
from rllib_minestudio.models.value_head import ValueHead
from rllib_minestudio.models.vpt.heads import ActionHeads
from rllib_minestudio.observations import IMAGE, ObservationPart, flattened

MEMORY = "hidden"
"""Name of the one part of the recurrent state, [B, hidden_size] float32."""


class ConvGRUNetwork(nn.Module):
    """Policy and value function over chunks of observations, with a memory between chunks.

    ``value_head`` and ``action_head`` read the latent that ``forward`` returns.
    """

    def __init__(
        self, config: ConvGRUConfig, parts: Mapping[str, ObservationPart], action_head: ActionHeads
    ) -> None:
        """Creates a randomly initialised network (torch's global generator).

        Args:
            config: Its sizes.
            parts: Of the observations; all of them are read.
            action_head: Reads a latent of ``config.hidden_size``.
        """
        super().__init__()
        self.config = config
        size = config.hidden_size
        self.frame: FrameEncoder | None = None
        if IMAGE in parts:
            self.frame = FrameEncoder(parts[IMAGE].shape, config)
        self._texts = [name for name, part in parts.items() if _is_text(name, part)]
        # In the order of the parts: a name may hold what no layer may be called.
        self.texts = nn.ModuleList(
            TextEncoder(parts[name].shape[0], config.text_size, size) for name in self._texts
        )
        self._numbers = [name for name in parts if name not in (IMAGE, *self._texts)]
        self.numbers: NumbersEncoder | None = None
        if self._numbers:
            count = sum(int(np.prod(parts[name].shape)) for name in self._numbers)
            self.numbers = NumbersEncoder(count, size, config.frequencies)
        self.gru = nn.GRUCell(size, size)
        self.features_norm = nn.LayerNorm(size)
        self.norm = nn.LayerNorm(size)
        self.action_head = action_head
        self.value_head = ValueHead(size)

    def forward(
        self, obs: Mapping[str, Any], first_bt: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Looks at a chunk.

        Args:
            obs: Nested as the environment's, [B, T, ...] each.
            first_bt: [B, T] bool, True where an observation begins an episode; all before it is
                then forgotten.
            state: ``hidden`` [B, hidden_size] before the chunk.

        Returns:
            The latent [B, T, hidden_size], and the state after the chunk.
        """
        with arithmetic(FLOAT32, first_bt.device):
            x_bte = F.relu(self.features_norm(self._features(flattened(obs))))
            memory_bte, hidden_be = self._remember(x_bte, first_bt, state[MEMORY])
        # What is seen now reaches the heads beside what is remembered, not through it alone.
        return self.norm(x_bte + memory_bte), {MEMORY: hidden_be}

    def initial_state(self, batch: int) -> dict[str, Tensor]:
        """Returns the empty memory for ``batch`` environments, on the network's device."""
        return {MEMORY: self.norm.weight.new_zeros(batch, self.config.hidden_size)}

    def _features(self, flat: Mapping[str, Tensor]) -> Tensor:
        """The encoders' features added up: parts [B, T, ...] -> [B, T, hidden_size]."""
        texts = zip(self._texts, self.texts, strict=True)
        features = [encoder(flat[name]) for name, encoder in texts]
        if self.frame is not None:
            features.append(self.frame(flat[IMAGE]))
        if self.numbers is not None:
            features.append(self.numbers([flat[name] for name in self._numbers]))
        return torch.stack(features).sum(dim=0)

    def _remember(
        self, x_bte: Tensor, first_bt: Tensor, hidden_be: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The GRU over a chunk (Cho et al. 2014; PyTorch's variant): its outputs, and the last.

        PyTorch runs over many steps in one call, which is several times as fast as a loop in
        Python, but cannot forget on the way: there is a call for each stretch between beginnings.
        """
        weights = [self.gru.weight_ih, self.gru.weight_hh, self.gru.bias_ih, self.gru.bias_hh]
        begins = first_bt.any(dim=0).nonzero().flatten().tolist()
        bounds = sorted({0, *begins, x_bte.shape[1]})
        keep_bt1 = (~first_bt).unsqueeze(-1).to(x_bte.dtype)
        outputs = []
        for start, stop in itertools.pairwise(bounds):
            hidden_1be = (hidden_be * keep_bt1[:, start]).unsqueeze(0)
            stretch_bte = x_bte[:, start:stop]
            # Not cuDNN's, which wants the weights in one piece of memory.
            with torch.backends.cudnn.flags(enabled=False):
                output_bte, hidden_1be = torch.gru(
                    stretch_bte, hidden_1be, weights, True, 1, 0.0, self.training, False, True
                )
            hidden_be = hidden_1be.squeeze(0)
            outputs.append(output_bte)
        return torch.cat(outputs, dim=1), hidden_be


def _is_text(name: str, part: ObservationPart) -> bool:
    """Whether a part is the bytes of a text."""
    return name != IMAGE and part.dtype == np.uint8 and len(part.shape) == 1
