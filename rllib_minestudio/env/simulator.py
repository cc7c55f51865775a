"""MineStudio's simulator loop: a backend, wrapped in callbacks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllib_minestudio.env.actions import ActionMapper, EnvAction, check_env_action
from rllib_minestudio.env.backends.protocol import Backend
from rllib_minestudio.env.backends.voxel import VoxelBackend
from rllib_minestudio.env.callbacks.base import HOOKS, Info, Obs, StepResult, bound_hooks
from rllib_minestudio.env.env_options import MINECRAFT, EnvOptions
from rllib_minestudio.errors import EngineError
from rllib_minestudio.foundation.names import POV
from rllib_minestudio.foundation.observations import IMAGE

_MAX_WORLD_SEED = 2**31


class MinecraftSim:
    """Steps the game and calls the hooks of callbacks, as MineStudio's `MinecraftSim` does.

    It differs where MineStudio's loop hinders learning: resets are reproducible, the caller's
    action is not modified, and every step has its own info.

    Attributes:
        env: The backend, under the name by which callbacks know it.
        callbacks: The callbacks, in the order in which their hooks run.
        np_random: The only source of randomness for callbacks; reseeded by seeded resets.
        already_reset: Whether the game is running, so that a callback may veto a hard reset.
        callback_messages: Texts that callbacks want shown, such as help.
        obs: The latest observation: `image`, uint8 (H, W, 3), and what callbacks have added.
        info: The latest info, including the frame (`pov`).
    """

    def __init__(
        self,
        options: EnvOptions,
        callbacks: Sequence[Any],
        np_random: np.random.Generator,
    ) -> None:
        """Build the backend.

        Raises:
            EngineError: If the engine is not available.
        """
        self.options = options
        self.callbacks = tuple(callbacks)
        self.np_random = np_random
        self.action_type = options.action_type
        self.obs_size = options.obs_size
        self.render_size = options.render_size
        self.worker_index = options.worker_index
        self.vector_index = options.vector_index
        self.num_empty_frames = options.num_empty_frames
        self.seed = options.seed
        self.already_reset = False
        self.is_restored = False
        self.callback_messages: set[str] = set()
        self.mapper = ActionMapper(options.camera_config)
        self.obs: Obs = {}
        self.info: Info = {}
        self._hooks = {name: bound_hooks(self.callbacks, name) for name in HOOKS}
        self.env: Backend = make_backend(options)

    def to_env_action(self, action: Any) -> EnvAction:
        """Check an action of either type and return it as keys and degrees, in a fresh dict.

        Raises:
            InvalidActionError: If it is not in the action space.
        """
        if self.action_type == "agent":
            return self.mapper.to_env(*self.mapper.parse(action))
        return check_env_action(action)

    def step(self, env_action: EnvAction) -> StepResult:
        """Play one tick.

        Args:
            env_action: As returned by `to_env_action`; callbacks may change it.

        Returns:
            Observation, reward, terminated (the player died), truncated, info.

        Raises:
            EngineError: If the reward is not finite: learning from it would ruin a policy.
        """
        for hook in self._hooks["before_step"]:
            env_action = hook(self, env_action)
        raw_obs, reward, done, raw_info = self.env.step(env_action)
        obs, info = self._begin_info(raw_obs, raw_info)
        terminated, truncated = done, False
        for hook in self._hooks["after_step"]:
            obs, reward, terminated, truncated, info = hook(
                self, obs, reward, terminated, truncated, info
            )
            self.obs, self.info = obs, info
        if not math.isfinite(reward):
            raise EngineError(
                f"The game or a callback gave the reward {reward}: it must be finite."
            )
        if done:
            # A dead player needs a new world: no command of Minecraft revives it.
            self.already_reset = False
        return obs, float(reward), bool(terminated), bool(truncated), info

    def reset(self, *, hard: bool = False, snapshot: bytes | None = None) -> tuple[Obs, Info]:
        """Start an episode.

        Args:
            hard: Whether to reset the game itself, whatever the callbacks say.
            snapshot: A saved game to begin in, instead of a new one; callbacks that prepare games
                leave it as it is.

        Raises:
            InvalidOptionsError: If the engine has no snapshots.
            SnapshotError: If the snapshot is damaged, or of another version; nothing has happened
                then.
        """
        self.is_restored = False
        if snapshot is not None:
            self.begin_in(snapshot)
        if self.env.begin_episode() or hard:
            self.already_reset = False
        # Drawn in any case, so that a veto does not shift the later random numbers, and before
        # the callbacks run, which may set another seed.
        self.env.seed(int(self.np_random.integers(_MAX_WORLD_SEED)))
        reset_flag = True
        for hook in self._hooks["before_reset"]:
            reset_flag = hook(self, reset_flag)
        if not self.is_restored and (reset_flag or not self.already_reset):
            self.env.reset()
        self.already_reset = True
        idle = self.env.action_space.no_op()
        # At least one tick, so that there is an observation even without empty frames.
        for _ in range(max(1, self.num_empty_frames)):
            raw_obs, _, _, raw_info = self.env.step(idle)
        obs, info = self._begin_info(raw_obs, raw_info)
        for hook in self._hooks["after_reset"]:
            obs, info = hook(self, obs, info)
            self.obs, self.info = obs, info
        return obs, info

    def begin_in(self, snapshot: bytes) -> None:
        """Have the episode begin in a saved game; see `Sim.begin_in`."""
        self.env.restore(snapshot)
        self.is_restored = True

    def render(self) -> np.ndarray:
        """Return the current view at `render_size`: uint8 (height, width, 3)."""
        image = self.env.render(self.render_size)
        for name in ("before_render", "after_render"):
            for hook in self._hooks[name]:
                image = hook(self, image)
        return image

    def close(self) -> None:
        """End the game."""
        for hook in self._hooks["before_close"]:
            hook(self)
        self.env.close()
        for hook in self._hooks["after_close"]:
            hook(self)

    def noop_action(self) -> dict[str, Any]:
        """Return an action of type `action_type` that does nothing."""
        if self.action_type == "agent":
            camera = self.mapper.null_camera_token
            return {"buttons": np.array([0]), "camera": np.array([camera])}
        return self.env.action_space.no_op()

    def agent_action_to_env_action(self, action: Any) -> EnvAction:
        """Decode agent tokens to keys and degrees."""
        return self.mapper.to_env(*self.mapper.parse(action))

    def env_action_to_agent_action(self, action: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Encode keys and degrees as the nearest agent tokens."""
        buttons, camera = self.mapper.from_env(action)
        return {"buttons": np.array([buttons]), "camera": np.array([camera])}

    def _begin_info(self, raw_obs: Mapping[str, Any], raw_info: Info) -> tuple[Obs, Info]:
        """Forget the previous step's results and wrap this one's."""
        self.obs, self.info = {}, {}
        return self._wrap_obs_info(raw_obs, raw_info)

    def _wrap_obs_info(self, raw_obs: Mapping[str, Any], raw_info: Info) -> tuple[Obs, Info]:
        """Return the backend's results as an observation and an info; callbacks call it, too.

        What earlier callbacks added to either in the same step or reset is kept.
        """
        self.info = {**self.info, **raw_info, **raw_obs}
        # Some of MineStudio's callbacks pass in what is already wrapped.
        image = self.env.image(raw_obs) if POV in raw_obs else raw_obs[IMAGE]
        self.obs = {**self.obs, IMAGE: image}
        return self.obs, dict(self.info)


# ------------------------------------------------------------ from the option `engine` to a backend


def make_backend(options: EnvOptions) -> Backend:
    """Build the backend that `options.engine` names.

    Raises:
        EngineError: If it is not available; lists what is missing and how to get it.
    """
    if options.engine == MINECRAFT:
        # Imported late and in this order: the backend cannot be imported without the package.
        from rllib_minestudio.env.backends.minecraft import prerequisites

        prerequisites.require(options.minecraft)
        prerequisites.import_minestudio(options.minecraft.root)
        from rllib_minestudio.env.backends.minecraft.backend import MinecraftBackend

        return MinecraftBackend(options)
    return VoxelBackend(options)
