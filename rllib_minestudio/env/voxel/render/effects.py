"""Status effects as Minecraft 1.16 shows them: icons at the upper right, a list at the inventory.

An icon blinks in its last ten seconds (`Gui.renderEffects`). The list has each effect's name, level
and time left (`DisplayEffectsScreen`). In the game the inventory moves aside for it; here the
inventory stays where it is, since the list has room beside it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.player.player import Player
from rllib_minestudio.env.voxel.render.text import (
    EFFECT_LOOKS,
    WHITE,
    roman,
    text_picture,
    time_left,
)
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Layer, Rect, Reduction, Rgba, paste

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
