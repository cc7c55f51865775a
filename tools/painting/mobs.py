"""Paints the mobs' sheets, part by part; `render/mob_textures.py` says how faces are turned."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rllib_minestudio.env.voxel.render.mob_textures import (
    PARTS,
    SHEEP_SLEEVE,
    SHEET,
    SHEETS,
    sheet_pixels,
)
from rllib_minestudio.env.voxel.render.textures import (
    FACE_BOTTOM,
    FACE_EAST,
    FACE_NORTH,
    FACE_SOUTH,
    FACE_TOP,
    FACE_WEST,
    FACES,
    Picture,
    name_seed,
)
from tools.painting.art import Rgba
from tools.painting.grounds import noise

RGB = tuple[float, float, float]
PartPainter = Callable[[np.random.RandomState, int], Picture]

SIDES = (FACE_EAST, FACE_WEST)
COW_BROWN: RGB = (68, 50, 36)
COW_WHITE: RGB = (222, 220, 216)
COW_MUZZLE: RGB = (196, 176, 168)
HOOF: RGB = (34, 28, 24)
WOOL: RGB = (232, 232, 230)
SHEEP_SKIN: RGB = (192, 158, 134)
PIG_PINK: RGB = (238, 162, 160)
PIG_SNOUT: RGB = (222, 128, 128)
FEATHERS: RGB = (236, 236, 234)
BEAK: RGB = (222, 164, 72)
SNOW: RGB = (240, 246, 248)
IRON: RGB = (206, 198, 190)
VINE: RGB = (86, 116, 48)
EYE_WHITE: RGB = (245, 245, 245)
EYE_DARK: RGB = (14, 12, 12)


def _patch(picture: Picture, colour: RGB, *areas: tuple[int, int, int, int]) -> None:
    """Paint rectangles (first row, last row, first column, last column; ends excluded)."""
    for top, bottom, left, right in areas:
        picture[top:bottom, left:right] = colour


def _eyes(picture: Picture, row: int) -> None:
    _patch(picture, EYE_WHITE, (row, row + 3, 0, 2), (row, row + 3, 14, 16))
    _patch(picture, EYE_DARK, (row, row + 3, 2, 5), (row, row + 3, 11, 14))


def _cow_body(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, COW_BROWN, 7)
    if face in SIDES:
        _patch(picture, COW_WHITE, (1, 8, 8, 13), (3, 10, 10, 15), (0, 5, 2, 5), (8, 12, 1, 6))
        _patch(picture, COW_WHITE, (14, 16, 0, 16), (12, 14, 4, 9))
    elif face == FACE_TOP:
        _patch(picture, COW_WHITE, (2, 6, 1, 6), (8, 13, 9, 15), (10, 12, 7, 9))
    elif face == FACE_BOTTOM:
        picture = noise(rng, COW_WHITE, 6)
    elif face == FACE_NORTH:
        _patch(picture, COW_WHITE, (4, 10, 9, 14), (10, 16, 5, 8))
    return picture


def _cow_head(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, COW_BROWN, 6)
    if face == FACE_SOUTH:
        _patch(picture, COW_WHITE, (0, 9, 6, 10))
        _eyes(picture, 5)
        _patch(picture, COW_MUZZLE, (11, 16, 2, 14))
    elif face in SIDES:
        _patch(picture, COW_WHITE, (8, 14, 2, 8))
    elif face == FACE_TOP:
        _patch(picture, COW_WHITE, (5, 16, 6, 10))
    return picture


def _cow_muzzle(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, COW_MUZZLE, 5)
    if face == FACE_SOUTH:
        _patch(picture, (70, 50, 48), (4, 8, 2, 5), (4, 8, 11, 14))
        _patch(picture, (130, 104, 98), (12, 14, 3, 13))
    return picture


def _cow_leg(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, COW_BROWN, 6)
    if face in (FACE_TOP, FACE_BOTTOM):
        return noise(rng, HOOF, 4)
    _patch(picture, COW_WHITE, (6, 14, 0, 16))
    picture += rng.uniform(-5, 5, (16, 16, 1))
    _patch(picture, HOOF, (14, 16, 0, 16))
    return picture


def _wool(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, WOOL, 9)
    picture[rng.rand(16, 16) < 0.14] -= 22
    if face in SIDES:
        picture[14:] -= 24
    return picture


def _sheep_face(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, SHEEP_SKIN, 6)
    if face == FACE_SOUTH:
        _eyes(picture, 5)
        _patch(picture, (222, 150, 150), (10, 13, 6, 10))
    return picture


def _sheep_hood(rng: np.random.RandomState, face: int) -> Picture:
    picture = _wool(rng, FACE_TOP)
    if face == FACE_SOUTH:
        _patch(picture, SHEEP_SKIN, (4, 16, 3, 13))
    return picture


def _sheep_leg(rng: np.random.RandomState, face: int) -> Picture:
    return noise(rng, SHEEP_SKIN, 6)


def _shorn_body(rng: np.random.RandomState, face: int) -> Picture:
    """Skin with what the shears have left of the wool."""
    picture = noise(rng, SHEEP_SKIN, 6)
    picture[rng.rand(16, 16) < 0.12] += 18
    if face in SIDES:
        picture[14:] -= 16
    return picture


def _pig_skin(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, PIG_PINK, 7)
    if face == FACE_BOTTOM:
        picture -= 20
    return picture


def _pig_head(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, PIG_PINK, 6)
    if face == FACE_SOUTH:
        _eyes(picture, 6)
    return picture


def _pig_snout(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, PIG_SNOUT, 5)
    if face == FACE_SOUTH:
        _patch(picture, (112, 52, 52), (5, 12, 2, 5), (5, 12, 11, 14))
    return picture


def _pig_leg(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, PIG_PINK, 7)
    picture[12:] = (196, 118, 112)
    return picture


def _feathers(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, FEATHERS, 6)
    picture[rng.rand(16, 16) < 0.1] -= 14
    if face in SIDES:
        picture[12:] -= 16
    return picture


def _chicken_head(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, FEATHERS, 5)
    if face == FACE_SOUTH:
        _patch(picture, EYE_DARK, (3, 6, 0, 4), (3, 6, 12, 16))
    elif face in SIDES:
        _patch(picture, EYE_DARK, (3, 6, 11, 16))
    return picture


def _chicken_beak(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, BEAK, 5)
    if face not in (FACE_TOP, FACE_BOTTOM):
        picture[8:] -= 26
    return picture


def _snow(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, SNOW, 5)
    picture[rng.rand(16, 16) < 0.1] -= 12
    return picture


def _snow_front(rng: np.random.RandomState, face: int) -> Picture:
    """Snow with two buttons of coal."""
    picture = _snow(rng, face)
    if face == FACE_SOUTH:
        _patch(picture, EYE_DARK, (4, 6, 7, 9), (10, 12, 7, 9))
    return picture


def _iron(rng: np.random.RandomState, face: int) -> Picture:
    """Plates of iron with rust and a vine."""
    picture = noise(rng, IRON, 7)
    picture[rng.rand(16, 16) < 0.08] -= 26
    picture[:, 7:9] -= 14
    picture[15:] -= 20
    if face in SIDES or face == FACE_NORTH:
        vine = rng.rand(16, 16) < 0.12
        vine[:, :9] = False
        picture[vine] = VINE
    return picture


def _iron_head(rng: np.random.RandomState, face: int) -> Picture:
    picture = noise(rng, IRON, 6)
    if face == FACE_SOUTH:
        _patch(picture, (104, 84, 72), (6, 7, 1, 15))
        _patch(picture, (150, 24, 20), (8, 10, 3, 5), (8, 10, 11, 13))
    return picture


def _flat(colour: RGB) -> PartPainter:
    return lambda rng, face: noise(rng, colour, 5)


def _rope(rng: np.random.RandomState, face: int) -> Picture:
    """Turns of a rope, one below the other; its strands from above and below."""
    picture = noise(rng, (134, 107, 80), 5)
    if face not in (FACE_TOP, FACE_BOTTOM):
        picture[3::4] *= 0.6
    return picture


PAINTERS: dict[tuple[str, str], PartPainter] = {
    ("cow", "body"): _cow_body,
    ("cow", "head"): _cow_head,
    ("cow", "muzzle"): _cow_muzzle,
    ("cow", "leg"): _cow_leg,
    ("cow", "horn"): _flat((208, 204, 192)),
    ("cow", "udder"): _flat(PIG_PINK),
    ("sheep", "body"): _wool,
    ("sheep", "face"): _sheep_face,
    ("sheep", "hood"): _sheep_hood,
    ("sheep", "leg"): _sheep_leg,
    ("sheep", "shorn body"): _shorn_body,
    ("sheep", "sleeve"): _wool,
    ("pig", "body"): _pig_skin,
    ("pig", "head"): _pig_head,
    ("pig", "snout"): _pig_snout,
    ("pig", "leg"): _pig_leg,
    ("chicken", "body"): _feathers,
    ("chicken", "head"): _chicken_head,
    ("chicken", "beak"): _chicken_beak,
    ("chicken", "wattle"): _flat((200, 36, 32)),
    ("chicken", "wing"): _feathers,
    ("chicken", "leg"): _flat(BEAK),
    ("chicken", "foot"): _flat(BEAK),
    ("snow_golem", "upper body"): _snow_front,
    ("snow_golem", "lower body"): _snow_front,
    ("snow_golem", "arm"): _flat((92, 70, 46)),
    ("iron_golem", "head"): _iron_head,
    ("iron_golem", "nose"): _flat((186, 160, 146)),
    ("iron_golem", "chest"): _iron,
    ("iron_golem", "waist"): _iron,
    ("iron_golem", "right arm"): _iron,
    ("iron_golem", "left arm"): _iron,
    ("iron_golem", "right leg"): _iron,
    ("iron_golem", "left leg"): _iron,
    ("lead", "knot"): _rope,
}


def paint_mobs() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of each sheet."""
    sheets: dict[str, Rgba] = {}
    for (mob, part), place in [*PARTS.items(), (("sheep", "sleeve"), SHEEP_SLEEVE)]:
        width, height = SHEETS.get(place.sheet, SHEET)
        sheet = sheets.setdefault(place.sheet, np.zeros((height, width, 4), np.uint8))
        for face in range(FACES):
            rng = np.random.RandomState(name_seed(f"{mob}/{part}/{face}"))
            rows, columns = sheet_pixels(place, face)
            sheet[rows, columns, :3] = np.clip(PAINTERS[mob, part](rng, face), 0, 255)
            sheet[rows, columns, 3] = 255
    for name, sheet in sheets.items():
        yield f"entity/{name}", sheet
