"""The frozen prior: the policy that the KL term holds the agent to.

Two things differ from MineStudio on purpose. The prior has a *memory of its own*, carried from one
fragment of an environment to the next, where MineStudio starts it from nothing in every fragment
(`carry_state=False` restores that). And its outputs are computed *once per fragment*, not once per
epoch and reuse: what is kept is its latent, a few hundred bytes a frame, from which the heads'
log-probabilities follow at once.

With several learners an environment's fragments reach now this one, now that; what one of them
remembers of it is then sent to the one that needs it.
"""

from __future__ import annotations

import copy
import operator
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.learner.batch import FragmentBatch, Tensors
from rllib_minestudio.algorithms.learner.distributed import Peers
from rllib_minestudio.models.vpt import VPTNetwork, VPTState
from rllib_minestudio.models.vpt.checkpoint import load_weights

INITIAL_PRIOR = "initial"
"""Value of the option `prior`: the weights that training starts from."""


@dataclass
class _Memory:
    """The prior's memory after fragment `index - 1` of an environment."""

    index: int
    state: VPTState


Key = tuple[str, int]
"""Of a fragment: environment and index."""


class Prior:
    """A frozen network with one memory per environment and a cache of latents.

    Args:
        network: Taken over: set to evaluation mode, its parameters frozen.
        context_length: Steps per forward pass.
        batch_size: Fragments side by side in a forward pass, at most.
        carry_state: Whether memory outlives a fragment.
        max_memories: Environments remembered; those not met for longest are forgotten.
        cache_size: Fragments whose latents are kept for reuse; 0 keeps none.
        peers: The learners that share an iteration's fragments; all call `latents` together.
    """

    def __init__(
        self,
        network: VPTNetwork,
        *,
        context_length: int,
        batch_size: int,
        carry_state: bool,
        max_memories: int,
        cache_size: int,
        peers: Peers | None = None,
    ) -> None:
        """Freeze the network."""
        self.network = network.eval().requires_grad_(False)
        self._context_length = context_length
        self._batch_size = batch_size
        self._carry_state = carry_state
        self._max_memories = max_memories
        self._cache_size = cache_size
        self._peers = peers or Peers(1)
        self._latents: OrderedDict[Key, Tensor] = OrderedDict()
        self._memories: OrderedDict[str, _Memory] = OrderedDict()

    def follow(self, network: VPTNetwork) -> None:
        """Take over another network's weights; what the old ones remembered is forgotten."""
        self.network.load_state_dict(network.state_dict())
        self.forget()

    def forget(self) -> None:
        """Drop all memories and cached latents: they belong to other weights or another run."""
        self._latents.clear()
        self._memories.clear()

    @torch.no_grad()
    def latents(self, fragments: Sequence[Fragment], batch: FragmentBatch) -> Tensor:
        """The prior's latents for a batch.

        Fragments of one environment are walked through in their order, so that the memory one
        leaves is the memory the next begins with.

        Args:
            fragments: The fragments that `batch` was stacked from, in the same order.
            batch: Their tensors, one or more fragments to a row.

        Returns:
            (B, T, hidsize) on the batch's device.
        """
        rows = {fragment.key: row for row, fragment in enumerate(fragments)}
        image = batch.image.reshape(len(fragments), -1, *batch.image.shape[2:])
        first = batch.first.reshape(len(fragments), -1)
        found = self._cached(rows.keys())
        for wave in self._waves(rows.keys() - found.keys()):
            own = [key for key in wave if key in rows and key not in found]
            self._exchange_memories(wave, own)
            for i in range(0, len(own), self._batch_size):
                keys = own[i : i + self._batch_size]
                at = torch.tensor([rows[key] for key in keys], device=image.device)
                found.update(zip(keys, self._advance(keys, image[at], first[at]), strict=True))
        for key, latent in found.items():
            self._remember(key, latent)
        latents = torch.stack([found[fragment.key] for fragment in fragments])
        return latents.reshape(len(batch), -1, latents.shape[-1])

    def logits(self, latent: Tensor) -> Tensors:
        """Log-probabilities of the prior's action heads, {"buttons", "camera"}."""
        return {name: head(latent) for name, head in self.network.pi_head.items()}

    def _cached(self, keys: Collection[Key]) -> dict[Key, Tensor]:
        """The latents among these that this learner or another one has kept."""
        found = {key: self._latents[key] for key in keys if key in self._latents}
        if self._cache_size == 0 or self._peers.count == 1:
            return found
        asked = set().union(*self._peers.gather(set(keys) - found.keys()))
        kept = {key: self._latents[key].cpu().clone() for key in asked & self._latents.keys()}
        for latents in self._peers.gather(kept):
            found |= {key: latents[key].to(self._device) for key in latents.keys() & keys}
        return found

    def _waves(self, missing: Collection[Key]) -> list[list[Key]]:
        """All learners' missing fragments, in an order in which memory can be passed on.

        The n-th wave holds each environment's n-th fragment; without memory there is one wave.
        """
        everywhere = sorted(set().union(*self._peers.gather(set(missing))))
        if not self._carry_state:
            return [everywhere] if everywhere else []
        waves: list[list[Key]] = []
        for _, keys in groupby(everywhere, key=operator.itemgetter(0)):
            for n, key in enumerate(keys):
                waves += [[]] if n == len(waves) else []
                waves[n].append(key)
        return waves

    def _advance(self, keys: Sequence[Key], image_bthwc: Tensor, first_bt: Tensor) -> Tensor:
        """Compute one fragment per environment, and remember where each memory stands."""
        state = self._memory_before(keys)
        latents = []
        for image, first in zip(
            image_bthwc.split(self._context_length, dim=1),
            first_bt.split(self._context_length, dim=1),
            strict=True,
        ):
            latent, state = self.network.net(image, first, state)
            latents.append(latent)
        if self._carry_state:
            for i, (env_id, index) in enumerate(keys):
                after = VPTState(*(tensor[i] for tensor in state))
                self._memories[env_id] = _Memory(index + 1, after)
                self._memories.move_to_end(env_id)
            while len(self._memories) > self._max_memories:
                self._memories.popitem(last=False)
        return torch.cat(latents, dim=1)

    def _memory_before(self, keys: Sequence[Key]) -> VPTState:
        """Each environment's memory; empty where the fragment before was never seen."""
        empty = self.network.initial_state(1)
        states = []
        for env_id, index in keys:
            memory = self._memories.get(env_id)
            if memory is not None and memory.index == index:
                states.append(memory.state)
            else:
                states.append(VPTState(*(tensor[0] for tensor in empty)))
        return VPTState(*(torch.stack(tensors) for tensors in zip(*states, strict=True)))

    def _exchange_memories(self, wave: Collection[Key], own: Collection[Key]) -> None:
        """Give the other learners the memories they need for a wave, and take those for `own`."""
        if self._peers.count == 1 or not self._carry_state:
            return
        held = {
            env_id: _Memory(memory.index, VPTState(*(t.cpu().clone() for t in memory.state)))
            for env_id, memory in self._memories.items()
            if (env_id, memory.index) in set(wave) - set(own)
        }
        for memories in self._peers.gather(held):
            for env_id, memory in memories.items():
                if (env_id, memory.index) in own:
                    state = VPTState(*(tensor.to(self._device) for tensor in memory.state))
                    self._memories[env_id] = _Memory(memory.index, state)

    def _remember(self, key: Key, latent: Tensor) -> None:
        if self._cache_size == 0:
            return
        self._latents[key] = latent
        while len(self._latents) > self._cache_size:
            self._latents.popitem(last=False)

    @property
    def _device(self) -> torch.device:
        return self.network.net.final_ln.weight.device


def build_prior(config: Any, network: VPTNetwork, peers: Peers) -> Prior | None:
    """The prior that a config asks for.

    Args:
        config: A `MineStudioPPOConfig`.
        network: Of the policy, with the weights it starts from; left as it is.
        peers: The learners that share the iterations.
    """
    if config.prior is None:
        return None
    network = copy.deepcopy(network)
    if config.prior != INITIAL_PRIOR:
        load_weights(network, config.prior)
    keeps = config.replay_buffer["max_reuse"] > 1
    num_envs = config.num_envs_per_env_runner * max(1, config.num_env_runners)
    return Prior(
        network,
        context_length=config.context_length,
        batch_size=config.fragments_per_minibatch,
        carry_state=config.carry_prior_state,
        max_memories=2 * num_envs,  # some come back under new names after a fault
        cache_size=config.replay_buffer["max_fragments"] if keeps else 0,
        peers=peers,
    )


def is_nowhere_else(config: Any) -> bool:
    """Whether no file holds the prior's weights: it was drawn at random, or follows the policy."""
    at_random = not config.model_config.get("weights")
    return bool(config.prior_update_interval) or (config.prior == INITIAL_PRIOR and at_random)
