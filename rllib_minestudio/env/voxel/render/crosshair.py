"""The crosshair and the bar of the attack's charge below it, which invert what is behind them.

The bar has its place in Minecraft's window at GUI scale 1, and is scaled like the display. The
crosshair is drawn in the frame's own pixels, as it would vanish if it were averaged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int32, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import Bytes, Words, render_kernel
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import WINDOW_HEIGHT, Rgba, Sampling

CROSSHAIR_REACH = 4
BAR_WIDTH, BAR_HEIGHT = 16, 4
BAR_LEFT, BAR_TOP = -8, 9
"""Place of the bar's upper left corner, from the window's middle."""
BAR_STEPS = 17
"""A full charge has one step more than the bar has columns."""
EMPTY_BAR, FULL_BAR = (36, 94), (52, 94)
"""Places of the bar's pictures on the sheet `gui/icons`."""
FAINTEST = 25
"""Texels with no more alpha than this are not drawn: a tenth."""


class _Patch(NamedTuple):
    """A bar over the frame.

    Attributes:
        top: First drawn row that it covers.
        left: First drawn column.
        strength: uint8 (rows, columns * 3), how much it inverts: 255 turns black into white.
    """

    top: int
    left: int
    strength: Bytes


class Crosshair:
    """Crosshair and bar for one sampling."""

    def __init__(self, sampling: Sampling, textures: Textures) -> None:
        """Prepare the crosshair; bars are made when they are first shown.

        Args:
            sampling: Which pixels are drawn.
            textures: Source of the bar's pictures.
        """
        window = sampling.display_columns.shape[1]
        mask = _mask(*sampling.window, window)[np.ix_(sampling.rows, sampling.columns)]
        self._pixels = np.flatnonzero(mask).astype(np.uint32)
        icons = textures.picture("gui/icons")
        self._empty, self._full = (_strength(icons, *place) for place in (EMPTY_BAR, FULL_BAR))
        self._sampling = sampling
        self._bars: dict[int, _Patch] = {}

    def draw(self, frame: Bytes, charge: float) -> None:
        """Draw the crosshair, and the bar unless the attack is fully charged.

        Args:
            frame: uint8 (h * w * 3,), the drawn pixels.
            charge: Share of a full attack, 0 to 1.
        """
        _invert(frame, self._pixels)
        if charge < 1.0:
            filled = int(charge * BAR_STEPS)
            bar = self._bars.get(filled)
            if bar is None:
                bar = self._bars[filled] = self._bar(filled)
            _invert_partly(frame.reshape(self._sampling.drawn[1], -1), *bar)

    def _bar(self, filled: int) -> _Patch:
        """Draw the bar with this many full columns, and scale it to the drawn pixels."""
        over = self._full * (np.arange(BAR_WIDTH) < filled)[:, None]
        # One inversion after the other: the empty bar is drawn below the full one.
        both = self._empty + over - 2 * self._empty * over
        by_rows, by_columns = self._sampling.display_rows, self._sampling.display_columns
        top, left = WINDOW_HEIGHT // 2 + BAR_TOP, by_columns.shape[1] // 2 + BAR_LEFT
        # A window narrower than the bar shows its middle.
        first, stop = max(left, 0), min(left + BAR_WIDTH, by_columns.shape[1])
        rows, columns = by_rows[:, top : top + BAR_HEIGHT], by_columns[:, first:stop]
        lines, places = rows.any(1).nonzero()[0], columns.any(1).nonzero()[0]
        if not len(lines) or not len(places):
            return _Patch(0, 0, np.zeros((0, 0), np.uint8))
        shown = both[:, first - left : stop - left]
        scaled = np.einsum("ij,jkc,lk->ilc", rows[lines], shown, columns[places])
        strength = np.rint(scaled * 255).astype(np.uint8)
        return _Patch(int(lines[0]), int(places[0]), strength.reshape(len(lines), -1))


def _strength(icons: Rgba, x: int, y: int) -> NDArray[np.float64]:
    """How much a picture of the bar inverts, 0 to 1, float64 (BAR_HEIGHT, BAR_WIDTH, 3)."""
    picture = icons[y : y + BAR_HEIGHT, x : x + BAR_WIDTH]
    return picture[..., :3] / 255 * (picture[..., 3:] > FAINTEST)


@render_kernel
def _invert(frame: Bytes, pixels: Words) -> None:
    """Invert the colours of pixels, given by their indices, uint32 (n,)."""
    for k in range(len(pixels)):
        pixel = pixels[k] * uint32(3)
        for channel in range(3):
            at = pixel + uint32(channel)
            frame[at] = uint8(255) - frame[at]


@render_kernel
def _invert_partly(frame: Bytes, top: int, left: int, strength: Bytes) -> None:
    """Invert a part of a frame, uint8 (H, W * 3), as strongly as a `_Patch` says."""
    for row in range(strength.shape[0]):
        into = frame[top + row, 3 * left : 3 * left + strength.shape[1]]
        for at in range(strength.shape[1]):
            below, over = int32(into[at]), int32(strength[row, at])
            mixed = over * (int32(255) - below) + below * (int32(255) - over)
            into[at] = uint8((mixed + int32(127)) // int32(255))


def _mask(width: int, height: int, window: int) -> NDArray[np.bool_]:
    """Mask of the crosshair in a picture, bool (height, width): at least three pixels a side."""
    mask = np.zeros((height, width), bool)
    thick = max(1, height // WINDOW_HEIGHT)
    reach_x = max(1, round(CROSSHAIR_REACH * width / window))
    reach_y = max(1, round(CROSSHAIR_REACH * height / WINDOW_HEIGHT))
    middle_x, middle_y = width // 2, height // 2
    mask[middle_y : middle_y + thick, middle_x - reach_x : middle_x + reach_x + thick] = True
    mask[middle_y - reach_y : middle_y + reach_y + thick, middle_x : middle_x + thick] = True
    return mask
