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
from rllib_minestudio.foundation.observations import IMAGE, parts_of
from rllib_minestudio.foundation.options import broken_rule
from rllib_minestudio.models.conv_gru import ConvGRUConfig, ConvGRUNetwork
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
    observation: `image` with convolutions, one-dimensional uint8 as text, everything else as
    numbers. The memory is `hidden` [B, hidden_size].
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
        if IMAGE in parts:
            _check_frame(self.observation_space, config.smallest_side)
        heads = heads_for(self.action_space, config.hidden_size, config.temperature)
        return ConvGRUNetwork(config, parts, heads)

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


def _check_frame(space: gym.Space, smallest_side: int) -> None:
    """Refuse images that the convolutions cannot read.

    Raises:
        InvalidOptionsError: They have another dtype or shape, or are too small.
    """
    image = space[IMAGE]
    is_frame = image.dtype == np.uint8 and len(image.shape) == 3 and image.shape[2] == 3
    if not is_frame or min(image.shape[:2]) < smallest_side:
        raise InvalidOptionsError(
            broken_rule(
                "The environment's image",
                image,
                f"must be uint8 (height, width, 3), of at least {smallest_side} pixels each way: "
                "set the environment's obs_size",
            )
        )


# ---------------------------------------------------------- the heads that an action space asks for


def heads_for(space: gym.Space, width: int, temperature: float = 1.0) -> ActionHeads:
    """Return one head per entry of an action space.

    VPT's tokens are scored by the key groups and bins that they consist of, others one by one.

    Args:
        space: A `Dict` of `Discrete`, or `MultiDiscrete` of one number.
        width: Size of the latent that the heads read.
        temperature: Divides the logits.

    Raises:
        InvalidOptionsError: The space is of another kind.
    """
    heads: dict[str, nn.Module] = {}
    for name, choices in choices_of(space).items():
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
