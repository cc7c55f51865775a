"""Smooth light: how open, and how bright, the four corners of a face are, and what is in between.

Minecraft lights a face at its corners. The air cell in front of the face has eight neighbours along
the face, and three of them meet the cell at each corner:

    +------+------+------+
    |      | side | diag |     o is the cell in front of the face; the face is the plane of the
    +------+------X------+     picture. The corner X is lit by o, by two sides, and by the cell
    |      |   o  | side |     diagonally across. Between two sides that are cubes, the diagonal
    +------+------+------+     cell counts as a third side, since nothing is seen of it.
    |      |      |      |
    +------+------+------+

A corner's *openness* is the mean of these four cells, where what fills its cell has 0.2, but for
glass, and everything else 1: so 1, 0.8, 0.6 or 0.4. Its *levels* of light, of the sky and of
blocks, are the means of the four cells' levels, where a cell without any light counts as o. All are
interpolated over the face, bilinearly; the light map is read between its levels by linear
interpolation along both axes, as a texture is.

The rule is that of `AoCalculator` in Fabric's renderer Indigo. The game itself differs in two small
ways: to see whether a side is opaque, it looks at the cell one step further from the face, and it
interpolates over two triangles, which shows on faces with one or three dark corners.

Neighbouring rays mostly hit the same faces, so a tile's faces are listed first, each is worked out
once, and what was found is packed into a word: two bits per corner for the number of cubes, six for
four times the level of the sky's light; and where there is light of blocks, its levels into another
word. Most tiles need none of this: `key_faces` knows ground that nothing stands beside from the box
field, and what only the open sky lights from the columns' shade.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint32

from rllib_minestudio.env.voxel.render.block_atlas import DARKENS_BIT
from rllib_minestudio.env.voxel.render.camera import (
    AROUND,
    CELL_Y,
    COLUMN,
    DEPTH,
    FACE,
    FACE_KEY,
    FACE_OF,
    FRONT,
    FRONT_FIELD,
    GLOW,
    GLOW_ABOVE,
    KEY,
    LANES,
    LEVEL,
    LEVEL_ABOVE,
    LEVELS,
    LIGHT_B,
    LIGHT_G,
    LIGHT_MAP,
    LIGHT_R,
    NEIGHBOUR,
    ONE,
    OPENNESS,
    POINT_X,
    POINT_Y,
    POINT_Z,
    SKY_DEPTH,
    TILE,
    WORD,
    Bytes,
    Floats,
    Ints,
    Shorts,
    either,
    inlined_kernel,
    render_kernel,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, WINDOW

PER_CUBE = np.float32(0.2)
"""Openness that a corner loses to each cube at it: a quarter of 1 - 0.2."""
TOP_LAYER = np.int32(HEIGHT - 1)

# What `key_faces` finds in a tile.
BESIDE, SHADED = np.int32(1), np.int32(2)
# Levels of light of a whole tile, in quarters: the full light of the sky, so much of any that it is
# white, and different levels.
FULLY, WHITE, MIXED = np.int32(4 * (LEVELS - 1)), np.int32(4 * LEVELS), np.int32(-1)

# The place of x, z and y in a block's index, and one step along each.
_X, _Z, _Y = np.int32((WINDOW - 1) << 15), np.int32((WINDOW - 1) << 7), np.int32(HEIGHT - 1)
_STEP_X, _STEP_Z, _STEP_Y = np.int32(1 << 15), np.int32(1 << 7), np.int32(1)
# Rows of neighbours: low and high side along the face's first axis, and along its second; then the
# cells at its four corners, the first axis changing faster.
_LOW_1, _HIGH_1, _LOW_2, _HIGH_2 = 0, LANES, 2 * LANES, 3 * LANES
_CORNERS = 4 * LANES
_NEIGHBOURS = 8
# Rows of four words of the light map, used when the neighbours no longer are.
_FOUR_1, _FOUR_2, _FOUR_3, _FOUR_4 = (NEIGHBOUR + row * LANES for row in range(4))
# A word: cubes at each corner in two bits, then four times the level of each in six. In the word
# of block light, the first eight bits are 0.
_CUBES, _ALL_CUBES, _LEVELS = np.int32(3), np.int32(255), np.int32(63)
_CORNER_BITS = (8, 14, 20, 26)
# Bits that `list_faces` uses.
_AS_LEFT, _AS_ABOVE = np.int32(1), np.int32(2)
_WHITE_WORD = np.int32(0xFFFFFF)
_SKY = np.int32(LEVELS - 1)  # the bits of a cell's byte that hold the level of the sky's light
_ALL_FULL = np.uint32(sum(4 * (LEVELS - 1) << bits for bits in _CORNER_BITS)).view(np.int32)


@inlined_kernel
def key_faces(shade: Bytes, s: Floats, n: Ints) -> int:
    """Give each ray a number for the face it hits: `KEY`, or 0 where no cube is at its corners.

    `FACE_KEY` gets it for all faces but those that are certain to have the full light.

    Args:
        shade: uint8 (65536,), see `world.lighting`.
        s: Float scratch.
        n: Integer scratch.

    Returns:
        Bits: `BESIDE` if a face may have cubes at its corners, `SHADED` if a cell in front of a
        face, or next to that, may have other light than the full light of the sky.
    """
    found = int32(0)
    for i in range(LANES):
        n[COLUMN + i] = int32(shade[uint32(n[COLUMN + i])])
    for i in range(LANES):
        front, face = n[FRONT + i], n[FACE + i]
        layer = int32(front & TOP_LAYER)
        # Above the highest layer the index wraps around. In that layer nothing is in the way.
        is_highest = int32(s[CELL_Y + i]) == TOP_LAYER
        is_high = (layer == TOP_LAYER) | ((face == int32(2)) & is_highest)
        is_lit = (s[DEPTH + i] == SKY_DEPTH) | is_high
        # No block in the front cell's layer is nearer than its radius.
        is_plain = ((face >> int32(1)) == int32(1)) & ((n[FRONT_FIELD + i] & int32(31)) > int32(1))
        key = int32(front << int32(3)) | face
        n[FACE_KEY + i] = int32(0) if is_lit else key
        n[KEY + i] = int32(0) if is_lit | is_plain else key
        beside = int32(0) if is_lit | is_plain else BESIDE
        shaded = int32(0) if is_lit | (n[COLUMN + i] < layer) else SHADED
        found = either(found, either(beside, shaded))
    return found


@render_kernel
def lowest_white(step: int, n: Ints) -> int:
    """The level of one light from which up all is white, whatever there is of the other.

    Args:
        step: Places in the light map from one of its levels to the next.
        n: Integer scratch, with the light map in `LIGHT_MAP`.

    Returns:
        That level; the highest one if none is white.
    """
    level = LEVELS - 1
    while level > 0 and n[LIGHT_MAP + step * (level - 1)] == _WHITE_WORD:
        level -= 1
    return level


@inlined_kernel
def is_bright(white_sky: int, white_glow: int, light: Bytes, n: Ints) -> bool:
    """Whether all corners of a tile's faces are white, as under the open sky by day.

    A corner's level is at most one below that of the front cell: of the cells that count, two are
    beside it, and the third is two steps away. (A slab or stairs between these cells may make more
    of a difference, which is ignored.) If not, the tile's `KEY` becomes that of all faces.

    Args:
        white_sky: See `lowest_white`, for the sky's light.
        white_glow: The same for block light.
        light: uint8 (2**23,), both levels of each cell.
        n: Integer scratch, as `key_faces` leaves it.
    """
    sky, glow, dark = int32(white_sky), int32(white_glow), int32(0)
    for i in range(LANES):
        n[LEVEL + i] = int32(light[uint32(n[FRONT + i])])
    for i in range(LANES):
        byte = n[LEVEL + i]
        is_white = (int32(byte & _SKY) > sky) | (int32(byte >> int32(4)) > glow)
        dark = either(dark, (not is_white) & (n[FACE_KEY + i] != int32(0)))
    if dark == int32(0):
        return True
    for i in range(LANES):
        n[KEY + i] = n[FACE_KEY + i]
    return False


@inlined_kernel
def list_faces(n: Ints) -> int:
    """List the different faces of a tile, and return the list's length, a multiple of `TILE`.

    Only equal keys next to each other are found, so a face may be listed twice. The last entries
    may be left over from another tile.
    """
    first, differs = n[KEY], int32(0)
    for i in range(LANES):
        differs = either(differs, n[KEY + i] ^ first)
        n[FACE_OF + i] = int32(0)
    if differs == int32(0):  # as in many tiles near the eye
        n[FACE_KEY] = first
        return TILE
    _compare_faces(n)
    # No branch depends on the faces, as no processor could predict where they end.
    count, number = uint32(0), int32(0)
    for i in range(LANES):
        n[FACE_KEY + count] = n[KEY + i]
        alike, fresh = n[AROUND + i], int32(count)
        above = n[FACE_OF + i - TILE] if i >= TILE else fresh
        other = above if alike & _AS_ABOVE else fresh
        number = number if alike & _AS_LEFT else other
        n[FACE_OF + i] = number
        count = uint32(count + uint32(alike == int32(0)))
    return (int32(count) + TILE - 1) // TILE * TILE


@inlined_kernel
def _compare_faces(n: Ints) -> None:
    """Write into `AROUND` which of a tile's faces are the same as on the left, and as above."""
    n[AROUND] = int32(0)
    for i in range(1, TILE):
        n[AROUND + i] = _AS_LEFT if n[KEY + i] == n[KEY + i - 1] else int32(0)
    for i in range(TILE, LANES):
        key, left, above = n[KEY + i], n[KEY + i - 1], n[KEY + i - TILE]
        as_left = (key == left) & (int32(i) & int32(TILE - 1) != int32(0))
        alike = _AS_ABOVE if key == above else int32(0)
        n[AROUND + i] = either(alike, _AS_LEFT if as_left else int32(0))


@inlined_kernel
def find_neighbours(count: int, n: Ints) -> None:
    """Write the indices of the eight cells around the front cell of each listed face."""
    for f in range(count):
        key = n[FACE_KEY + uint32(f)]
        front, axis = int32(key >> int32(3)), int32((key >> int32(1)) & int32(3))
        # The first axis is x, or y for a face across x; the second is z, or y for one across z.
        is_x, is_z = axis == int32(0), axis == int32(2)
        one, step_1 = _Y if is_x else _X, _STEP_Y if is_x else _STEP_X
        two, step_2 = _Y if is_z else _Z, _STEP_Y if is_z else _STEP_Z
        fixed = int32(front & ~int32(one | two))
        low_1, at_1, high_1 = (front - step_1) & one, front & one, (front + step_1) & one
        low_2, at_2, high_2 = (front - step_2) & two, front & two, (front + step_2) & two
        to = uint32(f)
        n[NEIGHBOUR + _LOW_1 + to] = int32(fixed | low_1 | at_2)
        n[NEIGHBOUR + _HIGH_1 + to] = int32(fixed | high_1 | at_2)
        n[NEIGHBOUR + _LOW_2 + to] = int32(fixed | at_1 | low_2)
        n[NEIGHBOUR + _HIGH_2 + to] = int32(fixed | at_1 | high_2)
        n[NEIGHBOUR + _CORNERS + to] = int32(fixed | low_1 | low_2)
        n[NEIGHBOUR + _CORNERS + LANES + to] = int32(fixed | high_1 | low_2)
        n[NEIGHBOUR + _CORNERS + 2 * LANES + to] = int32(fixed | low_1 | high_2)
        n[NEIGHBOUR + _CORNERS + 3 * LANES + to] = int32(fixed | high_1 | high_2)


@inlined_kernel
def _cubes_at(one: int, two: int, diagonal: int) -> int:
    """Number of cubes at a corner, 0 to 3, given whether each cell is one."""
    return int32(one + two) + int32(diagonal | int32(one & two))


@inlined_kernel
def count_cubes(count: int, blocks: Shorts, looks: Bytes, n: Ints) -> None:
    """Start each listed face's word with the number of cubes at its corners.

    Args:
        count: See `list_faces`.
        blocks: uint16 (2**23,), the world's blocks.
        looks: uint8 (65536,), `block_atlas.LOOKS`.
        n: Integer scratch; afterwards `AROUND` holds 1 for each neighbour that is a cube.
    """
    for row in range(0, _NEIGHBOURS * LANES, LANES):
        for f in range(count):
            at = uint32(row + f)
            n[AROUND + at] = int32(blocks[uint32(n[NEIGHBOUR + at])])
    for row in range(0, _NEIGHBOURS * LANES, LANES):
        for f in range(count):
            at = uint32(row + f)
            look = int32(looks[uint32(n[AROUND + at])])
            n[AROUND + at] = (look >> int32(DARKENS_BIT)) & int32(1)
    for f in range(count):
        at = uint32(f)
        low_1, high_1 = n[AROUND + _LOW_1 + at], n[AROUND + _HIGH_1 + at]
        low_2, high_2 = n[AROUND + _LOW_2 + at], n[AROUND + _HIGH_2 + at]
        word = _cubes_at(low_1, low_2, n[AROUND + _CORNERS + at])
        word |= _cubes_at(high_1, low_2, n[AROUND + _CORNERS + LANES + at]) << int32(2)
        word |= _cubes_at(low_1, high_2, n[AROUND + _CORNERS + 2 * LANES + at]) << int32(4)
        word |= _cubes_at(high_1, high_2, n[AROUND + _CORNERS + 3 * LANES + at]) << int32(6)
        n[WORD + at] = int32(word) if n[FACE_KEY + at] != int32(0) else int32(0)


@inlined_kernel
def _light_of(first: int, light: int) -> int:
    """Levels of a cell at a corner; those of the first cell if it is dark.

    Returns:
        The level of the sky's light, and that of block light 16 bits above it.
    """
    seen = first if light == int32(0) else light
    return int32(int32(seen & _SKY) | int32((seen & ~_SKY) << int32(12)))


@inlined_kernel
def _levels_word(a: int, b: int, c: int, d: int) -> int:
    """The bits of a word that hold the levels at four corners, in quarters."""
    low = int32((a & _LEVELS) << int32(8)) | int32((b & _LEVELS) << int32(14))
    high = int32((c & _LEVELS) << int32(20)) | int32((d & _LEVELS) << int32(26))
    return int32(low | high)


@inlined_kernel
def add_levels(count: int, light: Bytes, n: Ints) -> tuple[int, bool]:
    """Complete each listed face's word with the levels of light at its corners.

    Args:
        count: See `list_faces`.
        light: uint8 (2**23,), both levels of each cell.
        n: Integer scratch, as `count_cubes` leaves it; `GLOW` gets the words of block light. Where
            there is some, and the sky's level is everywhere the same, they take its place, too.

    Returns:
        The level of the sky's light in quarters if it is the same at all corners of all faces, else
        `MIXED`; and whether there is light of blocks at any.
    """
    for f in range(count):
        at = uint32(f)
        n[LEVEL + at] = int32(light[uint32(n[FACE_KEY + at] >> int32(3))])
    for row in range(0, _NEIGHBOURS * LANES, LANES):
        for f in range(count):
            at = uint32(row + f)
            n[NEIGHBOUR + at] = int32(light[uint32(n[NEIGHBOUR + at])])
    differs, glows, none = int32(0), int32(0), int32(0)
    for f in range(count):
        at = uint32(f)
        first = n[LEVEL + at]
        own = _light_of(first, first)
        low_1 = _light_of(first, n[NEIGHBOUR + _LOW_1 + at])
        high_1 = _light_of(first, n[NEIGHBOUR + _HIGH_1 + at])
        low_2 = _light_of(first, n[NEIGHBOUR + _LOW_2 + at])
        high_2 = _light_of(first, n[NEIGHBOUR + _HIGH_2 + at])
        is_low_1, is_high_1 = n[AROUND + _LOW_1 + at], n[AROUND + _HIGH_1 + at]
        is_low_2, is_high_2 = n[AROUND + _LOW_2 + at], n[AROUND + _HIGH_2 + at]
        a = _light_of(first, n[NEIGHBOUR + _CORNERS + at])
        b = _light_of(first, n[NEIGHBOUR + _CORNERS + LANES + at])
        c = _light_of(first, n[NEIGHBOUR + _CORNERS + 2 * LANES + at])
        d = _light_of(first, n[NEIGHBOUR + _CORNERS + 3 * LANES + at])
        a = low_1 if int32(is_low_1 & is_low_2) != none else a  # hidden
        b = high_1 if int32(is_high_1 & is_low_2) != none else b
        c = low_1 if int32(is_low_1 & is_high_2) != none else c
        d = high_1 if int32(is_high_1 & is_high_2) != none else d
        a, b = int32(a + low_1 + low_2 + own), int32(b + high_1 + low_2 + own)
        c, d = int32(c + low_1 + high_2 + own), int32(d + high_1 + high_2 + own)
        is_listed, up = n[FACE_KEY + at] != int32(0), int32(16)
        levels = _levels_word(a, b, c, d) if is_listed else _ALL_FULL
        glow = _levels_word(a >> up, b >> up, c >> up, d >> up) if is_listed else none
        n[WORD + at] = either(n[WORD + at], levels)
        n[LEVEL + at], n[GLOW + at] = levels, glow
        glows = either(glows, glow)
    whole = n[LEVEL]
    for f in range(count):
        differs = either(differs, n[LEVEL + uint32(f)] ^ whole)
    level = (whole >> int32(8)) & _LEVELS
    for bits in _CORNER_BITS:
        differs |= ((whole >> int32(bits)) & _LEVELS) ^ level
    if glows != int32(0) and _is_even(MIXED if differs else level):
        for f in range(count):
            at = uint32(f)
            n[WORD + at] = int32(n[WORD + at] & _ALL_CUBES) | n[GLOW + at]
    return MIXED if differs else level, glows != int32(0)


@inlined_kernel
def _is_even(sky: int) -> bool:
    """Whether a tile's level of the sky's light is the same everywhere, and a whole one."""
    return sky >= 0 and sky & 3 == 0


@inlined_kernel
def _between(low: float, high: float, share: float) -> float:
    return low + (high - low) * share


@inlined_kernel
def _place_on(face: int, x: float, y: float, z: float) -> tuple[float, float]:
    """Where the point (x, y, z) of a block is on a face, along the face's two axes.

    Callers load all three: a load that depends on the face would keep LLVM from vectorising.
    """
    axis = face >> int32(1)
    return y if axis == int32(0) else x, y if axis == int32(2) else z


@inlined_kernel
def _bits(word: int, first: int, mask: int) -> float:
    """Some bits of a word as a number."""
    return float32(int32((word >> int32(first)) & mask))


@inlined_kernel
def spread_openness(s: Floats, n: Ints) -> None:
    """Write how open the corners around each hit are, interpolated at the point that it hits."""
    for i in range(LANES):
        n[KEY + i] = n[WORD + uint32(n[FACE_OF + i])]
    for i in range(LANES):
        word = n[KEY + i]
        one, two = _place_on(n[FACE + i], s[POINT_X + i], s[POINT_Y + i], s[POINT_Z + i])
        a, b = _bits(word, 0, _CUBES), _bits(word, 2, _CUBES)
        c, d = _bits(word, 4, _CUBES), _bits(word, 6, _CUBES)
        cubes = _between(_between(a, b, one), _between(c, d, one), two)
        s[OPENNESS + i] = ONE - PER_CUBE * cubes


@inlined_kernel
def _level_between(word: int, one: float, two: float) -> float:
    """A level of light, interpolated between those of the corners in a word."""
    a, b = _bits(word, 8, _LEVELS), _bits(word, 14, _LEVELS)
    c, d = _bits(word, 20, _LEVELS), _bits(word, 26, _LEVELS)
    return _between(_between(a, b, one), _between(c, d, one), two) * float32(0.25)


@render_kernel
def spread_light(first: int, step: int, s: Floats, n: Ints) -> None:
    """Write the light on each hit, interpolated between corners, then between levels.

    Args:
        first: Place in the light map of level 0 of the light that varies.
        step: Places from one of its levels to the next.
        s: Float scratch.
        n: Integer scratch; `KEY` holds the word of each hit's face.
    """
    for i in range(LANES):
        one, two = _place_on(n[FACE + i], s[POINT_X + i], s[POINT_Y + i], s[POINT_Z + i])
        level = _level_between(n[KEY + i], one, two)
        below = min(int32(level), int32(LEVELS - 2))
        n[LEVEL + i] = below
        s[LEVEL_ABOVE + i] = level - float32(below)
    for i in range(LANES):
        below = uint32(first) + uint32(n[LEVEL + i]) * uint32(step)
        n[LEVEL + i] = n[LIGHT_MAP + below]
        n[KEY + i] = n[LIGHT_MAP + below + uint32(step)]
    for i in range(LANES):
        share, low, high = s[LEVEL_ABOVE + i], n[LEVEL + i], n[KEY + i]
        s[LIGHT_R + i] = _channel(low, high, int32(0), share)
        s[LIGHT_G + i] = _channel(low, high, int32(8), share)
        s[LIGHT_B + i] = _channel(low, high, int32(16), share)


@render_kernel
def spread_both_lights(sky: int, s: Floats, n: Ints) -> None:
    """Write the light on each hit where there is light of blocks; see `spread_light`.

    Args:
        sky: Level of the sky's light in quarters, or `MIXED`; see `add_levels`.
        s: Float scratch.
        n: Integer scratch.
    """
    if _is_even(sky):  # as in caves, where it is 0
        spread_light(sky >> 2, LEVELS, s, n)
        return
    for i in range(LANES):
        n[_FOUR_1 + i] = n[GLOW + uint32(n[FACE_OF + i])]
    for i in range(LANES):
        one, two = _place_on(n[FACE + i], s[POINT_X + i], s[POINT_Y + i], s[POINT_Z + i])
        from_sky = _level_between(n[KEY + i], one, two)
        from_blocks = _level_between(n[_FOUR_1 + i], one, two)
        below = min(int32(from_sky), int32(LEVELS - 2))
        under = min(int32(from_blocks), int32(LEVELS - 2))
        n[LEVEL + i] = int32(under * int32(LEVELS)) + below
        s[LEVEL_ABOVE + i] = from_sky - float32(below)
        s[GLOW_ABOVE + i] = from_blocks - float32(under)
    for i in range(LANES):
        at = uint32(n[LEVEL + i])
        n[_FOUR_1 + i] = n[LIGHT_MAP + at]
        n[_FOUR_2 + i] = n[LIGHT_MAP + at + uint32(1)]
        n[_FOUR_3 + i] = n[LIGHT_MAP + at + uint32(LEVELS)]
        n[_FOUR_4 + i] = n[LIGHT_MAP + at + uint32(LEVELS + 1)]
    for channel, to in ((0, LIGHT_R), (8, LIGHT_G), (16, LIGHT_B)):
        for i in range(LANES):
            share, bits = s[LEVEL_ABOVE + i], int32(channel)
            low = _channel(n[_FOUR_1 + i], n[_FOUR_2 + i], bits, share)
            high = _channel(n[_FOUR_3 + i], n[_FOUR_4 + i], bits, share)
            s[to + i] = _between(low, high, s[GLOW_ABOVE + i])


@inlined_kernel
def _channel(low: int, high: int, bits: int, share: float) -> float:
    """A channel of the light between two words of the light map, 0 to 1."""
    one, other = _bits(low, bits, int32(255)), _bits(high, bits, int32(255))
    return _between(one, other, share) * float32(1 / 255)


@inlined_kernel
def open_all(s: Floats) -> None:
    """Mark the corners of all faces as open."""
    for i in range(LANES):
        s[OPENNESS + i] = ONE


@inlined_kernel
def light_evenly(quarters: int, s: Floats, n: Ints) -> None:
    """Light all faces alike, by a level of the sky's light given in quarters, or `WHITE`."""
    below = min(quarters >> 2, LEVELS - 2)
    low, high = n[LIGHT_MAP + below], n[LIGHT_MAP + below + 1]
    share = float32(quarters - 4 * below) * float32(0.25)
    r = _channel(low, high, int32(0), share)
    g = _channel(low, high, int32(8), share)
    b = _channel(low, high, int32(16), share)
    if quarters == WHITE:
        r, g, b = ONE, ONE, ONE
    for i in range(LANES):
        s[LIGHT_R + i], s[LIGHT_G + i], s[LIGHT_B + i] = r, g, b
