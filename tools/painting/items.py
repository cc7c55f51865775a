"""Paints the items: the shapes of `items.txt` in the colours of `items.csv`."""

from __future__ import annotations

from collections.abc import Iterator

from tools.painting.art import RGB, Rgba, draw, read_art
from tools.painting.families import colours_of, expanded

# Colours of letters that a row does not give; k, h and l are the wood of handles.
USUAL: dict[str, RGB] = {
    "k": (66, 46, 18),
    "h": (104, 78, 30),
    "l": (146, 112, 54),
    "w": (250, 240, 236),
    "s": (228, 228, 228),
    "g": (80, 140, 44),
    "G": (54, 104, 30),
    "f": (224, 112, 28),
    "y": (248, 208, 72),
    "r": (208, 32, 32),
    "x": (150, 150, 150),
    "X": (110, 110, 110),
    "m": (137, 103, 49),
}
OUTLINE, DARK, LIGHT = 0.35, 0.7, 1.25
"""Factors on the middle tone for letters that a row does not give."""


def palette(colours: dict[str, RGB]) -> dict[str, RGB]:
    """All letters' colours: those given, those derived from the middle tone, or the usual ones."""
    middle = colours.get("m", USUAL["m"])
    derived = {
        letter: _scaled(middle, factor)
        for letter, factor in (("o", OUTLINE), ("d", DARK), ("L", LIGHT))
    }
    return {**USUAL, **derived, **colours}


def _scaled(tone: RGB, factor: float) -> RGB:
    red, green, blue = (min(round(part * factor), 255) for part in tone)
    return red, green, blue


def paint_items() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of every flat item."""
    shapes = read_art("items.txt")
    for row in expanded("items.csv"):
        yield (
            f"item/{row['item']}",
            draw(shapes[row["shape"]], palette(colours_of(row["colours"]))),
        )
