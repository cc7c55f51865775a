"""Observations of several parts: their shapes and dtypes, and conversion between nested and flat.

Environments and policies use nested mappings. In between, observations are flat: a mapping from
names to arrays. A part's name joins its keys with dots: `image`, `env_prev_action.camera`. A dot
within an inner key becomes a colon: `env_prev_action.hotbar:1` is
`obs["env_prev_action"]["hotbar.1"]`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.options import broken_rule

IMAGE = "image"
"""Name of the frame, (H, W, 3) uint8."""

SEPARATOR = "."
_DOT_IN_KEY = ":"
"""Replaces a dot within a key."""

Value = TypeVar("Value")


class ObservationPart(NamedTuple):
    """The shape and dtype that a space declares for one part."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def zeros(self, *leading: int) -> NDArray:
        """Return zeros of this shape and dtype, with leading axes."""
        return np.zeros((*leading, *self.shape), self.dtype)


def parts_of(space: gym.Space, read: Collection[str] | None = None) -> dict[str, ObservationPart]:
    """Return the parts of an observation space by name.

    Args:
        space: A `Dict`, possibly nested, of `Box`, `Discrete`, `MultiDiscrete` and `MultiBinary`.
        read: The outermost keys that are used; all others are left out unchecked. None: all keys.

    Raises:
        InvalidOptionsError: The space is of another kind, or one of its outermost keys contains a
            dot, or any key a colon.
    """
    if not isinstance(space, gym.spaces.Dict) or not space.spaces:
        raise InvalidOptionsError(
            broken_rule(
                "The environment's observation space",
                space,
                "must be a Dict, such as Dict(image=Box(0, 255, (height, width, 3), uint8))",
            )
        )
    spaces = {key: s for key, s in space.spaces.items() if read is None or key in read}
    for key in spaces:
        if isinstance(key, str) and SEPARATOR in key:
            raise InvalidOptionsError(
                broken_rule("A key of an observation", key, "must be a text without dots")
            )
    parts: dict[str, ObservationPart] = {}
    for name, inner in flattened(spaces).items():
        if inner.dtype is None or inner.shape is None or inner.dtype.kind not in "biuf":
            raise InvalidOptionsError(
                broken_rule(
                    f"{name!r} of the environment's observation space",
                    inner,
                    "must be a Box, Discrete, MultiDiscrete or MultiBinary: numbers of one shape",
                )
            )
        parts[name] = ObservationPart(tuple(inner.shape), np.dtype(inner.dtype))
    return parts


def flattened(nested_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of nested mappings by name.

    Raises:
        InvalidOptionsError: A key is not a string, or contains a colon.
    """
    flat: dict[str, Any] = {}
    for key, value in nested_values.items():
        if not isinstance(key, str) or _DOT_IN_KEY in key:
            raise InvalidOptionsError(
                broken_rule("A key of an observation", key, "must be a text without colons")
            )
        outer = key.replace(SEPARATOR, _DOT_IN_KEY)
        inner = value.spaces if isinstance(value, gym.spaces.Dict) else value
        if isinstance(inner, Mapping):
            for name, part in flattened(inner).items():
                flat[f"{outer}{SEPARATOR}{name}"] = part
        else:
            flat[outer] = value
    return flat


def keys_of(name: str) -> list[str]:
    """Return the keys of a part in the nested observation, outermost first."""
    return [key.replace(_DOT_IN_KEY, SEPARATOR) for key in name.split(SEPARATOR)]


def nested(flat: Mapping[str, Value]) -> dict[str, Any]:
    """Undo `flattened`: return nested mappings."""
    result: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = keys_of(name)
        inner = result
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return result


def write_observation(slots: Mapping[str, NDArray], obs: Mapping[str, Any]) -> None:
    """Copy the parts of one observation into given arrays.

    Args:
        slots: Name -> array of the part's shape and dtype.
        obs: The environment's observation, nested.

    Raises:
        TypeError: A part has another shape or dtype, which NumPy would broadcast or cast.
    """
    if (problem := misfit(slots, obs)) is not None:
        name, declared, found = problem
        raise TypeError(
            f"The environment's observation space promises {name!r} as {declared}, but the "
            f"environment gave {found}."
        )
    for name, slot in slots.items():
        slot[...] = _value(obs, name)


def misfit(
    parts: Mapping[str, ObservationPart | NDArray], obs: Mapping[str, Any]
) -> tuple[str, str, str] | None:
    """Return the first part of an observation that has another shape or dtype than declared.

    Args:
        parts: Name -> part, or an array of its shape and dtype.
        obs: The environment's observation, nested.

    Returns:
        The part's name, and the dtype and shape declared and found, as texts; None if all fit.
    """
    for name, part in parts.items():
        found = np.asarray(_value(obs, name))
        if found.shape != part.shape or found.dtype != part.dtype:
            declared = f"{part.dtype} {part.shape}"
            return name, declared, f"{found.dtype} {found.shape}"
    return None


def _value(obs: Any, name: str) -> Any:
    """Return a part of a nested observation; None if it has none of this name."""
    for key in keys_of(name):
        obs = obs[key] if isinstance(obs, Mapping) and key in obs else None
    return obs
