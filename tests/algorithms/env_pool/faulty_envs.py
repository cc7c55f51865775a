"""Environments that count, and that fail on command; imported by environments' processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.foundation.names import ENGINE_ERROR

SIDE = 16
FOREVER = 3600
SLOW_STEP_S = 0.2


class CountingEnv(gym.Env):
    """Shows how many steps it has played in the episode; pays the buttons token modulo 7.

    Episodes take between 5 and 25 steps, as their seed wills; every second one ends for good.
    """

    def __init__(self, seed: int = 0) -> None:
        shape = (SIDE, SIDE, 3)
        self.observation_space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, shape, np.uint8))
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
        )
        self._rng = np.random.default_rng(seed)
        self._episode = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._t = 0
        self._length = int(self._rng.integers(5, 26))
        self._episode += 1
        return self._observe(), {"task": f"task {self._episode % 2}"}

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        self._t += 1
        ended = self._t >= self._length
        terminated = ended and self._episode % 2 == 0
        token = np.asarray(action["buttons"]).item()
        info = {"success": terminated, "frame": np.zeros((64, 64)), "inventory": {0: np.int64(3)}}
        return (
            self._observe(),
            float(token % 7),
            terminated,
            ended,
            info,
        )

    def _observe(self) -> dict[str, np.ndarray]:
        return {"image": np.full((SIDE, SIDE, 3), self._t, np.uint8)}


class AnnouncedEnv(CountingEnv):
    """Leaves a file when it has started."""

    def __init__(self, started: Path) -> None:
        super().__init__()
        started.touch()


class FaultyEnv(CountingEnv):
    """Does something bad at one moment of its life, unless it has been done before.

    Args:
        fault: What to do.
        moment: `start`, `reset` (from the second on) or `step` (the eighth).
        once: A file that says that it was done; None to do it every time.
        after: A file to wait for before the life begins, as an `AnnouncedEnv` leaves it.
    """

    def __init__(
        self, fault: str, moment: str, once: Path | None = None, after: Path | None = None
    ) -> None:
        super().__init__()
        while after is not None and not after.exists():
            time.sleep(0.01)
        self._fault, self._moment, self._once = fault, moment, once
        self._moments = {"reset": 0, "step": 0}
        if moment == "start":
            self._do()

    def reset(self, **arguments: Any) -> tuple[Any, dict]:
        self._count("reset", at=2)
        return super().reset(**arguments)

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        self._count("step", at=8)
        return super().step(action)

    def _count(self, moment: str, at: int) -> None:
        self._moments[moment] += 1
        if moment == self._moment and self._moments[moment] >= at:
            self._do()

    def _do(self) -> None:
        if self._once is None or not self._once.exists():
            if self._once is not None:
                self._once.touch()
            FAULTS[self._fault]()


class EnvWithGame(CountingEnv):
    """Starts a process of its own, as Minecraft's does, and says which."""

    def __init__(self, pid_file: Path) -> None:
        super().__init__()
        game = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOREVER})"])
        pid_file.write_text(f"{os.getpid()} {game.pid}")


class ForkingEnv(CountingEnv):
    """Forks a process that keeps its files open, and dies in its second episode."""

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        if self._episode == 2 and os.fork() == 0:
            time.sleep(FOREVER)
        if self._episode == 2:
            os._exit(1)
        return super().step(action)


class SlowEnv(CountingEnv):
    """Takes its time for a step."""

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        time.sleep(SLOW_STEP_S)
        return super().step(action)


class SlowToClose(CountingEnv):
    """Writes a file when it is closed."""

    def __init__(self, closed: Path) -> None:
        super().__init__()
        self._closed = closed

    def close(self) -> None:
        time.sleep(0.3)
        self._closed.touch()


class ModulesEnv(CountingEnv):
    """Tells which modules its process has imported."""

    def reset(self, **arguments: Any) -> tuple[Any, dict]:
        obs, info = super().reset(**arguments)
        return obs, {**info, "task": " ".join(sys.modules)}


def _raise() -> None:
    raise ValueError("the game makes no sense")


FAULTS: dict[str, Callable[[], Any]] = {
    "raise": _raise,
    "hang": partial(time.sleep, FOREVER),
    "exit": partial(os._exit, 3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}


def make_counting_env(config: Any) -> CountingEnv:
    """Builds what `environment(env=...)` takes."""
    return CountingEnv(config.vector_index)


def make_env_with_game(config: Any) -> EnvWithGame:
    """Likewise; it tells its processes in a file of its own in the folder `pids`."""
    return EnvWithGame(Path(config["pids"]) / str(os.getpid()))


def make_uneven_env(config: Any) -> CountingEnv:
    """Likewise; the first of the environments is slow."""
    return CountingEnv() if config.vector_index else SlowEnv()


class ChattyEnv(CountingEnv):
    """Shows a text, and a number that is not of the promised type, beside the frame."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.observation_space = gym.spaces.Dict(
            {
                **self.observation_space.spaces,
                "word": gym.spaces.Text(5),
                "number": gym.spaces.Box(0, 1, (), np.float32),
            }
        )

    def reset(self, **kwargs):
        obs, info = super().reset(**kwargs)
        return {**obs, "word": "cow", "number": 0.5}, info

    def step(self, action):
        obs, *others = super().step(action)
        return {**obs, "word": "cow", "number": 0.5}, *others


class SurvivingEnv(CountingEnv):
    """Survives its own errors, as `MineStudioEnv` does: they cut every so many episodes short."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self._every = every

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        obs, reward, terminated, truncated, info = super().step(action)
        if self._t == 3 and self._episode % self._every == 0:
            return obs, 0.0, False, True, {ENGINE_ERROR: "KeyError: 'wood'"}
        return obs, reward, terminated, truncated, info
