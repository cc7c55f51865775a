"""Leads in the picture, against the curve of `MobRenderer.renderLeash` computed point by point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import INVISIBILITY, LED, TIED
from rllib_minestudio.env.voxel.render.models import LEADS_SHOWN
from rllib_minestudio.env.voxel.render.renderer import Renderer
from tests.env.voxel.render.render_stage import FLOOR, Stage

WIDTH, HEIGHT = 640, 360
TAN_Y = math.tan(math.radians(35))
TAN_X = TAN_Y * 16 / 9
EYE = np.array([0.5, FLOOR + 1.62, 0.5])
FENCE = (3, FLOOR, 6)
KNOT = np.array(FENCE) + 0.5
PIECES = 24
ROPE = np.array([127.5, 102.0, 76.5])


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer((WIDTH, HEIGHT))


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.fill((3, 4), (0, 1), (6, 7), "oak_fence")
    return stage


def neck(ahead: float, side: float, width: float, height: float) -> NDArray[np.float64]:
    """Where a lead is fastened to an animal of the stage, which looks to the west."""
    return np.array([0.5 + side - 0.4 * width, FLOOR + 0.93 * height, 0.5 + ahead])


def beside(point: NDArray, x: float, y: float, z: float) -> NDArray[np.float64]:
    return point + np.array([x, y, z])


def curve(start: NDArray, end: NDArray, share: float) -> NDArray[np.float64]:
    """A point of a rope from an animal to its holder: it hangs from the higher end."""
    point = start + (end - start) * share
    rise = end[1] - start[1]
    hung = share**2 if rise > 0 else 1 - (1 - share) ** 2
    point[1] = start[1] + rise * hung
    return point


def pixel(point: NDArray) -> tuple[int, int]:
    """Row and column of a point, for who looks to the south."""
    x, y, z = point - EYE
    return int((1 - y / z / TAN_Y) / 2 * HEIGHT), int((1 - x / z / TAN_X) / 2 * WIDTH)


def is_rope(colour: NDArray, shade: float) -> bool:
    return bool(np.abs(colour - ROPE * shade).max() < 6)


def pieces(frame: NDArray, start: NDArray, end: NDArray, last: int = PIECES) -> list[bool]:
    """Whether each of the first pieces of a rope is seen in its shade, in its middle."""
    found = []
    for piece in range(last):
        ends = [curve(start, end, at / PIECES) for at in (piece, piece + 1)]
        colour = frame[pixel((ends[0] + ends[1]) / 2)].astype(float)
        found.append(is_rope(colour, 1.0 if piece % 2 else 0.7))
    return found


@pytest.mark.parametrize("ahead", [4.0, 7.0])
def test_a_rope_hangs_between_an_animal_and_its_fence(
    stage: Stage, renderer: Renderer, ahead: float
) -> None:
    stage.add_mob("chicken", ahead, -2.0, leash=TIED, knot=FENCE)
    start, end = neck(ahead, -2.0, 0.4, 0.7), beside(KNOT, 0, 0.2, 0)
    seen = pieces(stage.draw(renderer), start, end)
    # Its first pieces are within the animal, its last in the knot.
    assert sum(seen) >= 18 and all(seen[4:18])
    stage.mobs.records["leash"][0] = 0
    assert not any(pieces(stage.draw(renderer), start, end))


def test_a_rope_leads_to_the_players_hand(stage: Stage, renderer: Renderer) -> None:
    stage.add_mob("chicken", 5.0, 1.5, leash=LED)
    hand = beside(EYE, -0.39, -0.6, 0.3)
    start = neck(5.0, 1.5, 0.4, 0.7)
    frame = stage.draw(renderer)
    for share in np.linspace(0.05, 0.68, 40):
        colour = frame[pixel(curve(start, hand, share))].astype(float)
        assert is_rope(colour, 0.7) or is_rope(colour, 1.0), share
    # Farther away it is seen from its end, so that pieces hide others.
    assert all(pieces(frame, start, hand, last=17)[11:])


def test_a_knot_is_about_the_fence(stage: Stage, renderer: Renderer) -> None:
    stage.add_mob("chicken", 5.0, -2.0, leash=TIED, knot=FENCE)
    knotted = stage.draw(renderer).astype(int)
    stage.mobs.records["leash"][0] = 0
    bare = stage.draw(renderer).astype(int)
    changed = (knotted != bare).any(-1)
    half = 3 / 16
    rows = [pixel(beside(KNOT, 0, up / 16, -half))[0] for up in (5.5, -1.5)]
    columns = [pixel(beside(KNOT, across, 0, -half))[1] for across in (half * 0.9, -half * 0.9)]
    assert changed[rows[0] : rows[1], columns[0] : columns[1]].mean() > 0.9


def test_an_animal_that_nobody_sees_pulls_a_rope_all_the_same(
    stage: Stage, renderer: Renderer
) -> None:
    stage.add_mob("chicken", 4.0, -2.0, leash=TIED, knot=FENCE)
    stage.mobs.records["effect_ticks"][0, INVISIBILITY] = 100
    seen = pieces(stage.draw(renderer), neck(4.0, -2.0, 0.4, 0.7), beside(KNOT, 0, 0.2, 0))
    assert all(seen[:18]), "nothing hides its first pieces now"


def test_only_so_many_leads_are_drawn(stage: Stage, renderer: Renderer) -> None:
    def frame(leads: int) -> NDArray[np.uint8]:
        stage.mobs.clear()
        for row in range(40):
            leash = TIED if row < leads else 0
            stage.add_mob("chicken", 3.0 + 0.1 * row, -2.0, leash=leash, knot=FENCE)
        return stage.draw(renderer).copy()

    assert (frame(40) == frame(LEADS_SHOWN)).all()
    assert (frame(LEADS_SHOWN) != frame(LEADS_SHOWN - 1)).any()
