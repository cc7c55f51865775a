"""Boxes around the player whose blocks or mobs a step may ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

FARTHEST_BLOCK = 50
"""Farthest block, along each axis, that MineStudio's action space can ask for."""
FARTHEST_MOB = 1000
_MOST_BLOCKS = 32768
"""Most blocks that a step may ask for; the limit of `/fill`."""

Box = tuple[int, int, int, int, int, int]
"""x0, x1, y0, y1, z0, z1 relative to the player, in blocks, both ends included."""


def voxels_box(bounds: Iterable[Any]) -> Box | None:
    """Check the box of a request for blocks.

    Args:
        bounds: x0, x1, y0, y1, z0, z1.

    Returns:
        The box; None if all bounds are zero, as in an action that asks for nothing.

    Raises:
        ValueError: If the bounds are not a box, or too large a one; the message is for users.
    """
    box = _box("voxels", bounds, FARTHEST_BLOCK)
    if box is not None and _volume(box) > _MOST_BLOCKS:
        raise ValueError(f"voxels may ask for at most {_MOST_BLOCKS} blocks; got {box}")
    return box


def mobs_box(bounds: Iterable[Any]) -> Box | None:
    """Check the box of a request for mobs, like `voxels_box`, but with `FARTHEST_MOB`."""
    return _box("mobs", bounds, FARTHEST_MOB)


def _box(name: str, bounds: Iterable[Any], reach: int) -> Box | None:
    rule = f"{name} must be x0,x1,y0,y1,z0,z1 in order, at most {reach} blocks away"
    try:
        numbers = [float(bound) for bound in bounds]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{rule}; got {bounds!r}") from error
    if len(numbers) != 6 or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{rule}; got {bounds!r}")
    x0, x1, y0, y1, z0, z1 = (int(number) for number in numbers)
    if not any((x0, x1, y0, y1, z0, z1)):
        return None
    if max(map(abs, (x0, x1, y0, y1, z0, z1))) > reach or x0 > x1 or y0 > y1 or z0 > z1:
        raise ValueError(f"{rule}; got {bounds!r}")
    return x0, x1, y0, y1, z0, z1


def _volume(box: Box) -> int:
    x0, x1, y0, y1, z0, z1 = box
    return (x1 - x0 + 1) * (y1 - y0 + 1) * (z1 - z0 + 1)
