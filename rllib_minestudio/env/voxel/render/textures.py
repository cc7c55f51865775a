"""All pictures of the game: ours, or those of the user's resource pack.

Ours are the files below `resource_pack/`, in the layout of Minecraft's resource packs. The tables
`block_faces.csv` and `item_icons.csv` list the pictures that make up a block's faces and an item's
icon; `tints.csv` has the colours of grey pictures that the game colours (grass, leaves), or says by
which colour of a biome in `data/biomes.csv`.
"""

from __future__ import annotations

import csv
import json
import logging
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import float32, int32, uint8
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.render.camera import Floats, render_kernel
from rllib_minestudio.env.voxel.render.resource_pack import (
    OUR_PACK,
    PackError,
    PictureError,
    ResourcePack,
    Rgba,
    not_a_pack,
)
from rllib_minestudio.env.voxel.world.climate import BIOMES
from rllib_minestudio.errors import InvalidOptionsError

# ------------------- blocks in slots and in the hand: ray-traced boxes with pictures on their faces
# A block's space is the unit cube, y upwards. A face shows the part of its picture that lies on
# it, so a slab's side is the lower half of a plank.

Boxes = NDArray[np.float32]
Matrix = NDArray[np.floating[Any]]

X, Y, Z = 0, 1, 2
_SHAPES = Path(__file__).parent / "block_shapes.json"
# Minecraft's display of a block in a slot: turned by 225 degrees about y and 30 about x, scaled.
# Our blocks have their front in the south, not in the north, so they are turned 180 degrees less.
SLOT_TURN_Y, SLOT_TURN_X, SLOT_SCALE = 45.0, 30.0, 0.625
# The left side (west) is lit more than the right (south).
SLOT_SHADES = np.array((0.8, 0.8, 1.0, 0.5, 0.6, 0.6), np.float32)
MOST_SURFACES = 8
"""Surfaces after which a ray ends, if the texels it meets on them are all see-through."""
NOWHERE = np.float32(1e9)
"""Ray parameter of a surface that the ray misses."""


@lru_cache(maxsize=1)
def _shapes() -> dict[str, Boxes]:
    with _SHAPES.open() as file:
        return {
            name: np.array(boxes, np.float32).reshape(-1, 6) / np.float32(TEXTURE_SIZE)
            for name, boxes in json.load(file).items()
        }


def boxes_of(shape: str) -> Boxes:
    """The boxes of a shape of `block_shapes.json`: float32 (n, 6), low x, y, z, high x, y, z."""
    return _shapes()[shape]


def shift(x: float, y: float, z: float) -> Matrix:
    """Homogeneous matrix of a translation."""
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


def turn(axis: int, degrees: float) -> Matrix:
    """Homogeneous matrix of a rotation about a coordinate axis."""
    sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    one, two = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(4)
    matrix[one, one] = matrix[two, two] = cos
    matrix[one, two], matrix[two, one] = -sin, sin
    return matrix


def scale(factor: float) -> Matrix:
    """Homogeneous matrix of a scaling."""
    return np.diag([factor, factor, factor, 1.0])


def to_space_of(pose: Matrix) -> Floats:
    """Invert a pose for the kernels: float32 (3, 4), from view space to the pose's own space."""
    return np.ascontiguousarray(np.linalg.inv(pose)[:3], np.float32)


@kernel(fastmath=True, inline="always")
def crossing(low: float, high: float, start: float, per: float) -> tuple[float, float]:
    """Return where a ray enters and leaves the slab between two planes across an axis.

    Args:
        low: Place of the lower plane along the axis.
        high: Place of the upper plane.
        start: Where the ray begins.
        per: Reciprocal of its direction.
    """
    one, two = (low - start) * per, (high - start) * per
    return min(one, two), max(one, two)


@kernel(fastmath=True, inline="always")
def away_from_zero(value: float) -> float:
    """Return `value`, or 1e-7 where it is too small to divide by."""
    return value if abs(value) > float32(1e-7) else float32(1e-7)


@kernel(fastmath=True, inline="always")
def put_mean(
    picture: Rgba, row: int, column: int, share: float,
    red: float, green: float, blue: float, cover: float,
) -> None:  # fmt: skip
    """Write a pixel from the sums over its rays and the share of each ray."""
    picture[row, column, 0] = uint8(red * share + float32(0.5))
    picture[row, column, 1] = uint8(green * share + float32(0.5))
    picture[row, column, 2] = uint8(blue * share + float32(0.5))
    picture[row, column, 3] = uint8(cover * share + float32(0.5))


@render_kernel
def _nearest_surface(
    boxes: Boxes, x: float, y: float, z: float, per_x: float, per_y: float, per_z: float,
    after: float,
) -> tuple[float, int, bool]:  # fmt: skip
    """The nearest surface beyond `after`: where, across which axis, whether seen from outside."""
    nearest, axis, outside = NOWHERE, int32(X), True
    for box in range(boxes.shape[0]):
        in_x, out_x = crossing(boxes[box, 0], boxes[box, 3], x, per_x)
        in_y, out_y = crossing(boxes[box, 1], boxes[box, 4], y, per_y)
        in_z, out_z = crossing(boxes[box, 2], boxes[box, 5], z, per_z)
        enter = max(in_x, in_y, in_z)
        leave = min(out_x, out_y, out_z)
        if enter >= leave or leave <= after:
            continue
        if enter > after:
            if enter < nearest:
                nearest, outside = enter, True
                axis = int32(X if enter == in_x else (Y if enter == in_y else Z))
        elif leave < nearest:
            nearest, outside = leave, False
            axis = int32(X if leave == out_x else (Y if leave == out_y else Z))
    return nearest, axis, outside


@render_kernel
def _texel_at(
    axis: int, outside: bool, x: float, y: float, z: float, dx: float, dy: float, dz: float
) -> tuple[int, int, int]:
    """Face, row and column of the texel where a ray meets a surface at (x, y, z)."""
    # East, top and south are the high sides of x, y and z.
    if axis == X:
        face = int32(1) if (dx > 0) == outside else int32(0)
        u, v = z, float32(1) - y
    elif axis == Y:
        face = int32(3) if (dy > 0) == outside else int32(2)
        u, v = x, z
    else:
        face = int32(5) if (dz > 0) == outside else int32(4)
        u, v = x, float32(1) - y
    if face == 0 or face == 5:  # seen from outside, these run against the axis
        u = float32(1) - u
    column = min(max(int32(u * float32(16)), int32(0)), int32(15))
    row = min(max(int32(v * float32(16)), int32(0)), int32(15))
    return face, row, column


@render_kernel
def _first_texel(
    boxes: Boxes, faces: Rgba, x: float, y: float, z: float, dx: float, dy: float, dz: float,
    begin: float,
) -> tuple[int, int, int]:  # fmt: skip
    """Face, row and column of the first opaque texel that a ray meets; face -1 if there is none."""
    per_x, per_y, per_z = float32(1) / dx, float32(1) / dy, float32(1) / dz
    after = begin
    for _ in range(MOST_SURFACES):
        t, axis, outside = _nearest_surface(boxes, x, y, z, per_x, per_y, per_z, after)
        if t == NOWHERE:
            break
        at_x, at_y, at_z = x + dx * t, y + dy * t, z + dz * t
        face, row, column = _texel_at(axis, outside, at_x, at_y, at_z, dx, dy, dz)
        if faces[face, row, column, 3] > 127:
            return face, row, column
        after = t + float32(1e-5)
    return int32(-1), int32(0), int32(0)


@render_kernel
def trace_boxes(
    inverse: Floats,
    perspective: bool,
    columns: Floats,
    rows: Floats,
    per_pixel: int,
    boxes: Boxes,
    faces: Rgba,
    shades: Floats,
    picture: Rgba,
) -> None:
    """Draw boxes.

    Args:
        inverse: float32 (3, 4), see `to_space_of`.
        perspective: Whether rays leave the eye through (column, row, -1); otherwise they are
            parallel to the line of sight.
        columns: float32 (w * per_pixel,), x of the rays in view space, one block ahead.
        rows: float32 (h * per_pixel,), y of the rays.
        per_pixel: Rays per pixel and axis.
        boxes: float32 (n, 6), see `boxes_of`.
        faces: uint8 (6, 16, 16, 4), pictures in the order of faces.
        shades: float32 (6,), factor on the colours of each face.
        picture: uint8 (h, w, 4), overwritten; RGB multiplied by coverage.
    """
    share = float32(1) / float32(per_pixel * per_pixel)
    spread, ahead = (float32(0), float32(1)) if perspective else (float32(1), float32(0))
    begin = float32(1e-3) if perspective else float32(-1e9)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            red = green = blue = cover = float32(0)
            for sub in range(per_pixel * per_pixel):
                sub_row = sub // per_pixel
                right = columns[column * per_pixel + sub - sub_row * per_pixel]
                up = rows[row * per_pixel + sub_row]
                # The ray in the blocks' space: from (x, y, z) along (dx, dy, dz).
                aside_x = inverse[0, 0] * right + inverse[0, 1] * up
                aside_y = inverse[1, 0] * right + inverse[1, 1] * up
                aside_z = inverse[2, 0] * right + inverse[2, 1] * up
                x, dx = inverse[0, 3] + spread * aside_x, ahead * aside_x - inverse[0, 2]
                y, dy = inverse[1, 3] + spread * aside_y, ahead * aside_y - inverse[1, 2]
                z, dz = inverse[2, 3] + spread * aside_z, ahead * aside_z - inverse[2, 2]
                dx, dy, dz = away_from_zero(dx), away_from_zero(dy), away_from_zero(dz)
                face, line, texel = _first_texel(boxes, faces, x, y, z, dx, dy, dz, begin)
                if face >= 0:
                    red += shades[face] * float32(faces[face, line, texel, 0])
                    green += shades[face] * float32(faces[face, line, texel, 1])
                    blue += shades[face] * float32(faces[face, line, texel, 2])
                    cover += float32(255)
            put_mean(picture, row, column, share, red, green, blue, cover)


def block_icon(faces: list[Rgba], boxes: Boxes) -> Rgba:
    """Draw a block as Minecraft's slots show it: from a corner, slightly above.

    Args:
        faces: uint8 (16, 16, 4) each, in the order of faces.
        boxes: See `boxes_of`.

    Returns:
        uint8 (16, 16, 4); alpha is 0 or 255.
    """
    pose = turn(X, SLOT_TURN_X) @ turn(Y, SLOT_TURN_Y) @ scale(SLOT_SCALE) @ shift(-0.5, -0.5, -0.5)
    middles = ((np.arange(TEXTURE_SIZE) + 0.5) / TEXTURE_SIZE - 0.5).astype(np.float32)
    icon = np.zeros((TEXTURE_SIZE, TEXTURE_SIZE, 4), np.uint8)
    inverse = to_space_of(pose)
    trace_boxes(inverse, False, middles, -middles, 1, boxes, np.stack(faces), SLOT_SHADES, icon)
    return icon


# -------------- texture basics: the packed, mip-mapped format, face shading, and seeds for painters
# A *picture* is a float array (16, 16, 3) of RGB in 0..255, row 0 on top. A *texture* is the same
# picture with its mip levels, flat and packed: `TEXTURE_WORDS` uint32 of `r | g << 8 | b << 16`,
# level l starting at `MIP_OFFSET[l]` with `(16 >> l) ** 2` texels in row-major order. See-through
# texels of sprites are `TRANSPARENT`.

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


# ----------------------------- all pictures of the game: ours, or those of the user's resource pack

_TABLES = Path(__file__).parent
_NAMED = 8
"""Pictures named in the warning, at most, for each kind of problem."""

_OURS_ALONE = frozenset(
    [
        *("block/barrier_block", "block/chain_block", "block/end_portal", "block/lantern_block"),
        *("block/soul_lantern_block", "gui/cursor", "item/shield", "block/player_head_top"),
        *(
            f"block/{head}_{side}"
            for side in ("front", "side")
            for head in (
                *("creeper_head", "dragon_head", "player_head", "skeleton_skull"),
                *("wither_skeleton_skull", "zombie_head"),
            )
        ),
    ]
)
"""Pictures that no pack has: the game draws these things from model sheets, or not at all."""

_logger = logging.getLogger(__name__)

_NO_STATE: Mapping[str, str] = {}

_BIOME_COLOURS = ("grass", "foliage")
"""What `tints.csv` may say instead of a colour: a column of `data/biomes.csv`."""
_COLOURS: dict[str, dict[str, str]] = {
    row["biome"]: {name: row[name] for name in _BIOME_COLOURS} for row in read_csv("biomes.csv")
}


def _read_table(name: str) -> dict[str, dict[str, str]]:
    """Rows of a table by their first column."""
    with (_TABLES / name).open(newline="") as file:
        return {next(iter(row.values())): row for row in csv.DictReader(file)}


class Textures:
    """Pictures by name, whose sizes do not depend on their source."""

    def __init__(self, pack: str | None = None) -> None:
        """Read a resource pack; our own pictures stand in for missing and damaged ones.

        Args:
            pack: Path of a folder or a zip; None for our own pictures.

        Raises:
            InvalidOptionsError: If the path is not a resource pack.
        """
        self._ours = ResourcePack(OUR_PACK)
        self._pictures: dict[str, Rgba] = {}
        self._icons: dict[str, Rgba] = {}
        self._faces = _read_table("block_faces.csv")
        self._layers = _read_table("item_icons.csv")
        self._tints = {name: row["colour"] for name, row in _read_table("tints.csv").items()}
        if pack is not None:
            self._replace(pack)

    def _replace(self, path: str) -> None:
        """Replace our pictures by those of a pack."""
        damaged = []
        try:
            pack = ResourcePack(path)
        except PackError as error:
            raise InvalidOptionsError([not_a_pack(path, error)]) from error
        for name in sorted(pack.names & self._ours.names):
            try:
                self._pictures[name] = resized(pack.picture(name), self._ours.picture(name).shape)
            except PictureError as error:
                damaged.append(f"{name} ({error})")
        missing = sorted(self._ours.names - pack.names - _OURS_ALONE)
        problems = [
            f"{len(names)} {what}: {', '.join(names[:_NAMED])}{' ...' * (len(names) > _NAMED)}"
            for what, names in (("cannot be used", damaged), ("missing", missing))
            if names
        ]
        if problems:
            _logger.warning(
                "resource_pack %s: our own pictures stand in for some of its pictures: %s.",
                path,
                "; ".join(problems),
            )

    def picture(self, name: str) -> Rgba:
        """Return a picture.

        Args:
            name: Path below `textures/`, such as "gui/widgets".

        Returns:
            uint8 (h, w, 4), of the size of our own file, not multiplied by alpha. If there is no
            such picture, a plain one in a colour derived from the name: ugly, but visible.
        """
        found = self._pictures.get(name)
        if found is None:
            found = self._ours.picture(name) if name in self._ours.names else _stand_in(name)
            self._pictures[name] = found
        return found

    def tinted(self, name: str, biome: str = BIOMES[0]) -> Rgba:
        """Return a picture, 16 x 16, in the colour that the game gives it in a biome."""
        picture = self.picture(name)[:TEXTURE_SIZE, :TEXTURE_SIZE]
        if name not in self._tints:
            return picture
        code = self._tints[name]
        return tint(picture, colour(_COLOURS[biome].get(code, code)))

    def block_faces(
        self,
        block: str,
        properties: Mapping[str, str] = _NO_STATE,
        biome: str = BIOMES[0],
    ) -> list[Rgba]:
        """The six faces of a block, upright, uint8 (16, 16, 4) each, in the order of faces.

        Args:
            block: Its name.
            properties: Those of its state. A row of the table for "NAME[property=value]" goes
                before that for "NAME".
            biome: The biome whose colours grass and leaves have.
        """
        row = self._faces.get(block)
        for name, value in properties.items():
            row = self._faces.get(f"{block}[{name}={value}]", row)
        if row is None:
            return [self.tinted(f"block/{block}", biome)] * 6
        side, top, bottom = (self._layered(row[face], biome) for face in ("side", "top", "bottom"))
        faces = [side, side, top, bottom, side, side]
        if row["front"]:
            faces[FACE_SOUTH] = self._layered(row["front"], biome)
        return faces

    def follows_biome(self, block: str) -> bool:
        """Whether some face of a block has another colour in another biome."""
        row = self._faces.get(block)
        names = [block] if row is None else "+".join(filter(None, row.values())).split("+")
        return any(self._tints.get(f"block/{name}") in _BIOME_COLOURS for name in names)

    def _layered(self, names: str, biome: str) -> Rgba:
        """Return pictures laid over one another: names joined by "+", lowest first.

        "SHEET:FACE" is a face of a chest, which Minecraft's packs have on a sheet of its model.
        """
        if ":" in names:
            return chest_face(self.picture(names.partition(":")[0]), names.partition(":")[2])
        first, *others = names.split("+")
        picture = self.tinted(f"block/{first}", biome)
        for name in others:
            picture = laid_over(picture, self.tinted(f"block/{name}", biome))
        return picture

    def icon(self, item: str) -> Rgba:
        """The picture of an item in a slot or a hand, uint8 (16, 16, 4)."""
        found = self._icons.get(item)
        if found is None:
            found = self._icons[item] = self._draw_icon(item)
        return found

    def is_flat(self, item: str) -> bool:
        """Whether an item is a flat picture, not boxes with a block's faces."""
        row = self._layers.get(item)
        return row is not None and row["shape"] == "flat"

    def shape(self, item: str) -> Boxes:
        """The boxes of an item that is not flat, see `boxes_of`."""
        row = self._layers.get(item)
        return boxes_of("cube" if row is None else row["shape"])

    def item_faces(self, item: str) -> list[Rgba]:
        """The faces of an item that is not flat, as `block_faces`."""
        row = self._layers.get(item)
        return self.block_faces((row and row["layers"]) or item)

    def _draw_icon(self, item: str) -> Rgba:
        if not self.is_flat(item):
            return block_icon(self.item_faces(item), self.shape(item))
        icon = np.zeros((TEXTURE_SIZE, TEXTURE_SIZE, 4), np.uint8)
        for layer in self._layers[item]["layers"].split("+"):
            name, _, code = layer.partition("#")
            picture = self.tinted(name)
            icon = laid_over(icon, tint(picture, colour(code)) if code else picture)
        return icon


@lru_cache(maxsize=4)
def textures_of(pack: str | None) -> Textures:
    """The pictures that all renderers of a process share.

    Args:
        pack: Path of a resource pack; None for our own pictures.
    """
    return Textures(pack)


def _stand_in(name: str) -> Rgba:
    picture = np.full((TEXTURE_SIZE, TEXTURE_SIZE, 4), 255, np.uint8)
    picture[..., :3] = np.random.RandomState(name_seed(name)).randint(70, 220, 3)
    return picture


def tint(picture: Rgba, colour: tuple[int, int, int]) -> Rgba:
    """Multiply a picture's colours by `colour` / 255."""
    tinted = picture.copy()
    tinted[..., :3] = (picture[..., :3] * np.array(colour, np.uint16) + 127) // 255
    return tinted


def laid_over(below: Rgba, above: Rgba) -> Rgba:
    """Lay one picture over another; neither is multiplied by alpha."""
    alpha = above[..., 3:].astype(np.float64) / 255
    rest = below[..., 3:] / 255 * (1 - alpha)
    whole = alpha + rest
    colour = (above[..., :3] * alpha + below[..., :3] * rest) / np.maximum(whole, 1e-9)
    return np.rint(np.concatenate([colour, whole * 255], -1)).astype(np.uint8)


def chest_face(sheet: Rgba, face: str) -> Rgba:
    """Compose a face of a chest, uint8 (16, 16, 4); the chest fills 14 of the 16 pixels.

    Args:
        sheet: uint8 (64, 64, 4): a lid of 14 x 5 x 14 pixels unwrapped at (0, 0), a base of
            14 x 10 x 14 at (0, 19), upside down, and the latch, 2 x 4 x 1, at (0, 0).
        face: "top", "front" or "side".
    """
    picture = np.zeros((TEXTURE_SIZE, TEXTURE_SIZE, 4), np.uint8)
    if face == "top":
        picture[1:15, 1:15] = sheet[0:14, 28:42]
        return picture
    picture[2:6, 1:15] = sheet[15:19, 42:56][::-1]
    picture[6:16, 1:15] = sheet[33:43, 42:56][::-1]
    if face == "front":
        picture[4:8, 7:9] = sheet[1:5, 1:3][::-1]
    return picture


def resized(picture: Rgba, shape: tuple[int, ...]) -> Rgba:
    """Resize a picture: by averaging if the new size divides its own, else by nearest pixels.

    Args:
        picture: uint8 (h, w, 4). If it is an animation (a column of frames) and `shape` is square,
            only its first frame is used.
        shape: (height, width, 4).
    """
    height, width = shape[:2]
    if height == width and picture.shape[0] > picture.shape[1]:
        picture = picture[: picture.shape[1]]
    if picture.shape[0] % height or picture.shape[1] % width:
        rows = (np.arange(height) + 0.5) * picture.shape[0] / height
        columns = (np.arange(width) + 0.5) * picture.shape[1] / width
        return np.ascontiguousarray(picture[rows.astype(int)[:, None], columns.astype(int)])
    blocks = picture.reshape(height, picture.shape[0] // height, width, -1, 4)
    alpha = blocks[..., 3].astype(np.uint16)
    weight = alpha.sum((1, 3), dtype=np.uint64)
    # One colour at a time, and 255 * 255 fits in 16 bits: a large picture takes little memory.
    colours = [(blocks[..., c] * alpha).sum((1, 3), dtype=np.uint64) for c in range(3)]
    means = [colour / np.maximum(weight, 1) for colour in colours]
    means.append(weight / (blocks.shape[1] * blocks.shape[3]))
    return np.rint(np.stack(means, -1)).astype(np.uint8)
