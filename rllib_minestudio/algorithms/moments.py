"""An optimizer's moments across a restore: they follow their parameters, and nothing else does.

torch numbers parameters group by group, so its saved state belongs to other parameters as soon as
`lr_factors` or `freeze` sort them differently; and its `load_state_dict` brings back the groups'
old `lr`, `weight_decay` and `eps`. Here moments are matched by name, and options stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor


def restore_moments(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any]) -> None:
    """Replace an optimizer's moments by saved ones, and leave its groups and options alone.

    The moments are copied: those that came through Ray's object store lie in shared memory, where
    learners on one machine would all update the same ones, and part ways.

    Args:
        optimizer: Its groups name their parameters (`param_names`).
        saved: `state_dict()` of an optimizer, with arrays in the place of tensors.
    """
    groups = optimizer.state_dict()["param_groups"]
    found = _moments_by_name(saved)
    state = {
        number: {key: _copied(value) for key, value in found[name].items()}
        for number, name in _names(groups).items()
        if name in found
    }
    # torch puts moments where their parameters are, and leaves counts of steps on the CPU.
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _moments_by_name(saved: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Name saved moments; parameters that had none are left out."""
    moments = saved["state"]
    names = _names(saved["param_groups"])
    return {name: moments[number] for number, name in names.items() if number in moments}


def _names(groups: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Name each parameter's number in groups of `state_dict()["param_groups"]`."""
    return {
        number: name
        for group in groups
        for number, name in zip(group["params"], group["param_names"], strict=True)
    }


def _copied(value: Any) -> Tensor:
    """Make a float32 tensor of an array or a number, on the CPU and in memory of its own."""
    return torch.from_numpy(np.array(value, dtype=np.float32))
