"""Copies of policies that draw their actions at another temperature."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.foundation.options import broken_rule, is_number

if TYPE_CHECKING:
    from torch import Tensor

_LOGITS = re.compile(r"(pi_head|action_head)\.\w+\.linear_layer\.(weight|bias)")
"""Parameters of the action heads' last layers, in VPT and in the other policies of this package."""
LEAST_TEMPERATURE, MOST_TEMPERATURE = 1e-6, 1e6
"""Bounds of temperatures."""


def at_temperature(state: Mapping[str, Tensor], temperature: float) -> dict[str, Tensor]:
    """Return a policy's weights with its logits divided by a temperature.

    The action heads' weights themselves are divided, so whatever loads them, to play or as a prior,
    needs to know nothing of it.

    Args:
        state: The policy's state dict.
        temperature: Below 1, probable actions become more probable.

    Raises:
        CheckpointMismatchError: The action heads are not this package's.
        InvalidOptionsError: The temperature is not a number within bounds.
    """
    if not is_number(temperature) or not LEAST_TEMPERATURE <= temperature <= MOST_TEMPERATURE:
        rule = f"must be from {LEAST_TEMPERATURE:g} to {MOST_TEMPERATURE:g}"
        raise InvalidOptionsError(broken_rule("temperature", temperature, rule))
    heads = [name for name in state if _LOGITS.fullmatch(name)]
    if not heads:
        raise CheckpointMismatchError(
            "its action heads are not this package's, whose parameters are called "
            "'action_head.NAME.linear_layer.weight'; the temperature of its copy cannot be changed."
        )
    return {**state, **{name: state[name] / temperature for name in heads}}
