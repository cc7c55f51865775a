"""16 x 16 sprites of items: the shapes of `item_pictures`, coloured by material.

Block items need no shape of their own: they are shown as a little cube of their block, see
`block_icon`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.block_textures import block_pictures
from rllib_minestudio.env.voxel.render.item_pictures import (
    APPLE,
    AXE,
    BREAD,
    GEM,
    HOE,
    INGOT,
    LEATHER,
    LUMP,
    MEAT,
    PICKAXE,
    SHOVEL,
    STICK,
    SWORD,
    WHEAT,
)
from rllib_minestudio.env.voxel.render.texels import FACE_EAST, FACE_SOUTH, FACE_TOP, name_seed

Sprite = NDArray[np.uint8]
RGB = tuple[int, int, int]
Palette = dict[str, RGB]

# Tool heads: outline, dark, middle, light.
MATERIALS: dict[str, tuple[RGB, RGB, RGB, RGB]] = {
    "wooden": ((56, 40, 18), (104, 78, 36), (137, 103, 49), (166, 128, 68)),
    "stone": ((50, 50, 50), (96, 96, 96), (132, 132, 132), (168, 168, 168)),
    "iron": ((92, 93, 98), (160, 162, 166), (212, 214, 218), (252, 252, 255)),
    "golden": ((96, 62, 12), (196, 140, 30), (240, 208, 60), (255, 248, 150)),
    "diamond": ((14, 62, 58), (30, 158, 142), (60, 222, 206), (180, 255, 244)),
}
HANDLE: Palette = {"h": (104, 78, 30), "k": (66, 46, 18), "l": (146, 112, 54)}

# Shape and colours (outline, dark, middle, light) of what is not a tool; "w" is a highlight.
PLAIN: dict[str, tuple[str, tuple[RGB, RGB, RGB, RGB]]] = {
    "stick": (STICK, ((0, 0, 0),) * 4),
    "beef": (MEAT, ((74, 16, 14), (150, 34, 30), (196, 58, 48), (222, 104, 88))),
    "cooked_beef": (MEAT, ((48, 28, 16), (92, 54, 34), (128, 78, 50), (158, 104, 70))),
    "porkchop": (MEAT, ((120, 56, 56), (210, 120, 116), (240, 160, 156), (252, 196, 190))),
    "cooked_porkchop": (MEAT, ((82, 56, 34), (160, 116, 74), (196, 152, 104), (222, 184, 140))),
    "mutton": (MEAT, ((88, 24, 22), (164, 52, 46), (206, 84, 72), (228, 130, 114))),
    "cooked_mutton": (MEAT, ((60, 36, 22), (116, 70, 42), (150, 98, 62), (184, 130, 90))),
    "iron_ingot": (INGOT, ((60, 60, 60), (150, 150, 150), (206, 206, 206), (246, 246, 246))),
    "gold_ingot": (INGOT, ((98, 64, 14), (204, 150, 34), (244, 212, 66), (255, 250, 160))),
    "diamond": (GEM, ((14, 62, 58), (34, 160, 150), (74, 230, 216), (176, 255, 246))),
    "coal": (LUMP, ((8, 8, 8), (26, 26, 26), (44, 44, 44), (78, 78, 78))),
    "leather": (LEATHER, ((68, 34, 14), (150, 76, 38), (190, 98, 50), (214, 132, 82))),
    "bread": (BREAD, ((72, 44, 12), (140, 92, 30), (186, 130, 48), (222, 174, 92))),
    "apple": (APPLE, ((64, 8, 8), (156, 16, 20), (214, 30, 36), (244, 92, 92))),
    "golden_apple": (APPLE, ((104, 62, 10), (200, 140, 24), (240, 196, 52), (255, 246, 150))),
    "enchanted_golden_apple": (
        APPLE,
        ((88, 34, 96), (190, 120, 70), (236, 188, 96), (255, 226, 255)),
    ),
    "dried_kelp": (LEATHER, ((16, 24, 12), (36, 52, 26), (52, 74, 36), (74, 102, 52))),
    "wheat": (WHEAT, ((110, 84, 20), (160, 124, 36), (206, 168, 60), (236, 206, 104))),
}
TOOLS = {"sword": SWORD, "pickaxe": PICKAXE, "axe": AXE, "shovel": SHOVEL, "hoe": HOE}


def _palette(tones: tuple[RGB, RGB, RGB, RGB]) -> Palette:
    outline, dark, middle, light = tones
    return {
        **HANDLE,
        "o": outline,
        "d": dark,
        "m": middle,
        "L": light,
        "w": (250, 240, 236),
        "g": (80, 140, 44),
    }


def _draw(picture: str, palette: Palette) -> Sprite:
    sprite = np.zeros((16, 16, 4), np.uint8)
    for row, line in enumerate(picture.strip().splitlines()):
        for column, character in enumerate(line):
            if character != ".":
                sprite[row, column] = (*palette[character], 255)
    return sprite


def _unknown(name: str) -> Sprite:
    middle = np.random.RandomState(name_seed(name)).randint(70, 220, 3)
    tones = [tuple(int(c * f) for c in middle) for f in (0.35, 0.7, 1.0, 1.15)]
    outline, dark, mid, light = [(r, g, min(b, 255)) for r, g, b in tones]
    return _draw(LUMP, _palette((outline, dark, mid, light)))


def item_sprite(name: str) -> Sprite:
    """The flat picture of an item that is not a block.

    Args:
        name: Minecraft's name without namespace, such as "iron_sword".

    Returns:
        uint8 (16, 16, 4); alpha is 0 or 255.
    """
    material, _, tool = name.partition("_")
    if tool in TOOLS and material in MATERIALS:
        return _draw(TOOLS[tool], _palette(MATERIALS[material]))
    if name in PLAIN:
        picture, tones = PLAIN[name]
        return _draw(picture, _palette(tones))
    return _unknown(name)


def block_icon(name: str) -> Sprite:
    """A block as Minecraft's inventories show it: a cube seen from a corner, slightly above.

    Args:
        name: Name of the block.

    Returns:
        uint8 (16, 16, 4); alpha is 0 or 255.
    """
    pictures = block_pictures(name)
    icon = np.zeros((16, 16, 4), np.uint8)
    for row in range(16):
        for column in range(16):
            # Isometric: the top is a rhombus 16 wide and 8 high, the sides are 8 wide and 8 high.
            x, y = column + 0.5 - 8, row + 0.5
            along, across = (y + x / 2) / 8, (y - x / 2) / 8
            if 0 <= along < 1 and 0 <= across < 1:
                face, shade, u, v = FACE_TOP, 1.0, along, across
            elif x < 0 and 0 <= (v := (y - 4 - (x + 8) / 2) / 8) < 1:
                face, shade, u = FACE_SOUTH, 0.8, (x + 8) / 8
            elif x >= 0 and 0 <= (v := (y - 8 + x / 2) / 8) < 1:
                face, shade, u = FACE_EAST, 0.6, x / 8
            else:
                continue
            texel = pictures[face][int(v * 16), int(u * 16)]
            icon[row, column, :3] = np.clip(texel * shade, 0, 255)
            icon[row, column, 3] = 255
    return icon
