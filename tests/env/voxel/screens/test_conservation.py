"""Whatever is clicked, dragged and swapped: no item is lost, none appears, no stack is overfull."""

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_minestudio.env.voxel.items.items import EMPTY, ITEMS
from rllib_minestudio.env.voxel.screens.crafting import REMAINDERS, craft
from tests.env.voxel.screens.table import OUTSIDE, Table, stack

STACKS = [
    *("", "", "", "oak_log 3", "oak_log 64", "oak_planks 2", "oak_planks 7", "oak_planks 63"),
    *("stick 1", "stick 64", "cobblestone 9", "coal 5", "iron_ore 3", "egg 16", "egg 5", "bow"),
    *("bow 1 100", "bucket 16", "bucket 2", "milk_bucket", "lava_bucket", "iron_helmet"),
    *("carved_pumpkin 5", "shield", "iron_pickaxe 1 30", "iron_pickaxe", "sugar 4", "wheat 7"),
]
ACTIONS = st.tuples(
    st.sampled_from(["click", "click", "press", "release", "move", "key", "twice", "tick"]),
    st.integers(0, 64),
    st.booleans(),
    st.booleans(),
    st.integers(0, 8),
)
MOST_CRAFTED = 300


def total(table):
    """How many there are of each item and wear: in slots, carried, and thrown."""
    stacks = [slot.stack for slot in table.screen.menu.slots[first(table) :]]
    counted: Counter = Counter()
    for what in (*stacks, table.screen.menu.carried, *table.player.thrown):
        if what.item != EMPTY:
            counted[what.item, what.data] += what.quantity
    return counted


def first(table):
    """Index of the first slot whose contents exist: results are only promised."""
    return 1 if table.kind in ("inventory", "crafting_table") else 0


def grid(table):
    layout = table.layout
    if table.kind not in ("inventory", "crafting_table"):
        return []
    return [table.screen.menu.slots[index].stack for index in layout.group("craft")]


def crafted(cells):
    """What crafting once, twice, ... with a grid changes of the totals."""
    width = int(len(cells) ** 0.5)
    change: Counter = Counter()
    for _ in range(MOST_CRAFTED):
        result = craft(cells, width)
        if result.item == EMPTY:
            return
        change[result.item, result.data] += result.quantity
        for index, cell in enumerate(cells):
            if cell.item != EMPTY:
                change[cell.item, cell.data] -= 1
                left = cell.quantity - 1
                cells[index] = cell._replace(quantity=left) if left else stack("")
                if cell.item in REMAINDERS:
                    change[REMAINDERS[cell.item], 0] += 1
                    cells[index] = stack("bucket 1")
        yield change


def same(one, other):
    return {key: n for key, n in one.items() if n} == {key: n for key, n in other.items() if n}


def perform(table, action):
    kind, where, sneak, right, number = action
    slots = table.layout.slots
    place = slots[where % (len(slots) + 2)] if where % (len(slots) + 2) < len(slots) else None
    target = (place.x + 8, place.y + 8) if place else ((236, 100), OUTSIDE)[where % 2]
    if kind == "tick":
        table.wait(1)
    elif kind == "key":
        table.key(target, number + 1)
    elif kind in ("press", "release"):
        getattr(table, kind)(int(right), sneak)
    else:
        table.go(target)
        for _ in range({"move": 0, "click": 1, "twice": 2}[kind]):
            table.press(int(right), sneak)
            table.release(int(right), sneak)


def check_stacks(table):
    for slot in table.screen.menu.slots:
        what = slot.stack
        assert (what.item == EMPTY) == (what.quantity == 0)
        if what.item != EMPTY:
            assert 0 < what.quantity <= slot.limit(what), what
    carried = table.screen.menu.carried
    assert (carried.item == EMPTY) == (carried.quantity == 0)
    assert carried.item == EMPTY or carried.quantity <= ITEMS[carried.item].max_stack


@pytest.mark.parametrize("kind", ["inventory", "crafting_table", "furnace", "chest"])
@settings(max_examples=int(os.environ.get("CLICK_EXAMPLES", "25")), deadline=None, derandomize=True)
@given(contents=st.integers(0, 2**32), actions=st.lists(ACTIONS, min_size=10, max_size=50))
def test_items_are_conserved(kind, contents, actions):
    table, random = Table(kind), Random(contents)
    groups = [place.group for place in table.layout.slots]
    for slot, group in zip(table.screen.menu.slots, groups, strict=True):
        what = stack(random.choice(STACKS))
        if group != "output" and (what.item == EMPTY or slot.accepts(what)):
            slot.put(
                what._replace(quantity=min(what.quantity, slot.limit(what) if what.item else 0))
            )
    for action in actions:
        before, cells = total(table), grid(table)
        perform(table, action)
        after = total(table)
        if not same(before, after):
            changes = (_add(before, change) for change in crafted(cells))
            assert any(same(expected, after) for expected in changes), action
        check_stacks(table)
    before = total(table)
    table.screen.menu.close(alive=True)
    assert same(before, total(table))
    assert table.carried == "" and not any(cell.item for cell in grid(table))


def _add(one, change):
    summed = Counter(one)
    for key, n in change.items():
        summed[key] += n
    return summed
