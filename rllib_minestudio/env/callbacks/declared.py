"""What callbacks promise to add to observations: their declarations, judged and put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym

from rllib_minestudio.env.callbacks.base import MinecraftCallback
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.observations import IMAGE, parts_of
from rllib_minestudio.option_checks import Problems, shown

METHOD = "observation_spaces"
"""Name of the method that declares. It takes nothing and returns key -> space."""


def declared_spaces(callbacks: Iterable[Any]) -> dict[str, gym.Space]:
    """Return the spaces of everything that callbacks declare, by key.

    Args:
        callbacks: Objects; those without the method declare nothing.

    Raises:
        InvalidOptionsError: A declaration is no mapping from texts to spaces of numbers, names the
            frame, or contradicts another one; lists all problems.
    """
    problems = Problems("callbacks")
    found: dict[str, gym.Space] = {}
    owners: dict[str, str] = {}
    for callback in callbacks:
        try:
            spaces = _declaration(callback)
        except InvalidOptionsError as error:
            problems.include(error)
            continue
        for key, space in spaces.items():
            owner = owners.setdefault(key, type(callback).__name__)
            if found.setdefault(key, space) != space:
                problems.add(
                    f"{METHOD}() of {type(callback).__name__}",
                    space,
                    f"must agree with {owner}, which declares {key!r} as {shown(found[key])}: "
                    "rename one of the two, or give both the same arguments",
                )
    problems.raise_if_any()
    return found


def declares(kind: Any) -> bool:
    """Return whether a callback, or the class of some, has a declaration of its own."""
    method = getattr(kind, METHOD, None)
    default = MinecraftCallback.observation_spaces
    return callable(method) and getattr(method, "__func__", method) is not default


def _declaration(callback: Any) -> Mapping[str, gym.Space]:
    """Return what one callback declares, checked by itself.

    Raises:
        InvalidOptionsError: It is not in order.
    """
    if not declares(callback):
        return {}
    where = f"{METHOD}() of {type(callback).__name__}"
    try:
        spaces = getattr(callback, METHOD)()
    except InvalidOptionsError:
        raise
    except Exception as error:
        raise InvalidOptionsError(f"{where} raised {type(error).__name__}: {error}") from error
    problems = Problems()
    if not isinstance(spaces, Mapping):
        problems.add(where, spaces, "must return a mapping from keys to gymnasium spaces")
        spaces = {}
    for key, space in spaces.items():
        if key == IMAGE:
            problems.add(where, key, "must not declare the frame, which every observation has")
        elif not isinstance(space, gym.Space):
            problems.add(f"{where}, key {key!r},", space, "must be a gymnasium space")
        else:
            try:
                parts_of(_alone(key, space))
            except InvalidOptionsError as error:
                problems.messages.extend(f"{where}: {problem}" for problem in error.problems)
    problems.raise_if_any()
    return spaces


def _alone(key: Any, space: gym.Space) -> gym.spaces.Dict:
    """Return the space of observations that have nothing but one key.

    Raises:
        InvalidOptionsError: The key is no text, which gymnasium would let pass.
    """
    if not isinstance(key, str):
        raise InvalidOptionsError(f"a key must be a text; got {shown(key)}.")
    return gym.spaces.Dict({key: space})
