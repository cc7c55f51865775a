"""The inventory's figure: where it looks, and what of it is seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rllib_minestudio.env.voxel.render.hand import (
    EYES_UP,
    FEET,
    FIGURE_AREA,
    PER_PIXEL,
    Figure,
    figure_angles,
)
from rllib_minestudio.env.voxel.render.textures import textures_of
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from tests.env.voxel.render.test_screens_drawn import draw, new_screen, view_of

EYES = FEET[0], FEET[1] - EYES_UP
# Colours of the sides of a painted skin.
FRONT, RIGHT, LEFT, TOP, BOTTOM = (
    (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (255, 0, 255),
)  # fmt: skip


@pytest.fixture
def figure() -> Figure:
    """A figure whose head has another colour on each side, and which is grey below."""
    skin = np.full((64, 64, 4), (90, 90, 90, 255), np.uint8)
    for x, y, colour in (
        (8, 8, FRONT), (0, 8, RIGHT), (16, 8, LEFT), (8, 0, TOP), (16, 0, BOTTOM),
    ):  # fmt: skip
        skin[y : y + 8, x : x + 8, :3] = colour
    return Figure(skin)


def shown(picture: np.ndarray, colour: tuple[int, int, int]) -> int:
    """Pixels of a colour, whatever its brightness."""
    rgb = picture[picture[..., 3] > 0][:, :3].astype(float)
    return int(((rgb > 100) == (np.array(colour) > 0)).all(1).sum())


@pytest.mark.parametrize(
    ("cursor", "turn", "lean"),
    [
        (EYES, 0.0, 0.0),
        ((EYES[0] - 40, EYES[1]), 20 * math.pi / 4, 0.0),
        ((EYES[0] + 40, EYES[1] + 40), -20 * math.pi / 4, -20 * math.pi / 4),
    ],
)
def test_angles_are_the_games(cursor: tuple[int, int], turn: float, lean: float) -> None:
    assert figure_angles(*cursor) == pytest.approx((turn, lean))


def test_it_looks_straight_ahead_at_a_cursor_before_its_eyes(figure: Figure) -> None:
    picture = figure.draw(*EYES)
    head = 8 * PER_PIXEL
    assert shown(picture, FRONT) == pytest.approx(head * head, rel=0.1)
    assert not any(shown(picture, side) for side in (RIGHT, LEFT, TOP, BOTTOM))
    rows, columns = np.nonzero(picture[..., 3])
    assert rows.max() + 1 == FEET[1] and rows.min() == pytest.approx(
        FEET[1] - 32 * PER_PIXEL, abs=1
    )
    assert columns.min() == pytest.approx(FEET[0] - 8 * PER_PIXEL, abs=1)
    assert (columns.min() + columns.max() + 1) / 2 == pytest.approx(FEET[0], abs=1)


@pytest.mark.parametrize(
    ("offset", "seen", "hidden"),
    [
        ((-200, 0), LEFT, RIGHT),  # it turns to its right, which shows its left
        ((200, 0), RIGHT, LEFT),
        ((0, -200), BOTTOM, TOP),  # it leans back
        ((0, 200), TOP, BOTTOM),
    ],
)
def test_it_turns_towards_the_cursor(figure: Figure, offset, seen, hidden) -> None:
    picture = figure.draw(EYES[0] + offset[0], EYES[1] + offset[1])
    assert shown(picture, seen) > 30 and shown(picture, hidden) == 0


def test_the_head_turns_twice_as_far_as_the_body() -> None:
    skin = textures_of(None).picture("entity/steve").copy()
    skin[..., 3] = 0
    skin[8:16, 8:16] = (255, 0, 0, 255)  # the face
    skin[20:32, 20:28] = (0, 255, 0, 255)  # the chest
    x = EYES[0] - 40
    picture = Figure(skin).draw(x, EYES[1]).astype(int)
    turn = math.radians(figure_angles(x, EYES[1])[0])
    for channel, angle, depth in ((0, 2 * turn, 4), (1, turn, 2)):
        columns = np.nonzero((picture[..., channel] > 100).any(0))[0]
        middle = (columns.min() + columns.max() + 1) / 2
        assert middle == pytest.approx(FEET[0] - depth * PER_PIXEL * math.sin(angle), abs=1)
        width = 8 * PER_PIXEL * math.cos(angle)
        assert len(columns) == pytest.approx(width, abs=1.5)


def test_the_inventory_draws_it_anew_when_the_cursor_moves() -> None:
    used, layout = new_screen(), LAYOUTS["inventory"]
    area = np.s_[
        layout.top + FIGURE_AREA.y : layout.top + FIGURE_AREA.y + FIGURE_AREA.height,
        layout.left + FIGURE_AREA.x : layout.left + FIGURE_AREA.x + FIGURE_AREA.width,
    ]
    seen = []
    for cursor in ((20, 20), (600, 20), (layout.left + 51, layout.top + 25), (20, 20)):
        view = view_of("inventory", cursor=cursor)
        np.testing.assert_array_equal(draw(view, used).canvas, draw(view).canvas)
        seen.append(draw(view, used).canvas[area])
    assert (seen[0] != seen[1]).any() and (seen[1] != seen[2]).any()
    np.testing.assert_array_equal(seen[0], seen[3])
