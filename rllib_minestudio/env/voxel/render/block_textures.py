"""The blocks' faces as the textures that the terrain's kernel reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rllib_minestudio.env.voxel.render.texels import (
    FACE_SHADE,
    FACES,
    TEXTURE_WORDS,
    Picture,
    Texture,
    texture,
)
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Rgba

BACKGROUND = 0.5
"""Gaps of a picture with holes show its mean colour times this: leaves are dark inside."""


def opaque(picture: Rgba) -> Picture:
    """A face without holes, RGB (16, 16, 3): every block of the world is opaque.

    Args:
        picture: uint8 (16, 16, 4), not multiplied by alpha.
    """
    cover = picture[..., 3:] / 255.0
    colour = picture[..., :3].astype(np.float64)
    mean = (colour * cover).sum((0, 1)) / max(float(cover.sum()), 1e-9)
    return colour * cover + mean * BACKGROUND * (1 - cover)


def block_textures(textures: Textures, name: str) -> list[Texture]:
    """The six faces of a block, shaded, in the order of `texels`."""
    # Most faces show the same picture, which is then made into a texture once for each shade.
    made: dict[tuple[int, float], Texture] = {}
    faces = textures.block_faces(name)
    for picture, shade in zip(faces, FACE_SHADE, strict=True):
        if (id(picture), shade) not in made:
            made[id(picture), shade] = texture(opaque(picture), shade)
    return [made[id(picture), shade] for picture, shade in zip(faces, FACE_SHADE, strict=True)]


def build_block_atlas(names: Sequence[str], textures: Textures) -> Texture:
    """Textures of all blocks with face shading applied.

    Args:
        names: Block names in the order of their ids; id 0 is air and stays black.
        textures: Where their pictures come from.

    Returns:
        uint32 flat; the texture of face f of block b starts at `(b * 6 + f) * TEXTURE_WORDS`.
    """
    atlas = np.zeros((len(names), FACES, TEXTURE_WORDS), np.uint32)
    for block, name in enumerate(names):
        if block:
            atlas[block] = block_textures(textures, name)
    return atlas.ravel()
