"""The looks of frames: what a policy that was trained on them must find again.

Apart from the options of the environment, three things decide them:

- How things are drawn. The sources would be too fine a measure, since a comment changes them, and
  the frames themselves round differently from one processor to the next. So `LOOKS` is a revision
  that is raised by hand, and a test compares frames with those that were kept when it was raised.
- The engine's own pictures, and the tables that assign them. A digest of the files finds every
  change by itself, also in a copy of this package whose pictures somebody has painted over.
- The pictures of a resource pack, if one is used, wherever it lies and whether it is packed.

A checkpoint keeps all three as plain data, as `looks_of` returns them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rllib_minestudio.env.voxel import LOOKS
from rllib_minestudio.env.voxel.render.resource_pack import OUR_PACK, PackError, ResourcePack

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
