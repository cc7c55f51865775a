"""Which pixels of Minecraft's mob sheets appear on which face of our models.

Minecraft unwraps a box of w x h x d pixels at (u, v) of its sheet: top and bottom side by side in d
rows, and below them, in h rows, right side, front, left side and back. The bodies of quadrupeds are
unwrapped as if they stood on their hindquarters: the front of the box is the belly.

Our faces are those of `textures`, for a mob that looks south. As the kernels read them, columns run
eastwards (on the sides southwards, from tail to head) and rows downwards (on top and bottom from
tail to head), so faces seen from the east or the north are mirrored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.textures import (
    FACE_BOTTOM,
    FACE_EAST,
    FACE_NORTH,
    FACE_SOUTH,
    FACE_TOP,
    FACE_WEST,
    TEXTURE_SIZE,
    Picture,
    Textures,
)

Pixels = NDArray[np.intp]
SHEETS: dict[str, tuple[int, int]] = {
    "snow_golem": (64, 64),
    "iron_golem/iron_golem": (128, 128),
    "lead_knot": (32, 32),
}
"""Width and height of the sheets that are not `SHEET`, in pixels."""
SHEET = (64, 32)
_WIDEST = 128


class SheetBox(NamedTuple):
    """A box on a sheet.

    Attributes:
        sheet: Name of the sheet below `entity/`.
        u: Left edge of the unwrapped box.
        v: Upper edge of the unwrapped box.
        width: Width of the box in pixels.
        height: Height of the box.
        depth: Depth of the box; 0 for a flat patch that all faces show.
        is_lying: Whether the box lies on its front.
    """

    sheet: str
    u: int
    v: int
    width: int
    height: int
    depth: int
    is_lying: bool = False


PARTS: dict[tuple[str, str], SheetBox] = {
    ("cow", "body"): SheetBox("cow/cow", 18, 4, 12, 18, 10, True),
    ("cow", "head"): SheetBox("cow/cow", 0, 0, 8, 8, 6),
    # The muzzle of Minecraft's cow is painted on its face; our model has a box for it.
    ("cow", "muzzle"): SheetBox("cow/cow", 7, 11, 6, 3, 0),
    ("cow", "leg"): SheetBox("cow/cow", 0, 16, 4, 12, 4),
    ("cow", "horn"): SheetBox("cow/cow", 22, 0, 1, 3, 1),
    ("cow", "udder"): SheetBox("cow/cow", 52, 0, 4, 6, 1, True),
    ("sheep", "body"): SheetBox("sheep/sheep_fur", 28, 8, 8, 16, 6, True),
    ("sheep", "face"): SheetBox("sheep/sheep", 0, 0, 6, 6, 8),
    ("sheep", "hood"): SheetBox("sheep/sheep_fur", 0, 0, 6, 6, 6),
    ("sheep", "leg"): SheetBox("sheep/sheep", 0, 16, 4, 12, 4),
    ("sheep", "shorn body"): SheetBox("sheep/sheep", 28, 8, 8, 16, 6, True),
    ("pig", "body"): SheetBox("pig/pig", 28, 8, 10, 16, 8, True),
    ("pig", "head"): SheetBox("pig/pig", 0, 0, 8, 8, 8),
    ("pig", "snout"): SheetBox("pig/pig", 16, 16, 4, 3, 1),
    ("pig", "leg"): SheetBox("pig/pig", 0, 16, 4, 6, 4),
    ("chicken", "body"): SheetBox("chicken", 0, 9, 6, 8, 6, True),
    ("chicken", "head"): SheetBox("chicken", 0, 0, 4, 6, 3),
    ("chicken", "beak"): SheetBox("chicken", 14, 0, 4, 2, 2),
    ("chicken", "wattle"): SheetBox("chicken", 14, 4, 2, 2, 2),
    ("chicken", "wing"): SheetBox("chicken", 24, 13, 1, 4, 6),
    # The legs of Minecraft's chicken are boxes with holes: a line behind, three toes below.
    ("chicken", "leg"): SheetBox("chicken", 36, 3, 1, 5, 0),
    ("chicken", "foot"): SheetBox("chicken", 32, 0, 3, 3, 0),
    ("snow_golem", "upper body"): SheetBox("snow_golem", 0, 16, 10, 10, 10),
    ("snow_golem", "lower body"): SheetBox("snow_golem", 0, 36, 12, 12, 12),
    ("snow_golem", "arm"): SheetBox("snow_golem", 32, 0, 12, 2, 2),
    ("iron_golem", "head"): SheetBox("iron_golem/iron_golem", 0, 0, 8, 10, 8),
    ("iron_golem", "nose"): SheetBox("iron_golem/iron_golem", 24, 0, 2, 4, 2),
    ("iron_golem", "chest"): SheetBox("iron_golem/iron_golem", 0, 40, 18, 12, 11),
    ("iron_golem", "waist"): SheetBox("iron_golem/iron_golem", 0, 70, 9, 5, 6),
    ("iron_golem", "right arm"): SheetBox("iron_golem/iron_golem", 60, 21, 4, 30, 6),
    ("iron_golem", "left arm"): SheetBox("iron_golem/iron_golem", 60, 58, 4, 30, 6),
    ("iron_golem", "right leg"): SheetBox("iron_golem/iron_golem", 37, 0, 6, 16, 5),
    ("iron_golem", "left leg"): SheetBox("iron_golem/iron_golem", 60, 0, 6, 16, 5),
    ("lead", "knot"): SheetBox("lead_knot", 0, 0, 6, 8, 6),
}
"""Place of each part of `models.MOB_MODELS`, and of a lead's knot, on its sheet."""
OF_BLOCKS = {("snow_golem", "head"): "carved_pumpkin"}
"""Parts that are pumpkins with a face."""
SHEEP_SLEEVE = SheetBox("sheep/sheep_fur", 0, 16, 4, 6, 4)
"""The wool on the upper half of a sheep's leg."""
BARE_LEG = ("sheep", "bare leg")
"""A sheep's leg without it."""
WOOLLY = frozenset((("sheep", "body"), ("sheep", "hood"), ("sheep", "leg")))
"""Parts that have the colour of the coat."""
_WOOL_COLOURS = (
    *("f9fffe", "f9801d", "c74ebd", "3ab3da", "fed83d", "80c71f", "f38baa", "474f52", "9d9d97"),
    *("169c9c", "8932b8", "3c44aa", "835432", "5e7c16", "b02e26", "1d1d21"),
)
"""Colours of dyes, in the order of `DYES`."""
_WOOL_SHADE = 0.75
"""Factor of all but white wool on its dye's colour (`SheepEntity.createSheepColor`)."""


def sheet_pixels(part: SheetBox, face: int) -> tuple[Pixels, Pixels]:
    """Return the pixels of the sheet that a face shows.

    Args:
        part: The box.
        face: One of the faces of `textures`.

    Returns:
        (rows, columns) of the sheet, (16, 16) each, by row and column of the face's picture.
    """
    x, y, width, height = _rectangle(part, face)
    rows, columns = np.mgrid[y : y + height, x : x + width]
    pixels = rows * _WIDEST + columns
    if part.is_lying:
        if face == FACE_WEST:
            pixels = pixels[::-1].T
        elif face == FACE_EAST:
            pixels = pixels[::-1, ::-1].T
        elif face == FACE_TOP:
            pixels = pixels[::-1, ::-1]
        elif face == FACE_BOTTOM:
            pixels = pixels[::-1]
    elif face in (FACE_EAST, FACE_NORTH):
        pixels = pixels[:, ::-1]
    nearest = [np.arange(TEXTURE_SIZE) * side // TEXTURE_SIZE for side in pixels.shape]
    shown = pixels[nearest[0][:, None], nearest[1]]
    return shown // _WIDEST, shown % _WIDEST


def _rectangle(part: SheetBox, face: int) -> tuple[int, int, int, int]:
    """The unwrapped face (x, y, width, height) that becomes a face of our box."""
    _, u, v, w, h, d, is_lying = part
    if d == 0:
        return u, v, w, h
    top, bottom = (u + d, v, w, d), (u + d + w, v, w, d)
    front, back = (u + d, v + d, w, h), (u + 2 * d + w, v + d, w, h)
    sides = {FACE_WEST: (u, v + d, d, h), FACE_EAST: (u + d + w, v + d, d, h)}
    if is_lying:
        ours = {FACE_TOP: back, FACE_BOTTOM: front, FACE_SOUTH: top, FACE_NORTH: bottom}
    else:
        ours = {FACE_TOP: top, FACE_BOTTOM: bottom, FACE_SOUTH: front, FACE_NORTH: back}
    return (sides | ours)[face]


def mob_face(textures: Textures, mob: str, part: str, face: int, coat: int = 0) -> Picture:
    """Return one face of a body part, unshaded.

    Args:
        textures: Source of the sheets.
        mob: Name of the mob.
        part: Name of the part, see `models.MOB_MODELS`.
        face: One of the faces of `textures`.
        coat: Colour of a sheep's wool, an index in `DYES`.

    Returns:
        A picture (16, 16, 3); plain grey for a part without a sheet.
    """
    if (mob, part) in OF_BLOCKS:
        kind = OF_BLOCKS[mob, part]
        side = {FACE_SOUTH: kind, FACE_TOP: "pumpkin_top", FACE_BOTTOM: "pumpkin_top"}
        name = side.get(face, "pumpkin_side")
        return textures.picture(f"block/{name}")[:TEXTURE_SIZE, :, :3].astype(np.float64)
    is_bare = (mob, part) == BARE_LEG
    part = "leg" if is_bare else part
    if (mob, part) not in PARTS:
        return np.full((TEXTURE_SIZE, TEXTURE_SIZE, 3), 150.0)
    picture = _from_sheet(textures, PARTS[mob, part], face)
    if (mob, part) == ("sheep", "leg"):
        if not is_bare and face not in (FACE_TOP, FACE_BOTTOM):
            half = TEXTURE_SIZE // 2
            picture[:half] = _from_sheet(textures, SHEEP_SLEEVE, face)[::2] * _wool(coat)
    elif (mob, part) in WOOLLY:
        picture *= _wool(coat)
    return picture


def _wool(coat: int) -> Picture:
    """The factors of a coat on the red, green and blue of white wool, float64 [3]."""
    if coat == 0:
        return np.ones(3)
    return np.array(list(bytes.fromhex(_WOOL_COLOURS[coat]))) / 255.0 * _WOOL_SHADE


def _from_sheet(textures: Textures, part: SheetBox, face: int) -> Picture:
    sheet = textures.picture(f"entity/{part.sheet}")
    return sheet[sheet_pixels(part, face)][..., :3].astype(np.float64)
