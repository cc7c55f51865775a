"""Rules of the player's motion, tick by tick, with the numbers of an independent simulation.

The numbers are those of npm's prismarine-physics with the corrections of oracle/play.js, which
plays many more scenarios where node is installed.
"""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import ITEM_DTYPE, MOB_DTYPE
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.env.voxel.world.blocks import STONE
from tests.env.voxel.arena import FLOOR, arena, state, ticks

EXACT = 5e-6
WALL, TRENCH, CEILING = "wall", "trench", "ceiling"


def stage(*parts, start=0.5):
    """An arena with a wall from z = 4, a trench from z = 4 to 5, or a ceiling two blocks up."""
    engine = arena()
    fill = state(engine).world.fill
    if WALL in parts:
        fill((-9, 10), (FLOOR, FLOOR + 4), (4, 5), STONE)
    if TRENCH in parts:
        fill((-9, 10), (FLOOR - 5, FLOOR), (4, 5), 0)
    if CEILING in parts:
        fill((-9, 10), (FLOOR + 2, FLOOR + 3), (-9, 10), STONE)
    engine.player.position[2] = start
    engine.tick({})
    return engine


def trace(engine, course):
    """Plays (ticks, *keys) one after the other; returns [ticks, 4]: y, z, sprinting, on ground."""
    rows = []
    for count, *keys in course:
        for _ in range(count):
            engine.tick(dict.fromkeys(keys, 1))
            player = engine.player
            rows.append([*player.position[1:], player.sprinting, player.on_ground])
    return np.array(rows)


def test_sneaking_slows_one_tick_after_the_key():
    course = [(3, "forward", "sneak"), (2, "forward")]
    expected = [0.598, 0.680908, 0.755576, 0.825744, 0.962057]
    assert trace(stage(), course)[:, 1] == pytest.approx(expected, abs=EXACT)


def test_sneaking_lowers_the_box_and_the_eyes_at_the_end_of_the_tick():
    engine = stage(CEILING)
    heights = trace(engine, [(3, "jump"), (20,), (3, "jump", "sneak")])[:, 0] - FLOOR
    assert heights[0] == pytest.approx(0.2, abs=EXACT)  # head at the ceiling
    assert heights[23] == pytest.approx(0.2, abs=EXACT)  # the key counts from the next tick on
    assert engine.player.sneaking and engine.player.eye_height == 1.27


def test_nobody_stands_up_where_there_is_no_room():
    engine = stage(CEILING)
    course = [(2, "sneak"), (3, "sneak", "jump"), (1,)]
    assert trace(engine, course)[-1, 0] - FLOOR > 0.2
    assert engine.player.sneaking
    ticks(engine, 20)
    assert not engine.player.sneaking


def test_sneaking_does_not_end_sprinting():
    course = [(8, "forward", "sprint"), (4, "forward", "sprint", "sneak"), (2, "forward")]
    expected = [2.410118, 2.689525, 2.880301, 3.022685, 3.138646, 3.240181, 3.42302]
    rows = trace(stage(), course)
    assert rows[:, 2].all()
    assert rows[7:, 1] == pytest.approx(expected, abs=EXACT)


def test_sprinting_cannot_start_while_sneaking():
    rows = trace(stage(), [(5, "forward", "sneak"), (5, "forward", "sneak", "sprint")])
    assert not rows[:, 2].any()


def test_in_the_air_sprinting_counts_from_the_next_tick_on():
    course = [(3, "forward", "jump"), (3, "forward", "sprint"), (2, "forward")]
    expected = [0.598, 0.671108, 0.757236, 0.855213, 0.969852, 1.099653, 1.243253, 1.399408]
    rows = trace(stage(), course)
    assert rows[:, 1] == pytest.approx(expected, abs=EXACT)
    assert rows[:, 2].tolist() == [0, 0, 0, 1, 1, 1, 1, 1]


def test_against_a_wall_nobody_sprints():
    rows = trace(stage(WALL), [(20, "forward", "sprint")])
    assert rows[:, 2].tolist() == [1] * 13 + [0] * 7
    assert rows[12:, 1] == pytest.approx([3.7] * 8, abs=EXACT)


def test_sneaking_clears_the_double_tap():
    tapped = trace(stage(), [(1, "forward"), (1,), (3, "forward")])
    assert tapped[:, 2].tolist() == [0, 0, 1, 1, 1]
    sneaked = trace(stage(), [(1, "forward"), (1, "sneak"), (3, "forward")])
    assert not sneaked[:, 2].any()
    expected = [0.598, 0.651508, 0.710123, 0.840127, 1.00911]
    assert sneaked[:, 1] == pytest.approx(expected, abs=EXACT)


def test_the_end_of_sneaking_counts_as_a_tap():
    rows = trace(stage(), [(9, "forward", "sneak"), (2, "forward"), (1,), (2, "forward")])
    assert rows[:, 2].tolist() == [0] * 12 + [1] * 2


def test_the_edge_is_guarded_in_the_tick_of_a_jump():
    engine = stage()
    state(engine).world.fill((-9, 10), (FLOOR - 5, FLOOR), (2, 6), 0)
    rows = trace(engine, [(60, "forward", "sneak"), (6, "forward", "sneak", "jump")])[59:]
    expected = [2.286438, 2.286438, 2.286438, 2.329844, 2.375224, 2.422399, 2.471209]
    assert rows[:, 1] == pytest.approx(expected, abs=EXACT)
    assert rows[1, 0] == pytest.approx(FLOOR + 0.42, abs=EXACT)


@pytest.mark.parametrize("phase", [i * 0.028 for i in range(10)])
def test_a_narrow_trench_is_crossed_where_the_far_side_is_reached_within_a_tick(phase):
    for keys, crossing in ((("forward",), {6}), (("forward", "sprint"), set(range(2, 8)))):
        rows = trace(stage(TRENCH, start=0.5 + phase), [(50, *keys)])
        crosses = rows[:, 0].min() > FLOOR - 0.1
        assert crosses == (round(phase / 0.028) in crossing), keys


def land(parts, dtype, height, step):
    """The feet of a body that comes down half a block above the floor, beside a block."""
    world = state(stage(*parts)).world
    world.fill((-9, 10), (FLOOR, FLOOR + 1), (4, 5), STONE)
    body = np.zeros(1, dtype)
    body["position"] = (0.5, FLOOR + 0.5, 3.65)
    body["velocity"] = (0.0, -0.8, 0.3)
    physics.move(world.blocks, body[0], 0.3, height, step, 0.0, 0.3)
    assert body["on_ground"][0]
    return body["position"][0, 1:] - (FLOOR, 0.0)


def test_who_lands_beside_a_block_steps_on_it_from_the_height_at_which_the_tick_began():
    assert land((), MOB_DTYPE, 1.4, physics.STEP_HEIGHT) == pytest.approx([1.0, 3.95], abs=EXACT)


def test_dropped_items_do_not_step():
    assert land((), ITEM_DTYPE, 0.25, physics.NO_STEP) == pytest.approx([0.0, 3.7], abs=EXACT)


def test_a_step_needs_room_above():
    low = (CEILING,)
    assert land(low, MOB_DTYPE, 1.4, physics.STEP_HEIGHT) == pytest.approx([0.0, 3.7], abs=EXACT)
    assert land(low, MOB_DTYPE, 0.9, physics.STEP_HEIGHT) == pytest.approx([1.0, 3.95], abs=EXACT)
