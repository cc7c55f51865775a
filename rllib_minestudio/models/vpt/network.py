"""The VPT network: image encoder, transformer with memory, action and value heads.

Shapes at each stage (1x, one environment, chunk of T)::

    image [1, T, 128, 128, 3] -> ImageEncoder [1, T, 1024] -> 4 x TransformerBlock [1, T, 1024]
        -> ReLU -> lastlayer -> final_ln [1, T, 1024] -> heads: 8641, 121 and 1 numbers per frame

Parameter names equal those of MineStudio's ``VPTPolicy`` and OpenAI's checkpoints:
``net.*``, ``pi_head.*``, ``value_head.*``.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_minestudio.models.arithmetic import BFLOAT16, arithmetic
from rllib_minestudio.models.value_head import ValueHead
from rllib_minestudio.models.vpt.attention import MASKED_LOGIT, TransformerBlock
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.cuda_graphs import Tensors, TrainingGraph
from rllib_minestudio.models.vpt.heads import make_action_heads
from rllib_minestudio.models.vpt.impala import ImageEncoder
from rllib_minestudio.models.vpt.layers import normed_linear
from rllib_minestudio.models.vpt.recurrent_state import VPTState, visibility

_logger = logging.getLogger(__name__)


class VPTOutput(NamedTuple):
    """What one forward pass computes for a chunk of T frames."""

    logits: dict[str, Tensor]
    """``buttons`` [B, T, 8641] and ``camera`` [B, T, 121] normalised log-probabilities, float32."""

    value_bt: Tensor
    """[B, T] value in normalised units, float32; ``value_head.denormalize`` converts."""

    state: VPTState
    """The memory after the chunk."""


class Recurrence(nn.Module):
    """The transformer blocks, under the name they have in checkpoints."""

    def __init__(self, config: VPTConfig) -> None:
        """Creates ``config.n_recurrence_layers`` blocks."""
        super().__init__()
        self.blocks = nn.ModuleList(
            TransformerBlock(config) for _ in range(config.n_recurrence_layers)
        )

    def forward(self, x_bte: Tensor, first_bt: Tensor, state: VPTState) -> tuple[Tensor, VPTState]:
        """Runs all blocks; every one keeps a memory of its own but shares the mask."""
        visible_btk, mask_bm = visibility(first_bt, state.mask)
        bias_b1tk = torch.zeros_like(visible_btk, dtype=x_bte.dtype)
        bias_b1tk = bias_b1tk.masked_fill_(~visible_btk, MASKED_LOGIT).unsqueeze(1)
        keys, values = [], []
        for layer, block in enumerate(self.blocks):
            x_bte, keys_bme, values_bme = block(
                x_bte, state.keys[:, layer], state.values[:, layer], bias_b1tk
            )
            keys.append(keys_bme)
            values.append(values_bme)
        return x_bte, VPTState(mask_bm, torch.stack(keys, dim=1), torch.stack(values, dim=1))


class Trunk(nn.Module):
    """Everything before the heads."""

    def __init__(self, config: VPTConfig) -> None:
        """Creates the trunk; layers are named as MineStudio's ``MinecraftPolicy``."""
        super().__init__()
        self.precision = config.precision
        self.img_process = ImageEncoder(config)
        self.recurrent_layer = Recurrence(config)
        self.lastlayer = normed_linear(config.hidsize, config.hidsize)
        self.final_ln = nn.LayerNorm(config.hidsize)
        self._graph = None if config.compile else TrainingGraph()

    def forward(
        self, image_bthwc: Tensor, first_bt: Tensor, state: VPTState
    ) -> tuple[Tensor, VPTState]:
        """Returns the latent [B, T, hidsize] that the heads read, and the memory after; float32."""
        with arithmetic(self.precision, image_bthwc.device):
            if self._graph is None or not image_bthwc.is_cuda:
                return self._compute(image_bthwc, first_bt, state)
            inputs = (image_bthwc, first_bt, *state)
            latent_bte, *after = self._graph.run(self, self._compute_tensors, inputs)
            return latent_bte, VPTState(*after)

    def _compute_tensors(self, image_bthwc: Tensor, first_bt: Tensor, *state: Tensor) -> Tensors:
        latent_bte, after = self._compute(image_bthwc, first_bt, VPTState(*state))
        return latent_bte, *after

    def _compute(
        self, image_bthwc: Tensor, first_bt: Tensor, state: VPTState
    ) -> tuple[Tensor, VPTState]:
        reduced = self.precision == BFLOAT16
        with torch.autocast(image_bthwc.device.type, torch.bfloat16, enabled=reduced):
            x_bte = self.img_process(image_bthwc)
            x_bte, state = self.recurrent_layer(x_bte, first_bt, state)
            x_bte = self.lastlayer(F.relu(x_bte))
        state = VPTState(state.mask, state.keys.float(), state.values.float())
        return self.final_ln(x_bte.float()), state


class VPTNetwork(nn.Module):
    """Policy and value function over chunks of frames, with a memory carried between chunks.

    Feeding frames one by one or in chunks of any length gives the same numbers, wherever
    episodes begin.
    """

    def __init__(self, config: VPTConfig) -> None:
        """Creates a randomly initialised network (torch's global generator)."""
        super().__init__()
        self.config = config
        self.net = Trunk(config)
        self.pi_head = make_action_heads(config)
        self.value_head = ValueHead(config.hidsize)
        if config.compile:
            _note_if_slower()
            # In place and at the first call; the parameters keep their names.
            self.net.img_process.compile()

    def forward(self, image_bthwc: Tensor, first_bt: Tensor, state: VPTState) -> VPTOutput:
        """Computes policy and value of every frame of a chunk.

        Args:
            image_bthwc: [B, T, H, W, 3] uint8.
            first_bt: [B, T] bool, True where a frame begins an episode; the frames before it are
                then forgotten, in the memory and within the chunk.
            state: Memory before the chunk.
        """
        latent_bte, state = self.net(image_bthwc, first_bt, state)
        logits = {name: head(latent_bte) for name, head in self.pi_head.items()}
        return VPTOutput(logits, self.value_head(latent_bte), state)

    def initial_state(self, batch: int) -> VPTState:
        """Returns the empty memory for ``batch`` environments, on the network's device."""
        config = self.config
        device = self.net.final_ln.weight.device
        shape = (batch, config.n_recurrence_layers, config.memory_length, config.hidsize)
        return VPTState(
            mask=torch.zeros(batch, config.memory_length, dtype=torch.bool, device=device),
            keys=torch.zeros(shape, device=device),
            values=torch.zeros(shape, device=device),
        )


@cache  # once per process, which builds the network several times
def _note_if_slower() -> None:
    if not torch.cuda.is_available():
        _logger.warning(
            "model.compile is true, but without a GPU the package's own kernels are faster than "
            "what torch.compile makes (nano: 8.9 instead of 14.9 ms a step; 1x: 327 instead of "
            "351): leave it out."
        )
