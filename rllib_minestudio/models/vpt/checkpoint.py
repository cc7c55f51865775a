"""Reading weights and loading them strictly: nothing missing, nothing left over, all of one shape.

State dict names are those of MineStudio and OpenAI (``net.*``, ``pi_head.*``, ``value_head.*``);
``network.py`` creates its layers under the same names, so no translation is needed.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from rllib_minestudio.errors import CheckpointMismatchError

MAX_LISTED = 8
"""Keys that an error message lists of each kind before it only counts."""


def load_weights(network: nn.Module, path: str | Path) -> None:
    """Loads a file of weights into ``network``, strictly.

    Args:
        network: A ``VPTNetwork``.
        path: A file that ``torch.save`` wrote of ``network.state_dict()``.

    Raises:
        CheckpointMismatchError: The file is missing, unreadable, or holds another network.
    """
    load_strictly(network, read_state_dict(Path(path)), source=f"weights {str(path)!r}")


def read_state_dict(path: Path) -> Mapping[str, Tensor]:
    """Reads a state dict without executing anything that the file may contain.

    Raises:
        CheckpointMismatchError: The file is missing or is not a state dict.
    """
    if not path.is_file():
        raise CheckpointMismatchError(
            f"weights {str(path)!r} do not exist; give the path of a file, or null to start from "
            f"random weights."
        )
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise CheckpointMismatchError(
            f"weights {str(path)!r} cannot be read as a torch state dict: {error}"
        ) from error
    if not (isinstance(state, Mapping) and all(isinstance(v, Tensor) for v in state.values())):
        raise CheckpointMismatchError(
            f"weights {str(path)!r} hold a {type(state).__name__}, not a state dict "
            f"(names to tensors)."
        )
    return state


def load_strictly(network: nn.Module, state: Mapping[str, Tensor], source: str) -> None:
    """Copies ``state`` into ``network`` if every name and shape agrees; else changes nothing.

    Args:
        network: The module to load into.
        state: Names to tensors.
        source: What to call ``state`` in an error, such as ``weights 'a.pt'``.

    Raises:
        CheckpointMismatchError: Lists the missing, unexpected and mis-shaped keys.
    """
    own = network.state_dict()
    missing = [name for name in own if name not in state]
    unexpected = [name for name in state if name not in own]
    misshaped = [
        f"{name}: {tuple(state[name].shape)} instead of {tuple(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    if missing or unexpected or misshaped:
        raise CheckpointMismatchError(
            f"{source} belong to another network than the configured one (check the model's "
            f"preset and sizes):"
            + _listed("missing", missing)
            + _listed("unexpected", unexpected)
            + _listed("of another shape", misshaped)
        )
    network.load_state_dict(state)


def _listed(kind: str, entries: list[str]) -> str:
    """Returns an indented list of at most ``MAX_LISTED`` entries under a headline, or nothing."""
    if not entries:
        return ""
    lines = [f"\n  {len(entries)} {kind}:", *(f"    {entry}" for entry in entries[:MAX_LISTED])]
    if len(entries) > MAX_LISTED:
        lines.append(f"    ... and {len(entries) - MAX_LISTED} more")
    return "\n".join(lines)
