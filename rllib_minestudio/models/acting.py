"""Playing a recurrent policy step by step, with its memory kept on the policy's device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
