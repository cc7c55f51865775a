"""Weights of a policy of any class, in the forms that this package writes.

These are: a checkpoint folder of an algorithm, its `policy`, a folder with `network.json` and
`model.safetensors`, or a state dict in a file of safetensors or `torch.save`. VPT's weights are
published in more forms, which `vpt/weights.py` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.checkpoint import OPTIONS, POLICY
from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.models.strict_loading import compare, mismatches
from rllib_minestudio.models.tempering import at_temperature
from rllib_minestudio.models.vpt.weights import write_plain


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
