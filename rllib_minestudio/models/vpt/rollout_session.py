"""Playing a policy step by step: the memory stays on the device, the weights are laid out once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rllib_minestudio.models.arithmetic import DTYPES, arithmetic
from rllib_minestudio.models.vpt.cuda_graphs import GraphedStep, Outputs
from rllib_minestudio.models.vpt.inference import InferenceNetwork
from rllib_minestudio.models.vpt.network import VPTNetwork
from rllib_minestudio.models.vpt.recurrent_state import VPTState
from rllib_minestudio.models.vpt.ring import RingMemory
from rllib_minestudio.models.vpt.sampling import sample
from rllib_minestudio.models.vpt.weight_watch import WeightWatch


class VPTDecision(NamedTuple):
    """What the policy decides for B environments."""

    actions: dict[str, Tensor]
    """Per head [B, 1] tokens, int64."""

    log_prob_b: Tensor
    """[B] joint log-probability of the tokens, float32."""

    value_b: Tensor
    """[B] in the task's units, float32."""

    logits: dict[str, Tensor]
    """Per head [B, N], up to a constant per row; the next step may overwrite them."""


class InferenceSession:
    """Plays ``network`` in a fixed number of environments.

    Gives the numbers that ``network`` gives (in float32 up to rounding), faster: see
    ``inference.py`` and ``ring.py``. Changes to the network's weights are noticed at the next step;
    ``weight_watch.py`` says how, and which one cannot be.

    Example:
        >>> session = InferenceSession(network, num_envs=8)
        >>> decision = session.act(image_bhwc, first_b)
    """

    def __init__(self, network: VPTNetwork, num_envs: int) -> None:
        """Allocates empty memories for ``num_envs`` environments on the network's device."""
        self._network = network
        self._num_envs = num_envs
        device = network.net.final_ln.weight.device
        self._memory = RingMemory(network.config, num_envs, device)
        self._weights = WeightWatch(network)
        self._adopt_weights()

    @torch.no_grad()
    def act(
        self,
        image_bhwc: Tensor,
        first_b: Tensor,
        *,
        rows: Tensor | None = None,
        moving_n: Tensor | None = None,
        explore: bool = True,
        uniform_bh: Tensor | None = None,
    ) -> VPTDecision:
        """Takes one step; the environments' memories move on.

        Args:
            image_bhwc: [B, H, W, 3] uint8, on the network's device.
            first_b: [B] bool, True where the frame begins an episode.
            rows: [B] int64, which environments these are, each once; None: all, in order.
            moving_n: [N] bool, with all rows: whose memories move on. The others are computed as
                well and discarded, so that no row's numbers depend on which others are ready.
                None: all.
            explore: Draw the actions; else take the most probable ones.
            uniform_bh: [B, heads] numbers to draw with; see `sampling.sample`.
        """
        self._refresh()
        bookmark = None if moving_n is None else self._memory.bookmark()
        if self._graphed is not None and rows is None:
            logits, value_b = self._graphed(image_bhwc, first_b)
        else:
            logits, value_b = self._step(image_bhwc, first_b, rows)
        if bookmark is not None:
            self._memory.rewind(bookmark, except_n=moving_n)
        actions, log_prob_b = sample(logits, explore=explore, uniform=uniform_bh)
        value_b = self._network.value_head.denormalize(value_b)
        return VPTDecision(actions, log_prob_b, value_b, logits)

    @torch.no_grad()
    def value(self, image_bhwc: Tensor, first_b: Tensor, rows: Tensor | None = None) -> Tensor:
        """Returns values [B] in the task's units; the memories stay as they are."""
        self._refresh()
        bookmark = self._memory.bookmark()
        _, value_b = self._step(image_bhwc, first_b, rows)
        self._memory.rewind(bookmark)
        return self._network.value_head.denormalize(value_b)

    def state(self, rows: Tensor | None = None) -> VPTState:
        """Returns a copy of memories in the network's form.

        Args:
            rows: [B] int64, of which environments; None: of all, in order.
        """
        return self._memory.to_state(rows)

    def load_state(self, state: VPTState) -> None:
        """Takes over the memories of all environments."""
        self._memory.load_state(state)

    def _step(self, image_bhwc: Tensor, first_b: Tensor, rows: Tensor | None = None) -> Outputs:
        with arithmetic(self._network.config.precision, first_b.device):
            return self._inference(image_bhwc, self._memory.advance(first_b, rows))

    def _refresh(self) -> None:
        """Copies the weights again if they have changed."""
        if self._weights.has_changed:
            self._adopt_weights()

    @torch.no_grad()
    def _adopt_weights(self) -> None:
        config = self._network.config
        self._weights.look()
        self._inference = InferenceNetwork(
            self._network, DTYPES[config.precision], self._num_envs, compiled=config.compile
        )
        self._graphed: GraphedStep | None = None
        if self._memory.slot_n.is_cuda:
            self._graphed = GraphedStep(self._step, self._memory, config.img_shape)
