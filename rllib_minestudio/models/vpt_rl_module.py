"""VPT as an RLModule of RLlib's new API stack."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.annotations import override
from torch import Tensor

from rllib_minestudio.buttons import NUM_BUTTONS
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork, VPTOutput
from rllib_minestudio.models.vpt.fine_tuning import freeze
from rllib_minestudio.models.vpt.heads import NUM_CAMERA
from rllib_minestudio.models.vpt.rollout_session import RolloutSession
from rllib_minestudio.models.vpt.sampling import sample
from rllib_minestudio.models.vpt.weight_loading import (
    config_from_options,
    load_strictly,
    load_weights,
)
from rllib_minestudio.models.vpt_rl_module_batch import IMAGE, unpack

LOGITS = "logits"
"""Output key of ``forward_train``: per head [B, T, N] normalised log-probabilities."""

VALUE = "value"
"""Output key of ``forward_train``: [B, T] value in the value head's normalised units."""

MODULE_OPTIONS = ("weights", "zero_init_value_head", "freeze")
"""Options of the module itself; all others are ``VPTConfig``'s."""

_OPTIONS_OF_OTHERS = frozenset({"vf_share_layers", "twin_q", "double_q", "dueling", "num_atoms"})
"""What RLlib 2.60's algorithms add to every `model_config` (`_model_config_auto_includes`)."""


class VPTRLModule(TorchRLModule, ValueFunctionAPI):
    """Adapts ``VPTNetwork`` to RLlib.

    ``model_config`` takes the options of ``VPTConfig.from_options`` and

    - ``weights``: checkpoint to start from in any form of ``checkpoint_files.py``, loaded
      strictly; None: random weights. Without ``preset`` it also decides the sizes.
    - ``zero_init_value_head``: zero the value head, statistics included, after loading.
    - ``freeze``: list of shell patterns on parameter names (``fine_tuning.py``) that do not learn.

    Batches are [B, T, ...]: observations under ``Columns.OBS`` as ``{"image": uint8 [B, T, H, W,
    3]}``, ``"first"`` [B, T] bool, and under ``Columns.STATE_IN`` the fields of ``VPTState``, which
    is the ``Columns.STATE_OUT`` of the batch before. Tensors of any device and NumPy arrays will
    do. Without a state, episodes begin.

    Raises:
        InvalidBatchError: A batch has another layout (from every ``forward_...``).
        InvalidOptionsError: Unknown or invalid options, or spaces that do not fit the model.
        CheckpointMismatchError: The weights do not fit the model.
    """

    @override(TorchRLModule)
    def setup(self) -> None:
        """Builds the network from ``model_config`` and checks the spaces against it."""
        options = dict(self.model_config or {})
        _refuse_other_algorithms(options)
        config = config_from_options(options, other_names=MODULE_OPTIONS)
        problems = _space_problems(self.observation_space, self.action_space, config)
        if problems:
            raise InvalidOptionsError(problems)
        self.network = VPTNetwork(config)
        if options.get("weights") is not None:
            load_weights(self.network, options["weights"])
        if options.get("zero_init_value_head"):
            self.network.value_head.reset_to_zero()
        frozen = options.get("freeze") or ()
        freeze(self.network, frozen)
        # What a checkpoint of this module stores: restoring it must not need the first weights.
        self.model_config: dict[str, Any] = {
            **dataclasses.asdict(config),
            "freeze": list(frozen),
        }

    def make_rollout_session(self, num_envs: int) -> RolloutSession:
        """Returns a fast way to act step by step, whose memory stays on the module's device."""
        return RolloutSession(self.network, num_envs)

    @override(TorchRLModule)
    def get_initial_state(self) -> dict[str, Tensor]:
        """Returns the empty memory of one environment, without a batch axis."""
        return {name: tensor[0] for name, tensor in self.network.initial_state(1)._asdict().items()}

    @override(TorchRLModule)
    def _forward_exploration(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Samples actions; returns them with log-probability, value and the new state."""
        return self._act(batch, explore=True)

    @override(TorchRLModule)
    def _forward_inference(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Like exploration, with the most probable actions."""
        return self._act(batch, explore=False)

    @override(TorchRLModule)
    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Returns log-probabilities, values in both units, and the new state, with gradients."""
        output = self._run(batch)
        return {
            LOGITS: output.logits,
            VALUE: output.value_bt,
            Columns.VF_PREDS: self.network.value_head.denormalize(output.value_bt),
            Columns.STATE_OUT: output.state._asdict(),
        }

    @override(ValueFunctionAPI)
    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """Returns values [B, T] in the task's units; runs the network, ``embeddings`` is unused."""
        return self.network.value_head.denormalize(self._run(batch).value_bt)

    @override(TorchRLModule)
    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """Returns all weights and value statistics under MineStudio's names.

        RLlib's own version turns 0-d arrays into Python floats and narrows float64. Inference
        needs everything (values are predicted while sampling), so there is nothing to leave out.
        """
        return {
            name: tensor.detach().cpu().numpy().copy()
            for name, tensor in self.network.state_dict().items()
        }

    @override(TorchRLModule)
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Loads what ``get_state`` returned.

        Raises:
            CheckpointMismatchError: The state is of another network; RLlib's own version would
                load the keys that fit and ignore the others.
        """
        # What comes out of Ray's object store is read-only, which torch warns of.
        tensors = {
            name: torch.as_tensor(np.require(value, requirements="W"))
            for name, value in state.items()
        }
        load_strictly(self.network, tensors, source="The restored weights")

    def _run(self, batch: Mapping[str, Any]) -> VPTOutput:
        """Unpacks a batch and runs the network."""
        return self.network(*unpack(batch, self.network))

    @torch.no_grad()
    def _act(self, batch: Mapping[str, Any], *, explore: bool) -> dict[str, Any]:
        """Runs the network and chooses actions; returns what RLlib's env runner needs of a step."""
        output = self._run(batch)
        actions, log_prob = sample(output.logits, explore=explore)
        return {
            Columns.ACTIONS: actions,
            Columns.ACTION_LOGP: log_prob,
            Columns.VF_PREDS: self.network.value_head.denormalize(output.value_bt),
            Columns.STATE_OUT: output.state._asdict(),
        }


def spaces_of(config: VPTConfig) -> dict[str, gym.Space]:
    """Returns the spaces that a network plays in, as arguments of its module."""
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


def _refuse_other_algorithms(options: Mapping[str, Any]) -> None:
    """Refuse what RLlib's algorithms add to a module's options by themselves.

    Raises:
        InvalidOptionsError: There is any of it.
    """
    added = sorted(_OPTIONS_OF_OTHERS & options.keys())
    if added:
        raise InvalidOptionsError(
            f"model_config has {', '.join(added)}, which RLlib's own algorithms (PPO, APPO, DQN, "
            "SAC, ...) add: their runners and learners cannot carry VPT's memory. Train a "
            "VPTRLModule with MineStudioPPO or MineStudioBC; their network is the default, and "
            "its options are training(model=...)."
        )


def _space_problems(observation: gym.Space, action: gym.Space, config: VPTConfig) -> list[str]:
    """Returns one sentence for each way in which an environment does not fit the model."""
    problems = []
    image = observation.get(IMAGE) if isinstance(observation, gym.spaces.Dict) else None
    height, width, _ = config.img_shape
    if not isinstance(image, gym.spaces.Box) or image.dtype != np.uint8 or len(image.shape) != 3:
        problems.append(
            f"The model reads Dict(image: Box(0, 255, {config.img_shape}, uint8)) observations, "
            f"but the environment's space is {observation}."
        )
    elif image.shape != config.img_shape:
        problems.append(
            f"The environment's images are {image.shape} (height, width, channels), but the model "
            f"reads {config.img_shape}: set the environment's obs_size to [{width}, {height}] "
            f"(width, height), or the model's img_shape to {list(image.shape)}."
        )
    expected = _action_space()
    if action is not None and action != expected:
        problems.append(
            f"The model acts in {expected}, but the environment's action space is {action}: "
            f'set the environment\'s action_type to "agent".'
        )
    return problems
