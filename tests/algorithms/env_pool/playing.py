"""Playing a pool by itself, without a policy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rllib_minestudio.algorithms.env_pool import EnvPool, PoolStep


def actions(num_envs, seed=0):
    """An endless sequence of actions for each environment, whatever the others do."""
    generators = [np.random.default_rng((seed, i)) for i in range(num_envs)]

    def draw(rows):
        tokens = [generators[row].integers([8641, 121]) for row in rows.tolist()]
        buttons, camera = np.array(tokens).T
        return {"buttons": buttons, "camera": camera}

    return draw


def play(pool: EnvPool, num_recvs: int, min_ready: int = 1, seed: int = 0) -> Iterator[PoolStep]:
    """Play a pool with random actions, `num_recvs` times as many as are ready."""
    draw = actions(pool.num_envs, seed)
    for _ in range(num_recvs):
        step = pool.recv(min_ready)
        yield step
        pool.send(step.rows, draw(step.rows))
