"""The toolmaker's plan, its memory of what it saw, its ways, and its hand on the cursor."""

import math
from itertools import pairwise

import numpy as np
import pytest

from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.env.agents import HumanLimits
from rllib_minestudio.env.agents.toolmaker.body import (
    AgentBody,
    Memory,
    OpenScreen,
    SeenStack,
    TrackedCursor,
    cells_on_line,
)
from rllib_minestudio.env.agents.toolmaker.plan import knowledge, make_plan, most_sets
from rllib_minestudio.env.agents.toolmaker.walking import digging_costs, find_path
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game.survey import VisibleBlocks
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS


def memory_of(blocks):
    """A memory of blocks and air, {cell: name}."""
    memory = Memory()
    names = ("air", *dict.fromkeys(name for name in blocks.values() if name != "air"))
    solid = [(cell, name) for cell, name in blocks.items() if name != "air"]
    cells = np.array([cell for cell, _ in solid], np.int64).reshape(1, -1, 3)
    kinds = np.array([[names.index(name) for _, name in solid]], np.int64)
    nowhere = np.zeros((1, len(solid)))
    memory.note(
        VisibleBlocks(np.zeros(3), np.zeros_like(cells, float), nowhere, names, kinds, cells, cells)
    )
    for cell, name in blocks.items():
        if name == "air":
            memory.note_air(cell)
    return memory


def plain(width=9, height=4):
    """A floor of dirt at y = 0 with air above and bedrock around, as blocks of a memory."""
    columns = [(x, z) for x in range(-1, width + 1) for z in range(-1, width + 1)]
    inside = range(width)
    return {
        (x, y, z): "dirt" if y == 0 else "air" if x in inside and z in inside else "bedrock"
        for x, z in columns
        for y in range(height)
    }


# ---------------------------------------------------------------- the plan


def test_the_whole_tree_in_an_order_that_can_be_done():
    steps = make_plan("iron_pickaxe", {}, ())
    place = {step.item: index for index, step in enumerate(steps)}
    assert len(place) == len(steps)
    assert steps[0].verb == "gather" and steps[0].item == "log"
    for first, then in [
        *[("log", "planks"), ("planks", "stick"), ("planks", "crafting_table")],
        *[("crafting_table", "wooden_pickaxe"), ("wooden_pickaxe", "cobblestone")],
        *[("cobblestone", "stone_pickaxe"), ("stone_pickaxe", "iron_ore")],
        *[("furnace", "iron_ingot"), ("iron_ore", "iron_ingot"), ("iron_ingot", "iron_pickaxe")],
    ]:
        assert place[first] < place[then], (first, then)


@pytest.mark.parametrize("order", range(12))
def test_a_plan_carried_out_leaves_the_goal_and_no_debt(order):
    """Whatever the order, the quantities suffice: gathered, used and made, nothing goes below 0."""
    known = knowledge()
    held: dict[str, int] = {}
    for step in make_plan("iron_pickaxe", held, (), order):
        if step.verb == "gather":
            tools = known.mined[step.item].tools
            assert not tools or any(held.get(tool) for tool in tools), step
            held[step.item] = held.get(step.item, 0) + step.quantity
            continue
        if step.verb == "smelt":
            smelt = known.smelts[step.item]
            assert held["furnace"]
            used = {
                smelt.source: step.quantity,
                smelt.fuel: math.ceil(step.quantity / smelt.per_fuel),
            }
            made = step.quantity
        else:
            craft = known.crafts[step.item]
            assert craft.screen == "inventory" or held[craft.screen], step
            used = {name: n * step.quantity for name, n in craft.needs.items()}
            made = craft.makes * step.quantity
        for name, quantity in used.items():
            held[name] = held.get(name, 0) - quantity
        held[step.item] = held.get(step.item, 0) + made
    assert held["iron_pickaxe"] == 1
    assert all(quantity >= 0 for quantity in held.values()), held


def test_who_goes_deep_takes_a_table_and_a_spare_pickaxe_along():
    def wanted(**circumstances):
        steps = make_plan("iron_pickaxe", {}, (), **circumstances)
        found = {step.item: step.quantity for step in steps}
        return found["log"], found["crafting_table"], found["stone_pickaxe"]

    assert wanted() == (6, 2, 2)
    assert wanted(sets_out=False) == (5, 2, 1)  # what wears out now has to be replaced there
    assert wanted(in_sight=["iron_ore"]) == (4, 1, 1)


def test_what_is_there_is_not_made_again():
    held = {"birch_planks": 3, "stick": 2}
    assert [step.item for step in make_plan("wooden_pickaxe", held, ["crafting_table"])] == [
        "wooden_pickaxe"
    ]
    again = make_plan("wooden_pickaxe", {**held, "wooden_pickaxe": 1}, ["crafting_table"])
    assert [step.item for step in again] == ["wooden_pickaxe"]


def test_a_stack_of_each_kind_of_wood_limits_the_sets():
    known = knowledge()
    planks = known.crafts["planks"]
    assert most_sets(known, planks, [SeenStack("oak_log", 3), SeenStack("birch_log", 1)], 4) == 3
    pickaxe = known.crafts["wooden_pickaxe"]
    mixed = [SeenStack("oak_planks", 2), SeenStack("birch_planks", 1), SeenStack("stick", 2)]
    assert most_sets(known, pickaxe, mixed, 1) == 1
    assert most_sets(known, pickaxe, mixed, 2) == 1
    assert most_sets(known, pickaxe, mixed[:1], 1) == 0


# ---------------------------------------------------------------- what was seen


def test_the_memory_holds_what_a_glance_shows_and_forgets_what_is_gone():
    engine = VoxelEngine(frame_size=(32, 32))
    engine.reset(1, "plains")
    engine.execute("/fill ~-4 ~ ~-4 ~4 ~5 ~4 air")
    engine.execute("/tp @p ~ ~ ~ 0 0")
    engine.tick({})
    x, y, z = (math.floor(v) for v in engine.player.position.tolist())
    engine.execute(f"/setblock {x} {y + 1} {z + 3} iron_ore")
    memory = Memory()
    memory.note(engine.visible_blocks(49, 27, 20.0))
    ore = (x, y + 1, z + 3)
    assert memory.find(["iron_ore"]) == [ore]
    assert memory.is_air((x, y + 1, z + 2))
    assert memory.name_of((x, y + 1, z - 2)) is None  # behind
    assert memory.name_of((x, y + 1, z + 4)) is None  # hidden
    engine.execute(f"/setblock {x} {y + 1} {z + 3} air")
    memory.note(engine.visible_blocks(49, 27, 20.0))
    assert memory.find(["iron_ore"]) == []
    assert memory.is_air(ore)


def test_a_line_passes_through_neighbouring_cells():
    cells = list(cells_on_line((0.5, 0.5, 0.5), (3.5, 1.2, 0.5)))
    assert cells[0] == (0, 0, 0) and cells[-1] == (3, 1, 0)
    assert all(
        sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= 2
        for one, other in pairwise(cells)
    )


# ---------------------------------------------------------------- ways


def way(blocks, start, goal, has_pickaxe=False):
    costs = digging_costs(has_pickaxe)
    return find_path(memory_of(blocks), start, goal, lambda cell: cell == goal, costs, set())


def test_a_way_leads_around_a_wall_that_cannot_be_dug():
    blocks = plain()
    blocks |= {(4, y, z): "crafting_table" for y in (1, 2, 3) for z in range(8)}
    path = way(blocks, (1, 1, 1), (7, 1, 1))
    assert path[-1] == (7, 1, 1)
    assert (4, 1, 8) in path


def test_leaves_are_walked_through_and_stone_with_a_pickaxe_only():
    leaves = {(4, y, z): "oak_leaves" for y in (1, 2, 3) for z in range(9)}
    assert (4, 1, 1) in way(plain() | leaves, (1, 1, 1), (7, 1, 1))
    stone = {cell: "stone" for cell in leaves}
    assert way(plain() | stone, (1, 1, 1), (7, 1, 1))[-1] != (7, 1, 1)
    assert way(plain() | stone, (1, 1, 1), (7, 1, 1), has_pickaxe=True)[-1] == (7, 1, 1)


def test_a_step_up_is_one_block_high_and_needs_room_above():
    step = {(4, 1, z): "bedrock" for z in range(9)}
    assert way(plain() | step, (1, 1, 1), (7, 1, 1))[-1] == (7, 1, 1)
    ceiling = {(3, 3, z): "bedrock" for z in range(9)}
    assert way(plain() | step | ceiling, (1, 1, 1), (7, 1, 1))[-1] != (7, 1, 1)


# ---------------------------------------------------------------- the cursor


def test_the_cursor_stays_in_the_window():
    cursor = TrackedCursor()
    assert (cursor.x, cursor.y) == (320, 180)
    cursor.turn(-3.0, 6.0)
    assert (cursor.x, cursor.y) == pytest.approx((360, 160))
    cursor.turn(90.0, -90.0)
    assert (cursor.x, cursor.y) == (0, 360)
    assert cursor.error_to(20.0, 180.0) == pytest.approx((-27.0, 3.0))


@pytest.mark.parametrize("kind", ["inventory", "crafting_table", "furnace"])
def test_the_hand_reaches_every_slot_by_bins_of_the_camera(kind):
    body = AgentBody(HumanLimits(pause_rate=0.0), np.random.default_rng(4))
    body.screen_open = True
    screen, mapper = OpenScreen(body, kind), ActionMapper()
    hits, ticks = 0, 0
    for slot in range(len(LAYOUTS[kind].slots)):
        clicking = screen.right_click(slot)
        while True:
            try:
                keys = dict(next(clicking))
            except StopIteration as end:
                hits += bool(end.value)
                break
            keys["camera"] = body.move_mouse(keys.get("camera", (0.0, 0.0)))
            decoded = mapper.to_env(*mapper.from_env(keys))["camera"]
            body.cursor.turn(*decoded.tolist())
            ticks += 1
    assert hits >= 0.9 * len(LAYOUTS[kind].slots)  # now and then it slips, and knows
    assert ticks / len(LAYOUTS[kind].slots) < 25
