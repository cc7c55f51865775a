"""ConvGRU as a policy of RLlib's new API stack, and an example of how little that takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.utils.annotations import override
from torch import nn
from typing_extensions import Self

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.buttons import NUM_BUTTONS
from rllib_minestudio.foundation.observations import SEPARATOR, flattened, parts_of
from rllib_minestudio.foundation.options import broken_rule
from rllib_minestudio.models.conv_gru import ConvGRUConfig, ConvGRUNetwork, Values, is_frame
from rllib_minestudio.models.float_precision import FLOAT32
from rllib_minestudio.models.policy import MODULE_OPTIONS, RecurrentRLModule
from rllib_minestudio.models.vpt.network import (
    BUTTON_SIZES,
    CAMERA_SIZES,
    NUM_CAMERA,
    ActionHeads,
    FactoredHead,
    JointHead,
)


class ConvGRURLModule(RecurrentRLModule):
    """A small policy: convolutions, a GRU, factored heads; see `RecurrentRLModule`.

    `model_config` also takes the fields of `ConvGRUConfig`. The policy reads every part of the
    observation: frames with convolutions, one-dimensional uint8 as text, the values of Discrete
    and MultiDiscrete one by one, everything else as numbers. The memory is `hidden`
    [B, hidden_size].
    """

    network: ConvGRUNetwork

    precision = FLOAT32
    memory_length = 64
    acting_options = ("temperature",)

    @override(RecurrentRLModule)
    def build_network(self, options: dict[str, Any]) -> ConvGRUNetwork:
        """Build the network for the parts that the observation space has."""
        config = ConvGRUConfig.from_options(options)
        parts = parts_of(self.observation_space)
        for name, part in parts.items():
            if is_frame(part) and (side := config.least_side_for(part)) is not None:
                rule = (
                    f"must be at least {side} pixels each way, which these kernels and strides "
                    "need: leave them out, or choose smaller ones"
                )
                raise InvalidOptionsError(
                    broken_rule(f"The environment's {name}", part.shape, rule)
                )
        heads = heads_for(self.action_space, config.hidden_size, config.temperature)
        return ConvGRUNetwork(config, parts, heads, values_of(self.observation_space))

    @override(RecurrentRLModule)
    def full_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return all fields of the configuration."""
        options_by_name = asdict(self.network.config)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in options_by_name.items()}

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Check the names and values of all options."""
        own = {name: value for name, value in options.items() if name not in MODULE_OPTIONS}
        ConvGRUConfig.from_options(own)

    @classmethod
    def blank(
        cls, options: Mapping[str, Any], spaces: Mapping[str, gym.Space] | None
    ) -> Self | None:
        """Return a policy on the meta device, where no size is too large."""
        with torch.device("meta"):
            return super().blank(options, spaces)


def values_of(space: gym.spaces.Dict) -> dict[str, Values]:
    """Return the values of the parts of an observation that are choices, not quantities."""
    found = {}
    for name, inner in flattened(space.spaces).items():
        if isinstance(inner, gym.spaces.Discrete):
            found[name] = Values((int(inner.n),), (int(inner.start),))
        elif isinstance(inner, gym.spaces.MultiDiscrete):
            sizes, starts = (np.asarray(n).flatten().tolist() for n in (inner.nvec, inner.start))
            found[name] = Values(tuple(sizes), tuple(starts))
    return found


# ---------------------------------------------------------- the heads that an action space asks for


def heads_for(space: gym.Space, width: int, temperature: float = 1.0) -> ActionHeads:
    """Return one head per entry of an action space.

    VPT's tokens are scored by the key groups and bins that they consist of, others one by one.

    Args:
        space: A `Dict` of `Discrete`, or `MultiDiscrete` of one number.
        width: Size of the latent that the heads read.
        temperature: Divides the logits.

    Raises:
        InvalidOptionsError: The space is of another kind, or a key cannot name a head.
    """
    heads: dict[str, nn.Module] = {}
    for name, choices in choices_of(space).items():
        if not name or SEPARATOR in name or hasattr(nn.ModuleDict(), name):
            rule = "must be another word, as PyTorch cannot call a part of the network so"
            raise InvalidOptionsError(broken_rule("A key of the action space", name, rule))
        if (name, choices) == ("buttons", NUM_BUTTONS):
            heads[name] = FactoredHead(width, BUTTON_SIZES, temperature, exclusive=True)
        elif (name, choices) == ("camera", NUM_CAMERA):
            heads[name] = FactoredHead(width, CAMERA_SIZES, temperature)
        else:
            heads[name] = JointHead(width, choices, temperature)
    return ActionHeads(heads)


def choices_of(space: gym.Space) -> dict[str, int]:
    """Return the number of tokens of every head of an action space.

    Raises:
        InvalidOptionsError: It is not a `Dict` of `Discrete`, or of `MultiDiscrete` of one number.
    """
    if isinstance(space, gym.spaces.Dict) and space.spaces:
        found = {name: _choices(inner) for name, inner in space.spaces.items()}
        if all(found.values()):
            return found
    raise InvalidOptionsError(
        broken_rule(
            "The environment's action space",
            space,
            "must be a Dict of Discrete, or of MultiDiscrete of one number each, as that of "
            'MineStudioEnv with action_type "agent"',
        )
    )


def _choices(space: gym.Space) -> int:
    """The number of tokens; 0 for any other space."""
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return int(space.n)
    if isinstance(space, gym.spaces.MultiDiscrete) and space.shape == (1,):
        return int(np.asarray(space.nvec).item())
    return 0
