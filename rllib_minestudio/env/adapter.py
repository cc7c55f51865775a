"""Any gymnasium environment in the form that pools, fragments and policies take.

They take observations that are mappings of parts, and actions of one token per head. An environment
of another form is translated at its border, so that nothing else needs to know of it::

    the environment's own space             what a policy sees
    --------------------------------------  -------------------------------------------------------
    observations
      Box, Discrete, MultiDiscrete,         Dict(observation=the same)
      MultiBinary
      Dict                                  the same
    actions
      Discrete(3, start=1)                  Dict(action=Discrete(3))
      MultiDiscrete([3, 2])                 Dict(action_0=Discrete(3), action_1=Discrete(2))
      MultiBinary(2)                        Dict(action_0=Discrete(2), action_1=Discrete(2))
      Dict(way=Discrete(3),                 Dict(way=Discrete(3),
           keys=MultiDiscrete([3, 2]))           keys_0=Discrete(3), keys_1=Discrete(2))

Imports neither Ray nor torch, because it runs in the environments' processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.options import broken_rule

OBSERVATION, ACTION = "observation", "action"
"""Name of the only part of an observation, and of the only head, or beginning of the heads' names,
where the environment has no names."""

RENDER_MODE = "render_mode"
"""The option of `MineStudioEnv` and of gymnasium's environments for frames to look at."""

_DISCRETE = "Discrete, MultiDiscrete or MultiBinary"


class SpaceAdapter:
    """Translates observations and actions of one environment, or of N at a time.

    Attributes:
        observation_space: What policies see, a `Dict`.
        action_space: What policies act in: a `Dict` of `Discrete`, or the environment's own if that
            already is a `Dict` of one number each.
    """

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        """Take the environment's own spaces.

        Raises:
            InvalidOptionsError: A space is of a kind that cannot be translated; lists all problems.
        """
        self._is_named = isinstance(observation_space, spaces.Dict)
        problems = _observation_problems(observation_space) + _action_problems(action_space)
        if problems:
            raise InvalidOptionsError(problems)
        self.observation_space = observation_space
        if not self._is_named:
            self.observation_space = spaces.Dict({OBSERVATION: observation_space})
        self.action_space = action_space
        self._entries: list[_Entry] = []
        if not _has_one_token_each(action_space):
            self._entries = _entries_of(action_space)
            self.action_space = spaces.Dict(
                {head: spaces.Discrete(n) for entry in self._entries for head, n in entry.heads}
            )

    @classmethod
    def of(cls, env: Any) -> SpaceAdapter:
        """Return the adapter of an environment, or of each environment of a vector environment.

        Args:
            env: The environment, or anything else that has its two spaces.

        Raises:
            InvalidOptionsError: A space is of a kind that cannot be translated; lists all problems.
        """
        own = {
            name: getattr(env, f"single_{name}", None) or getattr(env, name)
            for name in ("observation_space", "action_space")
        }
        if isinstance(getattr(env, "unwrapped", env), MineStudioEnv):
            return cls.unchanged(**own)
        return cls(**own)

    @classmethod
    def unchanged(cls, observation_space: Any, action_space: Any) -> SpaceAdapter:
        """Return an adapter that changes nothing, for `MineStudioEnv` and for policies' spaces."""
        adapter = cls.__new__(cls)
        adapter._is_named, adapter._entries = True, []
        adapter.observation_space, adapter.action_space = observation_space, action_space
        return adapter

    @property
    def module_spaces(self) -> dict[str, spaces.Space[Any]]:
        """What policies see and act in, as keyword arguments of their modules."""
        return {"observation_space": self.observation_space, "action_space": self.action_space}

    @property
    def changes_nothing(self) -> bool:
        """Whether the environment already has the form that policies take."""
        return self._is_named and not self._entries

    def observation(self, obs: Any) -> Mapping[str, Any]:
        """Return an observation, possibly of N environments, as policies see it."""
        return obs if self._is_named else {OBSERVATION: np.asarray(obs)}

    def action(self, tokens: Mapping[str, Any]) -> Any:
        """Return the environment's action.

        Args:
            tokens: By head, () or (N,) integers.
        """
        if not self._entries:
            return tokens
        values = {entry.key: entry.value(tokens) for entry in self._entries}
        return values.get(None, values)


class AdaptedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """An environment behind a `SpaceAdapter`."""

    def __init__(self, env: gym.Env[Any, Any], adapter: SpaceAdapter) -> None:
        super().__init__(env)
        self._adapter = adapter
        self.observation_space = adapter.observation_space
        self.action_space = adapter.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._adapter.observation(obs), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one step with a token per head."""
        obs, reward, terminated, truncated, info = self.env.step(self._adapter.action(action))
        return self._adapter.observation(obs), reward, terminated, truncated, info


def adapted(env: Any) -> gym.Env[Any, Any]:
    """Return an environment in the form that policies take; itself if it has that form.

    Raises:
        InvalidOptionsError: It is no single gymnasium environment, or has other spaces than can be
            translated.
    """
    require_single(env)
    adapter = SpaceAdapter.of(env)
    return env if adapter.changes_nothing else AdaptedEnv(env, adapter)


def require_single(env: Any) -> None:
    """Check what a constructor made.

    Raises:
        InvalidOptionsError: It is no single gymnasium environment.
    """
    if not isinstance(env, gym.Env):
        raise InvalidOptionsError(
            f"env makes a {type(env).__qualname__}: it must make one gymnasium.Env, of which "
            "num_envs_per_env_runner are played at a time."
        )


def make_adapted(make: Callable[[Any], Any], config: Any) -> gym.Env[Any, Any]:
    """Build an environment from its config, in the form that policies take."""
    return adapted(make(config))


@dataclass(frozen=True)
class GymnasiumMaker:
    """Builds an environment of gymnasium's registry; as in RLlib, its options are keywords.

    Attributes:
        id: Such as `CartPole-v1`, or `module:Id-v0`.
        spec: What the id stands for: another process may not have registered it.
    """

    id: str
    spec: EnvSpec = field(compare=False)

    def __call__(self, config: Mapping[str, Any]) -> gym.Env[Any, Any]:
        """Build one."""
        return gym.make(self.spec, **config)

    @property
    def is_gymnasiums_own(self) -> bool:
        """Whether the environment comes with gymnasium itself."""
        return str(self.spec.entry_point).startswith("gymnasium.envs.")


# ----------------------------------------------------------- what an action space consists of


class _Entry(NamedTuple):
    """One entry of an action space, and the heads whose tokens make up its value.

    Attributes:
        key: Its key in the action; None if it is the whole action.
        heads: (name, number of tokens) of each.
        shape: Of its value.
        start: Its lowest value, of that shape.
        dtype: Of its value.
    """

    key: str | None
    heads: list[tuple[str, int]]
    shape: tuple[int, ...]
    start: NDArray[Any]
    dtype: Any

    def value(self, tokens: Mapping[str, Any]) -> Any:
        """Return the value in the environment's action: () or (N,) tokens -> [N,] + `shape`."""
        columns = np.stack([np.asarray(tokens[name]) for name, _ in self.heads], axis=-1)
        values = columns.reshape((*columns.shape[:-1], *self.shape))
        return (values + self.start).astype(self.dtype)


def _entries_of(space: spaces.Space[Any]) -> list[_Entry]:
    if isinstance(space, spaces.Dict):
        return [_entry(key, key, inner) for key, inner in space.spaces.items()]
    return [_entry(None, ACTION, space)]


def _entry(key: str | None, name: str, space: Any) -> _Entry:
    if isinstance(space, spaces.Discrete):
        return _Entry(key, [(name, int(space.n))], (), np.asarray(space.start), space.dtype)
    if isinstance(space, spaces.MultiDiscrete):
        counts, start = space.nvec, np.asarray(space.start)
    else:
        counts, start = np.full(space.shape, 2), np.zeros(space.shape, np.int64)
    sizes = [int(n) for n in counts.reshape(-1)]
    names = [name] if len(sizes) == 1 else [f"{name}_{i}" for i in range(len(sizes))]
    heads = list(zip(names, sizes, strict=True))
    return _Entry(key, heads, tuple(space.shape), start, space.dtype)


def _has_one_token_each(space: spaces.Space[Any]) -> bool:
    """Whether an action space is a `Dict` of one number each, all of which count from 0."""
    return isinstance(space, spaces.Dict) and all(
        isinstance(inner, spaces.Discrete | spaces.MultiDiscrete)
        and inner.shape in ((), (1,))
        and not np.any(inner.start)
        for inner in space.spaces.values()
    )


def _observation_problems(space: Any) -> list[str]:
    kinds = spaces.Dict, spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary
    if isinstance(space, kinds):
        return []
    return [
        broken_rule(
            "The environment's observation space",
            space,
            f"must be a Box, {_DISCRETE}, or a Dict of these: wrap the environment, for example in "
            "gymnasium.wrappers.FlattenObservation",
        )
    ]


def _action_problems(space: Any) -> list[str]:
    inner = space.spaces if isinstance(space, spaces.Dict) else {None: space}
    problems = []
    for key, value in inner.items():
        if isinstance(value, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
            continue
        which = f"{key!r} of the environment's" if key is not None else "The environment's"
        way_out = "wrap the environment in one that takes such actions"
        if isinstance(value, spaces.Box):
            way_out = (
                "policies choose among tokens, so wrap the environment, for example in "
                "gymnasium.wrappers.DiscretizeAction"
            )
        rule = f"must be {_DISCRETE}, or a Dict of these that is not nested: {way_out}"
        problems.append(broken_rule(f"{which} action space", value, rule))
    if isinstance(space, spaces.Dict) and not problems:
        names = [head for entry in _entries_of(space) for head, _ in entry.heads]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not names:
            rule = f"must have other names: {', '.join(twice)} would each be two heads"
            rule = rule if twice else "must have an entry"
            problems.append(broken_rule("The environment's action space", space, rule))
    return problems
