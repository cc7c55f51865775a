"""VPT and ConvGRU as policies of RLlib's new API stack."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.utils.annotations import override
from torch import Tensor, nn
from typing_extensions import Self

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.names import NUM_BUTTONS
from rllib_minestudio.foundation.observations import (
    IMAGE,
    SEPARATOR,
    ObservationPart,
    flattened,
    parts_of,
)
from rllib_minestudio.foundation.options import broken_rule, shown
from rllib_minestudio.models.acting import FLOAT32, Decision, State
from rllib_minestudio.models.conv_gru import ConvGRUConfig, ConvGRUNetwork, Values, is_frame
from rllib_minestudio.models.distributions import ActionDistribution, JointCategorical
from rllib_minestudio.models.policy import LOGITS, MODULE_OPTIONS, VALUE, RecurrentRLModule
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork, VPTState
from rllib_minestudio.models.vpt.acting import InferenceSession
from rllib_minestudio.models.vpt.config import COMPUTE_FIELDS, is_published_size
from rllib_minestudio.models.vpt.network import (
    BUTTON_SIZES,
    CAMERA_SIZES,
    NUM_CAMERA,
    ActionHeads,
    FactoredHead,
    JointHead,
)
from rllib_minestudio.models.vpt.weights import config_from_options, policy_part, weights_problems

__all__ = ["LOGITS", "MODULE_OPTIONS", "VALUE", "VPTRLModule", "spaces_of"]


class VPTRLModule(RecurrentRLModule):
    """Adapts `VPTNetwork` to RLlib; see `RecurrentRLModule`.

    `model_config` also takes the options of `VPTConfig.from_options`. `weights` may have any form
    in `checkpoints/checkpoint.py`, and decide the sizes. The network reads only `image`, uint8 [B,
    T, H, W, 3]. The memory has the fields of `VPTState`.
    """

    network: VPTNetwork

    acting_options = ("temperature", *COMPUTE_FIELDS)

    @override(RecurrentRLModule)
    def setup(self) -> None:
        """Open the weights once: they may determine sizes before their tensors are loaded."""
        weights = (self.model_config or {}).get("weights")
        if weights is not None:
            self.model_config = {**self.model_config, "weights": checkpoints.open(weights)}
        super().setup()

    @override(RecurrentRLModule)
    def build_network(self, options: dict[str, Any]) -> VPTNetwork:
        """Build the network after checking the spaces against its options.

        Without `img_shape` and without weights, images have the environment's shape.
        """
        weights = (self.model_config or {}).get("weights")
        if "img_shape" not in options and weights is None:
            options = {**_image_option(self.observation_space), **options}
        config = config_from_options({**options, "weights": weights}, other_names=MODULE_OPTIONS)
        problems = _space_problems(self.observation_space, self.action_space, config)
        if problems:
            raise InvalidOptionsError(problems)
        return VPTNetwork(config)

    @override(RecurrentRLModule)
    def full_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return all fields, including sizes that the weights determined."""
        return dataclasses.asdict(self.network.config)

    @property
    def precision(self) -> str:  # type: ignore[override]
        """The trunk's precision."""
        return self.network.config.precision

    @property
    def memory_length(self) -> int:  # type: ignore[override]
        """The number of frames that a frame can attend to: the first layer remembers no more."""
        return self.network.config.memory_length

    @property
    def observation_parts(self) -> dict[str, ObservationPart]:
        """Only the image."""
        return {IMAGE: ObservationPart(self.network.config.img_shape, np.dtype(np.uint8))}

    @override(RecurrentRLModule)
    def initial_state(self, batch: int) -> State:
        """Return the fields of an empty `VPTState`."""
        return self.network.initial_state(batch)._asdict()

    @override(RecurrentRLModule)
    def latent(
        self, obs: Mapping[str, Any], first_bt: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Return the trunk's output [B, T, hidsize], and the memory after the chunk."""
        latent_bte, after = self.network.net(obs[IMAGE], first_bt, VPTState(**state))
        return latent_bte, after._asdict()

    @property
    def action_head(self) -> nn.Module:
        """The two heads of VPT."""
        return self.network.pi_head

    @override(RecurrentRLModule)
    def make_rollout_session(self, num_envs: int) -> VPTRolloutSession:
        """Return a fast session, with its memory on the module's device."""
        return VPTRolloutSession(self.network, num_envs)

    @classmethod
    def read_weights(cls, source: Any) -> dict[str, Tensor]:
        """Read a checkpoint in any form in which VPT's weights are published."""
        return policy_part(checkpoints.open(source).tensors())

    @classmethod
    def weights_problems(cls, network: nn.Module, checkpoint: Checkpoint) -> list[str]:
        """Report why a checkpoint of any form does not fit."""
        assert isinstance(network, VPTNetwork)
        return weights_problems(network.config, checkpoint)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Check the names and values of all options."""
        sizes = {name: value for name, value in options.items() if name not in MODULE_OPTIONS}
        VPTConfig.from_options(sizes, other_names=MODULE_OPTIONS)

    @classmethod
    def blank(cls, options: Mapping[str, Any], spaces: Mapping[str, gym.Space] | None) -> Self:
        """Return a policy on the meta device; the options alone determine it."""
        config = config_from_options(options, MODULE_OPTIONS)
        with torch.device("meta"):
            return cls(model_config=dataclasses.asdict(config), **spaces_of(config))

    @classmethod
    def env_defaults(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the size of frames if weights decide it, and the sampling that OpenAI's saw."""
        config = config_from_options(options, MODULE_OPTIONS)
        height, width, _ = config.img_shape
        size = {} if options.get("weights") is None else {"obs_size": [width, height]}
        return {**size, **({"sampling": "samples"} if is_published_size(config) else {})}

    @classmethod
    def space_problems(
        cls, options: Mapping[str, Any], spaces: Mapping[str, gym.Space]
    ) -> list[str]:
        """Report frames of another size, or an environment without MineStudio's spaces."""
        observation, action = spaces["observation_space"], spaces["action_space"]
        if "img_shape" not in options and options.get("weights") is None:
            options = {**_image_option(observation), **options}
        config = config_from_options(options, MODULE_OPTIONS)
        return _space_problems(observation, action, config)

    @classmethod
    def spaces_of(cls, options: Mapping[str, Any]) -> dict[str, gym.Space]:
        """Return the spaces of images of the network's size and of VPT's tokens."""
        return spaces_of(config_from_options(options, MODULE_OPTIONS))


class VPTRolloutSession:
    """Adapts `InferenceSession` of `vpt/acting.py` to `RolloutSession`."""

    def __init__(self, network: VPTNetwork, num_envs: int) -> None:
        self._session = InferenceSession(network, num_envs)

    def act(self, obs: Mapping[str, Any], first_b: Tensor, **how: Any) -> Decision:
        """See `rollout.RolloutSession.act`."""
        decision = self._session.act(obs[IMAGE], first_b, **how)
        return Decision(
            {name: tokens[:, 0] for name, tokens in decision.actions.items()},
            decision.log_prob_b,
            decision.value_b,
            ActionDistribution({n: JointCategorical(s) for n, s in decision.logits.items()}),
        )

    def value(self, obs: Mapping[str, Any], first_b: Tensor, rows: Tensor | None = None) -> Tensor:
        """See `rollout.RolloutSession.value`."""
        return self._session.value(obs[IMAGE], first_b, rows)

    def state(self, rows: Tensor | None = None) -> State:
        """See `rollout.RolloutSession.state`."""
        return self._session.state(rows)._asdict()

    def load_state(self, state: State) -> None:
        """See `rollout.RolloutSession.load_state`."""
        self._session.load_state(VPTState(**state))


def spaces_of(config: VPTConfig) -> dict[str, gym.Space]:
    """Return a network's spaces, as keyword arguments of its module."""
    image = gym.spaces.Box(0, 255, config.img_shape, np.uint8)
    return {
        "observation_space": gym.spaces.Dict({IMAGE: image}),
        "action_space": _action_space(),
    }


def _action_space() -> gym.spaces.Dict:
    return gym.spaces.Dict(
        buttons=gym.spaces.MultiDiscrete([NUM_BUTTONS]),
        camera=gym.spaces.MultiDiscrete([NUM_CAMERA]),
    )


def has_spaces_of_vpt(observation_space: gym.Space, action_space: gym.Space) -> bool:
    """Whether an environment has MineStudio's frames, of any size, and its tokens."""
    return _frame_space(observation_space) is not None and action_space == _action_space()


def _frame_space(observation: gym.Space) -> gym.spaces.Box | None:
    """Return the space of an environment's frames; None if it has none."""
    image = observation.get(IMAGE) if isinstance(observation, gym.spaces.Dict) else None
    if isinstance(image, gym.spaces.Box) and image.dtype == np.uint8 and len(image.shape) == 3:
        return image
    return None


def _image_option(observation: gym.Space) -> dict[str, Any]:
    """Return the environment's `img_shape` as an option; empty if it has no images."""
    image = observation.get(IMAGE) if isinstance(observation, gym.spaces.Dict) else None
    return {"img_shape": image.shape} if image is not None and len(image.shape) == 3 else {}


def _space_problems(observation: gym.Space, action: gym.Space, config: VPTConfig) -> list[str]:
    """Return one sentence for each way in which an environment does not fit the model."""
    problems = []
    image, expected = _frame_space(observation), _action_space()
    height, width, _ = config.img_shape
    if image is None and action != expected:
        return [
            "The policy is VPT, which reads frames (image, uint8 (height, width, 3)) and acts in "
            f"MineStudio's tokens ({expected}), but the environment has observations "
            f"{shown(observation)} and actions {shown(action)}: leave module_class out, or set it "
            "to ConvGRU or to a policy of your own."
        ]
    if image is None:
        problems.append(
            f"The model reads Dict(image: Box(0, 255, {config.img_shape}, uint8)) observations, "
            f"but the environment's space is {observation}."
        )
    elif image.shape != config.img_shape:
        problems.append(
            f"The environment's images are {image.shape} (height, width, channels), but the model "
            f"reads {config.img_shape}: set the environment's obs_size to [{width}, {height}] "
            f"(width, height), or, without weights, the model's img_shape to {list(image.shape)}."
        )
    if action is not None and action != expected:
        problems.append(
            f"The model acts in {expected}, but the environment's action space is {action}: "
            f'set the environment\'s action_type to "agent".'
        )
    return problems


# ------------ ConvGRU as a policy of RLlib's new API stack, and an example of how little that takes


class ConvGRURLModule(RecurrentRLModule):
    """A small policy: convolutions, a GRU, factored heads; see `RecurrentRLModule`.

    `model_config` also takes the fields of `ConvGRUConfig`. The policy reads every part of the
    observation: frames with convolutions, one-dimensional uint8 as text, the values of Discrete
    and MultiDiscrete one by one, everything else as numbers. The memory is `hidden`
    [B, hidden_size].
    """

    network: ConvGRUNetwork

    precision = FLOAT32
    memory_length = 64
    acting_options = ("temperature",)

    @override(RecurrentRLModule)
    def build_network(self, options: dict[str, Any]) -> ConvGRUNetwork:
        """Build the network for the parts that the observation space has."""
        config = ConvGRUConfig.from_options(options)
        parts = parts_of(self.observation_space)
        for name, part in parts.items():
            if is_frame(part) and (side := config.least_side_for(part)) is not None:
                rule = (
                    f"must be at least {side} pixels each way, which these kernels and strides "
                    "need: leave them out, or choose smaller ones"
                )
                raise InvalidOptionsError(
                    broken_rule(f"The environment's {name}", part.shape, rule)
                )
        heads = heads_for(self.action_space, config.hidden_size, config.temperature)
        return ConvGRUNetwork(config, parts, heads, values_of(self.observation_space))

    @override(RecurrentRLModule)
    def full_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return all fields of the configuration."""
        options_by_name = asdict(self.network.config)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in options_by_name.items()}

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Check the names and values of all options."""
        own = {name: value for name, value in options.items() if name not in MODULE_OPTIONS}
        ConvGRUConfig.from_options(own)

    @classmethod
    def blank(
        cls, options: Mapping[str, Any], spaces: Mapping[str, gym.Space] | None
    ) -> Self | None:
        """Return a policy on the meta device, where no size is too large."""
        with torch.device("meta"):
            return super().blank(options, spaces)


def values_of(space: gym.spaces.Dict) -> dict[str, Values]:
    """Return the values of the parts of an observation that are choices, not quantities."""
    found = {}
    for name, inner in flattened(space.spaces).items():
        if isinstance(inner, gym.spaces.Discrete):
            found[name] = Values((int(inner.n),), (int(inner.start),))
        elif isinstance(inner, gym.spaces.MultiDiscrete):
            sizes, starts = (np.asarray(n).flatten().tolist() for n in (inner.nvec, inner.start))
            found[name] = Values(tuple(sizes), tuple(starts))
    return found


# ---------------------------------------------------------- the heads that an action space asks for


def heads_for(space: gym.Space, width: int, temperature: float = 1.0) -> ActionHeads:
    """Return one head per entry of an action space.

    VPT's tokens are scored by the key groups and bins that they consist of, others one by one.

    Args:
        space: A `Dict` of `Discrete`, or `MultiDiscrete` of one number.
        width: Size of the latent that the heads read.
        temperature: Divides the logits.

    Raises:
        InvalidOptionsError: The space is of another kind, or a key cannot name a head.
    """
    heads: dict[str, nn.Module] = {}
    for name, choices in choices_of(space).items():
        if not name or SEPARATOR in name or hasattr(nn.ModuleDict(), name):
            rule = "must be another word, as PyTorch cannot call a part of the network so"
            raise InvalidOptionsError(broken_rule("A key of the action space", name, rule))
        if (name, choices) == ("buttons", NUM_BUTTONS):
            heads[name] = FactoredHead(width, BUTTON_SIZES, temperature, exclusive=True)
        elif (name, choices) == ("camera", NUM_CAMERA):
            heads[name] = FactoredHead(width, CAMERA_SIZES, temperature)
        else:
            heads[name] = JointHead(width, choices, temperature)
    return ActionHeads(heads)


def choices_of(space: gym.Space) -> dict[str, int]:
    """Return the number of tokens of every head of an action space.

    Raises:
        InvalidOptionsError: It is not a `Dict` of `Discrete`, or of `MultiDiscrete` of one number.
    """
    if isinstance(space, gym.spaces.Dict) and space.spaces:
        found = {name: _choices(inner) for name, inner in space.spaces.items()}
        if all(found.values()):
            return found
    raise InvalidOptionsError(
        broken_rule(
            "The environment's action space",
            space,
            "must be a Dict of Discrete, or of MultiDiscrete of one number each, as that of "
            'MineStudioEnv with action_type "agent"',
        )
    )


def _choices(space: gym.Space) -> int:
    """The number of tokens; 0 for any other space."""
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return int(space.n)
    if isinstance(space, gym.spaces.MultiDiscrete) and space.shape == (1,):
        return int(np.asarray(space.nvec).item())
    return 0
