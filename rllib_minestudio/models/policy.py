"""The base class of every policy that this package trains: an RLModule with a memory.

A policy provides four members (`RecurrentPolicy`). Everything that RLlib, env runners and learners
need follows from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.annotations import override
from ray.util.debug import log_once
from torch import Tensor, nn
from typing_extensions import Self

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.checkpoint import OPTIONS, POLICY
from rllib_minestudio.errors import CheckpointMismatchError, InvalidBatchError, InvalidOptionsError
from rllib_minestudio.foundation.observations import ObservationPart, keys_of, nested, parts_of
from rllib_minestudio.models.acting import PolicyStep, RolloutSession, State, SteppingSession
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.fine_tuning import freeze
from rllib_minestudio.models.strict_loading import compare, load_strictly, mismatches
from rllib_minestudio.models.tempering import at_temperature
from rllib_minestudio.models.value_head import ValueHead
from rllib_minestudio.models.vpt.weights import write_plain

# -------------------------- weights of a policy of any class, in the forms that this package writes
# These are: a checkpoint folder of an algorithm, its `policy`, a folder with `network.json` and
# `model.safetensors`, or a state dict in a file of safetensors or `torch.save`. VPT's weights are
# published in more forms, which `vpt/weights.py` reads.


def policy_weights_problems(network: nn.Module, checkpoint: Checkpoint) -> list[str]:
    """Report why a checkpoint does not fit a network, by names and shapes only.

    Returns:
        One message per problem; an empty list if the checkpoint could be loaded, unless its values
        are damaged, which is not checked.
    """
    try:
        comparison = compare(network.state_dict(), checkpoint.tensors())
    except CheckpointMismatchError as error:
        return [str(error)]
    return mismatches(comparison, f"weights {checkpoint.name!r}")


def copy_policy(
    checkpoint: Checkpoint,
    folder: Path,
    policy: str,
    options: Mapping[str, Any],
    temperature: float | None = None,
) -> None:
    """Copy a checkpoint's weights, with their class and options, into a new folder without pickle.

    Args:
        checkpoint: The original.
        folder: Created if necessary.
        policy: The class, by name or import path.
        options: Its `model_config`, plain.
        temperature: Divides the copy's logits.

    Raises:
        CheckpointError: The folder cannot be written.
        CheckpointMismatchError: The checkpoint is invalid, the folder already holds a model, or the
            temperature of the policy's heads cannot be changed.
        InvalidOptionsError: The temperature is invalid.
    """
    state = {name: t.contiguous() for name, t in checkpoint.tensors().items()}
    if temperature is not None:
        state = at_temperature(state, temperature)
    write_plain(folder, state, {POLICY: policy, OPTIONS: dict(options)})


# ------------------------------------------------------------------------ the interface of a policy
# docs/policies.md describes it on one page. `RecurrentRLModule` adds what RLlib needs.

MODULE_OPTIONS = ("weights", "zero_init_value_head", "freeze")
"""Options of `model_config` that every policy has; all others are its network's."""


class RecurrentPolicy(ABC):
    """A policy with a memory.

    A subclass implements `build_network`. That is all if its network has
    `forward(obs, first_bt, state) -> (latent, state)`, `initial_state(batch)`, `action_head` and
    `value_head`. Otherwise it overrides `latent`, `initial_state`, `action_head` and `value_head`.

    Attributes:
        network: Holds all parameters that learn, under the names that checkpoints, `freeze` and
            `lr_factors` use.
        observation_space: The environment's.
        action_space: The environment's, a `Dict` of `Discrete` or `MultiDiscrete([n])`.
        precision: How a GPU multiplies float32 numbers, one of the values in
            `acting.py`; None leaves torch's settings alone.
        memory_length: The number of observations that rebuild the memory well enough: the default
            burn-in of demonstration windows.
        acting_options: Options of `model_config` that change how given weights act, and not which
            weights fit: `--set` can change them for a checkpoint.
    """

    network: nn.Module
    observation_space: gym.Space
    action_space: gym.Space
    precision: str | None = None
    memory_length: int = 64
    acting_options: tuple[str, ...] = ()

    @abstractmethod
    def build_network(self, options: dict[str, Any]) -> nn.Module:
        """Return the network, randomly initialised (torch's global generator).

        Args:
            options: `model_config` without `MODULE_OPTIONS`.

        Raises:
            InvalidOptionsError: An option is unknown or invalid, or `self.observation_space` or
                `self.action_space` does not fit.
        """

    def initial_state(self, batch: int) -> State:
        """Return empty memories of B environments, [B, ...] each, on the network's device."""
        return self.network.initial_state(batch)  # type: ignore[operator]

    def latent(
        self, obs: Mapping[str, Any], first_bt: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Run the network, up to its heads, on a chunk of T observations.

        The results must not depend on the lengths of chunks.

        Args:
            obs: Nested as in the environment, [B, T, ...] each.
            first_bt: [B, T] bool: where True, everything before is forgotten.
            state: Memory before the chunk.

        Returns:
            The latent that the heads read, [B, T, E] float32, and the memory after the chunk.
        """
        return self.network(obs, first_bt, state)

    @property
    def action_head(self) -> nn.Module:
        """The module that maps a latent to an `ActionDistribution` [B, T]."""
        return self.network.action_head  # type: ignore[return-value]

    @property
    def value_head(self) -> ValueHead:
        """The module that predicts normalised values [B, T] from a latent."""
        return self.network.value_head  # type: ignore[return-value]

    @property
    def observation_parts(self) -> dict[str, ObservationPart]:
        """The parts of an observation that the policy reads; by default all."""
        return parts_of(self.observation_space)

    def make_rollout_session(self, num_envs: int) -> RolloutSession:
        """Return a session that acts step by step, with its memory on the module's device."""
        return SteppingSession(self._step, self.initial_state(num_envs))

    def full_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options that build the same network without its initial weights."""
        return options

    @property
    def device(self) -> torch.device:
        """The network's device."""
        return next(self.network.parameters()).device

    def _step(self, obs: Mapping[str, Any], first_b: Tensor, state: State) -> PolicyStep:
        """Take one step in each of B environments, for `SteppingSession`."""
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
            source: As for the option `weights`, or an open checkpoint.

        Raises:
            CheckpointMismatchError: It is missing, unreadable, damaged, or holds another network.
        """
        load_strictly(self.network, self.read_weights(source), source=f"weights {str(source)!r}")

    @classmethod
    def read_weights(cls, source: Any) -> dict[str, Tensor]:
        """Read the network's state from a checkpoint.

        Args:
            source: As for the option `weights`, or an open checkpoint, which is also path-like.

        Raises:
            CheckpointMismatchError: It is missing, unreadable, or damaged.
        """
        return dict(checkpoints.open(source).tensors())

    @classmethod
    def weights_problems(cls, network: nn.Module, checkpoint: Checkpoint) -> list[str]:
        """Report why a checkpoint does not fit, by names and shapes only.

        Args:
            network: The network of a `blank` policy.
            checkpoint: What the option `weights` names.
        """
        return policy_weights_problems(network, checkpoint)

    # ---------------------------------------------------------------- before it is built

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Check `model_config` as far as possible without spaces and weights.

        Raises:
            InvalidOptionsError: An option is unknown or invalid.
        """
        del options  # only a subclass knows which are valid

    @classmethod
    def blank(
        cls, options: Mapping[str, Any], spaces: Mapping[str, gym.Space] | None
    ) -> Self | None:
        """Return a policy for its parameter names and shapes; None if they cannot be known.

        Args:
            options: `model_config`.
            spaces: `observation_space` and `action_space`, if they are known.

        Raises:
            InvalidOptionsError: The options are wrong, or do not fit the spaces.
        """
        if spaces is None:
            return None
        others = {k: v for k, v in options.items() if k not in MODULE_OPTIONS}
        return cls(model_config=others, **spaces)  # type: ignore[call-arg]  # RLlib's constructor

    @classmethod
    def space_problems(
        cls, options: Mapping[str, Any], spaces: Mapping[str, gym.Space]
    ) -> list[str]:
        """Report why an environment's spaces do not fit, if `blank` does not build with them.

        Args:
            options: `model_config`; `weights` may be an open checkpoint.
            spaces: `observation_space` and `action_space`.
        """
        return []

    @classmethod
    def spaces_of(cls, options: Mapping[str, Any]) -> dict[str, gym.Space] | None:
        """Return the spaces of a policy with these options, if the options determine them.

        Args:
            options: `model_config`.

        Returns:
            `observation_space` and `action_space`; None if the environment decides.
        """
        return None

    @classmethod
    def env_defaults(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return this policy's defaults for options of `MineStudioEnv`.

        Args:
            options: `model_config`.
        """
        return {}


def _with_time(obs: Mapping[str, Any]) -> dict[str, Any]:
    """Add a time axis of one step to every part."""
    return {
        name: _with_time(value) if isinstance(value, Mapping) else value[:, None]
        for name, value in obs.items()
    }


ACTION_DIST = "action_dist"
"""Output key of `forward_train`: an `ActionDistribution` [B, T]."""

LOGITS = "logits"
"""Output key of `forward_train`: per head [B, T, N] normalised log-probabilities of all joint
actions, each computed when it is read. Use `ACTION_DIST` to sample and score actions."""

VALUE = "value"
"""Output key of `forward_train`: [B, T] value in the value head's normalised units."""

_OPTIONS_OF_OTHERS = frozenset({"vf_share_layers", "twin_q", "double_q", "dueling", "num_atoms"})
"""Added by RLlib 2.60's algorithms to every `model_config` (`_model_config_auto_includes`)."""

# RLlib 2.60's RLModule constructs `RLModuleConfig` itself, yet warns as if the user had. Calling
# `log_once` first suppresses the warning.
log_once("RLModule(config=[RLModuleConfig object])")


class RecurrentRLModule(RecurrentPolicy, TorchRLModule, ValueFunctionAPI):
    """A policy with a memory as an RLModule; `RecurrentPolicy` lists what subclasses provide.

    `model_config` holds the network's options and:

    - `weights`: a checkpoint to start from, loaded strictly; None: random weights.
    - `zero_init_value_head`: zero the value head, statistics included, after loading.
    - `freeze`: shell patterns of the names of parameters that do not learn (`fine_tuning.py`).

    Batches are [B, T, ...]: observations under `Columns.OBS`, nested as in the environment;
    `"first"` [B, T] bool; and under `Columns.STATE_IN` the previous batch's `Columns.STATE_OUT`,
    without which episodes begin. Tensors on any device and NumPy arrays are accepted.

    Raises:
        InvalidBatchError: A batch has another layout (from every `forward_...`).
        InvalidOptionsError: Unknown or invalid options, or spaces that do not fit the policy.
        CheckpointMismatchError: The weights do not fit the policy.
    """

    @override(TorchRLModule)
    def setup(self) -> None:
        """Build the network, load its weights, and freeze parameters, all by `model_config`."""
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
        # Stored in this module's checkpoints: restoring one must not need the initial weights.
        self.model_config: dict[str, Any] = {**self.full_options(own), "freeze": list(frozen)}

    @override(TorchRLModule)
    def get_initial_state(self) -> dict[str, Tensor]:
        """Return the empty memory of one environment, without a batch axis."""
        return {name: tensor[0] for name, tensor in self.initial_state(1).items()}

    @override(TorchRLModule)
    def _forward_exploration(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Sample actions; return them with log-probability, value and the new state."""
        return self._act(batch, explore=True)

    @override(TorchRLModule)
    def _forward_inference(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Do as `_forward_exploration`, with the most probable actions."""
        return self._act(batch, explore=False)

    @override(TorchRLModule)
    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Return the distribution, values in both units, and the new state, with gradients."""
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
        """Run the network; return values [B, T] in the task's units. `embeddings` is unused."""
        latent_bte, _ = self._look(batch)
        return self.value_head.denormalize(self.value_head(latent_bte))

    @override(TorchRLModule)
    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """Return all weights and value statistics, under their names in the network.

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
        """Load what `get_state` returned.

        Raises:
            CheckpointMismatchError: The state belongs to another network; RLlib's own version would
                load the keys that fit and ignore the others.
        """
        # Arrays from Ray's object store are read-only, which torch warns about.
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
        """Unpack a batch and run the network up to its heads."""
        given: UnpackedBatch = unpack(batch, self._parts, self._state_parts, self.device)
        state = given.state
        if state is None:
            state = self.initial_state(len(given.first_bt))
        return self.latent(given.obs, given.first_bt, state)

    @torch.no_grad()
    def _act(self, batch: Mapping[str, Any], *, explore: bool) -> dict[str, Any]:
        """Run the network and choose actions; return what RLlib's env runner needs of a step."""
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
    """Copy a tensor to host memory.

    From a GPU the copy is asynchronous, into pinned memory that torch reuses once the copy is
    freed. The caller synchronizes the stream once for all tensors of a module, because each wait is
    long where env runners share the GPU.
    """
    pinned = tensor.is_cuda
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=pinned)
    return host.copy_(tensor.detach(), non_blocking=pinned)


def _refuse_other_algorithms(options: Mapping[str, Any]) -> None:
    """Refuse the options that RLlib's own algorithms add to a module.

    Raises:
        InvalidOptionsError: There are any.
    """
    added = sorted(_OPTIONS_OF_OTHERS & options.keys())
    if added:
        raise InvalidOptionsError(
            f"model_config has {', '.join(added)}, which RLlib's own algorithms (PPO, APPO, DQN, "
            "SAC, ...) add: their runners and learners cannot carry a policy's memory. Train it "
            "with MineStudioPPO or MineStudioBC; the network's options are training(model=...)."
        )


# ---------------------------------------------------------------------------- unpacking a batch

FIRST = "first"
"""Batch key, [B, T] bool: the observation begins an episode. Absent means that none does."""


class UnpackedBatch(NamedTuple):
    """The parts of a batch, as tensors on one device."""

    obs: dict[str, Any]
    """Nested as in the environment, [B, T, ...] each."""

    first_bt: Tensor
    """[B, T] bool."""

    state: dict[str, Tensor] | None
    """[B, ...] each; None if the batch has none."""


def unpack(
    batch: Mapping[str, Any],
    parts: Mapping[str, ObservationPart],
    state_parts: Mapping[str, Tensor],
    device: torch.device,
) -> UnpackedBatch:
    """Check a batch of tensors or NumPy arrays and move it to the module's device.

    Args:
        batch: Has `Columns.OBS`, and optionally `first` (without it, no observation begins an
            episode) and `Columns.STATE_IN` (without it, the first one of each row does).
        parts: The parts of an observation that the module reads.
        state_parts: The initial state of one environment, without a batch axis.
        device: The module's.

    Raises:
        InvalidBatchError: A part is missing, or has another shape or type.
    """
    obs = {name: _part(batch, name, part).to(device) for name, part in parts.items()}
    leading = next(iter(obs.items()))
    shape = leading[1].shape[:2]
    for name, tensor in obs.items():
        if tensor.shape[:2] != shape:
            raise InvalidBatchError(
                f"{Columns.OBS}.{name} is {_shown(tensor)}: it must have {leading[0]}'s batch and "
                f"time axes, {tuple(shape)}."
            )
    given = batch.get(FIRST)
    if given is None:
        first_bt = torch.zeros(shape, dtype=torch.bool, device=device)
    else:
        first_bt = _tensor(FIRST, given).to(device).bool()
        if first_bt.shape != shape:
            raise InvalidBatchError(
                f"{FIRST!r} is {_shown(first_bt)}: it must have the {leading[0]}'s batch and time "
                f"axes, {tuple(shape)}."
            )
    state = batch.get(Columns.STATE_IN)
    checked = _state(state, state_parts, shape[0], device) if state else None
    return UnpackedBatch(nested(obs), first_bt, checked)


def _part(batch: Mapping[str, Any], name: str, part: ObservationPart) -> Tensor:
    """One part of the observations, [B, T, ...] and of the declared dtype."""
    value = batch.get(Columns.OBS)
    expected = f"{part.dtype} (B, T{''.join(f', {size}' for size in part.shape)})"
    for key in keys_of(name):
        if not isinstance(value, Mapping) or key not in value:
            found = sorted(value) if isinstance(value, Mapping) else type(value).__name__
            raise InvalidBatchError(
                f"{Columns.OBS!r} is {found}: it must be a dict with {name!r}, {expected}."
            )
        value = value[key]
    tensor = _tensor(f"{Columns.OBS}.{name}", value)
    dims = len(part.shape)
    of_one = tuple(tensor.shape[tensor.dim() - dims :])
    if _type_name(tensor) != part.dtype.name or of_one != part.shape or tensor.dim() != dims + 2:
        hint = ""
        if of_one == part.shape and tensor.dim() < dims + 2:
            missing = f"{name}[:, None]" if tensor.dim() == dims + 1 else f"{name}[None, None]"
            hint = f" It lacks {'a time axis: ' if tensor.dim() == dims + 1 else ''}{missing}."
        raise InvalidBatchError(
            f"{Columns.OBS}.{name} is {_shown(tensor)}: it must be {part.dtype} of shape "
            f"{expected.partition(' ')[2]}, batch and time first.{hint}"
        )
    return tensor


def _state(
    given: Any, state_parts: Mapping[str, Tensor], batch: int, device: torch.device
) -> dict[str, Tensor]:
    if not isinstance(given, Mapping) or set(given) != set(state_parts):
        found = sorted(given) if isinstance(given, Mapping) else type(given).__name__
        raise InvalidBatchError(
            f"{Columns.STATE_IN!r} is {found}: pass what came back as {Columns.STATE_OUT!r}, a "
            f"dict of {', '.join(state_parts)}, or leave it out where an episode begins."
        )
    tensors = {}
    for name, initial in state_parts.items():
        tensor, of_one = _tensor(f"{Columns.STATE_IN}.{name}", given[name]), tuple(initial.shape)
        if tensor.shape != (batch, *of_one):
            hint = ""
            if tensor.shape == of_one:
                hint = " It lacks the batch axis: state[None] of each part."
            raise InvalidBatchError(
                f"{Columns.STATE_IN}.{name} is {_shown(tensor)}: it must have shape "
                f"{(batch, *of_one)}, one memory per row of the batch.{hint}"
            )
        tensors[name] = tensor.to(device, initial.dtype)
    return tensors


def _tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        # Arrays from Ray's object store are read-only, which torch warns about.
        return torch.from_numpy(np.require(value, requirements=("C", "W")))
    raise InvalidBatchError(
        f"{name} is a {type(value).__name__}: it must be a tensor or a NumPy array."
    )


def _type_name(tensor: Tensor) -> str:
    """The name of a tensor's dtype, which is also NumPy's name if NumPy has that dtype."""
    return str(tensor.dtype).removeprefix("torch.")


def _shown(tensor: Tensor) -> str:
    return f"{_type_name(tensor)} {tuple(tensor.shape)}"
