"""The episodes that env runners are asked to play, and the seeds of each episode."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rllib_minestudio.evaluation.episode import LARGEST_SEED, EvaluatedEpisode
from rllib_minestudio.recordings.layout import recording_name


@dataclass(frozen=True)
class EpisodeSpec:
    """An episode to be played.

    Attributes:
        index: Which of the evaluation's episodes it is.
        attempt: Number of this attempt, from 1.
    """

    index: int
    attempt: int = 1

    def again(self) -> EpisodeSpec:
        """Return the spec of the next attempt."""
        return replace(self, attempt=self.attempt + 1)


@dataclass(frozen=True)
class PlaySettings:
    """How the episodes of an evaluation are played.

    Attributes:
        seed: Seed from which, with an episode's index, its world and actions derive.
        deterministic: Take the most probable actions instead of sampling.
        max_attempts: Attempts at an episode before the environment's failure is final.
        max_steps: Steps after which an episode is truncated; None leaves that to the task.
        recorder: Options of the recorder (see `RecorderOptions`); None records nothing.
        policy: Description of the policy for recordings.
        env_config: Options of the environments, which are rebuilt if theirs differ; None takes
            those of the env runner's config.
        tells_steps: Whether those who play also yield `StepsPlayed`, about every second, among the
            episodes: one may take minutes.
    """

    seed: int = 0
    deterministic: bool = False
    max_attempts: int = 3
    max_steps: int | None = None
    recorder: Mapping[str, Any] | None = None
    policy: Mapping[str, Any] | None = None
    env_config: Mapping[str, Any] | None = None
    tells_steps: bool = False

    def reset_options(self, spec: EpisodeSpec) -> dict[str, Any]:
        """Return the `options` of the reset that begins an episode, as plain Python data."""
        recording = {
            "name": recording_name(spec.index),
            "options": None if self.recorder is None else dict(self.recorder),
            "index": spec.index,
            "attempt": spec.attempt,
            "policy": dict(self.policy or {}),
        }
        return {
            "evaluation": {"index": spec.index, "max_steps": self.max_steps},
            "recording": recording,
        }

    def world_seed(self, spec: EpisodeSpec) -> int:
        """Return the seed of an episode's reset."""
        return world_seed(self.seed, spec.index)


# --------------------------------------------------------------------- progress within the episodes

SECONDS_BETWEEN_TOLD_STEPS = 1.0


@dataclass(frozen=True)
class StepsPlayed:
    """A message between two episodes: the steps that were played since the last such message."""

    steps: int


Played = EvaluatedEpisode | StepsPlayed


class StepCount:
    """Counts steps, and tells them from time to time, if that is asked for.

    Args:
        settings: How episodes are played.
    """

    def __init__(self, settings: PlaySettings) -> None:
        self._is_wanted = settings.tells_steps
        self._steps, self._told_at = 0, time.monotonic()

    def add(self, steps: int) -> Iterator[StepsPlayed]:
        """Count steps, and yield what has been played if it is time."""
        self._steps += steps
        now = time.monotonic()
        if self._is_wanted and now - self._told_at >= SECONDS_BETWEEN_TOLD_STEPS:
            yield StepsPlayed(self._steps)
            self._steps, self._told_at = 0, now


def only_episodes(
    played: Iterable[Played], on_steps: Callable[[int], None] | None = None
) -> Iterator[EvaluatedEpisode]:
    """Yield the episodes; call `on_steps` with the number of steps in each message."""
    for one in played:
        if not isinstance(one, StepsPlayed):
            yield one
        elif on_steps is not None:
            on_steps(one.steps)


# ------------------------------------------------------------------------------ seeds of an episode
# They derive from the evaluation's seed and the episode's index only, not from the worker or from
# other episodes, so two checkpoints meet the same worlds, whatever the number of workers.

_WORLD, _ACTIONS, _AGENT = 0, 1, 2


def world_seed(seed: int, index: int) -> int:
    """Return the seed of the reset that begins episode `index` of the evaluation with `seed`."""
    (word,) = np.random.SeedSequence((seed, index, _WORLD)).generate_state(1)
    return int(word) & LARGEST_SEED


def action_numbers(seed: int, index: int) -> np.random.Generator:
    """Return the random generator for the actions of episode `index`."""
    return np.random.default_rng((seed, index, _ACTIONS))


def agent_seed(seed: int, index: int) -> int:
    """Return the seed of the scripted agent that plays episode `index`."""
    (word,) = np.random.SeedSequence((seed, index, _AGENT)).generate_state(1)
    return int(word) & LARGEST_SEED
