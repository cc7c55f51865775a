"""Plays whole episodes with a network, many side by side, each from a seed of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from rllib_minestudio.algorithms.env_pool import Episode, InlineEnvs
from rllib_minestudio.models.vpt.network import VPTNetwork
from rllib_minestudio.models.vpt.rollout import RolloutSession


def play(
    network: VPTNetwork,
    make_env: Callable[[], gym.Env],
    seeds: Sequence[int],
    *,
    num_envs: int,
    explore: bool = True,
) -> list[Episode]:
    """Play one episode from each seed, to its end.

    Every environment has its quota of seeds, so that short episodes do not count more often than
    long ones. The actions' randomness derives from the seeds.

    Args:
        network: The policy.
        make_env: Constructs an environment.
        seeds: Of the episodes.
        num_envs: Environments side by side.
        explore: Draw the actions; else take the most probable ones.

    Returns:
        The episodes, in the order of `seeds`.
    """
    num_envs = min(num_envs, len(seeds))
    queues = [list(range(i, len(seeds), num_envs)) for i in range(num_envs)]
    upcoming = [iter(queue) for queue in queues]

    def next_episode(row: int) -> tuple[int | None, dict[str, Any] | None]:
        index = next(upcoming[row], None)
        return (None if index is None else int(seeds[index])), None

    device = network.net.final_ln.weight.device
    generator = torch.Generator(device).manual_seed(sum(seeds))
    session = RolloutSession(network, num_envs)
    pool = InlineEnvs([make_env] * num_envs, gamma=1.0, episode_source=next_episode)
    played: dict[int, Episode] = {}
    try:
        pool.reset()
        while len(played) < len(seeds):
            step = pool.recv()
            for episode in step.episodes:
                if queues[episode.env_index]:
                    played[queues[episode.env_index].pop(0)] = episode
            first = step.terminated | step.truncated | ~step.answered
            busy = np.array([bool(queues[row]) for row in step.rows])
            rows = step.rows[busy]
            if len(rows) == 0:
                continue
            decision = session.act(
                torch.from_numpy(step.obs[busy]).to(device),
                torch.from_numpy(first[busy]).to(device),
                rows=None if len(rows) == num_envs else torch.from_numpy(rows).to(device),
                explore=explore,
                generator=generator,
            )
            tokens = {name: token[:, 0].cpu().numpy() for name, token in decision.actions.items()}
            pool.send(rows, tokens)
    finally:
        pool.close()
    return [played[index] for index in range(len(seeds))]
