"""The space of a `MineStudioEnv`'s observations: the frame, and what callbacks declare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces

from rllib_minestudio.env.callbacks.base import Info, Obs
from rllib_minestudio.env.callbacks.declared import METHOD, declared_spaces
from rllib_minestudio.errors import EngineError
from rllib_minestudio.observations import IMAGE


def observation_space(obs_size: tuple[int, int], callbacks: Iterable[Any]) -> spaces.Dict:
    """Return the space of observations.

    Args:
        obs_size: (width, height) of frames.
        callbacks: Objects; those without a declaration add nothing.

    Raises:
        InvalidOptionsError: The declarations are not in order; lists all problems.
    """
    width, height = obs_size
    image = spaces.Box(0, 255, (height, width, 3), np.uint8)
    return spaces.Dict({IMAGE: image, **declared_spaces(callbacks)})


def blank_observation(space: spaces.Space[Any]) -> Any:
    """Return what a space has that is nearest to zero: black frames, nothing done, no text."""
    if isinstance(space, spaces.Dict):
        return {key: blank_observation(inner) for key, inner in space.spaces.items()}
    zeros = np.zeros(space.shape or (), space.dtype)
    if isinstance(space, spaces.Box):
        return np.asarray(np.clip(zeros, space.low, space.high))
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        last = space.start + (space.n if isinstance(space, spaces.Discrete) else space.nvec) - 1
        return np.clip(zeros, space.start, last).astype(zeros.dtype)
    return zeros


def declared_part(space: spaces.Dict, obs: Obs, info: Info) -> tuple[Obs, list[str]]:
    """Return what a space has of an observation, and the keys that nobody declared or tells.

    Args:
        space: What policies see.
        obs: What the callbacks made.
        info: Of the same step; a key that it has too is told there.

    Raises:
        EngineError: A declared key is missing.
    """
    missing = [key for key in space.spaces if key not in obs]
    if missing:
        raise EngineError(
            f"The observation has no {missing[0]!r}, which {METHOD}() of a callback declares: the "
            f"callback must add it in after_reset and in after_step. It has {', '.join(obs)}."
        )
    undeclared = [key for key in obs if key not in space.spaces and key not in info]
    return {key: obs[key] for key in space.spaces}, undeclared


def how_to_declare(key: str) -> str:
    """Return what to tell whoever adds a key without declaring it."""
    return (
        f"A callback adds {key!r} to the observations but does not declare it, so policies do not "
        f"see it: give the callback a method {METHOD}(self) that returns {{{key!r}: its gymnasium "
        "space}. Other callbacks find it in sim.obs either way."
    )
