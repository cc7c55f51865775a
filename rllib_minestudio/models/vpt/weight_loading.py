"""Loading weights strictly: nothing missing, nothing left over, all of one shape, all finite.

State dict names are those of MineStudio and OpenAI (``net.*``, ``pi_head.*``, ``value_head.*``);
``network.py`` creates its layers under the same names, so no translation is needed.
``checkpoints/checkpoint.py`` lists the forms in which weights may come.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.models.strict_loading import compare, load_strictly, mismatches
from rllib_minestudio.models.vpt.config import VPTConfig, as_tuple
from rllib_minestudio.models.vpt.network import VPTNetwork
from rllib_minestudio.models.vpt.network_arguments import (
    config_from_arguments,
    config_from_shapes,
    is_same,
)

PARTS = ("net.", "pi_head.", "value_head.")
"""What a policy consists of. Names outside belong to other heads that someone trained along."""


def load_weights(network: nn.Module, checkpoint: Checkpoint) -> None:
    """Loads a checkpoint of any known form into ``network``, a ``VPTNetwork``, strictly.

    Raises:
        CheckpointMismatchError: The checkpoint is unreadable, damaged, or holds another network.
    """
    tensors = policy_part(checkpoint.tensors())
    load_strictly(network, tensors, source=f"weights {checkpoint.name!r}")


def load_network(checkpoint: Checkpoint) -> VPTNetwork:
    """Builds the network that a checkpoint holds, with its weights.

    Names and shapes are compared first: a description can claim any size.

    Raises:
        CheckpointMismatchError: The checkpoint is unreadable, damaged, or describes another
            network than it holds.
    """
    config = config_from_checkpoint(checkpoint)
    for problem in weights_problems(config, checkpoint):
        raise CheckpointMismatchError(problem)
    network = VPTNetwork(config)
    load_weights(network, checkpoint)
    return network


def config_from_checkpoint(checkpoint: Checkpoint) -> VPTConfig:
    """Returns the size and temperature of the network that a checkpoint holds.

    Checkpoints that are only a state dict do not tell everything, see ``config_from_shapes``.

    Raises:
        CheckpointMismatchError: The checkpoint is unreadable, or not of a VPT network.
    """
    try:
        if checkpoint.other_policy is not None:
            name, _ = checkpoint.other_policy
            raise CheckpointMismatchError(
                f"it is a policy of the class {name}, not of VPT: set module_class to {name!r}"
            )
        if checkpoint.arguments is not None:
            return config_from_arguments(checkpoint.arguments, checkpoint.temperature)
        if checkpoint.options is not None:
            return _config_of_own(checkpoint.options, checkpoint)
        return _inferred(checkpoint)
    except (CheckpointMismatchError, InvalidOptionsError, TypeError) as error:
        raise CheckpointMismatchError(f"weights {checkpoint.name!r}: {error}") from error


def config_from_options(options: Mapping[str, Any], other_names: Sequence[str] = ()) -> VPTConfig:
    """Like ``VPTConfig.from_options``, but starts from ``weights`` if no preset is named.

    Args:
        options: ``{"weights": ..., "preset": ..., field: value, ...}``; the weights may be open.
        other_names: Names that the caller accepts besides; they may be among the options.

    Raises:
        InvalidOptionsError: For unknown or invalid options.
        CheckpointMismatchError: The weights cannot be read.
    """
    sizes = {name: value for name, value in options.items() if name not in other_names}
    weights = options.get("weights")
    fields = {field.name for field in dataclasses.fields(VPTConfig)}
    # Where every size is given, as in checkpoints, the weights may be gone by now.
    if weights is None or "preset" in sizes or sizes.keys() == fields:
        return VPTConfig.from_options(sizes, other_names)
    if not sizes.keys() <= fields:
        VPTConfig.from_options(sizes, other_names)  # complains about the names
    return dataclasses.replace(config_from_checkpoint(checkpoints.open(weights)), **sizes)


def weights_problems(config: VPTConfig, checkpoint: Checkpoint) -> list[str]:
    """Says why a checkpoint does not fit the network to be, looking at names and shapes only.

    Returns:
        One message per problem; an empty list if ``load_weights`` would accept the checkpoint
        (but for damaged values, which only looking at them shows).
    """
    try:
        comparison = compare(blank_network(config).state_dict(), policy_part(checkpoint.tensors()))
    except CheckpointMismatchError as error:
        return [str(error)]
    problems = mismatches(comparison, f"weights {checkpoint.name!r}")
    image = (checkpoint.arguments or {}).get("img_shape")
    if image is not None and not is_same(as_tuple(image), config.img_shape):
        problems.append(
            f"weights {checkpoint.name!r} were trained on images of {as_tuple(image)} (height, "
            f"width, channels), but img_shape is {config.img_shape}."
        )
    return problems


def blank_network(config: VPTConfig) -> VPTNetwork:
    """Returns a network with names and shapes but no numbers (on the meta device)."""
    with torch.device("meta"):
        return VPTNetwork(config)


def policy_part(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Leaves out other heads, which OpenAI's and MineStudio's loaders ignore as well."""
    return {name: tensor for name, tensor in tensors.items() if name.startswith(PARTS)}


def _config_of_own(options: Mapping[str, Any], checkpoint: Checkpoint) -> VPTConfig:
    """Our own options; where they had left the size to other weights, the tensors tell it."""
    fields = [field.name for field in dataclasses.fields(VPTConfig)]
    sizes = {name: options[name] for name in ("preset", *fields) if name in options}
    if "preset" in sizes or options.get("weights") is None:
        return VPTConfig.from_options(sizes)
    return dataclasses.replace(_inferred(checkpoint), **sizes)


def _inferred(checkpoint: Checkpoint) -> VPTConfig:
    tensors = checkpoint.tensors()
    return config_from_shapes({name: tuple(tensor.shape) for name, tensor in tensors.items()})
