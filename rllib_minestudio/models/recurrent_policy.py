"""What a policy with a memory has to offer, and what can be known of it before it is built.

docs/policies.md describes it on one page. `RecurrentRLModule` adds all that RLlib asks for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor, nn
from typing_extensions import Self

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.models.policy_weights import policy_weights_problems
from rllib_minestudio.models.rollout import PolicyStep, RolloutSession, State, SteppingSession
from rllib_minestudio.models.strict_loading import load_strictly
from rllib_minestudio.models.value_head import ValueHead
from rllib_minestudio.observations import ObservationPart, parts_of

MODULE_OPTIONS = ("weights", "zero_init_value_head", "freeze")
"""Options of ``model_config`` that every policy has; all others are its network's."""


class RecurrentPolicy(ABC):
    """A policy with a memory.

    A subclass implements ``build_network``. If its network has ``forward(obs, first_bt, state) ->
    (latent, state)``, ``initial_state(batch)``, ``action_head`` and ``value_head``, that is all;
    else it overrides the four members of these names.

    Attributes:
        network: Has all parameters that learn, under the names that checkpoints, ``freeze`` and
            ``lr_factors`` know.
        observation_space: Of the environment.
        action_space: Of the environment, a ``Dict`` of ``Discrete`` or ``MultiDiscrete([n])``.
        precision: How a GPU multiplies float32 numbers, a value of ``arithmetic.py``; None leaves
            torch's settings alone.
        memory_length: Observations from which the memory can be rebuilt well enough: the burn-in
            of windows of demonstrations, unless the config says otherwise.
    """

    network: nn.Module
    observation_space: gym.Space
    action_space: gym.Space
    precision: str | None = None
    memory_length: int = 64

    @abstractmethod
    def build_network(self, options: dict[str, Any]) -> nn.Module:
        """Return the network, randomly initialised (torch's global generator).

        Args:
            options: ``model_config`` without ``MODULE_OPTIONS``.

        Raises:
            InvalidOptionsError: An option is unknown or invalid, or ``self.observation_space`` or
                ``self.action_space`` does not fit.
        """

    def initial_state(self, batch: int) -> State:
        """Return the empty memory of B environments, [B, ...] each, on the network's device."""
        return self.network.initial_state(batch)  # type: ignore[operator]

    def latent(
        self, obs: Mapping[str, Any], first_bt: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Look at a chunk of T observations.

        Step by step or in chunks of any length, the numbers must be the same.

        Args:
            obs: Nested as the environment's, [B, T, ...] each.
            first_bt: [B, T] bool: where True, everything before is forgotten.
            state: Memory before the chunk.

        Returns:
            What the heads read, [B, T, E] float32, and the memory after the chunk.
        """
        return self.network(obs, first_bt, state)

    @property
    def action_head(self) -> nn.Module:
        """The part of the network that makes an ``ActionDistribution`` [B, T] of a latent."""
        return self.network.action_head  # type: ignore[return-value]

    @property
    def value_head(self) -> ValueHead:
        """The part of the network that predicts normalised values [B, T] from a latent."""
        return self.network.value_head  # type: ignore[return-value]

    @property
    def observation_parts(self) -> dict[str, ObservationPart]:
        """What the policy reads of observations; the default is all that the space has."""
        return parts_of(self.observation_space)

    def make_rollout_session(self, num_envs: int) -> RolloutSession:
        """Return a way to act step by step, whose memory stays on the module's device."""
        return SteppingSession(self._step, self.initial_state(num_envs))

    def full_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options that build the same network without its first weights."""
        return options

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    def _step(self, obs: Mapping[str, Any], first_b: Tensor, state: State) -> PolicyStep:
        """One observation of each of B environments, for ``SteppingSession``."""
        was_training = self.network.training
        self.network.eval()
        latent_b1e, state = self.latent(_with_time(obs), first_b[:, None], state)
        latent_be = latent_b1e[:, 0]
        value_b = self.value_head.denormalize(self.value_head(latent_be))
        self.network.train(was_training)
        return PolicyStep(self.action_head(latent_be), value_b, state)

    # ---------------------------------------------------------------- weights

    def load_weights(self, source: Any) -> None:
        """Load a checkpoint strictly.

        Args:
            source: As of the option ``weights``; a checkpoint may be open already.

        Raises:
            CheckpointMismatchError: It is missing, unreadable, damaged, or holds another network.
        """
        load_strictly(self.network, self.read_weights(source), source=f"weights {str(source)!r}")

    @classmethod
    def read_weights(cls, source: Any) -> dict[str, Tensor]:
        """Read the network's state from a checkpoint.

        Args:
            source: As of the option ``weights``; a checkpoint may be open already, and is a path
                then.

        Raises:
            CheckpointMismatchError: It is missing, unreadable, or damaged.
        """
        return dict(checkpoints.open(source).tensors())

    @classmethod
    def weights_problems(cls, network: nn.Module, checkpoint: Checkpoint) -> list[str]:
        """Say why a checkpoint does not fit, looking at names and shapes only.

        Args:
            network: Of what ``blank`` returns.
            checkpoint: What the option ``weights`` names.
        """
        return policy_weights_problems(network, checkpoint)

    # ---------------------------------------------------------------- before it is built

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Check ``model_config`` as far as that can be done without anything else.

        Raises:
            InvalidOptionsError: An option is unknown or invalid.
        """
        del options  # which are right, only a subclass knows

    @classmethod
    def blank(
        cls, options: Mapping[str, Any], spaces: Mapping[str, gym.Space] | None
    ) -> Self | None:
        """Return a policy for its names and shapes; None if they cannot be known.

        Args:
            options: ``model_config``.
            spaces: ``observation_space`` and ``action_space``, if they are known.

        Raises:
            InvalidOptionsError: The options are wrong, or do not fit the spaces.
        """
        if spaces is None:
            return None
        others = {k: v for k, v in options.items() if k not in MODULE_OPTIONS}
        return cls(model_config=others, **spaces)  # type: ignore[call-arg]  # RLlib's constructor

    @classmethod
    def spaces_of(cls, options: Mapping[str, Any]) -> dict[str, gym.Space] | None:
        """Return the spaces that a policy of these options plays in, if the options tell.

        Args:
            options: ``model_config``.

        Returns:
            ``observation_space`` and ``action_space``; None if the environment decides.
        """
        return None

    @classmethod
    def env_defaults(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return what options of ``MineStudioEnv`` are for this policy where the user gives none.

        Args:
            options: ``model_config``.
        """
        return {}


def _with_time(obs: Mapping[str, Any]) -> dict[str, Any]:
    """Give every part a time axis of one step."""
    return {
        name: _with_time(value) if isinstance(value, Mapping) else value[:, None]
        for name, value in obs.items()
    }
