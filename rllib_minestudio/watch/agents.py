"""Who plays in a view: an agent of a task, or the policy of a checkpoint or of a training run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

import gymnasium as gym

from rllib_minestudio.algorithms.environments import is_minestudio, suited_env_config
from rllib_minestudio.checkpoints.lookup import SavedCheckpoint, newest_checkpoint
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidOptionsError,
    MineStudioError,
)
from rllib_minestudio.evaluation.env_runner import ReferencePolicy, load_prior
from rllib_minestudio.evaluation.evaluation_options import PRIOR
from rllib_minestudio.evaluation.inference import ActionChooser, Policy
from rllib_minestudio.evaluation.policy_loading import LoadedPolicy, load_module
from rllib_minestudio.experiments.environment import build_env
from rllib_minestudio.experiments.evaluate_checkpoint import PlayRequest, find_player, make_player
from rllib_minestudio.experiments.played_policy import TaskPolicy, load_policy_of
from rllib_minestudio.experiments.progress import ENTROPY, KL, LOSS, WARNINGS_FILE
from rllib_minestudio.experiments.result_metrics import (
    ENV_STEPS,
    ITERATION,
    RETURN,
    TOTAL_SECONDS,
    metric,
)
from rllib_minestudio.experiments.summary import RESULTS_FILE, add_results
from rllib_minestudio.watch.request import WatchRequest

AGENTS_OWN = ("action_type", "camera_config", "obs_size", "sampling")
"""Options of an environment that belong to who plays in it, and not to the world."""

MOST_POINTS = 300
"""Points of a learning curve that are sent."""

MOST_WARNINGS = 20


@dataclass(frozen=True)
class TaskWorld:
    """An environment, by its options.

    Attributes:
        env: As `env` in an AlgorithmConfig.
        options: Its `env_config`.
        name: The task's, for recordings.
    """

    env: Any
    options: Mapping[str, Any]
    name: str

    def suited_to(self, own: TaskWorld) -> TaskWorld:
        """Return this world as an agent that was made for another one can play in it.

        Raises:
            InvalidOptionsError: The environments are of different kinds.
        """
        if (is_minestudio(self.env), is_minestudio(own.env)) != (True, True):
            if self.env != own.env:
                raise InvalidOptionsError(
                    f"{own.name} and {self.name} cannot be compared: their environments have "
                    "different observations and actions."
                )
            return own
        shared = {name: value for name, value in self.options.items() if name not in AGENTS_OWN}
        kept = {name: value for name, value in own.options.items() if name in AGENTS_OWN}
        return replace(self, options={**shared, **kept})

    def build(self, **options: Any) -> gym.Env:
        """Build the environment.

        Args:
            options: Options to change.
        """
        return build_env(self.env, {**self.options, **options}, seed=0)


class WatchedPlayer(Protocol):
    """Somebody who plays.

    Attributes:
        world: The world that it was made for.
    """

    world: TaskWorld

    def begin(self, env: gym.Env, seed: int) -> tuple[str, ActionChooser]:
        """Return who plays an episode, and its name."""

    def news(self) -> dict[str, Any]:
        """Return what has become known of its training since the last call; empty if nothing."""


class TaskPlayer:
    """A scripted or foreign agent, or a policy that plays a task whatever it was trained on.

    Args:
        world: The task's.
        request: The agent, as for `rllib play`.

    Raises:
        MineStudioError: There is no such agent.
    """

    def __init__(self, world: TaskWorld, request: PlayRequest) -> None:
        self._request = request
        self._found = find_player(request)
        if isinstance(self._found, TaskPolicy):
            defaults = self._found.env_defaults
            options = suited_env_config(world.env, world.options, defaults)
            own = {name: value for name, value in defaults.items() if name in AGENTS_OWN}
            world = replace(world, options={**options, **own})
        self.world = world
        self._loaded: tuple[gym.Env, TaskPolicy] | None = None

    def begin(self, env: gym.Env, seed: int) -> tuple[str, ActionChooser]:
        """Return the agent, with a new seed."""
        found = self._found
        if isinstance(found, TaskPolicy):
            if self._loaded is None or self._loaded[0] is not env:
                module = found.load(env)
                self._loaded = env, replace(found, load=lambda _: module)
            found = self._loaded[1]
        return self._request.agent, make_player(found, env, replace(self._request, seed=seed))

    def news(self) -> dict[str, Any]:
        """Return nothing: it is not being trained."""
        return {}


class CheckpointPlayer:
    """The policy of a checkpoint, or the newest one of a trial that goes on.

    Args:
        folder: A checkpoint, or the folder of a trial.
        request: How it acts, and what it is compared with.
        follows: Whether `folder` is a trial's, whose newest checkpoint plays each episode.

    Raises:
        MineStudioError: There is no such policy, or it cannot be loaded.
    """

    def __init__(self, folder: Path, request: WatchRequest, *, follows: bool) -> None:
        self._folder, self._request, self._follows = folder, request, follows
        self._path = self._newest().folder if follows else folder
        self._policy = self._loaded()
        config = self._policy.config
        self.world = TaskWorld(config.env, config.env_config or {}, folder.name)
        self._made: tuple[gym.Env, Any, ReferencePolicy | None] | None = None
        self._course = TrialCourse(folder) if follows else None

    def _newest(self) -> SavedCheckpoint:
        found = newest_checkpoint(self._folder)
        if found is None:
            raise CheckpointMismatchError(
                f"{str(self._folder)!r} has no complete checkpoint yet: wait until training has "
                "saved one (save_interval)."
            )
        return found

    def _loaded(self) -> LoadedPolicy:
        return load_policy_of(str(self._path), self._request.overrides, trust=self._request.trust)

    def begin(self, env: gym.Env, seed: int) -> tuple[str, ActionChooser]:
        """Return the policy, the newest one if that has changed."""
        if self._follows and (newest := self._newest().folder) != self._path:
            # Training may delete it while it is read: then the one that is loaded plays on.
            before = self._path
            try:
                self._path = newest
                self._policy, self._made = self._loaded(), None
            except (MineStudioError, OSError):
                self._path = before
        if self._made is None or self._made[0] is not env:
            self._made = (env, *self._modules(env))
        _, module, reference = self._made
        greedy = self._request.deterministic
        policy = Policy(module, deterministic=greedy, seed=seed, reference=reference)
        return self._path.name, policy

    def _modules(self, env: gym.Env) -> tuple[Any, ReferencePolicy | None]:
        policy, trust = self._policy, self._request.trust
        assert policy.checkpoint is not None
        module = load_module(policy.checkpoint, env, trust=trust)
        kl_to = self._request.kl_to
        if kl_to is None and policy.config.prior is not None:
            kl_to = PRIOR
        prior = load_prior(policy.config, policy.checkpoint, kl_to)
        return module, None if prior is None else ReferencePolicy(module, prior, num_envs=1)

    def news(self) -> dict[str, Any]:
        """Return the course of the trial, if it has changed."""
        return {} if self._course is None else self._course.news()


class TrialCourse:
    """The course of a trial that may go on, read from its files as they grow."""

    def __init__(self, folder: Path) -> None:
        self._results = _Tail(folder / RESULTS_FILE)
        self._warnings = _Tail(folder / WARNINGS_FILE)
        self._by_iteration: dict[int, dict[str, Any]] = {}
        self._warned: list[str] = []
        self._is_told = False

    def news(self) -> dict[str, Any]:
        """Return learning curve, throughput and warnings, if anything is new."""
        results, warned = self._results.lines(), self._warnings.lines()
        if self._is_told and not results and not warned:
            return {}
        self._is_told = True
        add_results(self._by_iteration, results)
        self._warned = [*self._warned, *(line.decode(errors="replace") for line in warned)]
        self._warned = self._warned[-MOST_WARNINGS:]
        return {"training": {**self._numbers(), "warnings": self._warned}}

    def _numbers(self) -> dict[str, Any]:
        history = [self._by_iteration[iteration] for iteration in sorted(self._by_iteration)]
        points = [(metric(one, ENV_STEPS), metric(one, RETURN)) for one in history]
        known = [point for point in points if None not in point]
        every = -(-len(known) // MOST_POINTS) or 1
        last = history[-1] if history else {}
        return {
            "curve": known[::-every][::-1],
            "steps_per_second": _pace(history[-2:]),
            **{
                name: metric(last, path)
                for name, path in {
                    "iteration": ITERATION,
                    "steps": ENV_STEPS,
                    "seconds": TOTAL_SECONDS,
                    "return": RETURN,
                    "entropy": ENTROPY,
                    "kl": KL,
                    "loss": LOSS,
                }.items()
            },
        }


def _pace(last: list[dict[str, Any]]) -> float | None:
    """Return the environment steps per second of training time between the last two results."""
    if len(last) < 2:
        return None
    steps, seconds = (
        [metric(one, name) or 0.0 for one in last] for name in (ENV_STEPS, TOTAL_SECONDS)
    )
    return (steps[1] - steps[0]) / max(seconds[1] - seconds[0], 1e-9)


LARGEST_PIECE = 64 * 1024**2
"""Bytes of a growing file that are read at once; the rest follows."""


class _Tail:
    """The whole lines of a file that grows, each read once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def lines(self) -> list[bytes]:
        """Return the lines that were added since the last call."""
        with suppress(OSError):
            if self._file.is_file() and self._file.stat().st_size > self._offset:
                with self._file.open("rb") as file:
                    file.seek(self._offset)
                    text = file.read(LARGEST_PIECE)
                whole = text[: text.rfind(b"\n") + 1]
                self._offset += len(whole)
                return whole.splitlines()
        return []


def saved(checkpoint: SavedCheckpoint) -> str:
    """Describe a checkpoint in a few words: its return and its age."""
    mean = checkpoint.mean_return
    told = "no return yet" if mean is None else f"return {mean:.2f}"
    with suppress(ValueError):
        then = datetime.fromisoformat(checkpoint.record.saved_at)
        then = then if then.tzinfo else then.replace(tzinfo=timezone.utc)
        told += f", {max(0, int((time.time() - then.timestamp()) // 60))} min ago"
    return told
