"""Paints the player's skin, 64 x 64 pixels in Minecraft's layout; only our own figure wears it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tools.painting.art import RGB, Rgba, draw, fill, put

SKIN: RGB = (206, 156, 128)
SLEEVE: RGB = (28, 150, 150)
TROUSERS: RGB = (62, 58, 140)
SHOES: RGB = (92, 92, 92)
HAIR: RGB = (62, 42, 26)
PALETTE: dict[str, RGB] = {
    "h": HAIR,
    "s": SKIN,
    "w": (245, 245, 245),
    "b": (66, 60, 130),
    "n": (176, 122, 96),
    "m": (130, 82, 64),
}
FACE = [
    "hhhhhhhh",
    "hhhhhhhh",
    "hssssssh",
    "ssssssss",
    "swbssbws",
    "sssnnsss",
    "ssmmmmss",
    "sshmmhss",
]
# Boxes: width, height and depth, and where on the skin their unwrapped faces are (u, v).
HEAD, BODY = (8, 8, 8, 0, 0), (8, 12, 4, 16, 16)
RIGHT_ARM, LEFT_ARM = (4, 12, 4, 40, 16), (4, 12, 4, 32, 48)
RIGHT_LEG, LEFT_LEG = (4, 12, 4, 0, 16), (4, 12, 4, 16, 48)


def paint_player() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of the skin."""
    skin = np.zeros((64, 64, 4), np.uint8)
    _dress(skin, HEAD, (HAIR, 4), (SKIN, 4))
    put(skin, 8, 8, draw(FACE, PALETTE))
    fill(skin, 16, 0, 8, 8, SKIN)
    _dress(skin, BODY, (SLEEVE, 12))
    fill(skin, 22, 20, 4, 1, SKIN)
    for arm in (RIGHT_ARM, LEFT_ARM):
        _dress(skin, arm, (SLEEVE, 5), (SKIN, 7))
    for leg in (RIGHT_LEG, LEFT_LEG):
        _dress(skin, leg, (TROUSERS, 10), (SHOES, 2))
    grain = np.random.RandomState(3).randint(-5, 6, (64, 64, 1))
    skin[..., :3] = np.clip(skin[..., :3].astype(int) + grain, 0, 255)
    skin[skin[..., 3] == 0] = 0
    yield "entity/steve", skin


def _dress(skin: Rgba, box: tuple[int, int, int, int, int], *bands: tuple[RGB, int]) -> None:
    """Paint a box in bands (colour, rows) from the top; its ends get the nearest band's colour."""
    width, _, depth, u, v = box
    fill(skin, u + depth, v, width, depth, bands[0][0])
    fill(skin, u + depth + width, v, width, depth, bands[-1][0])
    top = v + depth
    for tone, rows in bands:
        fill(skin, u, top, 2 * (width + depth), rows, tone)
        top += rows
