"""Weights that come with this package, each a folder of ``rllib_minestudio/priors``."""

from __future__ import annotations

from pathlib import Path

from rllib_minestudio.errors import CheckpointMismatchError, did_you_mean

PREFIX = "package:"
"""Before the name of such weights, where a path could stand."""

FOLDER = Path(__file__).parents[1] / "priors"


def is_shipped(source: object) -> bool:
    """Whether ``source`` names weights of this package."""
    return isinstance(source, str | Path) and str(source).startswith(PREFIX)


def shipped_names() -> list[str]:
    """Returns the names that exist, without the prefix."""
    return sorted(path.parent.name for path in FOLDER.glob("*/model.safetensors"))


def shipped_folder(source: str) -> Path:
    """Returns where the weights named ``package:NAME`` are.

    Raises:
        CheckpointMismatchError: There are none of that name.
    """
    name = source.removeprefix(PREFIX)
    names = shipped_names()
    if name not in names:
        raise CheckpointMismatchError(
            f"weights {source!r} do not come with this package; it has "
            f"{', '.join(PREFIX + known for known in names) or 'none'}.{did_you_mean(name, names)}"
        )
    return FOLDER / name
