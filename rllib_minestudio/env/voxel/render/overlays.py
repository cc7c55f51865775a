"""What lies over the picture besides bars: status effects, crosshair, the charge of an attack.

An icon blinks in its last ten seconds (`Gui.renderEffects`). The list has each effect's name, level
and time left (`DisplayEffectsScreen`). In the game the inventory moves aside for it; here the
inventory stays where it is, since the list has room beside it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numba import int32, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.player.player import Player
from rllib_minestudio.env.voxel.render.camera import (
    Bytes,
    Floats,
    Words,
    render_kernel,
    scratch_kernel,
)
from rllib_minestudio.env.voxel.render.hand import blend_hand
from rllib_minestudio.env.voxel.render.text import (
    EFFECT_LOOKS,
    WHITE,
    roman,
    text_picture,
    time_left,
)
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import (
    WINDOW_HEIGHT,
    Layer,
    Rect,
    Reduction,
    Rgba,
    Sampling,
    blend_layer,
    paste,
)

_FRAME, _FRAME_AT = 24, (141, 166)
_ENTRY, _ENTRY_AT = (120, 32), (0, 166)
"""The field behind an icon and behind an entry of the list: size, and place on the sheet."""
_STEP = 25
_MOST = 8
"""Effects in a row of icons; further ones are not shown."""
_BLINKING_TICKS = 200
LIST_LEFT, LIST_WIDTH = 124, _ENTRY[0]
"""How far left of the inventory the list begins, and its width."""
_PITCH, _LIST_HEIGHT, _FEW = 33, 132, 5
_MOST_LEVELS = 10
"""Levels above these are not written."""
_TIME_GREY = (127, 127, 127)


class ShownEffect(NamedTuple):
    """An effect that the player has.

    Attributes:
        name: Minecraft's identifier.
        amplifier: Its level, less one.
        ticks: Ticks left.
    """

    name: str
    amplifier: int
    ticks: int


def effects_of(player: Player, without: Collection[str] = ()) -> tuple[ShownEffect, ...]:
    """Return a player's effects, except some, in the order of the list: the first to end first."""
    shown = [
        ShownEffect(name, *level) for name, level in player.effects.items() if name not in without
    ]
    return tuple(sorted(shown, key=lambda effect: (effect.ticks, EFFECT_LOOKS[effect.name].colour)))


def draw_list(
    canvas: Rgba, textures: Textures, place: tuple[int, int], effects: tuple[ShownEffect, ...]
) -> None:
    """Draw the list of effects.

    Args:
        canvas: See `window`.
        textures: Pictures of screens and icons.
        place: Column and row of its upper left corner.
        effects: In the list's order.
    """
    field = _cut(textures.picture("gui/container/inventory"), *_ENTRY_AT, *_ENTRY)
    pitch = _PITCH if len(effects) <= _FEW else _LIST_HEIGHT // (len(effects) - 1)
    x, y = place
    for effect in effects:
        paste(canvas, x, y, field)
        paste(canvas, x + 6, y + 7, textures.picture(f"mob_effect/{effect.name}"))
        title = EFFECT_LOOKS[effect.name].title
        if 0 < effect.amplifier < _MOST_LEVELS:
            title += f" {roman(effect.amplifier + 1)}"
        paste(canvas, x + 28, y + 6, text_picture(textures, title, WHITE, shadow=True))
        left = text_picture(textures, time_left(effect.ticks), _TIME_GREY, shadow=True)
        paste(canvas, x + 28, y + 16, left)
        y += pitch


def seconds_left(effects: tuple[ShownEffect, ...]) -> tuple[ShownEffect, ...]:
    """Return effects with whole seconds left: what the list shows changes no sooner."""
    second = TICKS_PER_SECOND
    return tuple(effect._replace(ticks=effect.ticks // second * second) for effect in effects)


def opacity(ticks: int) -> float:
    """Return how visible an icon is, 0 to 1: it blinks before the end, sooner and sooner."""
    if ticks > _BLINKING_TICKS:
        return 1.0
    swing = min(max((10 - ticks // TICKS_PER_SECOND) / 10 * 0.25, 0.0), 0.25)
    mean = min(max(ticks / 10 / 5 * 0.5, 0.0), 0.5)
    return mean + math.cos(ticks * math.pi / 5) * swing


class EffectIcons:
    """The icons of the player's effects at the window's upper right.

    Attributes:
        layer: The icons as last shown.
    """

    def __init__(
        self, window: int, rows: Reduction, columns: Reduction, textures: Textures
    ) -> None:
        """Prepare an empty corner.

        Args:
            window: Width of the window.
            rows: Reduction of the window's height to the drawn rows.
            columns: Reduction of its width to the drawn columns.
            textures: Pictures of screens and icons.
        """
        self._textures = textures
        self._frame = _cut(textures.picture("gui/container/inventory"), *_FRAME_AT, _FRAME, _FRAME)
        self._size = _STEP * _MOST, 2 * _STEP + 2
        self.layer = Layer(Rect(window - self._size[0], 0, *self._size), rows, columns)
        self._shown: tuple[tuple[str, float], ...] = ()

    def show(self, effects: tuple[ShownEffect, ...]) -> None:
        """Bring the layer up to date; `effects` are in the list's order."""
        shown = tuple((effect.name, opacity(effect.ticks)) for effect in reversed(effects))
        if shown == self._shown:
            return
        self._shown = shown
        canvas, counts = self.layer.canvas, [0, 0]
        canvas[...] = 0
        for name, alpha in shown:
            row = int(EFFECT_LOOKS[name].is_below)
            counts[row] += 1
            x, y = self._size[0] - _STEP * counts[row], 1 + 26 * row
            icon = self._textures.picture(f"mob_effect/{name}").copy()
            icon[..., 3] = np.rint(icon[..., 3] * min(max(alpha, 0.0), 1.0))
            paste(canvas, x, y, self._frame)
            paste(canvas, x + 3, y + 3, icon)
        self.layer.refresh(Rect(0, 0, *self._size))


def _cut(sheet: Rgba, x: int, y: int, width: int, height: int) -> Rgba:
    return np.ascontiguousarray(sheet[y : y + height, x : x + width])


# ------ the crosshair and the bar of the attack's charge below it, which invert what is behind them
# The bar has its place in Minecraft's window at GUI scale 1, and is scaled like the display. The
# crosshair is drawn in the frame's own pixels, as it would vanish if it were averaged.

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


class Patch(NamedTuple):
    """A bar over the frame.

    Attributes:
        top: First drawn row that it covers.
        left: First drawn column.
        strength: uint8 (rows, columns * 3), how much it inverts: 255 turns black into white.
    """

    top: int
    left: int
    strength: Bytes


NO_BAR = Patch(0, 0, np.zeros((0, 0), np.uint8))


class Crosshair:
    """Crosshair and bar for one sampling.

    Attributes:
        pixels: uint32 (n,), the pixels of the crosshair.
    """

    def __init__(self, sampling: Sampling, textures: Textures) -> None:
        """Prepare the crosshair; bars are made when they are first shown.

        Args:
            sampling: Which pixels are drawn.
            textures: Source of the bar's pictures.
        """
        window = sampling.display_columns.shape[1]
        mask = _mask(*sampling.window, window)[np.ix_(sampling.rows, sampling.columns)]
        self.pixels = np.flatnonzero(mask).astype(np.uint32)
        icons = textures.picture("gui/icons")
        self._empty, self._full = (_strength(icons, *place) for place in (EMPTY_BAR, FULL_BAR))
        self._sampling = sampling
        self._bars: dict[int, Patch] = {}

    def bar(self, charge: float) -> Patch:
        """Return the bar for a share of a full attack, 0 to 1; it is empty at 1."""
        if charge >= 1.0:
            return NO_BAR
        filled = int(charge * BAR_STEPS)
        bar = self._bars.get(filled)
        if bar is None:
            bar = self._bars[filled] = self._draw_bar(filled)
        return bar

    def _draw_bar(self, filled: int) -> Patch:
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
            return NO_BAR
        shown = both[:, first - left : stop - left]
        scaled = np.einsum("ij,jkc,lk->ilc", rows[lines], shown, columns[places])
        strength = np.rint(scaled * 255).astype(np.uint8)
        return Patch(int(lines[0]), int(places[0]), strength.reshape(len(lines), -1))


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
def _invert_partly(frame: Bytes, stride: int, top: int, left: int, strength: Bytes) -> None:
    """Invert a part of a frame with `stride` bytes in a row, as strongly as a `Patch` says."""
    for row in range(strength.shape[0]):
        start = (top + row) * stride + 3 * left
        into = frame[start : start + strength.shape[1]]
        for at in range(strength.shape[1]):
            below, over = int32(into[at]), int32(strength[row, at])
            mixed = over * (int32(255) - below) + below * (int32(255) - over)
            into[at] = uint8((mixed + int32(127)) // int32(255))


@scratch_kernel
def blend_overlays(
    frame: Bytes, stride: int, hand_top: int, hand_left: int, hand: Bytes, behind_hand: Bytes,
    camera: Floats, shine: int, crosshair: Words, bar_top: int, bar_left: int, bar: Bytes,
    hud_top: int, hud_left: int, hud: Bytes, behind_hud: Bytes,
) -> None:  # fmt: skip
    """Draw what nearly every frame shows over the world: hand, crosshair with bar, and display.

    One kernel, as each call costs a microsecond.

    Args:
        frame: uint8 (h * w * 3,), drawn into.
        stride: Bytes in a row of it.
        hand_top: See `hand.Hand`, as the next three.
        hand_left: First column.
        hand: Its colour.
        behind_hand: What is kept of the frame.
        camera: float32 (CAMERA_SIZE,).
        shine: Where in it the light on the hand is.
        crosshair: See `Crosshair.pixels`.
        bar_top: See `Patch`, as the next two.
        bar_left: First column.
        bar: Its strength.
        hud_top: See `window.Layer`, as the next three.
        hud_left: First column.
        hud: Its colour.
        behind_hud: What is kept of the frame.
    """
    blend_hand(frame, stride, hand_top, hand_left, hand, behind_hand, camera, shine)
    _invert(frame, crosshair)
    _invert_partly(frame, stride, bar_top, bar_left, bar)
    blend_layer(frame, stride, hud_top, hud_left, hud, behind_hud)


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
