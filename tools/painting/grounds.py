"""Materials of blocks: painters of a whole face, by name.

Each takes a random generator and one to three colours, and returns RGB (16, 16, 3) as floats, or
RGBA (16, 16, 4) if one sees through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tools.painting.art import RGB

Picture = NDArray[np.float64]
Ground = Callable[..., Picture]
Random = np.random.RandomState

SIZE = 16
DARK: RGB = (78, 78, 78)


# Opacity of what one sees through, and the share of leaves' texels at which a gap begins.
ICE, JELLY, STAIN, GAPS = 165, 190, 105, 0.2


def with_alpha(picture: Picture, alpha: NDArray[np.int_] | int) -> Picture:
    """A picture with an opacity, RGBA."""
    layer = np.broadcast_to(np.asarray(alpha, np.float64), picture.shape[:2])
    return np.concatenate([picture, layer[..., None]], -1)


def noise(rng: Random, colour: Sequence[float], grain: float = 9) -> Picture:
    """One colour with grey noise of the given amplitude."""
    tones = rng.uniform(-grain, grain, (SIZE, SIZE, 1))
    return np.clip(np.asarray(colour, np.float64) + tones, 0, 255)


def smooth(rng: Random, colour: RGB) -> Picture:
    """Concrete, ice: hardly any grain."""
    return noise(rng, colour, 3)


def coarse(rng: Random, colour: RGB) -> Picture:
    """Earth and powder."""
    return noise(rng, colour, 20)


def rough(rng: Random, colour: RGB) -> Picture:
    """Gravel."""
    return noise(rng, colour, 34)


def mottled(rng: Random, colour: RGB, spots: RGB) -> Picture:
    """One colour with spots of another."""
    picture = noise(rng, colour, 9)
    for row, column in rng.randint(0, SIZE, (16, 2)):
        picture[row, column : column + 2] = noise(rng, spots, 9)[0, 0]
    return picture


def stone(rng: Random, colour: RGB) -> Picture:
    """Stone with short dark streaks."""
    picture = noise(rng, colour, 9)
    for _ in range(12):
        row, column = rng.randint(0, SIZE, 2)
        picture[row, column : column + 4] -= 15
    return picture


def cobble(rng: Random, colour: RGB, mortar: RGB = DARK) -> Picture:
    """Voronoi cells on a torus: stones with dark mortar, tiling without a seam."""
    seeds = rng.uniform(0, SIZE, (13, 2))
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    d_row = abs(rows[..., None] + 0.5 - seeds[:, 0])
    d_column = abs(columns[..., None] + 0.5 - seeds[:, 1])
    distance = np.hypot(np.minimum(d_row, SIZE - d_row), np.minimum(d_column, SIZE - d_column))
    nearest = np.sort(distance, -1)
    tone = rng.uniform(-22, 22, 13)[distance.argmin(-1)]
    picture = noise(rng, colour, 9) + tone[..., None]
    picture[nearest[..., 1] - nearest[..., 0] < 0.9] = mortar
    return picture


def planks(rng: Random, colour: RGB) -> Picture:
    """Four boards, each with a joint."""
    picture = noise(rng, colour, 7)
    picture += rng.uniform(-7, 7, (SIZE, 1, 1))
    picture[3::4] -= 38
    for board, joint in enumerate((5, 13, 2, 9)):
        picture[board * 4 : board * 4 + 3, joint] -= 28
    return picture


def bark(rng: Random, colour: RGB) -> Picture:
    """Vertical furrows."""
    picture = noise(rng, colour, 9)
    for column in (0, 3, 4, 8, 11, 14):
        picture[:, column] -= rng.uniform(16, 38, (SIZE, 1))
    return picture


def birch_bark(rng: Random, colour: RGB) -> Picture:
    """Pale bark with dark horizontal marks."""
    picture = noise(rng, colour, 8)
    for _ in range(9):
        row, column = rng.randint(0, SIZE), rng.randint(0, 13)
        picture[row, column : column + rng.randint(2, 5)] = (40, 40, 38)
    return picture


def grain(rng: Random, colour: RGB) -> Picture:
    """Wood without its bark."""
    return noise(rng, colour, 5) + rng.uniform(-12, 12, (1, SIZE, 1))


def rings(rng: Random, colour: RGB, rim: RGB) -> Picture:
    """The end of a log."""
    picture = noise(rng, colour, 6)
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    ring = np.maximum(abs(rows - 7.5), abs(columns - 7.5)).astype(int)
    picture[ring % 2 == 1] -= 26
    picture[ring == 7] = bark(rng, rim)[ring == 7]
    return picture


def foliage(rng: Random, colour: RGB) -> Picture:
    """A growth with dark gaps and light tips."""
    picture = noise(rng, colour, 26)
    picture[rng.rand(SIZE, SIZE) < 0.24] *= 0.5
    picture[rng.rand(SIZE, SIZE) < 0.12] *= 1.25
    return picture


def leafy(rng: Random, colour: RGB) -> Picture:
    """Leaves: foliage with some dark edges, whose gaps are holes."""
    picture = noise(rng, colour, 26)
    is_hole = rng.rand(SIZE, SIZE) < GAPS
    # A hole that reaches one texel further is seen from afar.
    is_hole |= np.roll(is_hole, 1, rng.randint(2)) & (rng.rand(SIZE, SIZE) < 0.5)
    picture[rng.rand(SIZE, SIZE) < 0.2] *= 0.7
    picture[rng.rand(SIZE, SIZE) < 0.12] *= 1.25
    return with_alpha(picture, np.where(is_hole, 0, 255))


def ore(rng: Random, colour: RGB, rock: RGB = (125, 125, 125)) -> Picture:
    """Stone with lumps."""
    picture = stone(rng, rock)
    for row, column in ((2, 3), (3, 10), (7, 6), (9, 12), (11, 2), (12, 8)):
        picture[row : row + 2, column : column + 3] = noise(rng, colour, 16)[:2, :3]
        picture[row + 2, column : column + 3] -= 26
    return picture


def bricks(rng: Random, colour: RGB, mortar: RGB) -> Picture:
    """Four courses of small bricks."""
    picture = noise(rng, colour, 12)
    picture[3::4] = mortar
    for course, joint in enumerate((7, 3, 7, 3)):
        picture[course * 4 : course * 4 + 3, [joint, (joint + 8) % SIZE]] = mortar
    return picture


def courses(rng: Random, colour: RGB) -> Picture:
    """Two courses of hewn stones."""
    picture = stone(rng, colour)
    for row, joint in ((0, 7), (8, 15)):
        picture[row] += 16
        picture[row + 7] -= 40
        picture[row : row + 8, joint] -= 40
        picture[row : row + 7, (joint + 1) % SIZE] += 12
    return picture


def cracked(rng: Random, colour: RGB) -> Picture:
    """Two courses of hewn stones with cracks."""
    picture = courses(rng, colour)
    for _ in range(4):
        row, column = rng.randint(1, 11), rng.randint(1, 12)
        for step in range(5):
            picture[row + step, column + rng.randint(0, 3)] -= 45
    return picture


def bevelled(rng: Random, colour: RGB) -> Picture:
    """A polished or metal block: rims light at the upper left, dark at the lower right."""
    picture = noise(rng, colour, 5)
    picture[0] += 26
    picture[:, 0] += 26
    picture[SIZE - 1] -= 34
    picture[:, SIZE - 1] -= 34
    return picture


def chiselled(rng: Random, colour: RGB) -> Picture:
    """A polished block with a ring cut into it."""
    picture = bevelled(rng, colour)
    picture[[3, 12], 3:13] -= 36
    picture[3:13, [3, 12]] -= 36
    picture[6:10, 6:10] += 16
    return picture


def layered(rng: Random, colour: RGB) -> Picture:
    """The side of sandstone."""
    picture = noise(rng, colour, 6)
    picture[[3, 11]] -= 24
    picture[4:7] += 8
    return picture


def pillar(rng: Random, colour: RGB) -> Picture:
    """Vertical flutes."""
    picture = noise(rng, colour, 4)
    picture[:, ::4] -= 30
    picture[:, 1::4] += 14
    return picture


def woolly(rng: Random, colour: RGB) -> Picture:
    """Wool: soft knots."""
    picture = noise(rng, colour, 9)
    picture[(np.add.outer(np.arange(SIZE), np.arange(SIZE)) % 4 == 0)] -= 6
    return picture


def glazed(rng: Random, colour: RGB) -> Picture:
    """A tile with a pattern that turns about its corner."""
    base = np.asarray(colour, np.float64)
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    wave = (rows * columns // 6 + rows + columns) % 6
    picture = np.where((wave < 2)[..., None], 255 - (255 - base) * 0.35, base)
    picture = np.where((wave == 4)[..., None], base * 0.6, picture)
    return np.clip(picture + rng.uniform(-4, 4, (SIZE, SIZE, 1)), 0, 255)


def striped(rng: Random, colour: RGB, other: RGB) -> Picture:
    """Vertical stripes of two colours: melons, cactuses, hay."""
    picture = noise(rng, colour, 9)
    picture[:, 1::4] = noise(rng, other, 9)[:, 1::4]
    return picture


def topped(rng: Random, colour: RGB, below: RGB) -> Picture:
    """Earth under something that hangs over its edge."""
    picture = coarse(rng, below)
    top = coarse(rng, colour)
    for column, hang in enumerate(rng.randint(2, 6, SIZE)):
        picture[:hang, column] = top[:hang, column]
        picture[hang - 1, column] *= 0.82
    return picture


def wavy(rng: Random, colour: RGB, crest: RGB) -> Picture:
    """Liquids and the like."""
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    wave = np.sin(rows * np.pi / 4 + 2 * np.sin(columns * np.pi / 8)) * 0.5 + 0.5
    mixed = np.asarray(colour) * (1 - wave[..., None]) + np.asarray(crest) * wave[..., None]
    return np.clip(mixed + rng.uniform(-6, 6, (SIZE, SIZE, 1)), 0, 255)


def icy(rng: Random, colour: RGB, crest: RGB) -> Picture:
    """Ice that one sees through."""
    return with_alpha(wavy(rng, colour, crest), ICE)


def jelly(rng: Random, colour: RGB) -> Picture:
    """Slime and honey."""
    return with_alpha(smooth(rng, colour), JELLY)


def stained(rng: Random, colour: RGB) -> Picture:
    """The pane of stained glass."""
    return with_alpha(smooth(rng, colour), STAIN)


GROUNDS: dict[str, Ground] = {
    painter.__name__: painter
    for painter in (
        *(noise, smooth, coarse, rough, mottled, stone, cobble, planks, bark, birch_bark, grain),
        *(rings, foliage, ore, bricks, courses, cracked, bevelled, chiselled, layered, pillar),
        *(woolly, glazed, striped, topped, wavy, leafy, icy, jelly, stained),
    )
}
"""Painters by their name in `blocks.csv`."""
