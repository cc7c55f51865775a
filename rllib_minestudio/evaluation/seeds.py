"""What the randomness of an episode derives from: the evaluation's seed and the episode's index.

Neither the worker that plays it nor what is played beside it has a part in it, so that two
checkpoints meet the same worlds, and the number of workers changes nothing.
"""

from __future__ import annotations

import numpy as np

from rllib_minestudio.evaluation.episode import LARGEST_SEED

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
