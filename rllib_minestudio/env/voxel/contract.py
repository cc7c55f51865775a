"""What the layers above know of the engine without it: boxes a step asks for, looks of frames."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rllib_minestudio.env.voxel import LOOKS
from rllib_minestudio.env.voxel.render.resource_pack import OUR_PACK, PackError, ResourcePack

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


# ---------------------- the looks of frames: what a policy that was trained on them must find again
# Apart from the options of the environment, three things decide them:
#
# - How things are drawn. The sources would be too fine a measure, since a comment changes them,
# and the frames themselves round differently from one processor to the next. So `LOOKS` is a
# revision that is raised by hand, and a test compares frames with those that were kept when it was
# raised. - The engine's own pictures, and the tables that assign them. A digest of the files finds
# every change by itself, also in a copy of this package whose pictures somebody has painted over.
# - The pictures of a resource pack, if one is used, wherever it lies and whether it is packed.
#
# A checkpoint keeps all three as plain data, as `looks_of` returns them.

Looks = Mapping[str, Any]
"""`revision`, `pictures`, and with a resource pack `resource_pack`."""

_TABLES = Path(__file__).parent / "render"
_DIGITS = 12
"""Hexadecimal digits of a digest that are kept: it need not withstand anybody."""


def looks_of(resource_pack: str | None = None) -> dict[str, Any]:
    """Return the looks of the engine's frames.

    Args:
        resource_pack: The environment's option of that name.

    Returns:
        `revision`, `LOOKS`; `pictures`, a digest of the engine's own pictures; and, only if a
        resource pack is used, `resource_pack`, a digest of its pictures.
    """
    found = {"revision": LOOKS, "pictures": _own_digest()}
    if resource_pack is not None:
        found["resource_pack"] = _digest_of_pack(resource_pack)
    return found


def described(looks: Looks) -> str:
    """Return looks in words."""
    pack = looks.get("resource_pack")
    pictures = f"revision {looks['revision']}, pictures {looks['pictures']}"
    return pictures if pack is None else f"{pictures}, resource pack {pack}"


@cache
def _own_digest() -> str:
    found = hashlib.sha256(ResourcePack(OUR_PACK).digest())
    for table in sorted(path for path in _TABLES.iterdir() if path.suffix in (".csv", ".json")):
        found.update(table.read_bytes())
    return found.hexdigest()[:_DIGITS]


@cache
def _digest_of_pack(path: str) -> str:
    try:
        return ResourcePack(path).digest().hex()[:_DIGITS]
    except PackError:
        return "unreadable"
