"""Paints the chests' sheets, 64 x 64 pixels in Minecraft's layout of their model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rllib_minestudio.env.voxel.render.textures import name_seed
from tools.painting.art import RGB, Rgba, fill
from tools.painting.grounds import planks

WOODS: dict[str, tuple[RGB, RGB, RGB]] = {
    "normal": ((164, 112, 44), (58, 40, 20), (188, 188, 192)),
    "trapped": ((164, 112, 44), (58, 40, 20), (200, 60, 50)),
    "ender": ((44, 62, 64), (16, 24, 26), (90, 210, 170)),
}
"""Wood, rim and latch of each chest."""
SIDE, LID, BASE = 14, 5, 10


def paint_chests() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of each sheet."""
    for name, (wood, rim, latch) in WOODS.items():
        rng = np.random.RandomState(name_seed(name))
        sheet = np.zeros((64, 64, 4), np.uint8)
        boards = np.tile(planks(rng, wood), (4, 4, 1))
        sheet[:43, :56, :3] = np.clip(boards[:43, :56], 0, 255)
        sheet[:43, :56, 3] = 255
        for left in range(0, 4 * SIDE, SIDE):
            for top, height in ((0, SIDE), (SIDE, LID), (SIDE + LID, SIDE), (33, BASE)):
                _frame(sheet, left, top, height, rim)
        for left in (0, 42):  # next to the tops there is only the latch
            sheet[0:SIDE, left : left + SIDE] = sheet[19:33, left : left + SIDE] = 0
        fill(sheet, 0, 0, 6, 5, latch)
        fill(sheet, 1, 4, 2, 1, 60)
        yield f"entity/chest/{name}", sheet


def _frame(sheet: Rgba, left: int, top: int, height: int, rim: RGB) -> None:
    fill(sheet, left, top, SIDE, 1, rim)
    fill(sheet, left, top + height - 1, SIDE, 1, rim)
    fill(sheet, left, top, 1, height, rim)
    fill(sheet, left + SIDE - 1, top, 1, height, rim)
