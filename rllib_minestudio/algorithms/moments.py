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

from rllib_minestudio.errors import CheckpointMismatchError

Group = Mapping[str, Any]
"""One of `state_dict()["param_groups"]`: `params` (numbers), `param_names`, options."""


def restore_moments(
    optimizer: torch.optim.Optimizer, saved: Mapping[str, Any], parameters: Mapping[str, Tensor]
) -> None:
    """Replace an optimizer's moments by saved ones, and leave its groups and options alone.

    The moments are copied: those that came through Ray's object store lie in shared memory, where
    learners on one machine would all update the same ones, and part ways.

    Args:
        optimizer: Its groups name their parameters (`param_names`).
        saved: `state_dict()` of an optimizer, with arrays in the place of tensors.
        parameters: Those that learn now by name, in the network's order.

    Raises:
        CheckpointMismatchError: See `moments_by_name`.
    """
    groups = optimizer.state_dict()["param_groups"]
    found = moments_by_name(saved, groups, parameters)
    state = {
        number: {key: _copied(value) for key, value in found[name].items()}
        for number, name in _names(groups).items()
        if name in found
    }
    # torch puts moments where their parameters are, and leaves counts of steps on the CPU.
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def moments_by_name(
    saved: Mapping[str, Any], groups: Sequence[Group], parameters: Mapping[str, Tensor]
) -> dict[str, Mapping[str, Any]]:
    """Find what was saved for the parameters that learn now.

    Checkpoints of early versions do not name parameters. Theirs are matched by position where the
    groups leave no doubt: one group is in the network's order; several are the present ones if
    their sizes and factors on the learning rate are.

    Args:
        saved: As in `restore_moments`.
        groups: The present ones.
        parameters: As in `restore_moments`.

    Returns:
        Moments by parameter, without those of parameters that had none when they were saved.

    Raises:
        CheckpointMismatchError: The saved groups do not name their parameters, and are others.
    """
    moments, saved_groups = saved["state"], saved["param_groups"]
    if all("param_names" in group for group in saved_groups):
        names = _names(saved_groups)
    else:
        names = _names_by_position(saved_groups, groups, list(parameters))
        shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
        if not names or any(_shapes(moments.get(i, {})) - {shapes[n]} for i, n in names.items()):
            raise CheckpointMismatchError(
                f"The checkpoint's optimizer has {_described(saved_groups)}, but not their names, "
                f"and lr_factors and the model's freeze now make {_described(groups)}: which "
                "moments belong to which parameters cannot be told. Restore it with the lr_factors "
                "and freeze that it was saved with, and save it anew: then its parameters are "
                "named, and both may change."
            )
    return {
        name: moments[number]
        for number, name in names.items()
        if name in parameters and number in moments
    }


def _names(groups: Sequence[Group]) -> dict[int, str]:
    """Name each parameter's number."""
    return {
        number: name
        for group in groups
        for number, name in zip(group["params"], group["param_names"], strict=True)
    }


def _names_by_position(
    saved: Sequence[Group], groups: Sequence[Group], in_order: Sequence[str]
) -> dict[int, str]:
    """Name each parameter's number in groups without names; {} if that cannot be told.

    Args:
        saved: Groups without names.
        groups: The present ones.
        in_order: The names of all parameters in `groups`, in the network's order.
    """
    numbers = [number for group in saved for number in group["params"]]
    if len(saved) == 1 and len(numbers) == len(in_order):
        return dict(zip(numbers, in_order, strict=True))
    if [_kind(group) for group in saved] == [_kind(group) for group in groups]:
        return dict(zip(numbers, _names(groups).values(), strict=True))
    return {}


def _kind(group: Group) -> tuple[int, float]:
    return len(group["params"]), group["lr_factor"]


def _described(groups: Sequence[Group]) -> str:
    sizes, factors = zip(*map(_kind, groups), strict=True)
    return f"groups of {list(sizes)} parameters with learning rate factors {list(factors)}"


def _shapes(moments: Mapping[str, Any]) -> set[tuple[int, ...]]:
    """Collect the shapes of a parameter's moments; the count of steps is a scalar and has none."""
    return {np.shape(value) for value in moments.values()} - {()}


def _copied(value: Any) -> Tensor:
    """Make a float32 tensor of an array or a number, on the CPU and in memory of its own."""
    return torch.from_numpy(np.array(value, dtype=np.float32))
