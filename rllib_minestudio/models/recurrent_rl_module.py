"""The base of every policy that this package trains: an RLModule with a memory.

What a policy must offer is four members (`recurrent_policy.py`); what RLlib, env runners and
learners ask for follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.annotations import override
from ray.util.debug import log_once
from torch import Tensor

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.action_distribution import ActionDistribution
from rllib_minestudio.models.fine_tuning import freeze
from rllib_minestudio.models.recurrent_batch import UnpackedBatch, unpack
from rllib_minestudio.models.recurrent_policy import MODULE_OPTIONS, RecurrentPolicy
from rllib_minestudio.models.rollout import State
from rllib_minestudio.models.strict_loading import load_strictly
from rllib_minestudio.observations import ObservationPart

ACTION_DIST = "action_dist"
"""Output key of ``forward_train``: an ``ActionDistribution`` [B, T]."""

LOGITS = "logits"
"""Output key of ``forward_train``: per head [B, T, N] normalised log-probabilities of all joint
actions. Each is computed when it is read; what samples and scores actions is ``ACTION_DIST``."""

VALUE = "value"
"""Output key of ``forward_train``: [B, T] value in the value head's normalised units."""

_OPTIONS_OF_OTHERS = frozenset({"vf_share_layers", "twin_q", "double_q", "dueling", "num_atoms"})
"""What RLlib 2.60's algorithms add to every `model_config` (`_model_config_auto_includes`)."""

# RLlib 2.60's RLModule constructs this class itself, and warns of it as if its user had. Called
# before, `log_once` takes the warning for given.
log_once("RLModule(config=[RLModuleConfig object])")


class RecurrentRLModule(RecurrentPolicy, TorchRLModule, ValueFunctionAPI):
    """A policy with a memory, as RLlib wants it; what a subclass has to offer, its base says.

    ``model_config`` holds the network's options and

    - ``weights``: a checkpoint to start from, loaded strictly; None: random weights.
    - ``zero_init_value_head``: zero the value head, statistics included, after loading.
    - ``freeze``: list of shell patterns on parameter names (``fine_tuning.py``) that do not learn.

    Batches are [B, T, ...]: observations under ``Columns.OBS``, nested as the environment's,
    ``"first"`` [B, T] bool, and under ``Columns.STATE_IN`` what was the ``Columns.STATE_OUT`` of
    the batch before. Tensors of any device and NumPy arrays will do. Without a state, episodes
    begin.

    Raises:
        InvalidBatchError: A batch has another layout (from every ``forward_...``).
        InvalidOptionsError: Unknown or invalid options, or spaces that do not fit the policy.
        CheckpointMismatchError: The weights do not fit the policy.
    """

    @override(TorchRLModule)
    def setup(self) -> None:
        """Builds the network from ``model_config``, and loads and freezes what that asks for."""
        options = dict(self.model_config or {})
        _refuse_other_algorithms(options)
        own = {name: options[name] for name in options if name not in MODULE_OPTIONS}
        self.network = self.build_network(own)
        if options.get("weights") is not None:
            self.load_weights(options["weights"])
        if options.get("zero_init_value_head"):
            self.value_head.reset_to_zero()
        frozen = options.get("freeze") or ()
        freeze(self.network, frozen)
        # What a checkpoint of this module stores: restoring it must not need the first weights.
        self.model_config: dict[str, Any] = {**self.full_options(own), "freeze": list(frozen)}

    @override(TorchRLModule)
    def get_initial_state(self) -> dict[str, Tensor]:
        """Returns the empty memory of one environment, without a batch axis."""
        return {name: tensor[0] for name, tensor in self.initial_state(1).items()}

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
        """Returns the distribution, values in both units, and the new state, with gradients."""
        latent_bte, state = self._look(batch)
        distribution, value_bt = self.action_head(latent_bte), self.value_head(latent_bte)
        return {
            ACTION_DIST: distribution,
            LOGITS: distribution.logits,
            VALUE: value_bt,
            Columns.VF_PREDS: self.value_head.denormalize(value_bt),
            Columns.STATE_OUT: state,
        }

    @override(ValueFunctionAPI)
    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """Returns values [B, T] in the task's units; runs the network, ``embeddings`` is unused."""
        latent_bte, _ = self._look(batch)
        return self.value_head.denormalize(self.value_head(latent_bte))

    @override(TorchRLModule)
    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """Returns all weights and value statistics, under the names they have in the network.

        RLlib's own version turns 0-d arrays into Python floats and narrows float64. Inference
        needs everything (values are predicted while sampling), so there is nothing to leave out.
        """
        state = self.network.state_dict()
        copies = {name: _copy_on_host(tensor) for name, tensor in state.items()}
        if any(tensor.is_cuda for tensor in state.values()):
            torch.cuda.current_stream(self.device).synchronize()
        return {name: copy.numpy() for name, copy in copies.items()}

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

    # ---------------------------------------------------------------- inside

    @cached_property
    def _parts(self) -> dict[str, ObservationPart]:
        return self.observation_parts

    @cached_property
    def _state_parts(self) -> dict[str, Tensor]:
        return self.get_initial_state()

    def _look(self, batch: Mapping[str, Any]) -> tuple[Tensor, State]:
        """Unpacks a batch and runs the network up to its heads."""
        given: UnpackedBatch = unpack(batch, self._parts, self._state_parts, self.device)
        state = given.state
        if state is None:
            state = self.initial_state(len(given.first_bt))
        return self.latent(given.obs, given.first_bt, state)

    @torch.no_grad()
    def _act(self, batch: Mapping[str, Any], *, explore: bool) -> dict[str, Any]:
        """Runs the network and chooses actions; returns what RLlib's env runner needs of a step."""
        latent_bte, state = self._look(batch)
        distribution: ActionDistribution = self.action_head(latent_bte)
        chosen = distribution.sample() if explore else distribution.mode()
        return {
            Columns.ACTIONS: {name: t.unsqueeze(-1) for name, t in chosen.actions.items()},
            Columns.ACTION_LOGP: chosen.log_prob,
            Columns.VF_PREDS: self.value_head.denormalize(self.value_head(latent_bte)),
            Columns.STATE_OUT: state,
        }


def _copy_on_host(tensor: Tensor) -> Tensor:
    """A copy of a tensor in host memory.

    From a GPU the copy is asynchronous, into pinned memory, which torch reuses once the copy is
    freed: the caller synchronizes the stream once for all tensors of a module. Each such wait is
    long where env runners share the GPU.
    """
    pinned = tensor.is_cuda
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=pinned)
    return host.copy_(tensor.detach(), non_blocking=pinned)


def _refuse_other_algorithms(options: Mapping[str, Any]) -> None:
    """Refuse what RLlib's algorithms add to a module's options by themselves.

    Raises:
        InvalidOptionsError: There is any of it.
    """
    added = sorted(_OPTIONS_OF_OTHERS & options.keys())
    if added:
        raise InvalidOptionsError(
            f"model_config has {', '.join(added)}, which RLlib's own algorithms (PPO, APPO, DQN, "
            "SAC, ...) add: their runners and learners cannot carry a policy's memory. Train it "
            "with MineStudioPPO or MineStudioBC; the network's options are training(model=...)."
        )
