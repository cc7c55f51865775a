"""Loading weights strictly: nothing missing, nothing left over, all of one shape, all finite.

State dict names are those of MineStudio and OpenAI (``net.*``, ``pi_head.*``, ``value_head.*``);
``network.py`` creates its layers under the same names, so no translation is needed.
``checkpoint_files.py`` lists the forms in which weights may come.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.models.strict_loading import compare, load_strictly, mismatches
from rllib_minestudio.models.vpt.checkpoint_files import (
    CheckpointFiles,
    WeightsSource,
    find_checkpoint,
)
from rllib_minestudio.models.vpt.config import VPTConfig, as_tuple
from rllib_minestudio.models.vpt.network import VPTNetwork
from rllib_minestudio.models.vpt.network_arguments import (
    config_from_arguments,
    config_from_shapes,
    is_same,
)

PARTS = ("net.", "pi_head.", "value_head.")
"""What a policy consists of. Names outside belong to other heads that someone trained along."""


def load_weights(network: nn.Module, source: WeightsSource) -> None:
    """Loads a checkpoint of any known form into ``network``, strictly.

    Args:
        network: A ``VPTNetwork``.
        source: A path, a Hugging Face id, or OpenAI's two files; see ``checkpoint_files.py``.

    Raises:
        CheckpointMismatchError: The checkpoint is missing, unreadable, damaged, or holds another
            network.
    """
    tensors = policy_part(find_checkpoint(source).tensors())
    load_strictly(network, tensors, source=f"weights {str(source)!r}")


def load_network(source: WeightsSource) -> VPTNetwork:
    """Builds the network that a checkpoint holds, with its weights.

    Names and shapes are compared first: a description can claim any size.

    Raises:
        CheckpointMismatchError: The checkpoint is missing, unreadable, damaged, or describes
            another network than it holds.
    """
    config = config_from_checkpoint(source)
    for problem in weights_problems(config, source):
        raise CheckpointMismatchError(problem)
    network = VPTNetwork(config)
    load_weights(network, source)
    return network


def config_from_checkpoint(source: WeightsSource) -> VPTConfig:
    """Returns the size and temperature of the network that a checkpoint holds.

    Checkpoints that are only a state dict do not tell everything, see ``config_from_shapes``.

    Raises:
        CheckpointMismatchError: The checkpoint is missing, unreadable, or not of a VPT network.
    """
    return _config_of(find_checkpoint(source), f"weights {str(source)!r}")


def config_from_options(options: Mapping[str, Any], other_names: Sequence[str] = ()) -> VPTConfig:
    """Like ``VPTConfig.from_options``, but starts from ``weights`` if no preset is named.

    Args:
        options: ``{"weights": ..., "preset": ..., field: value, ...}``.
        other_names: Names that the caller accepts besides; they may be among the options.

    Raises:
        InvalidOptionsError: For unknown or invalid options.
        CheckpointMismatchError: The weights cannot be read.
    """
    sizes = {name: value for name, value in options.items() if name not in other_names}
    weights = options.get("weights")
    if weights is None or "preset" in sizes:
        return VPTConfig.from_options(sizes, other_names)
    if not sizes.keys() <= {field.name for field in dataclasses.fields(VPTConfig)}:
        VPTConfig.from_options(sizes, other_names)  # complains about the names
    return dataclasses.replace(config_from_checkpoint(weights), **sizes)


def weights_problems(config: VPTConfig, source: WeightsSource) -> list[str]:
    """Says why a checkpoint does not fit a configuration, reading names and shapes only.

    Args:
        config: The network to be.
        source: As for ``load_weights``; an id that is not cached yet is downloaded.

    Returns:
        One message per problem; an empty list if ``load_weights`` would accept the checkpoint
        (but for damaged values, which only reading them shows).
    """
    try:
        files = find_checkpoint(source)
        comparison = compare(blank_network(config).state_dict(), policy_part(files.tensors("meta")))
    except CheckpointMismatchError as error:
        return [str(error)]
    problems = mismatches(comparison, f"weights {str(source)!r}")
    image = (files.arguments or {}).get("img_shape")
    if image is not None and not is_same(as_tuple(image), config.img_shape):
        problems.append(
            f"weights {str(source)!r} were trained on images of {as_tuple(image)} (height, width, "
            f"channels), but img_shape is {config.img_shape}."
        )
    return problems


def blank_network(config: VPTConfig) -> VPTNetwork:
    """Returns a network with names and shapes but no numbers (on the meta device)."""
    with torch.device("meta"):
        return VPTNetwork(config)


def policy_part(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Leaves out other heads, which OpenAI's and MineStudio's loaders ignore as well."""
    return {name: tensor for name, tensor in tensors.items() if name.startswith(PARTS)}


def _config_of(files: CheckpointFiles, name: str) -> VPTConfig:
    try:
        if files.arguments is not None:
            return config_from_arguments(files.arguments, files.temperature)
        if files.other_policy is not None:
            raise CheckpointMismatchError(
                f"it is a policy of the class {files.other_policy[0]}, not of VPT: set "
                f"module_class to {files.other_policy[0]!r}"
            )
        if files.options is not None:
            return _config_of_own(files.options, files)
        return _inferred(files)
    except (CheckpointMismatchError, InvalidOptionsError, TypeError) as error:
        raise CheckpointMismatchError(f"{name}: {error}") from error


def _config_of_own(options: Mapping[str, Any], files: CheckpointFiles) -> VPTConfig:
    """Our own options; where they had left the size to other weights, the tensors tell it."""
    fields = [field.name for field in dataclasses.fields(VPTConfig)]
    sizes = {name: options[name] for name in ("preset", *fields) if name in options}
    if "preset" in sizes or options.get("weights") is None:
        return VPTConfig.from_options(sizes)
    return dataclasses.replace(_inferred(files), **sizes)


def _inferred(files: CheckpointFiles) -> VPTConfig:
    tensors = files.tensors("meta")
    return config_from_shapes({name: tuple(tensor.shape) for name, tensor in tensors.items()})
