"""The textures of blocks in all their states, as the terrain kernel reads them.

Blocks share textures: a table holds where the texture of each face of a block in a state starts,
and faces that look alike start at the same place. So the atlas holds each picture once per shade,
and whatever states a family has cost nothing but entries in the table.

The upper byte of a texel says how *clear* it is: 0 where nothing shines through, 255 in a hole.
Opaque cubes have no holes, as those of their pictures are filled (see `opaque`). Leaves have both:
filled colours for afar, and holes for rays that look for them.

A block's pictures are upright in its family's first position. `turned_faces` turns them with the
state: a furnace's front to its facing, the rings of a log's ends to both sides of its axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import Ints
from rllib_minestudio.env.voxel.render.textures import (
    FACE_BOTTOM,
    FACE_EAST,
    FACE_NORTH,
    FACE_SHADE,
    FACE_SOUTH,
    FACES,
    MIP_OFFSET,
    TEXTURE_SIZE,
    TEXTURE_WORDS,
    Picture,
    Texture,
    Textures,
    mip_mapped,
    pack,
)
from rllib_minestudio.env.voxel.render.window import Rgba
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, Box, default_shape
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCKS,
    FAMILY_OF,
    THIN_KINDS,
    Block,
    kind_of,
    properties_of,
    states_of,
)
from rllib_minestudio.env.voxel.world.climate import BIOMES, SNOWY_TUNDRA

# ----------------- how rays of the eye treat each block: as an opaque cube, or as something special
# The march of a tile ends in the first cell that the box field holds for a block. Most of these
# are opaque cubes, and what is seen is the face by which the ray entered. In a *special* cell it
# may be something else, which `see_through` finds out: a face inside the cell, a texel behind a
# hole, or what lies behind the cell.

SPECIAL = 1
"""A ray may go on from it; unset for opaque cubes."""
BOXES = 2
"""It is made of boxes, see `block_shapes`; without this bit it fills its cell."""
LEAVES = 4
"""It is special near the eye only; farther away its holes are filled."""
CULLED = 8
"""Between two blocks of its kind, no faces are drawn."""
HOLES_BIT = 5
HOLES = 1 << HOLES_BIT
"""Some texels of its faces are not opaque; set by `with_looks`, since pictures may be replaced."""
FULL_LEAVES = 10.0
"""Distance in blocks from which leaves have no gaps."""
LOOK_SHIFT = 24
"""Bits below a block's look in the entries of its faces, see `with_looks`."""
TINTED_BIT = 6
"""Of the entry of a face whose texture is the first of some, one for each tint of a column."""
DARKENS_BIT = 4
DARKENS = 1 << DARKENS_BIT
"""It darkens the corners of faces at it."""

_CUBE = ((0, 0, 0, 1, 1, 1),)

TRANSLUCENT_KINDS = frozenset(
    (
        *("ice", "frosted_ice", "slime_block", "honey_block", "nether_portal"),
        *(
            block.name
            for block in BLOCKS
            if block.name.endswith(("_stained_glass", "_stained_glass_pane"))
        ),
    )
)
"""Kinds whose texels tint what is behind them; all other texels are opaque or holes."""


def _is_culled(block: Block) -> bool:
    """Minecraft's `skipRendering`, from memory: glass, panes and bars, and translucent blocks."""
    is_glass = block.name.endswith(("glass", "glass_pane", "iron_bars"))
    return is_glass or block.name in TRANSLUCENT_KINDS


def is_leaves(name: str) -> bool:
    """Whether blocks of a kind, by its name, are leaves."""
    return name.endswith("_leaves")


def _look(kind: int, block: int) -> int:
    its = BLOCKS[kind]
    look = 0
    if SHAPES[default_shape(block)].model != _CUBE:
        look |= SPECIAL | BOXES
    elif not its.name.endswith("glass") and its.name != "lava":
        # In Minecraft, whatever fills its cell for bodies does, except glass (from memory).
        look |= DARKENS
    if its.see_through or its.name in TRANSLUCENT_KINDS:
        look |= SPECIAL
    if is_leaves(its.name):
        look |= LEAVES
    if _is_culled(its):
        look |= CULLED
    return look


def _find_looks() -> NDArray[np.uint8]:
    looks = np.zeros(1 << 16, np.uint8)
    for kind in range(len(BLOCKS)):
        if kind != AIR:
            for block in states_of(kind):
                looks[block] = _look(kind, block)
    return looks


LOOKS = _find_looks()
"""The bits above for each block, uint8 (65536,); 0 for air and for what is no block."""


def with_looks(
    faces: NDArray[np.int32], has_holes: NDArray[np.bool_], tinted: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Add each block's look to the entries of its faces, where it costs no further look-up.

    Args:
        faces: `BlockAtlas.faces`, whose textures start below `1 << LOOK_SHIFT`.
        has_holes: See `BlockAtlas.has_holes`.
        tinted: `BlockAtlas.tinted`.
    """
    looks = LOOKS.astype(np.int32)
    looks |= (
        has_holes[faces // TEXTURE_WORDS].reshape(len(LOOKS), -1).any(1).astype(np.int32)
        << HOLES_BIT
    )
    looks = np.repeat(looks, len(faces) // len(LOOKS))
    return faces | (looks | tinted.astype(np.int32) << TINTED_BIT) << LOOK_SHIFT


# ------------------------------------------------------------------- fewer boxes that look the same


def joined(boxes: Iterable[Box]) -> list[Box]:
    """Join boxes into as few as look the same, because every ray has to be tried with each.

    Two boxes become one if they differ along one axis alone and there is no gap between them, or
    one that a third box fills: the arms of a fence run through its post.
    """
    left = list(dict.fromkeys(boxes))
    for one, other in itertools.combinations(left, 2):
        axes = [axis for axis in range(3) if one[axis::3] != other[axis::3]]
        if len(axes) == 1:
            axis = axes[0]
            (low, end), (begin, high) = sorted((one[axis::3], other[axis::3]))
            gap = _stretched(one, axis, end, begin)
            if end >= begin or any(_contains(box, gap) for box in left):
                rest = [box for box in left if box not in (one, other)]
                return joined([*rest, _stretched(one, axis, low, max(end, high))])
    return left


def _stretched(box: Box, axis: int, low: float, high: float) -> Box:
    """The box, but from `low` to `high` along an axis."""
    places = list(box)
    places[axis::3] = low, high
    x0, y0, z0, x1, y1, z1 = places
    return x0, y0, z0, x1, y1, z1


def _contains(box: Box, other: Box) -> bool:
    return all(box[n] <= other[n] and other[n + 3] <= box[n + 3] for n in range(3))


# --------------------- the textures of blocks in all their states, as the terrain kernel reads them

FACE_BITS = 3
"""Bits below a block's in the index of a face."""
_BATCH = 192
"""Textures that are made at once: for a single one, numpy's overhead would dominate."""
CLEAR_SHIFT = 24
"""Bits below a texel's byte of how clear it is."""
HOLE = 255
"""How clear a hole is."""
FILLED, CUT, CUT_FROM_FILLED, TRANSLUCENT = range(4)
"""What becomes of a picture's holes: filled; cut out; both, by distance; as clear as they are."""
BACKGROUND = 0.5
"""Factor on a picture's mean colour that fills its holes: leaves are dark inside."""


class BlockAtlas(NamedTuple):
    """The textures of blocks.

    Attributes:
        textures: uint32, flat, `TEXTURE_WORDS` for each texture.
        faces: Where the texture of face f of block b starts, at `b << FACE_BITS | f`, int32
            (2**19,); 0, which is black, for what is not a block.
        tinted: Whether a face has a texture for each tint of a column, one after the other, bool
            (2**19,).
    """

    textures: Texture
    faces: Ints
    tinted: NDArray[np.bool_]

    def starts(self, block: int) -> list[int]:
        """Where the textures of a block's six faces start."""
        first = block << FACE_BITS
        return self.faces[first : first + FACES].tolist()

    def has_holes(self) -> NDArray[np.bool_]:
        """Whether some texels of each texture are not opaque, bool (n,)."""
        clear = self.textures.reshape(-1, TEXTURE_WORDS) >> CLEAR_SHIFT
        return np.asarray(clear.any(axis=1), np.bool_)


def build_block_atlas(textures: Textures, kinds: Iterable[int] = range(len(BLOCKS))) -> BlockAtlas:
    """Build the textures of blocks in all their states, with face shading applied.

    Args:
        textures: Source of their pictures.
        kinds: Kinds of blocks; air stays black.
    """
    starts: dict[tuple[float, int, tuple[bytes, ...]], int] = {}
    pictures = [np.zeros((TEXTURE_SIZE, TEXTURE_SIZE, 4), np.uint8)]
    shades, kinds_of_holes = [1.0], [FILLED]
    faces = np.zeros(1 << (16 + FACE_BITS), np.int32)
    tinted = np.zeros(len(faces), np.bool_)
    for kind in kinds:
        for block in states_of(kind) if kind != AIR else ():
            for face, (versions, shade) in enumerate(_faces_in_all_tints(textures, block)):
                holes = _holes(block, versions[0])
                key = shade, holes, tuple(picture.tobytes() for picture in versions)
                if key not in starts:
                    starts[key] = len(pictures) * TEXTURE_WORDS
                    pictures.extend(versions)
                    shades.extend([shade] * len(versions))
                    kinds_of_holes.extend([holes] * len(versions))
                faces[block << FACE_BITS | face] = starts[key]
                tinted[block << FACE_BITS | face] = len(versions) > 1
    words = np.empty((len(pictures), TEXTURE_WORDS), np.uint32)
    for first in range(0, len(pictures), _BATCH):
        batch = slice(first, first + _BATCH)
        words[batch] = _packed(
            np.stack(pictures[batch]), np.array(shades[batch]), np.array(kinds_of_holes[batch])
        )
    return BlockAtlas(words.ravel(), faces, tinted)


def _holes(block: int, picture: Rgba) -> int:
    """What becomes of the holes in a picture of a block."""
    if not LOOKS[block] & SPECIAL or (picture[..., 3] == 255).all():
        return FILLED
    name = BLOCKS[kind_of(block)].name
    return CUT_FROM_FILLED if is_leaves(name) else TRANSLUCENT if name in TRANSLUCENT_KINDS else CUT


def _packed(
    pictures: Rgba, shades: NDArray[np.float64], holes: NDArray[np.int_]
) -> NDArray[np.uint32]:
    """Pack textures of blocks with how clear their texels are, uint32 (n, `TEXTURE_WORDS`).

    A coarser texel of leaves is a hole if more than half of what it covers is. Of other pictures
    with holes, it has the mean colour of what is not, and is as clear as they are on average: so
    the frame of a window fades with distance, and does not vanish.

    Args:
        pictures: uint8 (n, 16, 16, 4).
        shades: Factor on the colours of each.
        holes: What becomes of its holes.
    """
    filled = opaque(pictures)
    words = mip_mapped(filled, shades)
    for number in np.flatnonzero(holes != FILLED):
        cover = pictures[number, ..., 3:] / 255.0
        if holes[number] != TRANSLUCENT:
            cover = np.rint(cover)
        colour = np.where(cover > 0, pictures[number, ..., :3], filled[number]) * shades[number]
        weighted = colour * cover
        for offset in MIP_OFFSET:
            size = len(cover)
            if holes[number] == CUT_FROM_FILLED:
                clear = np.where(cover < 0.5, HOLE, 0)
            else:
                clear = np.rint((1 - cover) * HOLE).astype(int)
                mean = np.where(cover > 0, weighted / np.maximum(cover, 1e-9), colour)
                words[number, offset : offset + size * size] = pack(mean).ravel()
            words[number, offset : offset + size * size] |= (
                clear.astype(np.uint32).ravel() << CLEAR_SHIFT
            )
            if size > 1:
                colour, weighted, cover = (
                    level.reshape(size // 2, 2, size // 2, 2, -1).mean((1, 3))
                    for level in (colour, weighted, cover)
                )
    return words


def _faces_in_all_tints(textures: Textures, block: int) -> Iterator[tuple[list[Rgba], float]]:
    """Yield, for each face of a block, its pictures as the kernels read them, and its shade.

    There is a picture for each tint of a column, or a single one if it is the same in all.
    """
    kind, properties = kind_of(block), properties_of(block)
    laid = [
        laid_along_axes(turned_faces(faces, FAMILY_OF[kind].turned, properties))
        for faces in in_all_tints(textures, BLOCKS[kind].name, properties)
    ]
    for face in range(FACES):
        if kind in THIN_KINDS:  # only their dust is drawn from here
            yield [laid[0][FACE_SOUTH]], FACE_SHADE[FACE_SOUTH]
            continue
        versions = [faces[face] for faces in laid]
        is_same = all(np.array_equal(version, versions[0]) for version in versions)
        yield versions[:1] if is_same else versions, FACE_SHADE[face]


def in_all_tints(
    textures: Textures, name: str, properties: Mapping[str, str]
) -> Iterator[list[Rgba]]:
    """Yield the six faces of a block for each of `Land.tints`: for each biome, and below snow.

    If it looks the same in all, they are yielded once.
    """
    if not textures.follows_biome(name):
        yield textures.block_faces(name, properties)
        return
    for biome in BIOMES:
        yield textures.block_faces(name, properties, biome)
    yield textures.block_faces(name, {**properties, "snowy": "true"}, BIOMES[SNOWY_TUNDRA])


def opaque(pictures: Rgba) -> Picture:
    """Fill the holes of faces, as nothing is seen through most blocks.

    Args:
        pictures: uint8 (n, 16, 16, 4), not multiplied by alpha.

    Returns:
        RGB (n, 16, 16, 3).
    """
    filled = pictures[..., :3].astype(np.float64)
    with_holes = np.flatnonzero((pictures[..., 3] < 255).any((1, 2)))
    colour, cover = filled[with_holes], pictures[with_holes][..., 3:] / 255.0
    weight = np.maximum(cover.sum((1, 2), keepdims=True), 1e-9)
    mean = (colour * cover).sum((1, 2), keepdims=True) / weight
    filled[with_holes] = colour * cover + mean * BACKGROUND * (1 - cover)
    return filled


def laid_along_axes(faces: Sequence[Rgba]) -> list[Rgba]:
    """Flip a block's faces so that their columns and rows run along the world's axes.

    That is how kernels read them: columns eastwards or southwards, rows southwards or downwards.
    The pictures given are upright for someone who looks at the face from outside, facing north
    when looking up.
    """
    laid = list(faces)
    for face in (FACE_EAST, FACE_NORTH):
        laid[face] = laid[face][:, ::-1]
    laid[FACE_BOTTOM] = laid[FACE_BOTTOM][::-1]
    return laid


# ------------------------------------------------------- how a block's pictures turn with its state

_FRAMES = np.array(
    [
        [(1, 0, 0), (0, 0, -1), (0, -1, 0)],
        [(-1, 0, 0), (0, 0, 1), (0, -1, 0)],
        [(0, 1, 0), (1, 0, 0), (0, 0, 1)],
        [(0, -1, 0), (1, 0, 0), (0, 0, -1)],
        [(0, 0, 1), (1, 0, 0), (0, -1, 0)],
        [(0, 0, -1), (-1, 0, 0), (0, -1, 0)],
    ]
)
"""Of each face: where it faces, and where its picture's columns and rows lead (x, y, z)."""

_TIP_NORTH = np.array([(1, 0, 0), (0, 0, 1), (0, -1, 0)])
"""A quarter turn about x that tips the top to the north, and the south to the top."""
_CLOCKWISE = np.array([(0, 0, -1), (0, 1, 0), (1, 0, 0)])
"""A quarter turn about y, seen from above: from the south to the west, north and east."""

_TURNS: dict[str, tuple[str, dict[str, tuple[int, int]]]] = {
    "front": (
        "facing",
        {
            **{"south": (0, 0), "west": (0, 1), "north": (0, 2), "east": (0, 3)},
            **{"up": (1, 0), "down": (3, 0)},
        },
    ),
    "top": (
        "facing",
        {
            **{"up": (0, 0), "north": (1, 0), "east": (1, 1), "south": (1, 2), "west": (1, 3)},
            **{"down": (2, 0)},
        },
    ),
    "axis": ("axis", {"y": (0, 0), "z": (1, 0), "x": (1, 1)}),
}
"""By `Family.turned`: the property, and quarter turns about x, then about y, for each value.

"front" turns the south face, where the pictures of fronts are, to the block's facing; "top" the
upper face; "axis" lays the block along its axis.
"""


def turned_faces(faces: Sequence[Rgba], turned: str, properties: Mapping[str, str]) -> list[Rgba]:
    """Turn a block's six pictures as its state says.

    Args:
        faces: Upright pictures, in the order of `textures`.
        turned: `Family.turned`: "front", "top", "axis", or empty for a block that never turns.
        properties: The block's.
    """
    if not turned:
        return list(faces)
    name, turns = _TURNS[turned]
    tips, clockwise = turns[properties[name]]
    matrix = np.linalg.matrix_power(_CLOCKWISE, clockwise) @ np.linalg.matrix_power(
        _TIP_NORTH, tips
    )
    found = list(faces)
    for picture, frame in zip(faces, _FRAMES, strict=True):
        normal, right, _ = frame @ matrix.T
        face = int(np.flatnonzero((_FRAMES[:, 0] == normal).all(1))[0])
        _, columns, rows = _FRAMES[face]
        # A picture whose columns now lead down has been turned clockwise by a quarter.
        quarters = {(1, 0): 0, (0, 1): -1, (-1, 0): 2, (0, -1): 1}[right @ columns, right @ rows]
        found[face] = np.rot90(picture, quarters)
    return found
