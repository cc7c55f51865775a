"""The frozen prior as an env runner sees it: its features of every fragment, in playing order.

The KL term compares policy and prior step by step, and both remember what came before. The prior's
memory at a step must not depend on what the step is trained on with, in which order, by how many
learners or how often. The runner that plays an environment is the one place that sees its frames
whole and in order, so the prior looks at them there: once per fragment, when it is complete, T
frames in one pass. The fragment takes the latents along (E * 4 bytes a frame: 2 MB for 256
frames of VPT 2x), from which a learner's copy of the prior's heads makes its distributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rllib_minestudio.algorithms.options import PPOOptions
from rllib_minestudio.foundation.observations import nested
from rllib_minestudio.models.policy import RecurrentRLModule


class PriorWeights(NamedTuple):
    """The prior's weights on their way from a learner to the env runners.

    Attributes:
        version: Differs between weights; 0 are those that training started with.
        state: As `RecurrentRLModule.get_state` returns it.
    """

    version: int
    state: dict[str, NDArray]


class PriorLatents:
    """Computes the prior's latents, with one memory per environment.

    Args:
        module: Taken over: set to evaluation mode, its parameters frozen.
        num_envs: Environments, each with a memory.
        context_length: Frames per forward pass of an environment.
        batch_size: Environments side by side in a forward pass, at most.
        carry_state: Whether the memory outlives a fragment. MineStudio's does not.

    Attributes:
        version: Of the present weights.
    """

    def __init__(
        self,
        module: RecurrentRLModule,
        *,
        num_envs: int,
        context_length: int,
        batch_size: int,
        carry_state: bool,
    ) -> None:
        self.version = 0
        self._module = module.eval().requires_grad_(False)
        self._context_length = context_length
        self._batch_size = batch_size
        self._carry_state = carry_state
        self._memory = module.initial_state(num_envs)

    def load(self, weights: PriorWeights) -> None:
        """Take over weights. As the policy's does, the memory runs on through the change."""
        self._module.set_state(weights.state)
        self.version = weights.version

    @torch.no_grad()
    def advance(
        self, rows: Sequence[int], obs: Sequence[Mapping[str, NDArray]], first: Sequence[NDArray]
    ) -> list[NDArray[np.float32]]:
        """Look at the next frames of some environments; their memories move on.

        Args:
            rows: Which environments, each once.
            obs: Their observations, each part (T, ...).
            first: Whether an observation begins an episode, (T,) bool each.

        Returns:
            The latents, (T, E) each.
        """
        latents: list[NDArray[np.float32]] = []
        for start in range(0, len(rows), self._batch_size):
            group = slice(start, start + self._batch_size)
            device = self._module.device
            latents += self._advance_together(
                torch.tensor(rows[group], device=device),
                {
                    name: torch.from_numpy(np.stack([o[name] for o in obs[group]])).to(device)
                    for name in obs[0]
                },
                torch.from_numpy(np.stack(first[group])).to(device),
            )
        return latents

    def _advance_together(
        self, rows: Tensor, obs: Mapping[str, Tensor], first_bt: Tensor
    ) -> list[NDArray[np.float32]]:
        if self._carry_state:
            state = {name: memory[rows] for name, memory in self._memory.items()}
        else:
            state = self._module.initial_state(len(rows))
        latents = []
        for start in range(0, first_bt.shape[1], self._context_length):
            chunk = slice(start, start + self._context_length)
            seen = nested({name: part[:, chunk] for name, part in obs.items()})
            latent, state = self._module.latent(seen, first_bt[:, chunk], state)
            latents.append(latent)
        if self._carry_state:
            for name, memory in self._memory.items():
                memory[rows] = state[name]
        return list(torch.cat(latents, dim=1).cpu().numpy())


def build_prior_latents(
    options: PPOOptions, module: RecurrentRLModule, num_envs: int, weights: PriorWeights
) -> PriorLatents:
    """The prior that the options ask for.

    Args:
        options: Of the algorithm.
        module: Of the prior's size; taken over.
        num_envs: Of the env runner.
        weights: As a learner publishes them.
    """
    latents = PriorLatents(
        module,
        num_envs=num_envs,
        context_length=options.context_length,
        batch_size=options.fragments_per_minibatch,
        carry_state=options.carry_prior_state,
    )
    latents.load(weights)
    return latents
