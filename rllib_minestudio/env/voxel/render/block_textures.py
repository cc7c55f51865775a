"""The textures of block faces, as the terrain kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rllib_minestudio.env.voxel.render.texels import (
    FACE_BOTTOM,
    FACE_EAST,
    FACE_NORTH,
    FACE_SHADE,
    FACES,
    TEXTURE_WORDS,
    Picture,
    Texture,
    mip_mapped,
)
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Rgba

_BATCH = 32
"""Blocks whose textures are made at once: for a single block, numpy's overhead would dominate."""
BACKGROUND = 0.5
"""Factor on a picture's mean colour that fills its holes: leaves are dark inside."""


def opaque(pictures: Rgba) -> Picture:
    """Fill the holes of faces, as every block of the world is opaque.

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


def build_block_atlas(names: Sequence[str], textures: Textures) -> Texture:
    """Build the textures of all blocks, with face shading applied.

    Args:
        names: Block names in the order of their ids; id 0 is air and stays black.
        textures: Source of their pictures.

    Returns:
        uint32 flat; the texture of face f of block b starts at `(b * 6 + f) * TEXTURE_WORDS`.
    """
    atlas = np.zeros((len(names), FACES, TEXTURE_WORDS), np.uint32)
    for first in range(1, len(names), _BATCH):
        batch = names[first : first + _BATCH]
        faces = [laid_along_axes(textures.block_faces(name)) for name in batch]
        pictures = np.concatenate(faces)
        words = mip_mapped(opaque(pictures), np.tile(FACE_SHADE, len(batch)))
        atlas[first : first + _BATCH] = words.reshape(len(batch), FACES, TEXTURE_WORDS)
    return atlas.ravel()
