"""Playing a recurrent policy step by step, with its memory kept on the policy's device."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from rllib_minestudio.models.distributions import ActionDistribution

State = dict[str, Tensor]
"""A memory: tensors by name, whose first axis is the batch."""


class Decision(NamedTuple):
    """What a policy decides for B environments."""

    actions: dict[str, Tensor]
    """Per head [B] tokens, int64."""

    log_prob_b: Tensor
    """[B] joint log-probability of the tokens, float32."""

    value_b: Tensor
    """[B] in the task's units, float32."""

    distribution: ActionDistribution
    """The distribution of the tokens; the next step may overwrite it."""


class RolloutSession(Protocol):
    """Plays a policy in a fixed number of environments, each with its own memory."""

    def act(
        self,
        obs: Mapping[str, Any],
        first_b: Tensor,
        *,
        rows: Tensor | None = None,
        moving_n: Tensor | None = None,
        explore: bool = True,
        uniform_bh: Tensor | None = None,
    ) -> Decision:
        """Take one step and advance the environments' memories.

        Args:
            obs: Nested as in the environment, [B, ...] each, on the policy's device.
            first_b: [B] bool, True where the observation begins an episode.
            rows: [B] int64, distinct indices of the environments; None means all, in order.
            moving_n: [N] bool, only with all rows: the environments whose memories advance. The
                others are computed too and discarded, so that a row's numbers do not depend on
                which others are ready. None means all.
            explore: Sample the actions; otherwise take the most probable ones.
            uniform_bh: [B, heads] float64 numbers in [0, 1) to draw with; None uses torch's
                generator.
        """

    def value(self, obs: Mapping[str, Any], first_b: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return values [B] in the task's units without advancing the memories."""

    def state(self, rows: Tensor | None = None) -> State:
        """Return a copy of the memories of `rows` (None: all, in order), [B, ...] each."""

    def load_state(self, state: State) -> None:
        """Set the memories of all environments."""


class PolicyStep(NamedTuple):
    """What a policy computes for one observation of each of B environments."""

    distribution: ActionDistribution
    value_b: Tensor
    state: State


class SteppingSession:
    """Plays any policy: every step is a chunk of one observation."""

    def __init__(
        self,
        step: Callable[[Mapping[str, Any], Tensor, State], PolicyStep],
        initial_state: State,
    ) -> None:
        """Start from `initial_state`.

        Args:
            step: Maps observations [B, ...], first [B] and memories [B, ...] to a `PolicyStep`.
            initial_state: The memories of all environments; updated in place.
        """
        self._policy = step
        self._memory = initial_state

    @torch.no_grad()
    def act(
        self,
        obs: Mapping[str, Any],
        first_b: Tensor,
        *,
        rows: Tensor | None = None,
        moving_n: Tensor | None = None,
        explore: bool = True,
        uniform_bh: Tensor | None = None,
    ) -> Decision:
        """See `RolloutSession.act`."""
        distribution, value_b, state = self._policy(obs, first_b, self.state(rows))
        for name, memory in self._memory.items():
            if rows is not None:
                memory[rows] = state[name]
            elif moving_n is None:
                memory.copy_(state[name])
            else:
                memory[moving_n] = state[name][moving_n]
        actions, log_prob_b = distribution.sample(uniform_bh) if explore else distribution.mode()
        return Decision(actions, log_prob_b, value_b, distribution)

    @torch.no_grad()
    def value(self, obs: Mapping[str, Any], first_b: Tensor, rows: Tensor | None = None) -> Tensor:
        """See `RolloutSession.value`."""
        return self._policy(obs, first_b, self.state(rows)).value_b

    def state(self, rows: Tensor | None = None) -> State:
        """See `RolloutSession.state`."""
        return {
            name: memory.clone() if rows is None else memory[rows]
            for name, memory in self._memory.items()
        }

    def load_state(self, state: State) -> None:
        """See `RolloutSession.load_state`."""
        for name, memory in self._memory.items():
            memory.copy_(state[name])


# ---------------- how a GPU multiplies float32 numbers: exactly, or rounded to TensorFloat-32 first
# By default, torch computes float32 convolutions in TensorFloat-32 (ten bits of mantissa, relative
# errors of 5e-4), but matrix products exactly. Here the option `precision` decides both.

FLOAT32, TF32, BFLOAT16 = "float32", "tf32", "bfloat16"
"""Values of `precision`."""

_logger = logging.getLogger(__name__)

DTYPES = {FLOAT32: torch.float32, TF32: torch.float32, BFLOAT16: torch.bfloat16}
"""The dtype of a network's images and features for each `precision`."""


def set_arithmetic(precision: str) -> None:
    """Set how this process multiplies float32 numbers on GPUs from now on.

    With `bfloat16`, whatever remains float32 is exact.
    """
    torch.backends.cudnn.allow_tf32 = precision == TF32
    torch.set_float32_matmul_precision("high" if precision == TF32 else "highest")


@cache  # once per process
def advise(precision: str, device_type: str) -> None:
    """Warn of the cost of exact products if the device is a GPU."""
    if device_type == "cuda" and precision == FLOAT32:
        _logger.warning(
            "model.precision is float32, whose exact products cost a GPU two to ten times as much "
            "as tf32, in which MineStudio computes (VPT 2x on an H200: 90 instead of 26 ms an "
            "update), or bfloat16 (20 ms)."
        )


def arithmetic(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """Apply `set_arithmetic` within a `with` block if the device is a GPU, then restore."""
    return _for_a_block(precision) if device.type == "cuda" else nullcontext()


@contextmanager
def _for_a_block(precision: str) -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    set_arithmetic(precision)
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before[0]
        torch.set_float32_matmul_precision(before[1])
