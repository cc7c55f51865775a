"""Paints the blocks: the grounds and shapes that `blocks.csv` names for each texture."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rllib_minestudio.env.voxel.render.textures import colour, name_seed
from tools.painting.art import Rgba, draw, put, read_art
from tools.painting.families import colours_of, expanded
from tools.painting.grounds import GROUNDS, SIZE
from tools.painting.items import palette

SHAPE_GRAIN = 6
"""Noise on shapes drawn by hand, so that they match their ground."""


def paint_blocks() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of every texture of a block.

    A shape named "crop>4" is lowered by four pixels: a young plant.
    """
    shapes = read_art("blocks.txt")
    for row in expanded("blocks.csv"):
        rng = np.random.RandomState(name_seed(row["texture"]))
        picture = np.zeros((SIZE, SIZE, 4), np.uint8)
        if row["ground"]:
            paint = GROUNDS[row["ground"]]
            ground = paint(rng, *(colour(text) for text in row["colours"].split()))
            picture[..., 3] = 255
            picture[..., : ground.shape[-1]] = np.rint(np.clip(ground, 0, 255))
        if row["art"]:
            art, _, lowered = row["art"].partition(">")
            shape = draw(shapes[art], palette(colours_of(row["letters"])))
            if lowered:
                sunk = np.zeros_like(shape)
                sunk[int(lowered) :] = shape[: -int(lowered)]
                shape = sunk
            grain = rng.randint(-SHAPE_GRAIN, SHAPE_GRAIN + 1, (SIZE, SIZE, 1))
            shape[..., :3] = np.clip(shape[..., :3] + grain, 0, 255)
            put(picture, 0, 0, shape)
        yield f"block/{row['texture']}", picture
