"""Screens: panels, slots, stacks, the lit slot, the cursor, and their way to the frame's size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS, ItemStack
from rllib_minestudio.env.voxel.render.gui import (
    BAR_LENGTH,
    ScreenComposer,
    StackPictures,
)
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.text import text_picture
from rllib_minestudio.env.voxel.render.textures import textures_of
from rllib_minestudio.env.voxel.render.window import averaging, reduction
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.menu import ScreenView
from tests.env.voxel.render.render_stage import Stage

NOTHING = ItemStack(0, 0, 0)
WINDOW = 640, 360
BESIDE = 20, 20
"""A cursor that is far from the panel."""


class Drawn(NamedTuple):
    """A screen as composed.

    Attributes:
        canvas: uint8 (360, 640, 4), in window pixels.
        colour: uint8 (H, W * 3), see `Layer`.
        keep: Likewise.
    """

    canvas: np.ndarray
    colour: np.ndarray
    keep: np.ndarray


def new_screen(size: tuple[int, int] = WINDOW, window: int = 640) -> ScreenComposer:
    textures = textures_of(None)
    lines = reduction(averaging(size[1], 360)), reduction(averaging(size[0], window))
    return ScreenComposer(window, *lines, textures, StackPictures(textures))


def draw(view: ScreenView, screen: ScreenComposer | None = None) -> Drawn:
    screen = screen or new_screen()
    screen.show(view)
    layer = screen.layer
    return Drawn(layer.canvas.copy(), layer.colour.copy(), layer.keep.copy())


def stack(item: str, quantity: int = 1, damage: int = 0) -> ItemStack:
    return ItemStack(ITEM_ID[item], quantity, damage)


def view_of(
    kind: str,
    stacks: dict[int, ItemStack] | None = None,
    cursor: tuple[int, int] = BESIDE,
    **more: object,
) -> ScreenView:
    slots = [NOTHING] * len(LAYOUTS[kind].slots)
    for slot, held in (stacks or {}).items():
        slots[slot] = held
    return ScreenView(kind, tuple(slots), cursor, **{"carried": NOTHING, **more})


def at(canvas: np.ndarray, x: int, y: int, width: int = 16, height: int = 16) -> np.ndarray:
    return canvas[y : y + height, x : x + width, :3].astype(int)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_the_panel_is_opaque_and_the_rest_a_veil(kind: str) -> None:
    layout, canvas = LAYOUTS[kind], draw(view_of(kind)).canvas
    inside = canvas[
        layout.top + 3 : layout.top + layout.height - 3,
        layout.left + 3 : layout.left + layout.width - 3,
    ]
    assert (inside[..., 3] == 255).all()
    assert 0xC0 <= canvas[0, -1, 3] < canvas[-1, -1, 3] <= 0xD0
    for slot in layout.slots:  # each is a hollow in the panel
        if slot.group in ("result", "output"):
            continue  # has a wide frame
        assert at(canvas, slot.x - 1, slot.y - 1, 2, 1).mean() < at(canvas, slot.x, slot.y).mean()


@pytest.mark.parametrize("kind", LAYOUTS)
def test_the_slot_under_the_cursor_is_lit(kind: str) -> None:
    dark = draw(view_of(kind)).canvas
    for index, slot in enumerate(LAYOUTS[kind].slots):
        lit = draw(view_of(kind, cursor=(slot.x - 1, slot.y + 16))).canvas
        above = at(lit, slot.x, slot.y, 16, 15) - at(dark, slot.x, slot.y, 16, 15)
        assert (above > 20).all(), index
        other = LAYOUTS[kind].slots[index - 1]
        assert (at(lit, other.x, other.y, 8, 8) == at(dark, other.x, other.y, 8, 8)).all()


def test_counts_are_written_in_the_lower_right_corner() -> None:
    slot = LAYOUTS["chest"].slots[4]
    canvas = draw(view_of("chest", {4: stack("dirt", 37)})).canvas
    digits = text_picture(textures_of(None), "37", (255, 255, 255), shadow=True)
    place = at(canvas, slot.x + 18 - digits.shape[1], slot.y + 9, digits.shape[1], 9)
    inked = digits[..., 3] > 0
    assert inked.sum() > 30
    assert (place[inked] == digits[inked][:, :3]).all()
    one = draw(view_of("chest", {4: stack("dirt", 1)})).canvas
    assert not (at(one, slot.x, slot.y) == 255).all(-1).any(), "one is not written"


def test_the_bar_shows_the_wear() -> None:
    slot, whole = LAYOUTS["chest"].slots[0], ITEMS[ITEM_ID["iron_pickaxe"]].durability
    lengths = []
    for left in (0.9, 0.5, 0.1):
        worn = stack("iron_pickaxe", 1, round(whole * (1 - left)))
        bar = at(draw(view_of("chest", {0: worn})).canvas, slot.x + 2, slot.y + 13, 13, 2)
        assert (bar[1] == 0).all()
        lengths.append(int((bar[0] > 0).any(-1).sum()))
        red, green, _ = bar[0, 0]
        assert (green > red) == (left > 0.5) or left == 0.5
    assert lengths == [12, 7, 1]  # as ItemRenderer of 1.16.5 rounds 6.5
    new = at(draw(view_of("chest", {0: stack("iron_pickaxe")})).canvas, slot.x + 2, slot.y + 13)
    assert new.min() > 0, "a new one has no bar"


def test_the_bar_does_not_depend_on_what_was_shown_before() -> None:
    used, whole = new_screen(), ITEMS[ITEM_ID["iron_pickaxe"]].durability
    for damage in range(1, whole // (2 * BAR_LENGTH)):  # all so little that the bar is full
        worn = view_of("chest", {0: stack("iron_pickaxe", 1, damage)})
        np.testing.assert_array_equal(draw(worn, used).canvas, draw(worn).canvas)


def test_the_cursor_and_what_it_carries_are_at_its_pixel() -> None:
    empty = draw(view_of("chest")).canvas
    for x, y in ((101, 57), (102, 57), (640, 360)):
        drawn = draw(view_of("chest", cursor=(x, y), carried=stack("diamond", 5))).canvas
        changed = (drawn != empty).any(-1)
        changed[BESIDE[1] : BESIDE[1] + 16, BESIDE[0] : BESIDE[0] + 16] = False
        rows, columns = np.nonzero(changed)
        assert rows.min() >= y - 8 and columns.min() >= x - 8
        assert rows.max() < y + 16 and columns.max() < x + 16
        if x < 640:
            assert (drawn[y, x] == (0, 0, 0, 255)).all(), "the tip is black"


def test_flame_and_arrow_follow_the_furnace() -> None:
    layout = LAYOUTS["furnace"]
    flame, arrow = (layout.left + 56, layout.top + 36), (layout.left + 79, layout.top + 34)
    cold = draw(view_of("furnace")).canvas
    burning, smelted = [], []
    for share in (0.2, 0.6, 1.0):
        canvas = draw(view_of("furnace", burn=share, progress=share)).canvas
        burning.append(int((at(canvas, *flame) != at(cold, *flame)).any(-1).sum()))
        white = (at(canvas, *arrow, 24) == 255).all(-1)
        smelted.append(int(white.any(0).sum()))
    assert 0 < burning[0] < burning[1] < burning[2]
    assert smelted == [4, 14, 24]


@pytest.mark.parametrize("size", [(640, 360), (128, 128), (61, 47)])
def test_a_screen_that_changes_is_as_one_drawn_anew(size: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    items = [stack("dirt", 5), stack("iron_axe", 1, 100), stack("apple"), NOTHING, NOTHING]
    kept = new_screen(size)
    kinds = ["inventory", "furnace", "chest", "furnace", "crafting_table", "inventory"]
    for number, kind in enumerate(np.repeat(kinds, 6).tolist()):
        slots = range(len(LAYOUTS[kind].slots))
        if number % 2:  # few slots change, otherwise nearly all
            slots = rng.choice(len(slots), 2, replace=False).tolist()
        else:
            held = {}
        held = {**held, **{slot: items[rng.integers(len(items))] for slot in slots}}
        shown = view_of(
            kind,
            held,
            (int(rng.integers(200, 440)), int(rng.integers(80, 300))),
            carried=items[rng.integers(len(items))],
            burn=float(rng.random()),
            progress=float(rng.random()),
        )
        for changed, anew in zip(draw(shown, kept), draw(shown, new_screen(size)), strict=True):
            np.testing.assert_array_equal(changed, anew)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_no_two_groups_of_slots_meet(kind: str) -> None:
    """So that one can be drawn again without the others."""
    covered = np.zeros((360, 640), int)
    for group in {place.group for place in LAYOUTS[kind].slots}:
        places = [place for place in LAYOUTS[kind].slots if place.group == group]
        left, top = min(place.x for place in places), min(place.y for place in places)
        right, bottom = max(place.x for place in places), max(place.y for place in places)
        covered[top : bottom + 18, left : right + 18] += 1
    assert covered.max() == 1


def test_a_frame_of_another_size_is_the_mean_of_the_window() -> None:
    shown = view_of("crafting_table", {1: stack("oak_log", 3), 12: stack("stick", 64)}, (300, 150))
    canvas = draw(shown).canvas[..., :3].astype(float)
    small = draw(shown, new_screen((128, 72))).colour.reshape(72, 128, 3)
    np.testing.assert_allclose(small, canvas.reshape(72, 5, 128, 5, 3).mean((1, 3)), atol=0.51)


def test_a_narrow_window_shows_the_middle() -> None:
    canvas = draw(view_of("inventory"), new_screen((36, 36), window=72)).canvas
    np.testing.assert_array_equal(
        canvas[120:240], draw(view_of("inventory")).canvas[120:240, 284:356]
    )


def test_the_game_is_seen_through_the_veil() -> None:
    stage = Stage()
    renderer = Renderer((128, 128))
    stage.player.yaw = 30.0
    game = stage.draw(renderer).astype(float)
    behind = renderer.draw(
        stage.world,
        stage.player,
        stage.mobs,
        stage.items,
        stage.player.inventory,
        6000,
        screen=view_of("furnace"),
    ).astype(float)
    sky = np.s_[2:30, 12:120]  # beside the cursor
    np.testing.assert_allclose(behind[sky], game[sky] * 0.24 + 12, atol=6)
    np.testing.assert_array_equal(stage.draw(renderer), game, "closed, nothing is left of it")
