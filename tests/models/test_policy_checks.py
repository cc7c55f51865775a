"""The contract that every policy keeps, and that policies which break it are found out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rllib_minestudio.errors import PolicyContractError
from rllib_minestudio.models.policy import RecurrentRLModule
from rllib_minestudio.models.policy_checks import POLICY_CHECKS, check_policy
from rllib_minestudio.models.rl_modules import ConvGRURLModule, VPTRLModule, heads_for
from rllib_minestudio.models.value_head import ValueHead

TOKENS = gym.spaces.Dict(
    buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
)
FEW_TOKENS = gym.spaces.Dict(left=gym.spaces.Discrete(3), right=gym.spaces.MultiDiscrete([4]))


def _frames(side: int) -> gym.spaces.Box:
    return gym.spaces.Box(0, 255, (side, side, 3), np.uint8)


MANY_PARTS = gym.spaces.Dict(
    image=_frames(36),
    task_text=gym.spaces.Box(0, 255, (8,), np.uint8),
    keys=gym.spaces.Box(0, 255, (4,), np.uint8),
    before=gym.spaces.Dict(jump=gym.spaces.Discrete(2), camera=gym.spaces.Box(-180, 180, (2,))),
)


class LSTMNetwork(nn.Module):
    """What a user would write first: PyTorch's LSTM over numbers, without anything of ours."""

    def __init__(self, numbers: int, size: int, action_space: gym.Space) -> None:
        super().__init__()
        self.size = size
        self.lstm = nn.LSTMCell(numbers, size)
        self.action_head = heads_for(action_space, size)
        self.value_head = ValueHead(size)

    def initial_state(self, batch: int) -> dict[str, Tensor]:
        zeros = self.lstm.weight_ih.new_zeros(batch, self.size)
        return {"hidden": zeros, "cell": zeros.clone()}

    def forward(
        self, obs: Mapping[str, Any], first_bt: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        hidden, cell = state["hidden"], state["cell"]
        latents = []
        for t in range(first_bt.shape[1]):
            keep = (~first_bt[:, t, None]).float()
            hidden, cell = self.lstm(obs["numbers"][:, t], (hidden * keep, cell * keep))
            latents.append(hidden)
        return torch.stack(latents, dim=1), {"hidden": hidden, "cell": cell}


class LSTMPolicy(RecurrentRLModule):
    """A policy of one's own, whole."""

    def build_network(self, options: dict[str, Any]) -> LSTMNetwork:
        numbers = self.observation_space["numbers"].shape[0]
        return LSTMNetwork(numbers, options.get("size", 16), self.action_space)


def make_lstm(policy: type[LSTMPolicy] = LSTMPolicy) -> LSTMPolicy:
    return policy(
        observation_space=gym.spaces.Dict(numbers=gym.spaces.Box(-1, 1, (5,), np.float32)),
        action_space=FEW_TOKENS,
        model_config={"size": 16},
    )


def make_conv_gru() -> ConvGRURLModule:
    options = {"hidden_size": 16, "channels": [4, 4, 4], "text_size": 4}
    return ConvGRURLModule(observation_space=MANY_PARTS, action_space=TOKENS, model_config=options)


def make_vpt(**options: Any) -> VPTRLModule:
    options = {
        **{"preset": "nano", "img_shape": [16, 16, 3], "impala_width": 0.25, "hidsize": 16},
        **{"attention_heads": 2, "attention_memory_size": 12, "timesteps": 6},
        **options,
    }
    space = gym.spaces.Dict(image=_frames(16))
    return VPTRLModule(observation_space=space, action_space=TOKENS, model_config=options)


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "make",
    [make_vpt, lambda: make_vpt(action_head="joint"), make_conv_gru, make_lstm],
    ids=["VPT", "VPT-joint", "ConvGRU", "LSTM"],
)
def test_policies_keep_the_contract(
    make: Callable[[], RecurrentRLModule], check: Callable[[Any], None]
) -> None:
    """VPT with both kinds of heads, ConvGRU with all kinds of parts, and a user's own."""
    torch.manual_seed(0)
    check(make)


# ---------------------------------------------------------------- policies that break it


class ForgetsNothing(LSTMPolicy):
    """Carries its memory from one episode into the next."""

    def latent(self, obs: Any, first_bt: Tensor, state: Any) -> Any:
        return self.network(obs, torch.zeros_like(first_bt), state)


class ForgetsBetweenChunks(LSTMPolicy):
    """Returns the memory that it was given."""

    def latent(self, obs: Any, first_bt: Tensor, state: Any) -> Any:
        return self.network(obs, first_bt, state)[0], state


class LooksAhead(LSTMPolicy):
    """Sees the mean of the chunk, the future included."""

    def latent(self, obs: Any, first_bt: Tensor, state: Any) -> Any:
        latent, state = self.network(obs, first_bt, state)
        return latent + latent.mean(dim=1, keepdim=True), state


class MixesRows(LSTMPolicy):
    """Normalises over the batch."""

    def latent(self, obs: Any, first_bt: Tensor, state: Any) -> Any:
        latent, state = self.network(obs, first_bt, state)
        return latent - latent.mean(dim=0, keepdim=True), state


class DropsOut(LSTMPolicy):
    """Is another policy when it learns than when it plays."""

    def latent(self, obs: Any, first_bt: Tensor, state: Any) -> Any:
        latent, state = self.network(obs, first_bt, state)
        return nn.functional.dropout(latent, 0.5, self.training), state


class HasNoMemory(LSTMPolicy):
    """Has a state and does not use it."""

    def latent(self, obs: Any, first_bt: Tensor, state: Any) -> Any:
        return self.network(obs, torch.ones_like(first_bt), state)[0], state


class LearnsBesideItsNetwork(LSTMPolicy):
    """Keeps a parameter where nobody saves it."""

    def setup(self) -> None:
        super().setup()
        self.scale = nn.Parameter(torch.ones(1))


class DetachesItsLatent(LSTMPolicy):
    """Only its heads learn."""

    def latent(self, obs: Any, first_bt: Tensor, state: Any) -> Any:
        latent, state = self.network(obs, first_bt, state)
        return latent.detach(), state


class SwapsItsHeads(LSTMPolicy):
    """Names its heads in another order than the action space."""

    def build_network(self, options: dict[str, Any]) -> LSTMNetwork:
        heads = dict(reversed(self.action_space.spaces.items()))
        network = super().build_network(options)
        network.action_head = heads_for(_unsorted(heads), 16)
        return network


def _unsorted(heads: dict[str, gym.Space]) -> gym.spaces.Dict:
    space = gym.spaces.Dict(heads)
    space.spaces = heads
    return space


class ActsOtherwise(LSTMPolicy):
    """Plays with another memory than it learns with."""

    def make_rollout_session(self, num_envs: int) -> Any:
        session = super().make_rollout_session(num_envs)
        session.load_state({n: t + 1 for n, t in self.initial_state(num_envs).items()})
        return session


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        (ForgetsNothing, "after another one is off by"),
        (ForgetsBetweenChunks, "in chunks of 1 instead of 11 is off by"),
        (LooksAhead, "is off by"),
        (MixesRows, "on its own is off by"),
        (DropsOut, "is off by"),
        (HasNoMemory, "must use it"),
        (LearnsBesideItsNetwork, "outside `network`"),
        (DetachesItsLatent, "gets no gradient"),
        (SwapsItsHeads, "names and order"),
        (ActsOtherwise, "step 0"),
    ],
)
def test_policies_that_break_the_contract_are_found_out(
    policy: type[LSTMPolicy], complaint: str
) -> None:
    """Each breaks one rule, and the message says which."""
    torch.manual_seed(0)
    with pytest.raises(PolicyContractError, match=complaint):
        check_policy(lambda: make_lstm(policy))
