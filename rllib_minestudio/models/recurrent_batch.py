"""What a batch for a recurrent RLModule holds, checked and brought to the module's device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from torch import Tensor

from rllib_minestudio.errors import InvalidBatchError
from rllib_minestudio.observations import ObservationPart, keys_of, nested

FIRST = "first"
"""Batch key, [B, T] bool: the observation begins an episode. Absent means that none does."""


class UnpackedBatch(NamedTuple):
    """The parts of a batch, as tensors on one device."""

    obs: dict[str, Any]
    """Nested as the environment's observations: [B, T, ...] each."""

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
    """Take a batch apart; its parts may be tensors of any device or NumPy arrays.

    Args:
        batch: `Columns.OBS`; `first` and `Columns.STATE_IN` may be missing: then no observation
            begins an episode, or the first of each row does.
        parts: Of observations, those that the module reads.
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
    """One part of the observations, [B, T, ...] and of the promised type."""
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
        # What comes out of Ray's object store is read-only, which torch warns of.
        return torch.from_numpy(np.require(value, requirements=("C", "W")))
    raise InvalidBatchError(
        f"{name} is a {type(value).__name__}: it must be a tensor or a NumPy array."
    )


def _type_name(tensor: Tensor) -> str:
    """What NumPy calls the type of a tensor's numbers too, if it has it."""
    return str(tensor.dtype).removeprefix("torch.")


def _shown(tensor: Tensor) -> str:
    return f"{_type_name(tensor)} {tuple(tensor.shape)}"
