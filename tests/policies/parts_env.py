"""A small environment with observations of every kind, which notes all that it shows."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.foundation.observations import flattened

SIDE = 36
BUTTONS, CAMERA = 5, 3

SPACES: dict[str, gym.Space] = {
    "image": gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8),
    "vector": gym.spaces.Box(-np.inf, np.inf, (4,), np.float32),
    "text": gym.spaces.Box(0, 255, (6,), np.uint8),
    "inner": gym.spaces.Dict(
        {
            "hotbar.1": gym.spaces.Discrete(21),
            "pair": gym.spaces.Box(-1.0, 1.0, (2,), np.float64),
            "flags": gym.spaces.MultiBinary(3),
        }
    ),
}


class PartsEnv(gym.Env):
    """Episodes of a few steps that end by truncation and by termination in turn.

    The first three numbers of `vector` say which observation it is: environment (from 1), episode,
    step. All others are random. The reward is 1 if the button is that of the task, which the text
    tells, and else what the fourth number of `vector` says.

    Config:
        parts: Which of `SPACES` are shown (default: all).
        length: Steps of the shortest episodes; others have up to two more (default 5).
        anonymous: Whether `vector` tells neither environment nor episode, so that an episode
            depends on the seed of its reset alone (default: false).
        log: Folder in which each environment notes what it shows; see `Shown`.
    """

    def __init__(self, config: Any = None) -> None:
        config = config or {}
        names = config.get("parts", list(SPACES))
        self._number = 1 + getattr(config, "vector_index", 0)
        self._number += 100 * getattr(config, "worker_index", 0)
        self._rng = np.random.default_rng((config.get("seed", 0), self._number))
        self._length, self._log = config.get("length", 5), config.get("log")
        self._episode = -1
        self._anonymous = config.get("anonymous", False)
        self.observation_space = gym.spaces.Dict({name: SPACES[name] for name in names})
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([BUTTONS]), camera=gym.spaces.MultiDiscrete([CAMERA])
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._episode, self._t = self._episode + 1, 0
        if self._anonymous:
            self._number, self._episode = 0, int(self._rng.integers(10))
        return self._observe("reset"), {}

    def step(self, action: Mapping[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        # Env pools give tokens without an axis, `Policy` in the shape of their space.
        tokens = {name: np.reshape(action[name], 1) for name in self.action_space}
        assert self.action_space.contains(tokens) and len(action) == len(tokens)
        right = tokens["buttons"].item() == self._task
        reward = 1.0 if right else float(self._obs["vector"][3]) / 10
        self._t += 1
        ends = self._t >= self._length + (self._episode + self._number) % 3
        terminated = ends and self._episode % 2 == 1
        truncated = ends and not terminated
        kind = "terminal" if terminated else "final" if truncated else "step"
        return self._observe(kind), reward, terminated, truncated, {}

    def _observe(self, kind: str) -> dict[str, Any]:
        self._task = self._episode % BUTTONS
        rng = self._rng
        noise = rng.standard_normal()
        vector = np.array([self._number, self._episode, self._t, noise], np.float32)
        text = np.frombuffer(f"task{self._task}".encode().ljust(6, b"\0"), np.uint8)
        everything = {
            "image": rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8),
            "vector": vector,
            "text": text.copy(),
            "inner": {
                "hotbar.1": np.int64(rng.integers(21)),
                "pair": rng.uniform(-1, 1, 2),
                "flags": rng.integers(0, 2, 3, np.int8),
            },
        }
        self._obs = {name: everything[name] for name in self.observation_space}
        if self._log is not None:
            with Path(self._log, f"{self._number}.pkl").open("ab") as file:
                pickle.dump((kind, self._obs), file)
        return self._obs


Key = tuple[int, int, int]
"""Environment, episode, step."""


def key_of(vector: NDArray) -> Key:
    """Which observation a `vector` is of; the environment is 0 in padding."""
    number, episode, step = (int(value) for value in vector[:3])
    return number, episode, step


class Shown:
    """What all environments have shown.

    Attributes:
        parts: Observations by key, flat.
        kinds: `reset`, `step`, `final` (of a truncated episode) or `terminal`, by key.
    """

    def __init__(self, folder: Path) -> None:
        """Read what the environments noted so far."""
        self.parts: dict[Key, dict[str, NDArray]] = {}
        self.kinds: dict[Key, str] = {}
        for path in sorted(folder.glob("*.pkl")):
            for kind, obs in _load_all(path):
                key = key_of(obs["vector"])
                assert key not in self.kinds
                self.parts[key] = {n: np.asarray(value) for n, value in flattened(obs).items()}
                self.kinds[key] = kind

    def check(self, names: Any, flat: Mapping[str, Any], place: tuple[int, ...]) -> Key:
        """Check one observation of a batch, bit for bit, and return which one it is."""
        key = key_of(np.asarray(flat["vector"])[place])
        if key[0] == 0:
            for part in flat.values():
                assert not np.asarray(part)[place].any(), "padding is zeros"
            return key
        assert set(flat) == set(names)
        for name, part in flat.items():
            actual, expected = np.asarray(part)[place], self.parts[key][name]
            assert actual.dtype == expected.dtype and actual.shape == expected.shape, name
            assert actual.tobytes() == expected.tobytes(), (name, key)
        return key


def _load_all(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return
