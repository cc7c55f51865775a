"""Paints the font: a sheet of 16 x 16 cells, by code, with the letters of its text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tools.painting.art import Rgba, draw, put, read_art

CELL = 8


def paint_font() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of the font."""
    sheet = np.zeros((16 * CELL, 16 * CELL, 4), np.uint8)
    for letter, lines in read_art("font.txt").items():
        row, column = divmod(ord(letter), 16)
        put(sheet, column * CELL, row * CELL, draw(lines, {"x": (255, 255, 255)}))
    yield "font/ascii", sheet
