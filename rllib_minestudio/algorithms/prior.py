"""The frozen prior: its latents of every fragment, in an env runner, and the KL term, in a learner.

The KL term compares policy and prior step by step, and both have a memory. The prior's memory at a
step must not depend on how the step is trained on: with which others, in which order, by how many
learners or how often. Only the runner that plays an environment sees all of its frames in order, so
the prior runs there, once per complete fragment, with T frames in one pass. The fragment carries
the latents (E * 4 bytes per frame: 2 MB for 256 frames of VPT 2x), from which a learner's copy of
the prior's heads computes the distributions.
"""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rllib_minestudio.algorithms.options import INITIAL_PRIOR, PPOOptions
from rllib_minestudio.foundation.observations import nested
from rllib_minestudio.models.distributions import ActionDistribution
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


# ---------------------------- the frozen prior, to which the KL term holds the policy, in a learner
# The learner owns the prior's weights and turns its latents into distributions. The fragments
# carry the latents: env runners compute them, with the prior's own memory.

_logger = logging.getLogger(__name__)

LARGE_RISE = 2.0
"""A rise of the mean KL to the prior, in nats from one iteration to the next, that warns of updates
which destroy a policy. A tuned run rises by hundredths; at 1x, nano's learning rate rises by tens.
"""


class Prior:
    """A frozen policy, and the action heads of all its versions that fragments may still have.

    Args:
        module: The prior; it is set to evaluation mode, and its parameters are frozen. It may be on
            a different device than the learner, which only uses copies of its heads.
        device: The learner's device.
        versions_kept: How many versions' heads are kept, including the current one.

    Attributes:
        module: The module, with the current weights.
        version: Version of the current weights: the number of iterations after which they were
            copied from the policy; 0 for those that training started with.
    """

    def __init__(
        self,
        module: RecurrentRLModule,
        *,
        device: torch.device | str = "cpu",
        versions_kept: int = 1,
    ) -> None:
        self.module = module.eval().requires_grad_(False)
        self.version = 0
        self._device = device
        self._versions_kept = versions_kept
        self._heads: OrderedDict[int, nn.Module] = OrderedDict()
        self._keep_heads()

    def follow(self, module: RecurrentRLModule, version: int) -> None:
        """Copy another policy's weights."""
        self.set_state(module.get_state(), version)

    def set_state(self, state: Mapping[str, NDArray], version: int) -> None:
        """Load weights, and keep the heads of the previous versions."""
        self.module.set_state(state)
        self.version = version
        self._keep_heads()

    def weights(self) -> PriorWeights:
        """Return the weights for env runners."""
        return PriorWeights(self.version, self.module.get_state())

    def divergence(
        self, distribution: ActionDistribution, latent_bte: Tensor, version_bt: Tensor
    ) -> Tensor:
        """Return KL(policy || prior) in nats, (B, T), with the policy's gradient.

        Args:
            distribution: The policy's, (B, T).
            latent_bte: The prior's latents, (B, T, E), computed by env runners.
            version_bt: (B, T) int64, version of the weights that computed them. Where `knows` of
                the version is False, the result is meaningless and must be masked.
        """
        (_, newest), *older = reversed(self._heads.items())
        kl_bt = distribution.kl_divergence(newest(latent_bte))
        for version, head in older:
            older_kl_bt = distribution.kl_divergence(head(latent_bte))
            kl_bt = torch.where(version_bt == version, older_kl_bt, kl_bt)
        return kl_bt

    def knows(self, version: int) -> bool:
        """Return whether the heads of a version are still kept."""
        return version in self._heads

    def _keep_heads(self) -> None:
        self._heads[self.version] = copy.deepcopy(self.module.action_head).to(self._device)
        self._heads.move_to_end(self.version)
        while len(self._heads) > self._versions_kept:
            self._heads.popitem(last=False)


def build_prior(
    options: PPOOptions, module: RecurrentRLModule, device: torch.device
) -> Prior | None:
    """Build the prior from a copy of the initial policy; None if the options have no prior."""
    if options.prior is None:
        return None
    module = copy.deepcopy(module).cpu()
    if options.prior != INITIAL_PRIOR:
        module.load_weights(options.prior)
    interval = options.prior_update_interval
    # A fragment is at most max_staleness updates old, and was begun at most one update earlier.
    kept = 2 + options.max_staleness // interval if interval else 1
    return Prior(module, device=device, versions_kept=kept)


class PriorWatch:
    """Warns when the policy leaves its prior at once instead of slowly."""

    def __init__(self) -> None:
        self._before: float | None = None

    def note(self, kl: float, iteration: int, options: PPOOptions) -> None:
        """Compare an iteration's mean KL to the prior with that of the iteration before.

        Args:
            kl: In nats; NaN, if nothing was learned, is not compared.
            iteration: Number of the iteration, from 0. Nothing is known before the first one after
                a restore, or of a prior that is another policy than training starts from.
            options: Options of the training.
        """
        before = self._before
        if iteration == 0 and options.prior == INITIAL_PRIOR:
            before = 0.0
        self._before = kl
        if before is not None and kl - before > LARGE_RISE:
            _logger.warning(
                "kl_to_prior rose from %.2f to %.2f nats in one iteration: the updates destroy "
                "what the prior knows. Lower lr (large networks need smaller ones: 2e-5 at most at "
                "VPT's sizes), or raise kl_coeff.",
                max(before, 0.0),  # rounding makes it negative
                kl,
            )


def is_nowhere_else(config: PPOOptions) -> bool:
    """Return whether no file holds the prior's weights: it is random, or follows the policy."""
    at_random = not config.model_config.get("weights")
    return bool(config.prior_update_interval) or (config.prior == INITIAL_PRIOR and at_random)
