"""What an env runner is asked to play, and what the randomness of each episode derives from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rllib_minestudio.evaluation.episode import LARGEST_SEED
from rllib_minestudio.recordings.layout import recording_name


@dataclass(frozen=True)
class EpisodeSpec:
    """An episode to be played.

    Attributes:
        index: Which of the evaluation's episodes it is.
        attempt: How often it has been begun before, and 1.
    """

    index: int
    attempt: int = 1

    def again(self) -> EpisodeSpec:
        """Return the next attempt."""
        return replace(self, attempt=self.attempt + 1)


@dataclass(frozen=True)
class PlaySettings:
    """How episodes are played; the same for all of an evaluation.

    Attributes:
        seed: What worlds and actions derive from, with the episodes' indices.
        deterministic: Take the most probable actions instead of sampling.
        max_attempts: How often an episode is begun before the environment's failure is final.
        max_steps: Steps after which an episode is truncated; None leaves that to the task.
        recorder: Options of the recorder (see `RecorderOptions`); None records nothing.
        policy: What recordings are to say about the policy.
        env_config: Options of the environments, which are built anew where they had others; None
            takes those of the env runner's config.
    """

    seed: int = 0
    deterministic: bool = False
    max_attempts: int = 3
    max_steps: int | None = None
    recorder: Mapping[str, Any] | None = None
    policy: Mapping[str, Any] | None = None
    env_config: Mapping[str, Any] | None = None

    def reset_options(self, spec: EpisodeSpec) -> dict[str, Any]:
        """Return the `options` of the reset that begins an episode; plain Python throughout."""
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


# --------------------------------------------------- what the randomness of an episode derives from
# The evaluation's seed and the episode's index.
#
# Neither the worker that plays it nor what is played beside it has a part in it, so that two
# checkpoints meet the same worlds, and the number of workers changes nothing.

_WORLD, _ACTIONS, _AGENT = 0, 1, 2


def world_seed(seed: int, index: int) -> int:
    """Return the seed of the reset that begins episode `index` of the evaluation with `seed`."""
    (word,) = np.random.SeedSequence((seed, index, _WORLD)).generate_state(1)
    return int(word) & LARGEST_SEED


def action_numbers(seed: int, index: int) -> np.random.Generator:
    """Return the source of the numbers that actions of episode `index` are drawn with."""
    return np.random.default_rng((seed, index, _ACTIONS))


def agent_seed(seed: int, index: int) -> int:
    """Return the seed of the scripted agent that plays episode `index`."""
    (word,) = np.random.SeedSequence((seed, index, _AGENT)).generate_state(1)
    return int(word) & LARGEST_SEED
