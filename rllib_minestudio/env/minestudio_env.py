"""MineStudioEnv: the gymnasium environment."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from rllib_minestudio.env.actions import ENV_KEYS
from rllib_minestudio.env.backends.protocol import NO_SNAPSHOTS, Backend
from rllib_minestudio.env.callbacks.base import METHOD, Info, Obs, declared_spaces, declaring
from rllib_minestudio.env.callbacks.builder import (
    build_callbacks,
    declaring_callbacks,
    is_built_in,
)
from rllib_minestudio.env.env_options import MINECRAFT, EnvOptions
from rllib_minestudio.env.simulator import MinecraftSim
from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.errors import (
    USER_ERRORS,
    EngineError,
    InvalidOptionsError,
    SnapshotError,
    describe_with_place,
)
from rllib_minestudio.foundation.episode_seeds import EPISODE_SEED, RESET_OPTIONS
from rllib_minestudio.foundation.names import ENGINE_ERROR, NUM_BUTTONS, POV, RESET_ERROR
from rllib_minestudio.foundation.observations import IMAGE, SEPARATOR, misfit, parts_of
from rllib_minestudio.foundation.processes import FailureBudget

SNAPSHOT = "snapshot"
"""Option of `reset`: a saved game in which the episode begins."""
_NOT_PASSED_ON = frozenset({POV, IMAGE, "voxels", "mobs"})
"""Info keys that only callbacks see, because they are large."""

_logger = logging.getLogger(__name__)


class MineStudioEnv(gym.Env[Obs, Any]):
    """Minecraft as MineStudio presents it: frames are observed, VPT's tokens or keys are actions.

    Observations hold `image`, uint8 (H, W, 3), and whatever callbacks declare to add (see
    `MinecraftCallback.observation_spaces`). What they add without declaring it stays in `sim.obs`,
    for other callbacks. Agent actions are `{"buttons": 0..8640, "camera": 0..120}`; each may be an
    int or an array of one element. Rewards, tasks and time limits come from callbacks. `info` holds
    the game's statistics and the player's state as plain Python objects.

    An episode terminates when the player dies and is truncated by a time limit. If the engine or a
    callback raises, the episode is truncated with the last observation and `info["engine_error"]`,
    and the next `reset` builds a new engine. If one raises in `reset`, a new engine is built there,
    and the episode's first info has `reset_error`.

    `reset(seed=s)` starts a new world and, for the same s, always the same episode, whatever
    happened before. `reset(options={"episode_seed": s})` also starts the episode of s, but stays in
    the current world if a callback such as `FastReset` keeps it. `reset()` continues the
    environment's own sequence of episodes, which derives from the option `seed`, the worker index
    and the vector index.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["rgb_array"],
        "render_fps": TICKS_PER_SECOND,
        RESET_OPTIONS: (EPISODE_SEED, SNAPSHOT),
    }

    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Check the options and build the engine.

        Args:
            config: Options as a mapping, such as RLlib's EnvContext, whose `worker_index` and
                `vector_index` attributes count as options.
            **options: The fields of `EnvOptions`; they override `config`.

        Raises:
            InvalidOptionsError: If any option is wrong; lists all problems.
            EngineError: If the engine is not available.
        """
        given = {**(config or {}), **options}
        if hasattr(config, "worker_index"):
            given.setdefault("worker_index", getattr(config, "worker_index", None) or 0)
            given.setdefault("vector_index", getattr(config, "vector_index", None) or 0)
            # RLlib hands one config to several environments, which must not share callbacks.
            given["callbacks"] = copy.deepcopy(given.get("callbacks", ()))
        self.options = EnvOptions.from_mapping(given)
        self.render_mode = self.options.render_mode
        self.spec = EnvSpec(
            id="MineStudio-v0", entry_point=type(self), kwargs=given, disable_env_checker=True
        )
        callbacks = build_callbacks(self.options.callbacks)
        self.observation_space: spaces.Dict = observation_space(self.options.obs_size, callbacks)
        self._parts = parts_of(self.observation_space)
        self.action_space = _action_space(self.options)
        self.sim = self._build(callbacks)
        self._last_obs: Obs | None = None
        self._last_info: Info = {}
        self._needs_rebuild = False
        self._closed = False
        self._failures = engine_failures(pauses=self.options.engine == MINECRAFT)

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Check options without building an engine.

        Raises:
            InvalidOptionsError: If any is wrong; lists all problems.
        """
        EnvOptions.from_mapping(options)

    @staticmethod
    def space_of(options: Mapping[str, Any]) -> spaces.Dict:
        """Return the observation space of an environment with these options, without an engine.

        Only callbacks that are built in or declare observations are built.

        Args:
            options: The fields of `EnvOptions`.

        Raises:
            InvalidOptionsError: If any option is wrong; lists all problems.
        """
        checked = EnvOptions.from_mapping(options)
        return observation_space(checked.obs_size, declaring_callbacks(checked.callbacks))

    @classmethod
    def spaces_of(cls, options: Mapping[str, Any]) -> dict[str, spaces.Dict]:
        """Return the `observation_space` and `action_space` of an environment with these options.

        Args:
            options: The fields of `EnvOptions`.

        Raises:
            InvalidOptionsError: If any option is wrong; lists all problems.
        """
        return {
            "observation_space": cls.space_of(options),
            "action_space": _action_space(EnvOptions.from_mapping(options)),
        }

    @property
    def backend(self) -> Backend:
        """The game, as callbacks see it."""
        return self.sim.env

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, Info]:
        """Start an episode.

        Args:
            seed: Starts a new world, and the episode of this seed. None continues the environment's
                own sequence, unless `options` says otherwise.
            options: `episode_seed` works like `seed`, but without a new world if a callback vetoes
                it. `snapshot`, the bytes that `snapshot` returned in this or another process, has
                the episode begin in that game. Callbacks that prepare games, such as by giving
                items, leave it as it is; what was done in it before is not rewarded.

        Raises:
            InvalidOptionsError: If `snapshot` is not bytes, or the engine has no snapshots.
            SnapshotError: If the snapshot is damaged, or of another version; the episode that was
                played can go on.
            EngineError: If the engine still fails after several rebuilds in a row.
            gymnasium.error.ClosedEnvironmentError: If the environment is closed.
        """
        self._require_open()
        wanted = (options or {}).get(EPISODE_SEED) if seed is None else seed
        snapshot = (options or {}).get(SNAPSHOT)
        if snapshot is not None:
            self._check_snapshot(snapshot)
        if wanted is None and self._np_random is None:
            entropy = (self.options.seed, self.options.worker_index, self.options.vector_index)
            self.np_random = np.random.default_rng(np.random.SeedSequence(entropy))
        failed: Info = {}
        while True:
            super().reset(seed=wanted)  # in every attempt: a failed one may have drawn numbers
            try:
                if self._needs_rebuild:
                    self._rebuild()
                self.sim.np_random = self.np_random
                obs, info = self.sim.reset(hard=seed is not None, snapshot=snapshot)
                return self._pass_on(obs, {**info, **failed})
            except SnapshotError:
                raise
            except Exception as error:
                self._note_failure(error)
                failed = {RESET_ERROR: describe_with_place(error)}

    def snapshot(self) -> bytes:
        """Return the whole game as bytes, for `reset(options={"snapshot": ...})`.

        Source of the format: `env.voxel.game.snapshot`. Callbacks and their memory are not in it.

        Raises:
            InvalidOptionsError: If the engine has no snapshots.
            gymnasium.error.ResetNeeded: If there is no episode, or the engine has failed.
            gymnasium.error.ClosedEnvironmentError: If the environment is closed.
        """
        self._require_open()
        self._require_snapshots()
        if self._last_obs is None or self._needs_rebuild:
            raise gym.error.ResetNeeded("There is no game to save: call reset() before snapshot().")
        return self.sim.env.snapshot()

    def step(self, action: Any) -> tuple[Obs, float, bool, bool, Info]:
        """Play one game tick, 1/20 s.

        Raises:
            InvalidActionError: If the action is not in the action space.
            gymnasium.error.ResetNeeded: If there is no episode, or the engine has failed.
            gymnasium.error.ClosedEnvironmentError: If the environment is closed.
        """
        self._require_open()
        if self._last_obs is None:
            raise gym.error.ResetNeeded("No episode has begun: call reset() before step().")
        env_action = self.sim.to_env_action(action)
        if self._needs_rebuild:
            raise gym.error.ResetNeeded("The engine has failed; call reset() before step().")
        try:
            obs, reward, terminated, truncated, info = self.sim.step(env_action)
            obs, info = self._pass_on(obs, info)
        except Exception as error:
            self._note_failure(error)
            info = {**self._last_info, ENGINE_ERROR: describe_with_place(error)}
            return copy.deepcopy(self._last_obs), 0.0, False, True, info
        self._failures.note_success(is_proof=terminated or truncated)
        return obs, reward, terminated, truncated, info

    def render(self) -> np.ndarray | None:
        """Return the current view at `render_size`, uint8 (height, width, 3).

        None if `render_mode` is None; black if the engine has failed.
        """
        if self.render_mode is None:
            return None
        if self._needs_rebuild:
            width, height = self.options.render_size
            return np.zeros((height, width, 3), np.uint8)
        return self.sim.render()

    def close(self) -> None:
        """End the game; may be called twice."""
        if not self._closed:
            self._closed = True
            self.sim.close()

    def _require_open(self) -> None:
        if self._closed:
            raise gym.error.ClosedEnvironmentError("The environment is closed: build another one.")

    @property
    def has_snapshots(self) -> bool:
        """Whether its engine can save games."""
        return self.options.engine != MINECRAFT

    def _require_snapshots(self) -> None:
        if not self.has_snapshots:
            raise InvalidOptionsError([NO_SNAPSHOTS])

    def _check_snapshot(self, snapshot: Any) -> None:
        """Check a reset's snapshot as far as can be done without its contents."""
        self._require_snapshots()
        if not isinstance(snapshot, bytes):
            rule = "must be the bytes that env.snapshot() returned"
            raise InvalidOptionsError([f"options['{SNAPSHOT}'] {rule}, got {snapshot!r:.80}."])

    def _build(self, callbacks: Sequence[Any]) -> MinecraftSim:
        return MinecraftSim(self.options, callbacks, np.random.default_rng(self.options.seed))

    def _rebuild(self) -> None:
        time.sleep(self._failures.delay_s)
        try:
            self.sim.close()
        except Exception:
            _logger.exception("Closing the failed engine failed too; going on without it.")
        self.sim = self._build(build_callbacks(self.options.callbacks))
        self._needs_rebuild = False

    def _note_failure(self, error: Exception) -> None:
        """Log a failure, and have the next reset rebuild the engine.

        Raises:
            EngineError: If there were too many failures in a row.
            InvalidActionError, InvalidOptionsError: `error` itself if it is one of these, which a
                rebuild would not cure.
        """
        self._needs_rebuild = True
        if isinstance(error, USER_ERRORS):
            raise error
        _logger.error("The engine or a callback failed.", exc_info=error)
        self._failures.note_failure(type(error).__name__, f"{describe_with_place(error)}.")

    def _pass_on(self, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Remember and return the results without undeclared observations and large info entries.

        Raises:
            EngineError: If the observation lacks a declared key, or has another shape or dtype.
        """
        if obs.keys() != self.observation_space.spaces.keys():
            obs, undeclared = declared_part(self.observation_space, obs, info)
            for name in undeclared:
                _note_left_out(name)
        if (problem := misfit(self._parts, obs)) is not None:
            name, declared, found = problem
            raise EngineError(how_to_fit(self.sim.callbacks, name, declared, found))
        self._last_obs = obs
        self._last_info = {
            key: value
            for key, value in info.items()
            if key not in _NOT_PASSED_ON and not isinstance(value, np.ndarray)
        }
        return obs, self._last_info


def make_env(config: Mapping[str, Any] | None = None) -> MineStudioEnv:
    """Build an environment from a config, for code that wants a function (`register_env`)."""
    return MineStudioEnv(config)


@cache  # once per process, not once per environment
def _note_left_out(name: str) -> None:
    """Warn that an undeclared part of the observation is not passed on."""
    _logger.warning("%s", how_to_declare(name))


def _action_space(options: EnvOptions) -> spaces.Dict:
    """Return MineStudio's space of agent actions or of environment actions."""
    if options.action_type == "agent":
        n_camera_tokens = options.camera_config.n_camera_bins**2
        return spaces.Dict(
            {
                "buttons": spaces.MultiDiscrete([NUM_BUTTONS]),
                "camera": spaces.MultiDiscrete([n_camera_tokens]),
            }
        )
    keys: dict[str, spaces.Space[Any]] = {key: spaces.Discrete(2) for key in ENV_KEYS}
    return spaces.Dict({**keys, "camera": spaces.Box(-180.0, 180.0, (2,), np.float32)})


# ---------------------------------------------------- the space of a `MineStudioEnv`'s observations
# The frame, and what callbacks declare.


def observation_space(obs_size: tuple[int, int], callbacks: Iterable[Any]) -> spaces.Dict:
    """Return the space of observations.

    Args:
        obs_size: (width, height) of frames.
        callbacks: Callback objects; those without a declaration add nothing.

    Raises:
        InvalidOptionsError: If a declaration is invalid; lists all problems.
    """
    width, height = obs_size
    image = spaces.Box(0, 255, (height, width, 3), np.uint8)
    return spaces.Dict({IMAGE: image, **declared_spaces(callbacks)})


def blank_observation(space: spaces.Space[Any]) -> Any:
    """Return the element of a space nearest to zero: black frames, nothing done, no text."""
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
    """Return the declared part of an observation, and the keys found neither there nor in `info`.

    Args:
        space: What policies see.
        obs: The observation as returned by the callbacks.
        info: The info of the same step.

    Raises:
        EngineError: If a declared key is missing.
    """
    missing = [key for key in space.spaces if key not in obs]
    if missing:
        raise EngineError(
            f"The observation has no {missing[0]!r}, which {METHOD}() of a callback declares: the "
            f"callback must add it in after_reset and in after_step. It has {', '.join(obs)}."
        )
    undeclared = [key for key in obs if key not in space.spaces and key not in info]
    return {key: obs[key] for key in space.spaces}, undeclared


def how_to_fit(callbacks: Iterable[Any], name: str, declared: str, found: str) -> str:
    """Return the advice for an observation of another shape or dtype than was declared.

    Args:
        callbacks: The environment's callbacks.
        name: Name of the part of the observation.
        declared: Its dtype and shape as declared.
        found: Those of the observation.
    """
    key = name.split(SEPARATOR)[0]
    if key == IMAGE:
        others = [type(callback).__name__ for callback in callbacks if not is_built_in(callback)]
        whose = f"one of {', '.join(others)}" if others else "a callback"
        return (
            f"The observation's frame is {found} instead of {declared}: {whose} must have changed "
            "it in after_reset or after_step. Set obs_size to the size that you want."
        )
    return (
        f"The observation's {name!r} is {found}, but {METHOD}() of {declaring(callbacks, key)} "
        f"declares {declared}: correct one of the two."
    )


def how_to_declare(key: str) -> str:
    """Return the advice for a callback that adds `key` without declaring it."""
    return (
        f"A callback adds {key!r} to the observations but does not declare it, so policies do not "
        f"see it: give the callback a method {METHOD}(self) that returns {{{key!r}: its gymnasium "
        "space}. Other callbacks find it in sim.obs either way."
    )


# ---------------------------- how often an engine may fail in a row before the environment gives up

MAX_REBUILDS = 3
"""Rebuilds in a row after which another failure is raised as an error."""
HEALTHY_STEPS = 200
"""Steps without a failure after which earlier ones no longer count, as after an episode's end."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 4.0
"""Before the last rebuild. It must fit into the deadline of a reset, whatever happened before."""


def engine_failures(*, pauses: bool) -> FailureBudget:
    """Return the failure budget of one environment.

    Args:
        pauses: Whether to wait before every rebuild but the first: a game that has just failed to
            start, perhaps because the machine is busy or short of memory, does better a little
            later.
    """
    return FailureBudget(
        "The environment",
        EngineError,
        advice=(
            "It was rebuilt after each earlier failure. If a callback is at fault, its traceback "
            "is above; otherwise please report it."
        ),
        max_in_a_row=MAX_REBUILDS,
        healthy_after=HEALTHY_STEPS,
        first_delay_s=FIRST_PAUSE_S if pauses else 0.0,
        max_delay_s=LONGEST_PAUSE_S,
    )
