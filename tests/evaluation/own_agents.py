"""Agents as their authors would write them: none of them knows this package."""

from __future__ import annotations

import random
import time

import numpy as np

NOTHING = {"buttons": np.array([0]), "camera": np.array([60])}


class MineStudio1:
    """Tells by its memory how often it was asked."""

    def __init__(self):
        self.asked = []

    def get_action(self, obs, memory, input_shape="*"):
        assert input_shape == "*"
        memory = 0 if memory is None else memory + 1
        self.asked.append((obs["image"].shape, memory))
        return {"buttons": np.array([[memory]]), "camera": np.array([[60]])}, memory


class MineStudio2:
    def initial_state(self):
        return 100

    def act(self, observation, state=None, *, deterministic=False):
        return {"attack": int(deterministic), "camera": (0.0, float(state - 100))}, state + 1


class StableBaselines3:
    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        state = (0 if state is None or episode_start[0] else state[0] + 1,)
        return np.array([state[0] + 10 * deterministic, 60]), state


class Plain:
    def reset(self):
        self.steps = 0

    def act(self, obs):
        self.steps += 1
        return {"buttons": self.steps, "camera": 60}


class Batched:
    takes_batches = True

    def act(self, observations, begins):
        return {"buttons": begins.astype(int), "camera": np.full(len(begins), 60)}


class Drawing:
    """Draws from Python's and NumPy's own generators."""

    def act(self, obs):
        return {"buttons": random.randrange(8641), "camera": int(np.random.randint(121))}


class Raises:
    def act(self, obs):
        raise ValueError("no idea")


class Sleeps:
    def act(self, obs):
        time.sleep(60)


class Stuck:
    """Cannot be interrupted: no bytecode runs, and nobody else gets the interpreter's lock."""

    def act(self, obs):
        return sum(range(10**13))


class Nonsense:
    def act(self, obs):
        return {"buttons": 9999, "camera": 60}


class Seeded:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def act(self, obs):
        return {"buttons": int(self.random.integers(8641)), "camera": 60}


def make_plain():
    return Plain()


def make_raising():
    return Raises()


def make_seeded(seed):
    return Seeded(seed)


def make_from_a_library_that_is_missing():
    import no_such_library_anywhere

    return no_such_library_anywhere.Agent()


def make_nobody():
    return object()


class Exits:
    def act(self, obs):
        raise SystemExit(3)
