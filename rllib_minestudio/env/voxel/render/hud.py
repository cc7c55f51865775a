"""The heads-up display: hotbar, hearts and hunger, of which only what changes is drawn again.

Everything is laid out as Minecraft does in its window at GUI scale 1. Only the crosshair is not
averaged, but drawn in a frame's own pixels: it would vanish.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.items.inventory import HOTBAR_SLOTS, ItemStack
from rllib_minestudio.env.voxel.render.camera import Bytes, Words, render_kernel
from rllib_minestudio.env.voxel.render.sampling import WINDOW_HEIGHT, Sampling
from rllib_minestudio.env.voxel.render.stack_pictures import StackPictures
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import (
    Layer,
    Rect,
    Reduction,
    Rgba,
    paste,
)

SLOT_STEP = 20
BAR_WIDTH, BAR_HEIGHT = 182, 22
# Upper edges, counted from the bottom of the window.
STATUS_UP, EXPERIENCE_UP = 39, 29
STATUS_STEP, STATUS_COUNT, STATUS_SIZE = 8, 10, 9
# Everything lies in a strip this high at the bottom, and a little wider than the bar.
STRIP_HEIGHT, STRIP_MARGIN = 40, 2
CROSSHAIR_REACH = 4

_LEFT, _TOP = STRIP_MARGIN, STRIP_HEIGHT - BAR_HEIGHT
_STATUS_TOP = STRIP_HEIGHT - STATUS_UP
_STATUS_WIDTH = STATUS_STEP * (STATUS_COUNT - 1) + STATUS_SIZE
HOTBAR = Rect(_LEFT - 1, _TOP - 1, BAR_WIDTH + 2, BAR_HEIGHT + 1)
HEARTS = Rect(_LEFT, _STATUS_TOP, _STATUS_WIDTH, STATUS_SIZE)
FOOD = Rect(_LEFT + BAR_WIDTH - _STATUS_WIDTH, _STATUS_TOP, _STATUS_WIDTH, STATUS_SIZE)


class HudState(NamedTuple):
    """What the display shows; equal states give equal displays.

    Attributes:
        stacks: What is in each slot of the hotbar.
        selected: Hotbar slot in hand.
        health: 0..20, rounded up to whole points.
        food: 0..20.
    """

    stacks: tuple[ItemStack, ...]
    selected: int
    health: int
    food: int


class Hud:
    """Composes the display for one frame size.

    Attributes:
        layer: The display as it is now.
        crosshair: uint32 (n,), pixel numbers of the crosshair.
    """

    def __init__(
        self,
        sampling: Sampling,
        rows: Reduction,
        columns: Reduction,
        textures: Textures,
        stacks: StackPictures,
    ) -> None:
        """Prepare an empty display.

        Args:
            sampling: What is drawn. A window narrower than the display shows its middle.
            rows: Of the window's height to what is drawn.
            columns: Of its width to what is drawn.
            textures: Pictures of the display.
            stacks: Pictures of stacks.
        """
        self._stacks = stacks
        widgets, icons = textures.picture("gui/widgets"), textures.picture("gui/icons")
        self._bar = _cut(widgets, 0, 0, BAR_WIDTH, BAR_HEIGHT)
        self._selection = _cut(widgets, 0, 22, 24, 23)
        # By points: the container, and over it a half or whole icon.
        self._hearts = [_cut(icons, x, 0, STATUS_SIZE, STATUS_SIZE) for x in (16, 61, 52)]
        self._food = [_cut(icons, x, 27, STATUS_SIZE, STATUS_SIZE) for x in (16, 61, 52)]
        window = sampling.display_columns.shape[1]
        left = (window - BAR_WIDTH) // 2 - STRIP_MARGIN
        width = BAR_WIDTH + 2 * STRIP_MARGIN
        area = Rect(left, WINDOW_HEIGHT - STRIP_HEIGHT, width, STRIP_HEIGHT)
        self.layer = Layer(area, rows, columns)
        experience = _cut(icons, 0, 64, BAR_WIDTH, 5)
        paste(self.layer.canvas, _LEFT, STRIP_HEIGHT - EXPERIENCE_UP, experience)
        self.layer.refresh(Rect(0, 0, width, STRIP_HEIGHT))
        self._shown: HudState | None = None
        cross = _crosshair(*sampling.window, window)[np.ix_(sampling.rows, sampling.columns)]
        self.crosshair = np.flatnonzero(cross).astype(np.uint32)

    def show(self, state: HudState) -> None:
        """Bring the display up to date."""
        shown = self._shown
        if state == shown:
            return
        self._shown = state
        if shown is None or shown.health != state.health:
            self._draw_status(HEARTS, self._hearts, state.health)
        if shown is None or shown.food != state.food:
            self._draw_status(FOOD, self._food, state.food)
        if shown is None or (shown.stacks, shown.selected) != (state.stacks, state.selected):
            self._draw_hotbar(state)

    def _draw_status(self, area: Rect, icons: list[Rgba], points: int) -> None:
        """Draw ten hearts, from left to right, or ten of hunger, from right to left."""
        canvas = self.layer.canvas
        canvas[area.y : area.y + area.height, area.x : area.x + area.width] = 0
        for index in range(STATUS_COUNT):
            place = STATUS_COUNT - 1 - index if icons is self._food else index
            x = area.x + STATUS_STEP * place
            paste(canvas, x, area.y, icons[0])
            if shown := min(max(points - 2 * index, 0), 2):
                paste(canvas, x, area.y, icons[shown])
        self.layer.refresh(area)

    def _draw_hotbar(self, state: HudState) -> None:
        canvas = self.layer.canvas
        canvas[HOTBAR.y :] = 0
        paste(canvas, _LEFT, _TOP, self._bar)
        paste(canvas, _LEFT - 1 + state.selected * SLOT_STEP, _TOP - 1, self._selection)
        lefts = range(_LEFT + 3, _LEFT + 3 + HOTBAR_SLOTS * SLOT_STEP, SLOT_STEP)
        places = zip(lefts, state.stacks, strict=True)
        self._stacks.draw(canvas, [(left, _TOP + 3, stack) for left, stack in places])
        self.layer.refresh(HOTBAR)


@render_kernel
def invert(frame: Bytes, pixels: Words) -> None:
    """Turn pixels into their negative, as Minecraft draws its crosshair.

    Args:
        frame: uint8 (H * W * 3,).
        pixels: uint32 (n,), pixel numbers.
    """
    for k in range(len(pixels)):
        pixel = pixels[k] * uint32(3)
        for channel in range(3):
            at = pixel + uint32(channel)
            frame[at] = uint8(255) - frame[at]


def _cut(sheet: Rgba, x: int, y: int, width: int, height: int) -> Rgba:
    return np.ascontiguousarray(sheet[y : y + height, x : x + width])


def _crosshair(width: int, height: int, window: int) -> NDArray[np.bool_]:
    """Where the crosshair is in a picture, bool (height, width): at least three pixels a side."""
    mask = np.zeros((height, width), bool)
    thick = max(1, height // WINDOW_HEIGHT)
    reach_x = max(1, round(CROSSHAIR_REACH * width / window))
    reach_y = max(1, round(CROSSHAIR_REACH * height / WINDOW_HEIGHT))
    middle_x, middle_y = width // 2, height // 2
    mask[middle_y : middle_y + thick, middle_x - reach_x : middle_x + reach_x + thick] = True
    mask[middle_y - reach_y : middle_y + reach_y + thick, middle_x : middle_x + thick] = True
    return mask
