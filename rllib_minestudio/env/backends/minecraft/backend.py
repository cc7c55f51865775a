"""The real game as a backend, which callbacks know as `sim.env`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from rllib_minestudio.env.backends.minecraft import node_locks
from rllib_minestudio.env.backends.minecraft.commands import modern
from rllib_minestudio.env.backends.minecraft.items import STACK_SIZES
from rllib_minestudio.env.backends.minecraft.process import GameProcess, collect_orphans
from rllib_minestudio.env.backends.minecraft.session import MissionClient
from rllib_minestudio.env.backends.protocol import NO_SNAPSHOTS, KeySpace, RawObs, RawStep
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.errors import EngineError, InvalidOptionsError
from rllib_minestudio.foundation.episode_info import POV

_TURNS_PER_LAUNCH = 20
"""Launches and world loads of other processes to wait for before giving up."""

_logger = logging.getLogger(__name__)


class MinecraftBackend:
    """MineStudio's engine, launched by the first hard reset.

    Any failure of the game raises EngineError and ends all its processes; the next `reset` launches
    it again.
    """

    def __init__(self, options: EnvOptions) -> None:
        self._options = options
        self._minecraft = options.minecraft
        if collected := collect_orphans():
            _logger.warning("Ended %d games whose workers had died.", collected)
        self.action_space = KeySpace()
        self._session = MissionClient(options)
        self._process: GameProcess | None = None
        self._seed = options.seed
        self._episodes = 0
        self._pov = np.zeros(self._session.frame_shape, np.uint8)

    @property
    def process(self) -> GameProcess | None:
        """The running game, if there is one."""
        return self._process

    def begin_episode(self) -> bool:
        """Count an episode; after `restart_interval` of them, end the game and ask for a reset."""
        interval = self._minecraft.restart_interval
        is_due = bool(interval) and self._process is not None and self._episodes >= interval
        if is_due:
            self._end_process()
        self._episodes += 1
        return is_due

    def reset(self) -> RawObs:
        """Load a new world, in a new process if none is running."""
        options = self._minecraft
        patience = _TURNS_PER_LAUNCH * (options.launch_timeout_s + options.reset_timeout_s)
        with node_locks.turn_to_start(options.starts_at_once, patience):
            if self._process is None or not self._process.is_alive:
                self._end_process()
                self._process = GameProcess(options, self._options.worker_index)
                self._episodes = 1
            try:
                raw_obs, _ = self._session.begin_mission(
                    self._process.port, self._seed, options.reset_timeout_s
                )
            except EngineError as error:
                raise self._failure(error) from error
        self._pov = raw_obs[POV]
        return raw_obs

    def snapshot(self) -> bytes:
        """Refuse, as Minecraft cannot save a game between two ticks."""
        raise InvalidOptionsError([NO_SNAPSHOTS])

    def restore(self, snapshot: bytes) -> None:
        """Refuse, as `snapshot` does."""
        raise InvalidOptionsError([NO_SNAPSHOTS])

    def step(self, action: Mapping[str, Any]) -> RawStep:
        """Play one tick; `drop` is not sent, as in MineStudio."""
        if command := action.get("chat"):
            action = {**action, "chat": modern(command)}
        try:
            raw_obs, reward, done, info = self._session.play(action, self._minecraft.step_timeout_s)
        except EngineError as error:
            raise self._failure(error) from error
        self._pov = raw_obs[POV]
        return raw_obs, reward, done or info.get("health", 1.0) <= 0.0, info

    def execute_cmd(self, command: str) -> RawStep:
        """Send a chat command; takes one tick without any key pressed."""
        return self.step({**self.action_space.no_op(), "chat": command})

    def noop_action(self) -> dict[str, Any]:
        """Return an action that does nothing."""
        return self.action_space.no_op()

    def seed(self, seed: int) -> None:
        """Set the seed of future worlds."""
        self._seed = seed

    def image(self, raw_obs: Mapping[str, Any]) -> np.ndarray:
        """Return a frame at the size of observations, scaled as MineStudio does."""
        return _scaled(raw_obs[POV], self._options.obs_size)

    def render(self, size: tuple[int, int]) -> np.ndarray:
        """Return the last frame at another size."""
        return _scaled(self._pov, size)

    def mobs_near(self, radius: float) -> list[dict[str, Any]]:
        """Return the mobs within `radius` blocks; takes one tick, in which the game lists them."""
        reach = int(radius) + 1
        box = [-reach, reach] * 3
        obs, _, _, info = self.step({**self.action_space.no_op(), "mobs": box})
        x, y, z = (obs["player_pos"][axis] for axis in "xyz")
        found = []
        for mob in info.get("mobs", []):
            offset = (mob["x"] - x, mob["y"] - y, mob["z"] - z)
            distance = float(np.linalg.norm(offset))
            if distance <= radius:
                found.append({"yaw": 0.0, "health": 0.0, **mob, "distance": distance})
        return sorted(found, key=lambda mob: mob["distance"])

    def item_names(self) -> list[str]:
        """Return the names of Minecraft's items."""
        return sorted(STACK_SIZES)

    def close(self) -> None:
        """End the game."""
        self._end_process()

    def _failure(self, error: EngineError) -> EngineError:
        """End the game, and return the error with the end of the game's output added."""
        words = self._process.last_words() if self._process is not None else ""
        self._end_process()
        return EngineError(f"{error} {words}".strip())

    def _end_process(self) -> None:
        self._session.disconnect()
        if self._process is not None:
            self._process.kill()
            self._process = None


def _scaled(frame: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return a copy of a frame, scaled to (width, height): callbacks may draw on it."""
    height, width = frame.shape[:2]
    if (width, height) == size:
        return np.array(frame, order="C")
    return cv2.resize(frame, dsize=size, interpolation=cv2.INTER_LINEAR)
