"""Texture basics: the packed, mip-mapped format, face shading, and seeds for painters.

A *picture* is a float array (16, 16, 3) of RGB in 0..255, row 0 on top. A *texture* is the same
picture with its mip levels, flat and packed: `TEXTURE_WORDS` uint32 of `r | g << 8 | b << 16`,
level l starting at `MIP_OFFSET[l]` with `(16 >> l) ** 2` texels in row-major order. See-through
texels of sprites are `TRANSPARENT`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.float64]
Texture = NDArray[np.uint32]

TEXTURE_SIZE = 16
MIP_LEVELS = 5
MIP_OFFSET = (0, 256, 320, 336, 340)
# Rounded up to a power of two, so that the kernels find a texture with a shift.
TEXTURE_SHIFT = 9
TEXTURE_WORDS = 1 << TEXTURE_SHIFT
TRANSPARENT = 255 << 24

# Faces in the order of the kernels, named after the side of the box that they are on.
FACE_EAST, FACE_WEST, FACE_TOP, FACE_BOTTOM, FACE_SOUTH, FACE_NORTH = range(6)
FACES = 6
# Directional shading of Minecraft: top 1, z sides 0.8, x sides 0.6, bottom 0.5.
FACE_SHADE = (0.6, 0.6, 1.0, 0.5, 0.8, 0.8)


def colour(text: str) -> tuple[int, int, int]:
    """Parse "rrggbb" into RGB."""
    red, green, blue = bytes.fromhex(text)
    return red, green, blue


def pack(picture: NDArray[np.floating]) -> NDArray[np.uint32]:
    """Pack RGB (..., 3) in 0..255 into words (...)."""
    rgb = np.clip(np.rint(picture), 0, 255).astype(np.uint32)
    return rgb[..., 0] | (rgb[..., 1] << 8) | (rgb[..., 2] << 16)


def texture(picture: Picture, shade: float = 1.0) -> Texture:
    """Build a mip-mapped texture from a picture.

    Args:
        picture: (16, 16, 3).
        shade: Factor on the colours, so that face shading costs nothing while rendering.

    Returns:
        uint32 (TEXTURE_WORDS,).
    """
    return mip_mapped(picture[None], np.array([shade]))[0]


def mip_mapped(pictures: NDArray[np.float64], shades: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Build mip-mapped textures; a texel is the mean of 2 x 2 texels of the level before.

    Args:
        pictures: (n, 16, 16, 3).
        shades: Factor on the colours of each, (n,).

    Returns:
        uint32 (n, TEXTURE_WORDS).
    """
    count = len(pictures)
    words = np.zeros((count, TEXTURE_WORDS), np.uint32)
    level = pictures * shades[:, None, None, None]
    for offset in MIP_OFFSET:
        size = level.shape[1]
        words[:, offset : offset + size * size] = pack(level).reshape(count, -1)
        if size > 1:
            level = level.reshape(count, size // 2, 2, size // 2, 2, 3).mean((2, 4))
    return words


def sprite_texture(
    sprite: NDArray[np.uint8], shade: float = 1.0, *, keeps_cover: bool = False
) -> Texture:
    """Build a texture from an RGBA sprite; its see-through texels are `TRANSPARENT`.

    A texel of a coarser level is opaque if at least half of what it covers is. Its colour is the
    mean of the opaque part, so that edges do not darken with distance.

    Args:
        sprite: uint8 (16, 16, 4).
        shade: Factor on the colours.
        keeps_cover: Whether each level has the same share of opaque texels instead, those that
            cover most (Castaño 2010), so that a flower's stalk does not vanish with distance.

    Returns:
        uint32 (TEXTURE_WORDS,).
    """
    words = np.zeros(TEXTURE_WORDS, np.uint32)
    weight = (sprite[..., 3:] > 127).astype(np.float64)
    colour = sprite[..., :3] * shade * weight
    for offset in MIP_OFFSET:
        size = len(weight)
        mean = colour / np.maximum(weight, 1e-6)
        least = 0.5
        if keeps_cover and weight.any():
            opaque = max(round(weight.mean() * size * size), 1)
            least = max(np.sort(weight, axis=None)[-opaque], 1e-6)
        level = np.where(weight[..., 0] >= least, pack(mean), np.uint32(TRANSPARENT))
        words[offset : offset + size * size] = level.ravel()
        if size > 1:
            blocks = (size // 2, 2, size // 2, 2)
            colour = colour.reshape(*blocks, 3).mean((1, 3))
            weight = weight.reshape(*blocks, 1).mean((1, 3))
    return words


def name_seed(name: str) -> int:
    """A seed that depends on the name alone, the same in every process."""
    seed = 2166136261  # FNV-1a
    for byte in name.encode():
        seed = ((seed ^ byte) * 16777619) & 0xFFFFFFFF
    return seed
