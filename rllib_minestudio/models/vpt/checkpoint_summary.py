"""What a checkpoint holds, without looking at the numbers in its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.models.strict_loading import compare
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.weight_loading import (
    PARTS,
    blank_network,
    config_from_checkpoint,
    weights_problems,
)


@dataclass(frozen=True)
class CheckpointSummary:
    """A checkpoint in numbers."""

    form: str
    """Which of the forms of ``checkpoints/checkpoint.py``."""

    weights: Path
    """The file with the tensors."""

    config: VPTConfig
    """The network."""

    described: bool
    """Whether the checkpoint tells its configuration; else it was read off the tensors."""

    parameters: int
    """Numbers in the policy's tensors."""

    dtype: str
    """Of these numbers as stored; several are separated by commas."""

    matched: int
    """Tensors that fit the network in name and shape."""

    expected: int
    """Tensors that the network has."""

    ignored: list[str]
    """Tensors of other heads."""

    problems: list[str]
    """What does not fit, one sentence each."""


def summarize(checkpoint: Checkpoint) -> CheckpointSummary:
    """Tells names, shapes and settings of a checkpoint.

    Raises:
        CheckpointMismatchError: It cannot be read, or is not of a VPT network.
    """
    config, tensors = config_from_checkpoint(checkpoint), checkpoint.tensors()
    policy = {name: tensor for name, tensor in tensors.items() if name.startswith(PARTS)}
    own = blank_network(config).state_dict()
    comparison = compare(own, policy)
    return CheckpointSummary(
        form=checkpoint.form,
        weights=checkpoint.weights,
        config=config,
        described=checkpoint.arguments is not None or checkpoint.options is not None,
        parameters=count_numbers(policy),
        dtype=dtypes(policy),
        matched=len(own) - len(comparison.missing) - len(comparison.misshapen),
        expected=len(own),
        ignored=[name for name in tensors if name not in policy],
        problems=weights_problems(config, checkpoint),
    )


def count_numbers(tensors: Mapping[str, Tensor]) -> int:
    """Counts the numbers in all tensors."""
    return sum(tensor.numel() for tensor in tensors.values())


def dtypes(tensors: Mapping[str, Tensor]) -> str:
    """Names the dtypes of all tensors."""
    return ", ".join(sorted({str(t.dtype).removeprefix("torch.") for t in tensors.values()}))
