"""What a checkpoint of a policy that is not VPT holds, without importing its class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.models.vpt.checkpoint_summary import count_numbers, dtypes


@dataclass(frozen=True)
class PolicySummary:
    """A checkpoint in numbers."""

    form: str
    """Which of the forms of ``checkpoints/checkpoint.py``."""

    weights: Path
    """The file with the tensors."""

    policy: str
    """The class: a name or import path."""

    options: Mapping[str, Any]
    """Its ``model_config``."""

    tensors: int
    """How many there are."""

    parameters: int
    """Numbers in them."""

    dtype: str
    """Of these numbers as stored; several are separated by commas."""


def summarize_other(checkpoint: Checkpoint) -> PolicySummary | None:
    """Tells names, shapes and options of a checkpoint; returns None if its policy is VPT.

    Raises:
        CheckpointMismatchError: It cannot be read.
    """
    if checkpoint.other_policy is None:
        return None
    policy, options = checkpoint.other_policy
    tensors = checkpoint.tensors()
    return PolicySummary(
        form=checkpoint.form,
        weights=checkpoint.weights,
        policy=policy,
        options=options,
        tensors=len(tensors),
        parameters=count_numbers(tensors),
        dtype=dtypes(tensors),
    )
