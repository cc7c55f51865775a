"""All pictures of the game: ours, or those of the user's resource pack.

Ours are the files below `resource_pack/`, in the layout of Minecraft's resource packs. The tables
`block_faces.csv` and `item_icons.csv` list the pictures that make up a block's faces and an item's
icon; `tints.csv` has the colours of grey pictures that the game colours (grass, leaves), or says by
which colour of a biome in `data/biomes.csv`.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.render import texels
from rllib_minestudio.env.voxel.render.block_rays import Boxes, block_icon, boxes_of
from rllib_minestudio.env.voxel.render.resource_pack import (
    OUR_PACK,
    PackError,
    PictureError,
    ResourcePack,
    Rgba,
    not_a_pack,
)
from rllib_minestudio.env.voxel.render.texels import FACE_SOUTH, TEXTURE_SIZE, name_seed
from rllib_minestudio.env.voxel.world.climate import BIOMES
from rllib_minestudio.errors import InvalidOptionsError

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
        colour = self._tints[name]
        return tint(picture, texels.colour(_COLOURS[biome].get(colour, colour)))

    def block_faces(
        self,
        block: str,
        properties: Mapping[str, str] = _NO_STATE,
        biome: str = BIOMES[0],
    ) -> list[Rgba]:
        """The six faces of a block, upright, uint8 (16, 16, 4) each, in the order of `texels`.

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
            name, _, colour = layer.partition("#")
            picture = self.tinted(name)
            icon = laid_over(icon, tint(picture, texels.colour(colour)) if colour else picture)
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
