"""FlatSpaces: `MineStudioEnv` for algorithms that take no `Dict` spaces.

Stable-Baselines3 and RLlib's own algorithms want one array as the observation and a `MultiDiscrete`
as the action. VPT's `buttons` token has 8,641 values, most of which a network that learns from
scratch never tries twice. It stands for one choice from each of nine groups of keys, so the wrapper
offers the groups themselves: a policy with 37 logits chooses from each independently.
"""

from __future__ import annotations

import copy
import math
import multiprocessing
from collections.abc import Mapping, Sequence
from functools import reduce
from inspect import signature
from itertools import count
from operator import getitem
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rllib_minestudio.env.actions import CameraConfig
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.errors import InvalidActionError, InvalidOptionsError
from rllib_minestudio.foundation.names import BUTTON_GROUPS, INVENTORY_TOKEN
from rllib_minestudio.foundation.observations import IMAGE, SEPARATOR, flattened, keys_of, parts_of
from rllib_minestudio.foundation.options import (
    Problems,
    broken_rule,
    is_list,
    shown,
    unknown_name,
)

_CAMERA, _INVENTORY, _AXES = "camera", "inventory", ("pitch", "yaw")

ACTION_GROUPS = (*(group for group in BUTTON_GROUPS if group != _CAMERA), _INVENTORY, *_AXES)
"""Every group that an action can choose from, in the order of an action's elements."""

DEFAULT_GROUPS = tuple(
    group for group in ACTION_GROUPS if group not in ("hotbar", "drop", _INVENTORY)
)
"""Movement and mouse. Random play would switch the held item in nine of ten steps if `hotbar` were
one of them, and open the inventory in every second step if `inventory` were; `drop` does nothing in
MineStudio."""

_PART_SEPARATOR = "/"
"""Separates keys in the name of a part, since modules of torch cannot have dots in their names."""


class FlatActions:
    """Choices from groups of keys, and the tokens that press these keys.

    Choices of one group exclude each other, as in VPT: no action presses `forward` and `back`, or
    `sprint` and `sneak`. All other combinations exist, except that `inventory` is pressed alone:
    all other keys are then ignored, but not the camera, which moves the cursor.

    Attributes:
        choices: Group -> what its elements of an action mean: "none" or a key; for `pitch` and
            `yaw`, degrees per step, positive down and right.
        space: `MultiDiscrete`, one element per group.
    """

    def __init__(self, groups: Sequence[str], camera: CameraConfig) -> None:
        """Check the groups.

        Args:
            groups: Some of `ACTION_GROUPS`; their order does not matter. Nothing is ever chosen
                from the others.
            camera: The environment's bins.

        Raises:
            InvalidOptionsError: If they are not different groups.
        """
        problems = Problems()
        if not is_list(groups) or not groups:
            problems.add("actions", groups, f"must be a list of {', '.join(ACTION_GROUPS)}")
            problems.raise_if_any()
        for group in groups:
            if group not in ACTION_GROUPS:
                problems.unknown("group of actions", group, ACTION_GROUPS)
        if len(set(map(str, groups))) < len(groups):
            problems.add("actions", list(groups), "must name every group once")
        problems.raise_if_any()
        degrees = tuple(camera.bin_to_degrees(np.arange(camera.n_camera_bins)).tolist())
        meanings: dict[str, tuple[Any, ...]] = {
            **BUTTON_GROUPS,
            _INVENTORY: ("none", _INVENTORY),
            **dict.fromkeys(_AXES, degrees),
        }
        self.choices = {group: meanings[group] for group in ACTION_GROUPS if group in groups}
        self.space = spaces.MultiDiscrete([len(choices) for choices in self.choices.values()])
        self._camera = camera
        self._weights = _digit_weights()

    def to_tokens(self, action: Any) -> tuple[int, int]:
        """Return the tokens of an action.

        Args:
            action: One integer per group, in the order of `choices`.

        Returns:
            (buttons, camera).

        Raises:
            InvalidActionError: If it is not in `space`.
        """
        chosen = self._checked(action)
        null, bins = self._camera.null_bin, self._camera.n_camera_bins
        pitch, yaw = (chosen.pop(axis, null) for axis in _AXES)
        camera = pitch * bins + yaw
        if chosen.pop(_INVENTORY, 0):
            return INVENTORY_TOKEN, camera
        turns = int((pitch, yaw) != (null, null))
        buttons = sum(self._weights[group] * choice for group, choice in chosen.items())
        return buttons + self._weights[_CAMERA] * turns, camera

    def _checked(self, action: Any) -> dict[str, int]:
        """Return group -> index of the choice.

        Raises:
            InvalidActionError: If it is not in `space`.
        """
        array = np.asarray(action)
        counts = self.space.nvec
        is_right = array.shape == counts.shape and array.dtype.kind in "iu"
        if not is_right or (array < 0).any() or (array >= counts).any():
            raise InvalidActionError(
                f"An action is {len(counts)} integers, for {', '.join(self.choices)}, each less "
                f"than {counts.tolist()}; got {shown(action)}."
            )
        return dict(zip(self.choices, array.tolist(), strict=True))


def _digit_weights() -> dict[str, int]:
    """Return how much a group's choice counts in a `buttons` token, as a digit does in a number."""
    sizes = [len(choices) for choices in BUTTON_GROUPS.values()]
    return {group: math.prod(sizes[i + 1 :]) for i, group in enumerate(BUTTON_GROUPS)}


class FlatSpaces(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """A `MineStudioEnv` with one array, or flat `Dict`, as observation and `MultiDiscrete` actions.

    Wrap the environment in it after `EpisodeRecorder`, which records VPT's tokens. Infos, seeds,
    rewards and the ends of episodes are the environment's.

    Example:
        >>> env = FlatSpaces(gymnasium.make("MineStudio-v0", obs_size=(64, 64)))
        >>> env.action_space
        MultiDiscrete([ 3  3  3  2  2  2 11 11])
        >>> env.observation_space.shape
        (64, 64, 3)
    """

    def __init__(
        self,
        env: gym.Env,
        actions: Sequence[str] = DEFAULT_GROUPS,
        parts: Sequence[str] | None = (IMAGE,),
        scale_image: bool = False,
    ) -> None:
        """Wrap an environment.

        Args:
            env: A `MineStudioEnv`, possibly wrapped, with the action type "agent".
            actions: Groups of keys to choose from, some of `ACTION_GROUPS`.
            parts: Parts of the observation, such as "image", "inventory" or
                "env_prev_action/camera"; None for all. One part is the observation itself, several
                are a `Dict` without inner ones.
            scale_image: Whether frames are float32 from 0 to 1, as RLlib's networks need them. By
                default they are uint8 from 0 to 255, which Stable-Baselines3 scales itself.

        Raises:
            InvalidOptionsError: If the environment is another one, or an argument is wrong.
        """
        gym.utils.RecordConstructorArgs.__init__(
            self, actions=actions, parts=parts, scale_image=scale_image
        )
        gym.Wrapper.__init__(self, env)
        game = env.unwrapped
        if not isinstance(game, MineStudioEnv) or game.options.action_type != "agent":
            raise InvalidOptionsError(
                "FlatSpaces wraps a MineStudioEnv whose action_type is 'agent'; got "
                f"{shown(env)} with the action space {shown(env.action_space)}."
            )
        if not isinstance(scale_image, bool):
            raise InvalidOptionsError(
                broken_rule("scale_image", scale_image, "must be true or false")
            )
        self.flat_actions = FlatActions(actions, game.options.camera_config)
        self.action_space = self.flat_actions.space
        chosen = _chosen_parts(env.observation_space, parts)
        self._keys = {name: keys_of(part) for name, part in chosen.items()}
        self._scales = scale_image
        declared = {
            name: reduce(getitem, keys, env.observation_space) for name, keys in self._keys.items()
        }
        if scale_image and IMAGE in declared:
            declared[IMAGE] = spaces.Box(0.0, 1.0, declared[IMAGE].shape, np.float32)
        self.observation_space = (
            spaces.Dict(declared) if len(declared) > 1 else next(iter(declared.values()))
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see `MineStudioEnv.reset`."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._flat(obs), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one game tick; see `MineStudioEnv.step`.

        Raises:
            InvalidActionError: If the action is not in the action space.
        """
        buttons, camera = self.flat_actions.to_tokens(action)
        tokens = {"buttons": np.array([buttons]), "camera": np.array([camera])}
        obs, reward, terminated, truncated, info = self.env.step(tokens)
        return self._flat(obs), reward, terminated, truncated, info

    def _flat(self, obs: Mapping[str, Any]) -> Any:
        flat: dict[str, Any] = {
            name: reduce(getitem, keys, obs) for name, keys in self._keys.items()
        }
        if self._scales and IMAGE in flat:
            flat[IMAGE] = _scaled(flat[IMAGE])
        return flat if len(flat) > 1 else next(iter(flat.values()))


def _scaled(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return a frame as float32 from 0 to 1."""
    return np.divide(image, np.float32(255), dtype=np.float32)


def _chosen_parts(space: spaces.Dict, chosen: Sequence[str] | None) -> dict[str, str]:
    """Return the name of each chosen part -> its name in `foundation/observations.py`.

    Raises:
        InvalidOptionsError: There is no such part, or it is not an array of numbers.
    """
    if chosen is not None and (not is_list(chosen) or not chosen):
        rule = "must be a list of parts of the observation, or None for all"
        raise InvalidOptionsError(broken_rule("parts", chosen, rule))
    outermost = None if chosen is None else [str(name).split(_PART_SEPARATOR)[0] for name in chosen]
    there = {name.replace(SEPARATOR, _PART_SEPARATOR): name for name in parts_of(space, outermost)}
    unknown = [name for name in chosen or () if not isinstance(name, str) or name not in there]
    if unknown:
        valid = {name.replace(SEPARATOR, _PART_SEPARATOR) for name in flattened(space.spaces)}
        raise InvalidOptionsError(
            [unknown_name("part of the observation", name, sorted(valid)) for name in unknown]
        )
    return {name: there[name] for name in chosen or there}


# ------------------------------------------------------ the environment for RLlib's own algorithms
# `registration.py` registers it with Tune.

SIZE_FOR_RLLIB = (64, 64)
"""Width and height of frames by default: RLlib has an encoder for them, and none for 128 x 128."""

_built = count()


class _PlainInfos(gym.Wrapper):
    """Leaves mappings such as `inventory` out of infos.

    RLlib has gymnasium's vector environments merge the infos of a step, and takes them apart again.
    That fails with the integer keys of `inventory`; with text keys, it takes as long as the step.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        return obs, _plain(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, _plain(info)


def _plain(info: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in info.items() if not isinstance(value, Mapping)}


def make_flat_env(config: Mapping[str, Any]) -> gym.Env:
    """Build `MineStudio-v0` with flat spaces, for an env runner of RLlib's own.

    Its infos have the numbers and texts of `MineStudioEnv`'s, without the mappings among them.

    Args:
        config: RLlib's EnvContext, with the fields of `EnvOptions`; `obs_size` is 64 x 64 by
            default. Two more keys are `max_episode_steps`, as in `gymnasium.make`, and
            `flat_spaces`, the arguments of `FlatSpaces`, where `scale_image` is true by default.

    Raises:
        InvalidOptionsError: If any option is wrong.
    """
    options = {"obs_size": SIZE_FOR_RLLIB, **copy.deepcopy(dict(config))}
    flat = options.pop("flat_spaces", {})
    arguments = [name for name in signature(FlatSpaces).parameters if name != "env"]
    problems = Problems("flat_spaces")
    if not isinstance(flat, Mapping):
        rule = f"must be a mapping of {', '.join(arguments)}"
        raise InvalidOptionsError(broken_rule("flat_spaces", flat, rule))
    known = problems.known("option", flat, arguments)
    problems.raise_if_any()
    options.update(
        worker_index=getattr(config, "worker_index", None) or 0, vector_index=_index_in_worker()
    )
    env = gym.make("MineStudio-v0", disable_env_checker=True, **options)
    return _PlainInfos(FlatSpaces(env, **{"scale_image": True, **known}))


def _index_in_worker() -> int:
    """Return an index that no other environment of this env runner has.

    RLlib's own env runners give all their environments the index 0, with which their unseeded
    episodes would all be the same. With `gym_env_vectorize_mode="async"`, each is built in a child
    process with a copy of the counter; gymnasium numbers these processes in their names.
    """
    index = next(_built)
    if multiprocessing.parent_process() is not None:
        number = multiprocessing.current_process().name.rpartition("-")[2]
        index += int(number) if number.isdecimal() else 0
    return index
