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

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.block_looks import (
    LOOKS,
    SPECIAL,
    TRANSLUCENT_KINDS,
    is_leaves,
)
from rllib_minestudio.env.voxel.render.camera import Ints
from rllib_minestudio.env.voxel.render.texels import (
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
    mip_mapped,
    pack,
)
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Rgba
from rllib_minestudio.env.voxel.world.block_states import (
    FAMILY_OF,
    kind_of,
    properties_of,
    states_of,
)
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCKS
from rllib_minestudio.env.voxel.world.plants import THIN_KINDS

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
    """

    textures: Texture
    faces: Ints

    def starts(self, block: int) -> list[int]:
        """Where the textures of a block's six faces start."""
        first = block << FACE_BITS
        return self.faces[first : first + FACES].tolist()

    def has_holes(self) -> NDArray[np.bool_]:
        """Whether some texels of each texture are not opaque, bool (n,)."""
        return (self.textures.reshape(-1, TEXTURE_WORDS) >> CLEAR_SHIFT).max(1) > 0


def build_block_atlas(textures: Textures, kinds: Iterable[int] = range(len(BLOCKS))) -> BlockAtlas:
    """Build the textures of blocks in all their states, with face shading applied.

    Args:
        textures: Source of their pictures.
        kinds: Kinds of blocks; air stays black.
    """
    starts: dict[tuple[float, int, bytes], int] = {}
    pictures = [np.zeros((TEXTURE_SIZE, TEXTURE_SIZE, 4), np.uint8)]
    shades, kinds_of_holes = [1.0], [FILLED]
    faces = np.zeros(1 << (16 + FACE_BITS), np.int32)
    for kind in kinds:
        for block in states_of(kind) if kind != AIR else ():
            laid, shown = _laid_faces(textures, block), list(FACE_SHADE)
            if kind in THIN_KINDS:  # only their dust is drawn from here
                laid, shown = [laid[FACE_SOUTH]] * FACES, [FACE_SHADE[FACE_SOUTH]] * FACES
            for face, (picture, shade) in enumerate(zip(laid, shown, strict=True)):
                holes = _holes(block, picture)
                key = shade, holes, picture.tobytes()
                if key not in starts:
                    starts[key] = len(pictures) * TEXTURE_WORDS
                    pictures.append(picture)
                    shades.append(shade)
                    kinds_of_holes.append(holes)
                faces[block << FACE_BITS | face] = starts[key]
    words = np.empty((len(pictures), TEXTURE_WORDS), np.uint32)
    for first in range(0, len(pictures), _BATCH):
        batch = slice(first, first + _BATCH)
        words[batch] = _packed(
            np.stack(pictures[batch]), np.array(shades[batch]), np.array(kinds_of_holes[batch])
        )
    return BlockAtlas(words.ravel(), faces)


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


def _laid_faces(textures: Textures, block: int) -> list[Rgba]:
    """The six faces of a block of the world, as the kernels read them."""
    kind, properties = kind_of(block), properties_of(block)
    faces = textures.block_faces(BLOCKS[kind].name, properties)
    return laid_along_axes(turned_faces(faces, FAMILY_OF[kind].turned, properties))


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
        faces: Upright pictures, in the order of `texels`.
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
