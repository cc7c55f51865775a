"""The actions of an evaluation, and the numbers that recordings show beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rllib_minestudio.algorithms.env_pool import PoolStep
from rllib_minestudio.evaluation.reference_policy import ReferencePolicy
from rllib_minestudio.evaluation.request import PlaySettings
from rllib_minestudio.models.recurrent_rl_module import RecurrentRLModule
from rllib_minestudio.observations import nested


class Acting:
    """Acts in the environments that are ready, and computes for all of them.

    The memories of the others stay as they are. So the actions in an environment do not depend on
    which others are ready.

    Args:
        module: The policy's.
        num_envs: Environments side by side.
        settings: How episodes are played.
        device: The module's.
        reference: A policy whose divergence from ours recordings show, or None.
    """

    def __init__(
        self,
        module: RecurrentRLModule,
        *,
        num_envs: int,
        settings: PlaySettings,
        device: torch.device,
        reference: ReferencePolicy | None,
    ) -> None:
        """Start with empty memories."""
        self._session = module.make_rollout_session(num_envs)
        self._settings = settings
        self._device = device
        self._reference = reference
        self._obs = {name: part.zeros(num_envs) for name, part in module.observation_parts.items()}
        self._first = np.ones(num_envs, np.bool_)

    def see(self, step: PoolStep) -> None:
        """Take in what some environments show."""
        for name, part in self._obs.items():
            part[step.rows] = step.obs[name]
        self._first[step.rows] = begins(step)

    def act(self, ready: Sequence[int], uniform: NDArray[np.float64]) -> dict[str, NDArray]:
        """Act in environments.

        Args:
            ready: Which ones, k of them.
            uniform: (num_envs, heads) random numbers to draw the actions with.

        Returns:
            (k,) each: the tokens, by head; what else their recordings are to show.
        """
        obs = nested({name: self._on_device(part) for name, part in self._obs.items()})
        first = self._on_device(self._first)
        moving = self._moving(ready)
        decision = self._session.act(
            obs,
            first,
            moving_n=moving,
            explore=not self._settings.deterministic,
            uniform_bh=self._on_device(uniform),
        )
        action = {name: t[ready].cpu().numpy() for name, t in decision.actions.items()}
        if self._settings.recorder is not None:
            action["value"] = decision.value_b[ready].cpu().numpy()
        if self._reference is not None:
            kl_b = self._reference.divergence(obs, first, decision.distribution, moving)
            action["kl"] = kl_b[ready].cpu().numpy()
        self._first[ready] = False
        return action

    def _moving(self, ready: Sequence[int]) -> Tensor | None:
        """(num_envs,) whose memories move on; None for all, which is faster."""
        if len(ready) == len(self._first):
            return None
        moving = np.zeros_like(self._first)
        moving[ready] = True
        return self._on_device(moving)

    def _on_device(self, array: NDArray) -> Tensor:
        return torch.from_numpy(array).to(self._device)


def begins(step: PoolStep) -> NDArray[np.bool_]:
    """(k,) whether what an environment shows now is the first of an episode."""
    return step.terminated | step.truncated | ~step.answered
