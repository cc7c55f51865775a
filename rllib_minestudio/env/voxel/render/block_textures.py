"""Pictures of all blocks, painted by code.

Each painter draws the faces of one or several blocks; `block_pictures` finds it by the block's
name. A block without a painter gets a plain colour made from its name: ugly, but visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rllib_minestudio.env.voxel.render.texels import (
    FACE_SHADE,
    FACES,
    TEXTURE_WORDS,
    Picture,
    Texture,
    name_seed,
    noise,
    textures,
)

RGB = tuple[float, float, float]
BlockPainter = Callable[[np.random.RandomState], "list[Picture]"]

DIRT: RGB = (134, 96, 67)
# Minecraft's plains tint on its grey grass, as it comes out on average.
GRASS: RGB = (108, 162, 68)
STONE: RGB = (125, 125, 125)
SAND: RGB = (219, 207, 163)
PLANKS = {"oak": (162, 130, 78), "birch": (196, 179, 123)}
BARK = {"oak": (118, 94, 58), "birch": (216, 215, 210)}
LEAVES = {"oak": (66, 118, 44), "birch": (98, 136, 68)}
ORES = {
    "coal": (38, 38, 38),
    "iron": (216, 175, 147),
    "diamond": (93, 236, 229),
}
WOOL: RGB = (234, 236, 236)
PLAIN: dict[str, tuple[RGB, float]] = {
    "white_wool": (WOOL, 9),
    "gravel": ((131, 127, 124), 34),
    "sand": (SAND, 11),
    "dirt": (DIRT, 20),
    "snow_block": ((246, 250, 252), 5),
    "bedrock": ((86, 86, 86), 52),
    "obsidian": ((20, 18, 30), 12),
    "hay_block": ((188, 150, 30), 22),
}


def _same(picture: Picture) -> list[Picture]:
    return [picture] * FACES


def _sided(side: Picture, top: Picture, bottom: Picture) -> list[Picture]:
    return [side, side, top, bottom, side, side]


def _plain(colour: RGB, grain: float) -> BlockPainter:
    return lambda rng: _same(noise(rng, colour, grain))


def _stone_picture(rng: np.random.RandomState) -> Picture:
    picture = noise(rng, STONE, 9)
    for _ in range(12):
        row, column = rng.randint(0, 16, 2)
        picture[row, column : column + 4] -= 15
    return picture


def _grass(rng: np.random.RandomState) -> list[Picture]:
    dirt = noise(rng, DIRT, 20)
    top = noise(rng, GRASS, 20)
    side = dirt.copy()
    for column, hang in enumerate(rng.randint(2, 6, 16)):
        side[:hang, column] = top[:hang, column]
        side[hang - 1, column] *= 0.82
    return _sided(side, top, dirt)


def _log(bark: RGB, wood: RGB) -> BlockPainter:
    def paint(rng: np.random.RandomState) -> list[Picture]:
        side = noise(rng, bark, 9)
        for column in (0, 3, 4, 8, 11, 14):
            side[:, column] -= rng.uniform(16, 38, (16, 1))
        end = noise(rng, wood, 6)
        rows, columns = np.mgrid[0:16, 0:16]
        ring = np.maximum(abs(rows - 7.5), abs(columns - 7.5)).astype(int)
        end[ring % 2 == 1] -= 26
        end[ring == 7] = side[ring == 7]
        return _sided(side, end, end)

    return paint


def _birch_log(rng: np.random.RandomState) -> list[Picture]:
    side, _, end, *_ = _log(BARK["birch"], PLANKS["birch"])(rng)
    side = noise(rng, BARK["birch"], 8)
    for _ in range(9):
        row, column = rng.randint(0, 16), rng.randint(0, 13)
        side[row, column : column + rng.randint(2, 5)] = (40, 40, 38)
    return _sided(side, end, end)


def _leaves(colour: RGB) -> BlockPainter:
    def paint(rng: np.random.RandomState) -> list[Picture]:
        picture = noise(rng, colour, 26)
        picture[rng.rand(16, 16) < 0.24] *= 0.5
        picture[rng.rand(16, 16) < 0.12] *= 1.25
        return _same(picture)

    return paint


def _planks_picture(rng: np.random.RandomState, colour: RGB) -> Picture:
    picture = noise(rng, colour, 7)
    picture += rng.uniform(-7, 7, (16, 1, 1))
    picture[3::4] -= 38
    for board, joint in enumerate((5, 13, 2, 9)):
        picture[board * 4 : board * 4 + 3, joint] -= 28
    return picture


def _planks(colour: RGB) -> BlockPainter:
    return lambda rng: _same(_planks_picture(rng, colour))


def _cobblestone(rng: np.random.RandomState) -> list[Picture]:
    # Voronoi cells on a torus: stones with dark mortar, tiling without a seam.
    seeds = rng.uniform(0, 16, (13, 2))
    rows, columns = np.mgrid[0:16, 0:16]
    d_row = abs(rows[..., None] + 0.5 - seeds[:, 0])
    d_column = abs(columns[..., None] + 0.5 - seeds[:, 1])
    distance = np.hypot(np.minimum(d_row, 16 - d_row), np.minimum(d_column, 16 - d_column))
    nearest = np.sort(distance, -1)
    tone = rng.uniform(-22, 22, 13)[distance.argmin(-1)]
    picture = noise(rng, (126, 126, 126), 9) + tone[..., None]
    picture[nearest[..., 1] - nearest[..., 0] < 0.9] = (78, 78, 78)
    return _same(picture)


def _ore(colour: RGB) -> BlockPainter:
    def paint(rng: np.random.RandomState) -> list[Picture]:
        picture = _stone_picture(rng)
        for row, column in ((2, 3), (3, 10), (7, 6), (9, 12), (11, 2), (12, 8)):
            picture[row : row + 2, column : column + 3] = noise(rng, colour, 16)[:2, :3]
            picture[row + 2, column : column + 3] -= 26
        return _same(picture)

    return paint


def _crafting_table(rng: np.random.RandomState) -> list[Picture]:
    planks = _planks_picture(rng, PLANKS["oak"])
    top = planks.copy()
    top[[0, 15]] = top[:, [0, 15]] = (88, 58, 34)
    top[[5, 10], 1:15] -= 50
    top[1:15, [5, 10]] -= 50
    side = planks.copy()
    side[:3] = (120, 80, 45)
    side[5:12, 3:6] = (76, 76, 82)
    side[5:12, 10:13] = (98, 66, 40)
    return _sided(side, top, planks)


def _furnace(rng: np.random.RandomState) -> list[Picture]:
    stone = _stone_picture(rng)
    side = stone.copy()
    side[[0, 15]] -= 40
    front = side.copy()
    front[2:5, 3:13] = (72, 72, 72)
    front[8:14, 3:13] = (34, 34, 34)
    front[13, 4:12] = (120, 70, 40)
    return [side, side, stone, stone, front, side]


def _sandstone(rng: np.random.RandomState) -> list[Picture]:
    sand = noise(rng, SAND, 11)
    side = noise(rng, (216, 202, 155), 6)
    side[[3, 11]] -= 24
    side[4:7] += 8
    return _sided(side, sand, sand)


def _cactus(rng: np.random.RandomState) -> list[Picture]:
    side = noise(rng, (88, 128, 42), 8)
    side[:, 1::4] -= 28
    side[rng.rand(16, 16) < 0.05] = (216, 222, 170)
    top = noise(rng, (100, 140, 52), 8)
    top[[0, 15]] = top[:, [0, 15]] = (62, 98, 30)
    return _sided(side, top, top)


def _bricks(rng: np.random.RandomState) -> list[Picture]:
    picture = noise(rng, (150, 90, 74), 12)
    picture[3::4] = (176, 166, 156)
    for course, joint in enumerate((7, 3, 7, 3)):
        picture[course * 4 : course * 4 + 3, [joint, (joint + 8) % 16]] = (176, 166, 156)
    return _same(picture)


def _painters() -> dict[str, BlockPainter]:
    painters: dict[str, BlockPainter] = {
        "stone": lambda rng: _same(_stone_picture(rng)),
        "grass_block": _grass,
        "birch_log": _birch_log,
        "cobblestone": _cobblestone,
        "crafting_table": _crafting_table,
        "furnace": _furnace,
        "sandstone": _sandstone,
        "cactus": _cactus,
        "bricks": _bricks,
    }
    painters |= {name: _plain(*colours) for name, colours in PLAIN.items()}
    painters |= {f"{ore}_ore": _ore(colour) for ore, colour in ORES.items()}
    for wood, colour in PLANKS.items():
        painters[f"{wood}_planks"] = _planks(colour)
        painters.setdefault(f"{wood}_log", _log(BARK[wood], colour))
        painters[f"{wood}_leaves"] = _leaves(LEAVES[wood])
    return painters


PAINTERS = _painters()
_BATCH = 32
"""Blocks whose textures are made at once: numpy's calls cost more than their work on one."""


def block_pictures(name: str, rng: np.random.RandomState | None = None) -> list[Picture]:
    """The six faces of a block, unshaded.

    Args:
        name: Minecraft's name without namespace, such as "oak_log".
        rng: Spares making one, which takes longer than painting; it is seeded by the name.

    Returns:
        Pictures in the order of `texels` (east, west, top, bottom, south, north).
    """
    seed = name_seed(name)
    rng = rng or np.random.RandomState()
    painter = PAINTERS.get(name)
    if painter is None:
        rng.seed(seed ^ 1)
        colour = rng.uniform(60, 220, 3)
        painter = _plain((colour[0], colour[1], colour[2]), 14)
    rng.seed(seed)
    return painter(rng)


def build_block_atlas(names: Sequence[str]) -> Texture:
    """Textures of all blocks with face shading applied.

    Args:
        names: Block names in the order of their ids; id 0 is air and stays black.

    Returns:
        uint32 flat; the texture of face f of block b starts at `(b * 6 + f) * TEXTURE_WORDS`.
    """
    atlas = np.zeros((len(names), FACES, TEXTURE_WORDS), np.uint32)
    rng = np.random.RandomState()
    for first in range(1, len(names), _BATCH):
        painted = [block_pictures(name, rng) for name in names[first : first + _BATCH]]
        shades = np.tile(FACE_SHADE, len(painted))
        words = textures(np.concatenate(painted), shades)
        atlas[first : first + _BATCH] = words.reshape(len(painted), FACES, TEXTURE_WORDS)
    return atlas.ravel()
