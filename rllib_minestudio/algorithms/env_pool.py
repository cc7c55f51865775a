"""Several environments stepped in lock-step within one process.

Every environment restarts by itself: the observation after a step that ended an episode is the
first of the next one, and the last of the finished one is handed out separately, because a
truncated episode is worth what would have followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray


class Episode(NamedTuple):
    """A finished episode, in numbers."""

    length: int
    discounted_return: float
    undiscounted_return: float
    seconds: float


class PoolStep(NamedTuple):
    """What n environments answered.

    Attributes:
        obs: (n, H, W, 3) uint8, valid until the next step; already of the next episode where one
            ended.
        reward: (n,) float32.
        terminated: (n,) bool.
        truncated: (n,) bool.
        final_obs: Per environment whose episode was truncated, what it saw last, (H, W, 3).
        episodes: The episodes that ended.
    """

    obs: NDArray[np.uint8]
    reward: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    final_obs: dict[int, NDArray[np.uint8]]
    episodes: list[Episode]


class LockStepEnvs:
    """A plain loop over environments with the spaces of a gymnasium vector environment.

    Args:
        make_envs: One constructor per environment.
        gamma: Discount per step, for the episodes' discounted returns.
    """

    def __init__(self, make_envs: Sequence[Callable[[], gym.Env]], *, gamma: float) -> None:
        """Construct the environments; they are reset by `reset`."""
        self.envs = [make() for make in make_envs]
        self.num_envs = len(self.envs)
        self._gamma = gamma
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = gym.vector.utils.batch_space(
            self.single_observation_space, self.num_envs
        )
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, self.num_envs)
        image = self.single_observation_space["image"]
        self._obs = np.zeros((self.num_envs, *image.shape), np.uint8)
        self._reward = np.zeros(self.num_envs, np.float32)
        self._terminated = np.zeros(self.num_envs, np.bool_)
        self._truncated = np.zeros(self.num_envs, np.bool_)
        self._running = [_RunningEpisode() for _ in self.envs]

    @property
    def unwrapped(self) -> LockStepEnvs:
        """Itself; RLlib asks."""
        return self

    def reset(self, seeds: Sequence[int | None]) -> NDArray[np.uint8]:
        """Start new episodes everywhere.

        Args:
            seeds: One per environment; None leaves the environment's own sequence of episodes.

        Returns:
            The first observations, (n, H, W, 3) uint8.
        """
        for i, (env, seed) in enumerate(zip(self.envs, seeds, strict=True)):
            obs, _ = env.reset(seed=seed)
            self._obs[i] = obs["image"]
            self._running[i] = _RunningEpisode()
        return self._obs

    def decorrelate(self, max_steps: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Play up to `max_steps` random steps in each environment, each a different number.

        Environments that start together and have the same time limit would otherwise be in the
        same part of their episodes for ever, and so would everything in a batch. What is played
        here counts nowhere.

        Returns:
            The observations after it, (n, H, W, 3) uint8.
        """
        self.single_action_space.seed(int(rng.integers(2**31)))
        for i, env in enumerate(self.envs):
            for _ in range(int(rng.integers(max_steps + 1))):
                obs, _, terminated, truncated, _ = env.step(self.single_action_space.sample())
                if terminated or truncated:
                    obs, _ = env.reset()
                self._obs[i] = obs["image"]
        return self._obs

    def step(self, action: Mapping[str, NDArray]) -> PoolStep:
        """Step every environment once.

        Args:
            action: Tokens, {"buttons": (n,), "camera": (n,)}.
        """
        final_obs: dict[int, NDArray[np.uint8]] = {}
        episodes = []
        for i, env in enumerate(self.envs):
            tokens = {name: values[i] for name, values in action.items()}
            obs, reward, terminated, truncated, _ = env.step(tokens)
            self._reward[i] = reward
            self._terminated[i] = terminated
            self._truncated[i] = truncated
            running = self._running[i]
            running.add(float(reward), self._gamma)
            if terminated or truncated:
                if truncated and not terminated:
                    final_obs[i] = obs["image"]
                episodes.append(running.finish())
                obs, _ = env.reset()
                self._running[i] = _RunningEpisode()
            self._obs[i] = obs["image"]
        return PoolStep(
            self._obs, self._reward, self._terminated, self._truncated, final_obs, episodes
        )

    def close(self, **_: Any) -> None:
        """Close all environments."""
        for env in self.envs:
            env.close()


class _RunningEpisode:
    """Sums up an episode while it runs."""

    def __init__(self) -> None:
        self._length = 0
        self._discount = 1.0
        self._discounted_return = 0.0
        self._return = 0.0
        self._started = time.perf_counter()

    def add(self, reward: float, gamma: float) -> None:
        self._length += 1
        self._return += reward
        self._discounted_return += self._discount * reward
        self._discount *= gamma

    def finish(self) -> Episode:
        return Episode(
            length=self._length,
            discounted_return=self._discounted_return,
            undiscounted_return=self._return,
            seconds=time.perf_counter() - self._started,
        )
