"""The frozen prior in an env runner, which computes its latents of every fragment.

The KL term compares policy and prior step by step, and both have a memory. The prior's memory at a
step must not depend on how the step is trained on: with which others, in which order, by how many
learners or how often. Only the runner that plays an environment sees all of its frames in order, so
the prior runs there, once per complete fragment, with T frames in one pass. The fragment carries
the latents (E * 4 bytes per frame: 2 MB for 256 frames of VPT 2x), from which a learner's copy of
the prior's heads computes the distributions.
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
        version: Unique per set of weights; 0 is the one that training started with.
        state: As `RecurrentRLModule.get_state` returns it.
    """

    version: int
    state: dict[str, NDArray]


class PriorLatents:
    """Computes the prior's latents, with one memory per environment.

    Args:
        module: The prior; it is set to evaluation mode, and its parameters are frozen.
        num_envs: Number of environments, each with its own memory.
        context_length: Frames per environment in a forward pass.
        batch_size: Maximum number of environments in a forward pass.
        carry_state: Whether the memory is carried from fragment to fragment. MineStudio's is not.

    Attributes:
        version: Version of the current weights.
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
        """Load weights. The memory is kept, as the policy's is when its weights change."""
        self._module.set_state(weights.state)
        self.version = weights.version

    @torch.no_grad()
    def advance(
        self, rows: Sequence[int], obs: Sequence[Mapping[str, NDArray]], first: Sequence[NDArray]
    ) -> list[NDArray[np.float32]]:
        """Compute the latents of the next frames of some environments, and advance their memories.

        Args:
            rows: The environments' indices, without repetition.
            obs: Observations of each environment, each part (T, ...).
            first: Whether an observation begins an episode, (T,) bool per environment.

        Returns:
            The latents, (T, E) per environment.
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
    """Build an env runner's prior from a module of its size, which becomes the prior's own."""
    latents = PriorLatents(
        module,
        num_envs=num_envs,
        context_length=options.context_length,
        batch_size=options.fragments_per_minibatch,
        carry_state=options.carry_prior_state,
    )
    latents.load(weights)
    return latents
