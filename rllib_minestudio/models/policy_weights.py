"""Weights of a policy of any class, in the forms that this package writes.

A checkpoint folder of an algorithm, its `policy`, a folder with `network.json` and
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
    """Say why a checkpoint does not fit a network, looking at names and shapes only.

    Returns:
        One message per problem; an empty list if the checkpoint could be loaded
        (but for damaged values, which only looking at them shows).
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
    """Copy a checkpoint's weights into a new folder without pickle, with what they are of.

    Args:
        checkpoint: The original.
        folder: Made if necessary.
        policy: The class, by name or import path.
        options: Its `model_config`, plain.
        temperature: What the copy's logits are divided by.

    Raises:
        CheckpointError: The folder cannot be written.
        CheckpointMismatchError: The checkpoint is wrong, or the folder already holds a model, or
            the policy's heads have no temperature.
        InvalidOptionsError: That is no temperature.
    """
    state = {name: t.contiguous() for name, t in checkpoint.tensors().items()}
    if temperature is not None:
        state = at_temperature(state, temperature)
    write_plain(folder, state, {POLICY: policy, OPTIONS: dict(options)})
