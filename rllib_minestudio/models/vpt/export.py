"""Writing a policy as the folder that MineStudio's ``VPTPolicy.from_pretrained`` reads, or ours."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.checkpoint import NETWORK
from rllib_minestudio.checkpoints.lookup import CONFIG_FILE, TENSORS
from rllib_minestudio.errors import CheckpointError, CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.models.tempering import at_temperature
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.heads import FactoredHead
from rllib_minestudio.models.vpt.network import VPTNetwork
from rllib_minestudio.models.vpt.network_arguments import arguments_from_config
from rllib_minestudio.models.vpt.weight_loading import config_from_checkpoint, load_network
from rllib_minestudio.option_checks import broken_rule
from rllib_minestudio.whole_file import whole_file, write_whole


def export_checkpoint(checkpoint: Checkpoint, folder: str | Path) -> VPTConfig:
    """Converts a checkpoint of any form; returns the configuration written.

    Raises:
        CheckpointMismatchError: The checkpoint is wrong, or the folder already holds a model.
    """
    other = checkpoint.other_policy
    if other is not None:
        raise CheckpointMismatchError(
            f"weights {checkpoint.name!r} are of a policy of the class {other[0]}, which "
            "MineStudio does not have: `rllib model export --own` copies them as they are, for "
            "this package."
        )
    return export_network(load_network(checkpoint), folder)


def export_network(network: VPTNetwork, folder: str | Path) -> VPTConfig:
    """Writes ``config.json`` and ``model.safetensors``.

    MineStudio knows joint heads only; factored ones are multiplied out, which changes no
    probability.

    Args:
        network: The policy.
        folder: Made if necessary; must not hold a model yet.

    Returns:
        The configuration of the network as written, with joint heads.

    Raises:
        CheckpointMismatchError: The folder already holds a model.
    """
    config_file, weights_file = _new_files(folder, CONFIG_FILE)
    description = {
        "action_space": None,
        "policy_kwargs": arguments_from_config(network.config),
        "temperature": network.config.temperature,
    }
    state = _tensors(network) | _joint_heads(network)
    _write(weights_file, state, config_file, json.dumps(description, indent=2, sort_keys=True))
    return config_from_checkpoint(checkpoints.open(folder))


def save_checkpoint(
    checkpoint: Checkpoint,
    folder: str | Path,
    memory: int | None = None,
    temperature: float | None = None,
) -> VPTConfig:
    """Copies a checkpoint of any form into a small folder without pickle, heads as they are.

    Args:
        checkpoint: The original.
        folder: Made if necessary; must not hold a model yet.
        memory: Frames that the copy shall remember, the present one included; None: as many as
            the original.
        temperature: What the copy's logits are divided by besides.

    Returns:
        The configuration written.

    Raises:
        CheckpointMismatchError: The checkpoint is wrong, or the folder already holds a model.
        InvalidOptionsError: It does not remember so many frames, or that is no temperature.
    """
    network = load_network(checkpoint)
    if memory is not None:
        network = with_shorter_memory(network, memory)
    state = _tensors(network)
    if temperature is not None:
        state = at_temperature(state, temperature)
    write_plain(folder, state, dataclasses.asdict(network.config))
    return network.config


def copy_plain(checkpoint: Checkpoint, folder: Path) -> None:
    """Copies a checkpoint into a new folder without pickle, as it is and without building it.

    Raises:
        CheckpointError: The folder cannot be written.
        CheckpointMismatchError: The checkpoint is wrong, or the folder already holds a model.
    """
    config = config_from_checkpoint(checkpoint)
    state = {name: t.contiguous() for name, t in checkpoint.tensors().items()}
    write_plain(folder, state, dataclasses.asdict(config))


def write_plain(
    folder: str | Path, state: dict[str, Tensor], description: Mapping[str, Any]
) -> None:
    """Writes ``model.safetensors`` and ``network.json``.

    Raises:
        CheckpointError: The folder cannot be written.
        CheckpointMismatchError: It already holds a model.
    """
    description_file, weights_file = _new_files(folder, NETWORK)
    _write(weights_file, state, description_file, json.dumps(description, indent=2))


def with_shorter_memory(network: VPTNetwork, memory: int) -> VPTNetwork:
    """A copy that attends to the last `memory` frames only, as it would learn to by itself.

    Of the weights only the attention's biases by age (`b_nd`) depend on how much is remembered.

    Args:
        network: The original.
        memory: From 1, which is to remember nothing: the present frame counts.

    Raises:
        InvalidOptionsError: The original does not remember so many frames.
    """
    config = network.config
    if not 1 <= memory <= config.memory_length:
        raise InvalidOptionsError(
            broken_rule("memory", memory, f"must be from 1 to the {config.memory_length} frames")
        )
    shorter = VPTNetwork(
        dataclasses.replace(config, attention_memory_size=config.timesteps + memory)
    )
    state = {
        name: tensor[:, :memory] if name.endswith(".b_nd") else tensor
        for name, tensor in network.state_dict().items()
    }
    shorter.load_state_dict(state)
    return shorter


def _new_files(folder: str | Path, description: str) -> tuple[Path, Path]:
    """Make a folder for a model; returns its description's and its weights' paths."""
    folder = Path(folder)
    files = folder / description, folder / TENSORS
    present = [path.name for path in files if path.exists()]
    if present:
        raise CheckpointMismatchError(
            f"folder {str(folder)!r} already has {' and '.join(present)}; name another one."
        )
    folder.mkdir(parents=True, exist_ok=True)
    return files


def _write(weights: Path, state: dict[str, Tensor], description: Path, text: str) -> None:
    """Write both files, the description last: without it the folder is no model.

    Raises:
        CheckpointError: They cannot be written; neither is there then.
    """
    try:
        with whole_file(weights) as partial:
            save_file(state, partial, metadata={"format": "pt"})
        write_whole(description, text + "\n")
    except (OSError, SafetensorError) as error:
        weights.unlink(missing_ok=True)
        raise CheckpointError(
            f"{str(weights.parent)!r} cannot be written: {error}. Free space there, or name "
            "another folder."
        ) from error


def _tensors(network: VPTNetwork) -> dict[str, torch.Tensor]:
    state = network.state_dict()
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


@torch.no_grad()
def _joint_heads(network: VPTNetwork) -> dict[str, torch.Tensor]:
    """A joint action's logit is the sum of its components': so are its weights and bias."""
    state = {}
    for name, head in network.pi_head.items():
        if isinstance(head, FactoredHead):
            membership_nc, linear = head.membership_cn.T, head.linear_layer
            state[f"pi_head.{name}.linear_layer.weight"] = (membership_nc @ linear.weight).cpu()
            state[f"pi_head.{name}.linear_layer.bias"] = (membership_nc @ linear.bias).cpu()
    return state
