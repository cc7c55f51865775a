"""Random chunks of observations to check policies with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rllib_minestudio.models.recurrent_rl_module import RecurrentRLModule
from rllib_minestudio.observations import flattened, nested

BATCH, TIME = 3, 11
"""Rows and steps of a chunk."""


def observations(policy: RecurrentRLModule) -> dict[str, Any]:
    """Return a chunk of samples of the space, nested, [B, T, ...] each; always the same."""
    space = policy.observation_space
    space.seed(0)
    samples = [flattened(space.sample()) for _ in range(BATCH * TIME)]
    flat = {
        name: torch.from_numpy(np.stack([np.asarray(sample[name]) for sample in samples]))
        for name in policy.observation_parts
    }
    return nested({name: x.view(BATCH, TIME, *x.shape[1:]) for name, x in flat.items()})


def first_flags() -> Tensor:
    """Return where episodes begin, [B, T] bool: at the start, within, side by side, not at all."""
    first = torch.zeros(BATCH, TIME, dtype=torch.bool)
    first[0, 0] = first[0, 4] = first[1, 5] = first[1, 6] = True
    return first


def chunk_of(obs: Mapping[str, Any], time: slice | int) -> dict[str, Any]:
    """Return some of the steps of a chunk; those of an integer without a time axis."""
    return _mapped(obs, lambda part: part[:, time])


def row_of(obs: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Return one row of a chunk, as a chunk."""
    return _mapped(obs, lambda part: part[row : row + 1])


def disturbed(obs: Mapping[str, Any], time: slice) -> dict[str, Any]:
    """Return a chunk in which some steps have changed places with those of other rows."""

    def shuffled(part: Tensor) -> Tensor:
        changed = part.clone()
        changed[:, time] = part[:, time].roll(1, dims=0)
        return changed

    return _mapped(obs, shuffled)


def _mapped(obs: Mapping[str, Any], function: Any) -> dict[str, Any]:
    return nested({name: function(part) for name, part in flattened(obs).items()})
