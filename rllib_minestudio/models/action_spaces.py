"""The heads that an action space asks for."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from torch import nn

from rllib_minestudio.buttons import NUM_BUTTONS
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.vpt.heads import (
    BUTTON_SIZES,
    CAMERA_SIZES,
    NUM_CAMERA,
    ActionHeads,
    FactoredHead,
    JointHead,
)
from rllib_minestudio.option_checks import broken_rule


def heads_for(space: gym.Space, width: int, temperature: float = 1.0) -> ActionHeads:
    """Return one head per entry of an action space.

    VPT's tokens are scored by the keys and bins that they consist of, others one by one.

    Args:
        space: A `Dict` of `Discrete`, or `MultiDiscrete` of one number.
        width: Size of the latent that the heads read.
        temperature: Divides the logits.

    Raises:
        InvalidOptionsError: It is another space.
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
        InvalidOptionsError: It is no `Dict` of `Discrete`, or of `MultiDiscrete` of one number.
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
    """Number of tokens; 0 for a space of anything else."""
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return int(space.n)
    if isinstance(space, gym.spaces.MultiDiscrete) and space.shape == (1,):
        return int(np.asarray(space.nvec).item())
    return 0
