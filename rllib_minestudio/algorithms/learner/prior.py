"""The frozen prior, the policy that the KL term holds the agent to, as a learner sees it.

The learner owns its weights and turns latents into distributions. The latents come with the
fragments: env runners compute them, with a memory of the prior's own (`prior_latents.py`).
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rllib_minestudio.algorithms.options import INITIAL_PRIOR, PPOOptions
from rllib_minestudio.algorithms.prior_latents import PriorWeights
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.policy import RecurrentRLModule


class Prior:
    """A frozen policy, and the heads of the versions of it that fragments may still come from.

    Args:
        module: Taken over: set to evaluation mode, its parameters frozen. It may be on another
            device than the learner's: only copies of its heads are used here.
        device: The learner's.
        versions_kept: How many versions' heads are kept, the present one included.

    Attributes:
        module: Has the present weights.
        version: Of the present weights: the training iterations after which they were taken over
            from the policy, 0 for those that training started with.
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
        """Take over another policy's weights."""
        self.set_state(module.get_state(), version)

    def set_state(self, state: Mapping[str, NDArray], version: int) -> None:
        """Take over weights; fragments of the versions before are still understood."""
        self.module.set_state(state)
        self.version = version
        self._keep_heads()

    def weights(self) -> PriorWeights:
        """What env runners need."""
        return PriorWeights(self.version, self.module.get_state())

    def divergence(
        self, distribution: ActionDistribution, latent_bte: Tensor, version_bt: Tensor
    ) -> Tensor:
        """KL(policy || prior) in nats, (B, T), with the policy's gradient.

        Args:
            distribution: The policy's, (B, T).
            latent_bte: (B, T, E), computed by env runners.
            version_bt: (B, T) int64, of the weights that computed them. Where `knows` is False of a
                version, the result means nothing and must be masked.
        """
        (_, newest), *older = reversed(self._heads.items())
        kl_bt = distribution.kl_divergence(newest(latent_bte))
        for version, head in older:
            older_kl_bt = distribution.kl_divergence(head(latent_bte))
            kl_bt = torch.where(version_bt == version, older_kl_bt, kl_bt)
        return kl_bt

    def knows(self, version: int) -> bool:
        """Whether the heads of a version are still here."""
        return version in self._heads

    def _keep_heads(self) -> None:
        self._heads[self.version] = copy.deepcopy(self.module.action_head).to(self._device)
        self._heads.move_to_end(self.version)
        while len(self._heads) > self._versions_kept:
            self._heads.popitem(last=False)


def build_prior(
    options: PPOOptions, module: RecurrentRLModule, device: torch.device
) -> Prior | None:
    """The prior that the options ask for.

    Args:
        options: Name the prior, and how often it follows the policy.
        module: The policy, with the weights it starts from; left as it is.
        device: The learner's.
    """
    if options.prior is None:
        return None
    module = copy.deepcopy(module).cpu()
    if options.prior != INITIAL_PRIOR:
        module.load_weights(options.prior)
    interval = options.prior_update_interval
    # A fragment is at most max_staleness updates old, and was begun at most one before that.
    kept = 2 + options.max_staleness // interval if interval else 1
    return Prior(module, device=device, versions_kept=kept)


def is_nowhere_else(config: PPOOptions) -> bool:
    """Whether no file holds the prior's weights: it was drawn at random, or follows the policy."""
    at_random = not config.model_config.get("weights")
    return bool(config.prior_update_interval) or (config.prior == INITIAL_PRIOR and at_random)
