"""The frozen prior: the policy that the KL term holds the agent to.

Two things differ from MineStudio on purpose. The prior has a *memory of its own*, carried from one
fragment of an environment to the next, where MineStudio starts it from nothing in every fragment
(`carry_state=False` restores that). And its outputs are computed *once per fragment*, not once per
epoch and reuse: what is kept is its latent, a few hundred bytes a frame, from which the heads'
log-probabilities follow at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rllib_minestudio.algorithms.batch import FragmentBatch, Tensors
from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.models.vpt import VPTNetwork, VPTState


@dataclass
class _Memory:
    """The prior's memory after fragment `index - 1` of an environment."""

    index: int
    state: VPTState


class Prior:
    """A frozen network with one memory per environment and a cache of latents.

    Args:
        network: Taken over: set to evaluation mode, its parameters frozen.
        context_length: Steps per forward pass.
        carry_state: Whether memory outlives a fragment.
        cache_size: Fragments whose latents are kept for reuse; 0 keeps none.
    """

    def __init__(
        self, network: VPTNetwork, *, context_length: int, carry_state: bool, cache_size: int
    ) -> None:
        """Freeze the network."""
        self.network = network.eval().requires_grad_(False)
        self._context_length = context_length
        self._carry_state = carry_state
        self._cache_size = cache_size
        self._latents: OrderedDict[tuple[str, int], Tensor] = OrderedDict()
        self._memories: dict[str, _Memory] = {}

    @torch.no_grad()
    def latents(self, fragments: Sequence[Fragment], batch: FragmentBatch) -> Tensor:
        """The prior's latents for a batch.

        Fragments of one environment are walked through in their order, so that the memory one
        leaves is the memory the next begins with.

        Args:
            fragments: The fragments that `batch` was stacked from, in the same order.
            batch: Their tensors.

        Returns:
            (B, T, hidsize) on the batch's device.
        """
        found: dict[int, Tensor] = {}
        waiting: dict[str, list[int]] = {}
        for row, fragment in enumerate(fragments):
            if fragment.key in self._latents:
                found[row] = self._latents[fragment.key]
            else:
                waiting.setdefault(fragment.env_id, []).append(row)
        for rows in waiting.values():
            rows.sort(key=lambda row: fragments[row].index, reverse=True)
        while waiting:
            wave = [rows.pop() for rows in waiting.values()]
            waiting = {env_id: rows for env_id, rows in waiting.items() if rows}
            self._advance([fragments[row] for row in wave], wave, batch, found)
        return torch.stack([found[row] for row in range(len(fragments))])

    def logits(self, latent: Tensor) -> Tensors:
        """Log-probabilities of the prior's action heads, {"buttons", "camera"}."""
        return {name: head(latent) for name, head in self.network.pi_head.items()}

    def _advance(
        self,
        fragments: Sequence[Fragment],
        rows: list[int],
        batch: FragmentBatch,
        found: dict[int, Tensor],
    ) -> None:
        """Compute one fragment per environment, and remember where each memory stands."""
        part = batch.select(torch.tensor(rows, device=batch.image.device))
        state = self._memory_before(fragments)
        latents = []
        for chunk in part.chunks(self._context_length):
            latent, state = self.network.net(chunk.image, chunk.first, state)
            latents.append(latent)
        latent_bt = torch.cat(latents, dim=1)
        for i, (row, fragment) in enumerate(zip(rows, fragments, strict=True)):
            found[row] = latent_bt[i]
            self._remember(fragment, latent_bt[i])
            if self._carry_state:
                after = VPTState(*(tensor[i] for tensor in state))
                self._memories[fragment.env_id] = _Memory(fragment.index + 1, after)

    def _memory_before(self, fragments: Sequence[Fragment]) -> VPTState:
        """Each environment's memory; empty where the fragment before was never seen."""
        empty = self.network.initial_state(1)
        states = []
        for fragment in fragments:
            memory = self._memories.get(fragment.env_id)
            if memory is not None and memory.index == fragment.index:
                states.append(memory.state)
            else:
                states.append(VPTState(*(tensor[0] for tensor in empty)))
        return VPTState(*(torch.stack(tensors) for tensors in zip(*states, strict=True)))

    def _remember(self, fragment: Fragment, latent: Tensor) -> None:
        if self._cache_size == 0:
            return
        self._latents[fragment.key] = latent
        while len(self._latents) > self._cache_size:
            self._latents.popitem(last=False)
