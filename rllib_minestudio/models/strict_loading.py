"""Strict loading of weights: no missing or unexpected names, equal shapes, finite values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rllib_minestudio.errors import CheckpointMismatchError

MAX_LISTED = 8
"""How many keys of each kind an error message lists; it only counts the rest."""


class StateDictDifference(NamedTuple):
    """How a state dict differs from the network's; messages contain the fields' names."""

    missing: list[str]
    unexpected: list[str]
    misshapen: list[str]


def compare(own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> StateDictDifference:
    """Compare the names and shapes of `state` with the network's `own`."""
    return StateDictDifference(
        missing=[name for name in own if name not in state],
        unexpected=[name for name in state if name not in own],
        misshapen=[
            f"{name}: {tuple(state[name].shape)} instead of {tuple(own[name].shape)}"
            for name in own
            if name in state and state[name].shape != own[name].shape
        ],
    )


def load_strictly(network: nn.Module, state: Mapping[str, Tensor], source: str) -> None:
    """Copy `state` into `network` if everything agrees; otherwise change nothing.

    Args:
        network: The module to load into.
        state: Names to tensors.
        source: What to call `state` in an error, such as `weights 'a.pt'`.

    Raises:
        CheckpointMismatchError: See `check_strictly`.
    """
    check_strictly(network.state_dict(), state, source)
    network.load_state_dict(state)


def check_strictly(own: Mapping[str, Tensor], state: Mapping[str, Tensor], source: str) -> None:
    """Refuse a `state` that a network with the state `own` could not load.

    Args:
        own: Names to tensors, which may be on the meta device.
        state: Names to tensors.
        source: What to call `state` in an error.

    Raises:
        CheckpointMismatchError: Lists the missing, unexpected and mis-shaped keys, and those with
            values that are not finite numbers.
    """
    for mismatch in mismatches(compare(own, state), source):
        raise CheckpointMismatchError(mismatch)
    refuse_damaged(state, source, own)


def refuse_damaged(
    state: Mapping[str, Tensor], source: str, own: Mapping[str, Tensor] | None = None
) -> None:
    """Refuse tensors with values that no training produces.

    Args:
        state: Names to tensors.
        source: As in `load_strictly`.
        own: The network's tensors, which decide which ones are floating-point; None: not checked.

    Raises:
        CheckpointMismatchError: Lists the keys of damaged tensors.
    """
    damaged = [
        name for name, t in state.items() if not _is_sound(t, t if own is None else own[name])
    ]
    if damaged:
        raise CheckpointMismatchError(
            f"{source} are damaged:" + _listed("with values that are not finite", damaged)
        )


def mismatches(comparison: StateDictDifference, source: str) -> list[str]:
    """Return one message that lists all differences, or nothing if there are none."""
    if not any(comparison):
        return []
    lists = "".join(_listed(kind, entries) for kind, entries in comparison._asdict().items())
    return [
        f"{source} belong to another network than the configured one (check the model's preset "
        f"and sizes):{lists}"
    ]


def _is_sound(tensor: Tensor, own: Tensor) -> bool:
    """Whether all numbers are finite, and floating-point exactly if the network's are."""
    is_float = tensor.is_floating_point()
    return is_float == own.is_floating_point() and bool(torch.isfinite(tensor).all())


def _listed(kind: str, entries: list[str]) -> str:
    """Return an indented list of at most `MAX_LISTED` entries under a headline, or nothing."""
    if not entries:
        return ""
    lines = [f"\n  {len(entries)} {kind}:", *(f"    {entry}" for entry in entries[:MAX_LISTED])]
    if len(entries) > MAX_LISTED:
        lines.append(f"    ... and {len(entries) - MAX_LISTED} more")
    return "\n".join(lines)
