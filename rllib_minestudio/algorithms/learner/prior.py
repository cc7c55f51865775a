"""The frozen prior, the policy that the KL term holds the agent to, as a learner sees it.

The learner owns its weights and turns latents into log-probabilities. The latents come with the
fragments: env runners compute them, with a memory of the prior's own (`prior_latents.py`).
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rllib_minestudio.algorithms.learner.batch import Tensors
from rllib_minestudio.algorithms.options.ppo import INITIAL_PRIOR, PPOOptions
from rllib_minestudio.algorithms.prior_latents import PriorWeights
from rllib_minestudio.models.vpt import VPTNetwork
from rllib_minestudio.models.vpt.weight_loading import load_weights

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.config import MineStudioPPOConfig


class Prior:
    """A frozen network, and the heads of the versions of it that fragments may still come from.

    Args:
        network: Taken over: set to evaluation mode, its parameters frozen. It may be on another
            device than the learner's: only copies of its heads are used here.
        device: The learner's.
        versions_kept: How many versions' heads are kept, the present one included.

    Attributes:
        network: The present weights.
        version: Of the present weights: the training iterations after which they were taken over
            from the policy, 0 for those that training started with.
    """

    def __init__(
        self, network: VPTNetwork, *, device: torch.device | str = "cpu", versions_kept: int = 1
    ) -> None:
        """Freeze the network."""
        self.network = network.eval().requires_grad_(False)
        self.version = 0
        self._device = device
        self._versions_kept = versions_kept
        self._heads: OrderedDict[int, nn.ModuleDict] = OrderedDict()
        self._keep_heads()

    def follow(self, network: VPTNetwork, version: int) -> None:
        """Take over another network's weights."""
        self.load_state_dict(network.state_dict(), version)

    def load_state_dict(self, state: Tensors, version: int) -> None:
        """Take over weights; fragments of the versions before are still understood."""
        self.network.load_state_dict(state)
        self.version = version
        self._keep_heads()

    def weights(self) -> PriorWeights:
        """What env runners need."""
        state = self.network.state_dict()
        return PriorWeights(self.version, {name: t.cpu().numpy() for name, t in state.items()})

    def logits(self, latent_bte: Tensor, version_bt: Tensor) -> Tensors:
        """Log-probabilities of the prior's action heads, {"buttons", "camera"}.

        Args:
            latent_bte: (B, T, hidsize), computed by env runners.
            version_bt: (B, T) int64, of the weights that computed them. Where `knows` is False of a
                version, the result means nothing and must be masked.
        """
        (_, newest), *older = reversed(self._heads.items())
        logits = {name: head(latent_bte) for name, head in newest.items()}
        for version, heads in older:
            is_older = (version_bt == version)[..., None]
            for name, head in heads.items():
                logits[name] = torch.where(is_older, head(latent_bte), logits[name])
        return logits

    def knows(self, version: int) -> bool:
        """Whether the heads of a version are still here."""
        return version in self._heads

    def _keep_heads(self) -> None:
        self._heads[self.version] = copy.deepcopy(self.network.pi_head).to(self._device)
        self._heads.move_to_end(self.version)
        while len(self._heads) > self._versions_kept:
            self._heads.popitem(last=False)


def build_prior(options: PPOOptions, network: VPTNetwork, device: torch.device) -> Prior | None:
    """The prior that the options ask for.

    Args:
        options: Name the prior, and how often it follows the policy.
        network: Of the policy, with the weights it starts from; left as it is.
        device: The learner's.
    """
    if options.prior is None:
        return None
    network = copy.deepcopy(network).cpu()
    if options.prior != INITIAL_PRIOR:
        load_weights(network, options.prior)
    interval = options.prior_update_interval
    # A fragment is at most max_staleness updates old, and was begun at most one before that.
    kept = 2 + options.max_staleness // interval if interval else 1
    return Prior(network, device=device, versions_kept=kept)


def is_nowhere_else(config: MineStudioPPOConfig) -> bool:
    """Whether no file holds the prior's weights: it was drawn at random, or follows the policy."""
    at_random = not config.model_config.get("weights")
    return bool(config.prior_update_interval) or (config.prior == INITIAL_PRIOR and at_random)
