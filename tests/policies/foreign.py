"""A policy as somebody else would write it: an LSTM that reads `vector` and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.observations import ObservationPart
from rllib_minestudio.models.policy import RecurrentRLModule
from rllib_minestudio.models.rl_modules import heads_for
from rllib_minestudio.models.value_head import ValueHead


class LSTMNetwork(nn.Module):
    """A linear layer, an LSTM cell, and the heads."""

    def __init__(self, numbers: int, size: int, action_head: nn.Module) -> None:
        super().__init__()
        self.encoder = nn.Linear(numbers, size)
        self.cell = nn.LSTMCell(size, size)
        self.action_head = action_head
        self.value_head = ValueHead(size)

    def forward(
        self, obs: Mapping[str, Any], first_bt: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        x_bte = self.encoder(obs["vector"].asinh()).relu()
        hidden, cell = state["hidden"], state["cell"]
        latents = []
        for t in range(x_bte.shape[1]):
            keep = (~first_bt[:, t, None]).float()
            hidden, cell = self.cell(x_bte[:, t], (hidden * keep, cell * keep))
            latents.append(hidden)
        return torch.stack(latents, dim=1), {"hidden": hidden, "cell": cell}

    def initial_state(self, batch: int) -> dict[str, Tensor]:
        zeros = self.encoder.weight.new_zeros(batch, self.cell.hidden_size)
        return {"hidden": zeros, "cell": zeros.clone()}


class VectorLSTM(RecurrentRLModule):
    """Options: `size` of the LSTM."""

    memory_length = 12

    def build_network(self, options: dict[str, Any]) -> LSTMNetwork:
        unknown = set(options) - {"size"}
        if unknown:
            raise InvalidOptionsError(f"model: unknown options {sorted(unknown)}")
        size = options.get("size", 8)
        numbers = self.observation_space["vector"].shape[0]
        return LSTMNetwork(numbers, size, heads_for(self.action_space, size))

    @property
    def observation_parts(self) -> dict[str, ObservationPart]:
        return {"vector": super().observation_parts["vector"]}
