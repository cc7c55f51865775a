"""Paints the cracks of a block that is mined: ten pictures, each with all cracks of the one before.

A crack is a walk over the texels from near the middle outwards, which now and then branches. Its
texels are dark, and those to their lower right are light, as if the light fell on the far side of a
groove. Grey 127 would leave a block as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tools.painting.art import Rgba
from tools.painting.grounds import SIZE, Random

STAGES = 10
FIRST_TEXELS, MORE_TEXELS = 5, 6
"""Texels of cracks in the first picture, and how many each further one adds."""
DARK, DARKER, LIGHT = 92, 62, 150
"""Greys of a fresh crack, an old one, and its rim."""
MOST_NEIGHBOURS = 2
BRANCHING = 0.15
WALKS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
"""Steps (down, right), in the order of their directions."""


def paint_cracks() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of each stage."""
    texels = _crack(np.random.RandomState(36))
    for stage in range(STAGES):
        shown = texels[: FIRST_TEXELS + stage * MORE_TEXELS]
        picture = np.zeros((SIZE, SIZE, 4), np.uint8)
        for row, column in shown:
            if row + 1 < SIZE and column + 1 < SIZE:
                picture[row + 1, column + 1] = (LIGHT, LIGHT, LIGHT, 255)
        for age, (row, column) in enumerate(reversed(shown)):
            tone = DARK if age < MORE_TEXELS else DARKER
            picture[row, column] = (tone, tone, tone, 255)
        yield f"block/destroy_stage_{stage}", picture


def _crack(rng: Random) -> list[tuple[int, int]]:
    """The texels (row, column) of all cracks, in the order in which they break."""
    found = [(7, 8)]
    tips = [(7, 8, direction) for direction in (0, 2, 4, 6)]
    while len(found) < FIRST_TEXELS + (STAGES - 1) * MORE_TEXELS:
        if not tips:
            row, column = found[rng.randint(len(found))]
            tips.append((row, column, rng.randint(len(WALKS))))
        row, column, direction = tips.pop(0)
        direction = (direction + rng.choice((-1, 0, 0, 0, 1))) % len(WALKS)
        row, column = row + WALKS[direction][0], column + WALKS[direction][1]
        inside = 0 <= row < SIZE and 0 <= column < SIZE
        if not inside or _neighbours(found, row, column) > MOST_NEIGHBOURS:
            continue  # a crack ends at the rim, and where it would meet others
        found.append((row, column))
        tips.append((row, column, direction))
        if rng.rand() < BRANCHING:
            tips.append((row, column, (direction + rng.choice((2, 6))) % len(WALKS)))
    return found


def _neighbours(texels: list[tuple[int, int]], row: int, column: int) -> int:
    """How many of the texels are at, or next to, a place."""
    return sum(max(abs(row - i), abs(column - j)) <= 1 for i, j in texels)
