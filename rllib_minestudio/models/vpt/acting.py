"""Playing a policy step by step: the memory stays on the device, the weights are laid out once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from rllib_minestudio.models.acting import DTYPES, arithmetic
from rllib_minestudio.models.vpt.attention import RingMemory, VPTState
from rllib_minestudio.models.vpt.cuda_graphs import GraphedStep, Outputs
from rllib_minestudio.models.vpt.inference import InferenceNetwork
from rllib_minestudio.models.vpt.network import VPTNetwork


class VPTDecision(NamedTuple):
    """What a policy decides for B environments."""

    actions: dict[str, Tensor]
    """Per head [B, 1] tokens, int64."""

    log_prob_b: Tensor
    """[B] joint log-probability of the tokens, float32."""

    value_b: Tensor
    """[B] in the task's units, float32."""

    logits: dict[str, Tensor]
    """Per head [B, N], up to a constant per row; the next step may overwrite them."""


class InferenceSession:
    """Plays `network` in a fixed number of environments.

    Computes the same numbers as `network` (in float32 up to rounding), but faster: see
    `inference.py` and `attention.py`. Changes to the network's weights take effect at the next
    step, with one exception, which `WeightWatch` names.

    Example:
        >>> session = InferenceSession(network, num_envs=8)
        >>> decision = session.act(image_bhwc, first_b)
    """

    def __init__(self, network: VPTNetwork, num_envs: int) -> None:
        """Allocate empty memories for `num_envs` environments on the network's device."""
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
        """Take one step and advance the environments' memories.

        Args:
            image_bhwc: [B, H, W, 3] uint8, on the network's device.
            first_b: [B] bool, True where the frame begins an episode.
            rows: [B] int64, distinct indices of the environments; None means all, in order.
            moving_n: [N] bool, only with all rows: the environments whose memories advance. The
                others are computed too and discarded, so that a row's numbers do not depend on
                which others are ready. None means all.
            explore: Sample the actions; otherwise take the most probable ones.
            uniform_bh: [B, heads] numbers to draw with; see `sample`.
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
        """Return values [B] in the task's units without advancing the memories."""
        self._refresh()
        bookmark = self._memory.bookmark()
        _, value_b = self._step(image_bhwc, first_b, rows)
        self._memory.rewind(bookmark)
        return self._network.value_head.denormalize(value_b)

    def state(self, rows: Tensor | None = None) -> VPTState:
        """Return a copy of the memories in the network's form.

        Args:
            rows: [B] int64, indices of environments; None means all, in order.
        """
        return self._memory.to_state(rows)

    def load_state(self, state: VPTState) -> None:
        """Set the memories of all environments."""
        self._memory.load_state(state)

    def _step(self, image_bhwc: Tensor, first_b: Tensor, rows: Tensor | None = None) -> Outputs:
        with arithmetic(self._network.config.precision, first_b.device):
            return self._inference(image_bhwc, self._memory.advance(first_b, rows))

    def _refresh(self) -> None:
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


# --------------------------------------------------------------------------- from logits to actions


class TokenSample(NamedTuple):
    """Actions and their log-probability."""

    actions: dict[str, Tensor]
    """Per head [..., 1] tokens, int64."""

    log_prob: Tensor
    """[...] joint log-probability of the tokens, float32."""


def sample(
    logits: Mapping[str, Tensor],
    *,
    explore: bool = True,
    uniform: Tensor | None = None,
) -> TokenSample:
    """Choose a token per head, by inverse CDF.

    Uses one random number per head and row where MineStudio uses one per logit (Gumbel-max); the
    distribution is the same. The exponentials in the cumulative sum also give the normaliser, so
    the logits need not be normalised first. Sums are float64: in float32, a cumulative sum of 8641
    terms misplaces rare actions.

    Args:
        logits: Per head [..., N] float32, up to a constant per row.
        explore: Draw from the distribution; otherwise take its mode.
        uniform: [..., heads] float64 numbers in [0, 1) to draw with: a row's actions then depend on
            its own numbers only, not on other rows. None uses torch's generator.
    """
    actions, log_probs = {}, []
    for head, (name, scores) in enumerate(logits.items()):
        shifted = scores - scores.amax(dim=-1, keepdim=True)
        cumulative = shifted.exp().cumsum(dim=-1, dtype=torch.float64)
        total = cumulative[..., -1:]
        if explore:
            if uniform is None:
                place = torch.rand(total.shape, dtype=torch.float64, device=total.device)
            else:
                place = uniform[..., head : head + 1]
            token = torch.searchsorted(cumulative, place * total, right=True)
            token.clamp_(max=scores.shape[-1] - 1)
        else:
            token = scores.argmax(dim=-1, keepdim=True)
        actions[name] = token
        log_probs.append(shifted.gather(-1, token) - total.log())
    return TokenSample(actions, torch.cat(log_probs, dim=-1).sum(dim=-1).float())


# ---------------------- detecting changed weights before every step of acting, at next to no cost
# PyTorch has no single sign of a change:
#
# ==============================================  ==================================
# change of a parameter                           its sign
# ==============================================  ==================================
# it is written in place                          its version counter
# `parameter.data = ...`                          its address
# it or its module is replaced, as                modules report what is registered
# `load_state_dict(..., assign=True)` does        in them
# a fused optimizer writes it                     optimizers report their steps
# ==============================================  ==================================
#
# The two reports go to process-wide hooks, so they cost nothing when acting.

_version = attrgetter("_version")


class WeightWatch:
    """Tells whether a network's weights have changed since the last `look`.

    Writes through `parameter.data` are the exception, since PyTorch itself does not track them:
    code that does so must call `torch.autograd.graph.increment_version` on the parameters.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self.look()
        with _lock:
            _watches.add(self)

    def look(self) -> None:
        """Mark the present weights as known. Call this before reading them."""
        self._is_reported = False
        self._module_ids = frozenset(map(id, self._network.modules()))
        self._weights = list(self._network.parameters())
        # Kept alive, so that no new tensor can reuse an old one's address.
        self._numbers = [weight.detach() for weight in self._weights]
        self._addresses = list(map(Tensor.data_ptr, self._weights))
        self._versions = list(map(_version, self._weights))

    @property
    def has_changed(self) -> bool:
        """Whether the weights may have changed since the last `look`."""
        return (
            self._is_reported
            or list(map(Tensor.data_ptr, self._weights)) != self._addresses
            or list(map(_version, self._weights)) != self._versions
        )

    def note_step(self, optimizer: Optimizer) -> None:
        """Note that an optimizer has stepped."""
        own = set(map(id, self._weights))
        stepped = (weight for group in optimizer.param_groups for weight in group["params"])
        self._is_reported |= any(id(weight) in own for weight in stepped)

    def note_registration(self, module: nn.Module) -> None:
        """Note that a parameter or a module was assigned to a module."""
        self._is_reported |= id(module) in self._module_ids


_watches: weakref.WeakSet[WeightWatch] = weakref.WeakSet()
_lock = threading.Lock()


def _living() -> list[WeightWatch]:
    with _lock:
        return list(_watches)


def _note_step(optimizer: Optimizer, *_: Any) -> None:
    for watch in _living():
        watch.note_step(optimizer)


def _note_registration(module: nn.Module, *_: Any) -> None:
    for watch in _living():
        watch.note_registration(module)


# Once, and never removed: PyTorch iterates over its hooks whenever a module is assigned. If each
# watch had its own, a garbage collection in between would change what is iterated over.
register_optimizer_step_post_hook(_note_step)
register_module_parameter_registration_hook(_note_registration)
register_module_module_registration_hook(_note_registration)
