"""Pixel art as text: blocks of lines below a line `= NAME`, one character per pixel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Rgba = NDArray[np.uint8]
RGB = tuple[int, int, int]

FOLDER = Path(__file__).parent
SEE_THROUGH = "."


def read_art(file: str) -> dict[str, list[str]]:
    """Read the pictures of a text file in this folder, each a list of lines."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (FOLDER / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            lines = found[line[2:]] = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def draw(lines: list[str], palette: Mapping[str, RGB]) -> Rgba:
    """Draw a picture, uint8 (h, w, 4), from lines and the colours of their characters."""
    picture = np.zeros((len(lines), len(lines[0]), 4), np.uint8)
    for row, line in enumerate(lines):
        for column, character in enumerate(line):
            if character != SEE_THROUGH:
                picture[row, column] = (*palette[character], 255)
    return picture


def fill(picture: Rgba, x: int, y: int, width: int, height: int, tone: RGB | int) -> None:
    """Fill a rectangle with a colour, or with a grey."""
    rgb = (tone, tone, tone) if isinstance(tone, int) else tone
    picture[y : y + height, x : x + width] = (*rgb, 255)


def put(sheet: Rgba, x: int, y: int, picture: Rgba) -> None:
    """Put the opaque pixels of a picture onto a sheet."""
    area = sheet[y : y + picture.shape[0], x : x + picture.shape[1]]
    np.copyto(area, picture, where=picture[..., 3:] > 0)
