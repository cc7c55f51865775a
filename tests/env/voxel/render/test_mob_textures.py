"""Sheets of mobs lie on our boxes as Minecraft unwraps its own."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.render.mob_textures import PARTS, SheetBox, sheet_pixels
from rllib_minestudio.env.voxel.render.textures import (
    FACE_BOTTOM,
    FACE_EAST,
    FACE_NORTH,
    FACE_SOUTH,
    FACE_TOP,
    FACE_WEST,
    TEXTURE_SIZE,
)

Corner = tuple[int, int, int]
Pixel = tuple[int, int]


def game_corners(part: SheetBox) -> dict[Corner, dict[str, Pixel]]:
    """Where each side of each corner (x, y, z) of the game's box is on the sheet: (row, column).

    0 is the low side of an axis. The game's mobs look along -z, hang upside down, and have their
    right at -x.
    """
    _, u, v, w, h, d, _ = part
    inside = {  # side: columns and rows of its rectangle, and which corners its four corners are
        "right": (u, u + d, v + d, v + d + h, [(0, 0, 1), (0, 0, 0), (0, 1, 1), (0, 1, 0)]),
        "front": (u + d, u + d + w, v + d, v + d + h, [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]),
        "left": (
            *(u + d + w, u + 2 * d + w, v + d, v + d + h),
            [(1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)],
        ),
        "back": (
            *(u + 2 * d + w, u + 2 * d + 2 * w, v + d, v + d + h),
            [(1, 0, 1), (0, 0, 1), (1, 1, 1), (0, 1, 1)],
        ),
        "top": (u + d, u + d + w, v, v + d, [(0, 0, 1), (1, 0, 1), (0, 0, 0), (1, 0, 0)]),
        "bottom": (
            *(u + d + w, u + d + 2 * w, v, v + d),
            [(0, 1, 1), (1, 1, 1), (0, 1, 0), (1, 1, 0)],
        ),
    }
    corners: dict[Corner, dict[str, Pixel]] = {}
    for side, (left, right, upper, lower, places) in inside.items():
        pixels = [(row, column) for row in (upper, lower - 1) for column in (left, right - 1)]
        for place, pixel in zip(places, pixels, strict=True):
            corners.setdefault(place, {})[side] = pixel
    return corners


def in_our_box(corner: Corner, is_lying: bool) -> Corner:
    """A corner of the game's box as (east, up, south) of ours, whose mobs look south."""
    x, y, z = corner
    if is_lying:  # turned by a quarter about x: what was its front looks down, its top forwards
        return x, z, 1 - y
    return x, 1 - y, 1 - z


STANDING = {
    "right": FACE_WEST,
    "left": FACE_EAST,
    "front": FACE_SOUTH,
    "back": FACE_NORTH,
    "top": FACE_TOP,
    "bottom": FACE_BOTTOM,
}
LYING = STANDING | {
    "front": FACE_BOTTOM,
    "back": FACE_TOP,
    "top": FACE_SOUTH,
    "bottom": FACE_NORTH,
}


@pytest.mark.parametrize("name", [name for name, part in PARTS.items() if part.depth], ids=str)
def test_corners_of_every_face_are_where_the_game_has_them(name: tuple[str, str]) -> None:
    part = PARTS[name]
    checked = 0
    for corner, sides in game_corners(part).items():
        east, up, south = in_our_box(corner, part.is_lying)
        for side, pixel in sides.items():
            face = (LYING if part.is_lying else STANDING)[side]
            rows, columns = sheet_pixels(part, face)
            row = south if face in (FACE_TOP, FACE_BOTTOM) else 1 - up
            column = south if face in (FACE_EAST, FACE_WEST) else east
            shown = rows[-row, -column], columns[-row, -column]
            # A face has 16 rows: of longer sides, not every pixel is shown.
            spare = int(max(part.width, part.height, part.depth) > TEXTURE_SIZE)
            np.testing.assert_allclose(shown, pixel, atol=spare, err_msg=f"{side} {corner}")
            checked += 1
    assert checked == 24
