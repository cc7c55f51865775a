"""The use and drop keys.

What the use key does stands in a table, `USES`. A row says what is used, what that does, and when
it is asked, in Minecraft's order:

    MOB        a mob under the crosshair, with the item in hand
    BLOCK      a block under the crosshair by itself, such as a chest; left out for a player who
               sneaks with something in a hand
    ON_BLOCK   the item in hand, on that block
    ITEM       the item in hand, wherever the player looks

The first row that does not pass ends the search. To add a use, write a function like those below,
and a row with a sentence for the documentation. For a block that does something by itself, extend
`blocks.ACTS_WHEN_USED`, too, so that food in hand is not eaten in its stead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from rllib_minestudio.env.voxel.entities.goals import body_height, half_width
from rllib_minestudio.env.voxel.entities.mobs import DROP_DELAY
from rllib_minestudio.env.voxel.game import fire, husbandry, projectiles, screen_handling, spawning
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.placement import (
    DIRECTIONS,
    Cell,
    Click,
    ahead_of,
    beside,
    direction_of,
    opposite,
    other_half,
    placed_blocks,
)
from rllib_minestudio.env.voxel.items.items import EMPTY, FOOD, ITEM_ID, ITEMS, is_block_item
from rllib_minestudio.env.voxel.player import combat
from rllib_minestudio.env.voxel.player.player import (
    SNEAKING_HEIGHT,
    STANDING_HEIGHT,
    USE_DELAY,
    WIDTH,
)
from rllib_minestudio.env.voxel.player.raycast import BLOCK, MOB
from rllib_minestudio.env.voxel.screens.crafting import SCREEN_BLOCKS
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, Box, default_shape
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    FAMILY_OF,
    is_replaceable,
    kind_of,
    properties_of,
    turned_to,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT

# ------- doors, gates and trapdoors, and the levers and buttons that switch them, as in Minecraft 1
# Doors, gates and trapdoors, and the levers and buttons that switch them, as in Minecraft 1.16.5.
# A hand opens what is made of wood. A lever or a pressed button powers its own cell and the block
# that it hangs on, and whatever of these three stands beside either of them opens; there is no
# other redstone here. Nothing is stored but what is open and what is pressed.

OPENING = ("door", "trapdoor", "fence gate")
"""Families of what opens."""
RELEASE = "release"
"""The kind of scheduled tick at which a button comes up again."""
_STONE_BUTTON, _WOODEN_BUTTON = 20, 30
"""Ticks for which a button stays pressed."""


def _family(block: int) -> str:
    return FAMILY_OF[kind_of(block)].name


def opened_by_hand() -> Iterator[int]:
    """Yield the kinds that a hand opens: all that open but for those of iron."""
    for kind, block in enumerate(BLOCKS):
        if FAMILY_OF[kind].name in OPENING and not block.name.startswith("iron"):
            yield kind


def switches() -> Iterator[int]:
    """Yield the kinds of levers and buttons."""
    return (kind for kind, family in enumerate(FAMILY_OF) if family.name == "lever")


def open_or_close(state: GameState, place: Place) -> None:
    """Open what is closed, and close what is open; a gate swings away from the player."""
    block = state.world.block_at(*place)
    properties = properties_of(block)
    opens = properties["open"] == "false"
    if opens and _family(block) == "fence gate":
        ahead = ahead_of(state.player.yaw)
        if properties["facing"] == opposite(ahead):
            block = turned_to(block, facing=ahead)
    state.world.set_blocks(_turned(state, place, block, opens))


def _turned(state: GameState, place: Place, block: int, opens: bool) -> dict[Place, int]:
    """What opens or closes, with the other half of a door, as blocks to put."""
    found = {place: turned_to(block, open="true" if opens else "false")}
    if rest := other_half(place, block):
        other, half = rest
        if state.world.block_at(*other) == half:
            found[other] = turned_to(half, open="true" if opens else "false")
    return found


# ------------------------------------------------------------------------------- levers and buttons


def press(state: GameState, place: Place) -> None:
    """Turn a lever, or press a button, and switch what it powers."""
    block = state.world.block_at(*place)
    kind, is_on = BLOCKS[kind_of(block)], properties_of(block)["powered"] == "true"
    if kind.name == "lever":
        _switch(state, place, not is_on)
    elif not is_on:
        _switch(state, place, True)
        ticks = _STONE_BUTTON if kind.name.endswith("stone_button") else _WOODEN_BUTTON
        state.block_ticks.schedule(RELEASE, place, ticks)


def release(state: GameState, places: Iterator[Place]) -> None:
    """Let pressed buttons come up again."""
    for place in places:
        block = state.world.block_at(*place)
        if _is_on(block) and BLOCKS[kind_of(block)].name != "lever":
            _switch(state, place, False)


def _is_on(block: int) -> bool:
    return _family(block) == "lever" and properties_of(block)["powered"] == "true"


def _switch(state: GameState, place: Place, is_on: bool) -> None:
    world = state.world
    block = turned_to(world.block_at(*place), powered="true" if is_on else "false")
    world.set_block(*place, block)
    changed: dict[Place, int] = {}
    for source in (place, _hung_on(place, block)):
        for near in (beside(source, direction) for direction in DIRECTIONS):
            its = world.block_at(*near)
            if _family(its) in OPENING and near not in changed:
                opens = _is_powered(state, near, its)
                if opens != (properties_of(its)["open"] == "true"):
                    changed |= _turned(state, near, its, opens)
    world.set_blocks(changed)


def _hung_on(place: Place, block: int) -> Place:
    """The cell of the block that a lever or button hangs on."""
    properties = properties_of(block)
    towards = {"floor": "down", "ceiling": "up"}.get(properties["face"])
    return beside(place, towards or opposite(properties["facing"]))


def _is_powered(state: GameState, place: Place, block: int) -> bool:
    """Whether a lever or button that is on powers one of the cells of a door, gate or trapdoor."""
    cells = [place]
    if rest := other_half(place, block):
        cells.append(rest[0])
    return any(_reaches(state, cell) for cell in cells)


def _reaches(state: GameState, cell: Place) -> bool:
    """Whether a switch that is on is beside a cell, or hangs on a block beside it."""
    for near in (beside(cell, direction) for direction in DIRECTIONS):
        if _is_on(state.world.block_at(*near)):
            return True
        for far in (beside(near, direction) for direction in DIRECTIONS):
            block = state.world.block_at(*far)
            if _is_on(block) and _hung_on(far, block) == near:
                return True
    return False


# ---------------------------------------------------------------------------- the use and drop keys

_PUMPKIN, _CARVED_PUMPKIN = BLOCK_ID["pumpkin"], BLOCK_ID["carved_pumpkin"]
_PUMPKIN_SEEDS, _SEEDS = ITEM_ID["pumpkin_seeds"], 4

# ------------------------------------------------------------------------------ a row of the table


class Stage(Enum):
    """When a row is asked, in this order; see above."""

    MOB = "a mob under the crosshair"
    BLOCK = "a block under the crosshair"
    ON_BLOCK = "the item in hand, on a block"
    ITEM = "the item in hand"


class UseResult(Enum):
    """What came of a use."""

    PASSED = "nothing; the next row may act"
    FAILED = "nothing, and nothing else is tried"
    USED = "something, and the arm swings"
    HELD = "something that the player's own tick does while the key is held"


class Use(NamedTuple):
    """A row of the table.

    Attributes:
        stage: When it is asked.
        of: What it applies to: in `BLOCK` kinds of blocks; in `ON_BLOCK` and `ITEM` ids of items in
            hand; in `MOB` pairs of an index in `MOB_KINDS` and an item id.
        act: Does it. Receives the game, and the target of the crosshair, a `TARGET_DTYPE` record.
        sentence: What it does, for the documentation.
    """

    stage: Stage
    of: Collection[int] | Collection[tuple[int, int]]
    act: Callable[[GameState, np.void], UseResult]
    sentence: str


class Uses:
    """The rows of a table, by what they apply to.

    Attributes:
        rows: The rows.
    """

    def __init__(self, rows: tuple[Use, ...]) -> None:
        self.rows = rows
        self._found: dict[tuple[Stage, int | tuple[int, int]], Use] = {
            (row.stage, thing): row for row in rows for thing in row.of
        }

    def use(self, state: GameState, sneaks: bool) -> UseResult:
        """Use what the player looks at, or has in hand.

        Args:
            state: The game.
            sneaks: Whether the sneak key was held in the last tick.
        """
        target = state.target[0]
        for key in _asked(state, target, sneaks):
            row = self._found.get(key)
            if row is None:
                continue
            outcome = row.act(state, target)
            if outcome is not UseResult.PASSED:
                return outcome
        return UseResult.PASSED


def _asked(
    state: GameState, target: np.void, sneaks: bool
) -> Iterator[tuple[Stage, int | tuple[int, int]]]:
    """Yield what is asked for, in Minecraft's order: the stage, and what is used in it."""
    item = state.player.held_item
    if target["kind"] == MOB:
        mob = state.mobs.records[target["mob"]]
        if not mob["death_ticks"]:
            yield Stage.MOB, (int(mob["kind"]), item)
    elif target["kind"] == BLOCK:
        if not sneaks or state.player.has_empty_hands:
            yield Stage.BLOCK, state.world.kind_at(*_place(target))
        yield Stage.ON_BLOCK, item
    yield Stage.ITEM, item


def _place(target: np.void) -> tuple[int, int, int]:
    return int(target["x"]), int(target["y"]), int(target["z"])


# ------------------------------------------------------------------------------------ what rows do


def _open_screen(state: GameState, target: np.void) -> UseResult:
    screen_handling.open_block(state, _place(target))
    return UseResult.USED


def _open_or_close(state: GameState, target: np.void) -> UseResult:
    open_or_close(state, _place(target))
    return UseResult.USED


def _press(state: GameState, target: np.void) -> UseResult:
    press(state, _place(target))
    return UseResult.USED


def _tie(state: GameState, target: np.void) -> UseResult:
    return UseResult.USED if husbandry.tie(state, _place(target)) else UseResult.PASSED


def _strike(state: GameState, target: np.void) -> UseResult:
    """Set the place before the face that is clicked on fire."""
    x, y, z = target["face"].tolist()
    if not (x or y or z):
        return UseResult.FAILED
    place = beside(_place(target), direction_of((x, y, z)))
    if not fire.ignite(state, place):
        return UseResult.FAILED
    state.count_use()
    if state.player.held_item == fire.FIRE_CHARGE:
        state.use_up()
    else:
        state.wear_tool(1)
    return UseResult.USED


def _lie_down(state: GameState, target: np.void) -> UseResult:
    spawning.lie_down(state, _place(target))
    return UseResult.USED


def place_block(state: GameState, target: np.void) -> UseResult:
    """Place the block in hand by the rules of `placement`, if there is room for all its parts."""
    if not target["face"].any():  # the eyes are inside the block
        return UseResult.FAILED
    player = state.player
    item = player.held_item
    click = Click(
        cell=_place(target),
        face=tuple(target["face"].tolist()),
        hit=tuple(target["hit"].tolist()),
        yaw=player.yaw,
        pitch=player.pitch,
    )
    placed = placed_blocks(item, click, state.world.block_at)
    if not placed or not all(_is_free(state, *put) for put in placed.items()):
        return UseResult.FAILED
    state.world.set_blocks(placed)
    state.count_use()
    state.use_up()
    for place in placed:
        husbandry.come_to_life(state, place)
    return UseResult.USED


def _on_mob(act: Callable[[GameState, np.void], bool]) -> Callable[[GameState, np.void], UseResult]:
    """Turn what is done with a mob's record into a row's act, which passes if it is not done."""

    def on_mob(state: GameState, target: np.void) -> UseResult:
        done = act(state, state.mobs.records[target["mob"]])
        return UseResult.USED if done else UseResult.PASSED

    return on_mob


def _carve(state: GameState, target: np.void) -> UseResult:
    """Carve a face into the side of a pumpkin that is clicked, or that the player stands before."""
    place = _place(target)
    if state.world.kind_at(*place) != _PUMPKIN or state.player.sneaking:
        return UseResult.PASSED
    x, y, z = target["face"].tolist()
    facing = direction_of((x, y, z)) if x or z else opposite(ahead_of(state.player.yaw))
    state.world.set_block(*place, turned_to(_CARVED_PUMPKIN, facing=facing))
    x, _, z = beside((0, 0, 0), facing)
    at = (place[0] + 0.5 + 0.65 * x, place[1] + 0.1, place[2] + 0.5 + 0.65 * z)
    state.scatter_item(_PUMPKIN_SEEDS, _SEEDS, at, DROP_DELAY)
    state.count_use()
    state.wear_tool(1)
    husbandry.come_to_life(state, place)
    return UseResult.USED


def _throw(state: GameState, target: np.void) -> UseResult:
    projectiles.throw(state)
    state.count_use()
    state.use_up()
    return UseResult.USED


def _eat(state: GameState, target: np.void) -> UseResult:
    """Leave it to `locomotion.begin_meal`, which eats, or draws a bow, while the key is held."""
    return UseResult.HELD


USES = Uses(
    (
        Use(
            Stage.MOB,
            ((husbandry.SHEEP, husbandry.SHEARS),),
            _on_mob(husbandry.shear),
            "Shears take a grown-up sheep's wool, one to three of its colour; it grows again when "
            "the sheep eats grass.",
        ),
        Use(
            Stage.MOB,
            tuple((husbandry.SHEEP, item) for item in husbandry.DYE_ITEMS),
            _on_mob(husbandry.dye),
            "A dye gives a sheep's wool its colour.",
        ),
        Use(
            Stage.MOB,
            ((husbandry.COW, husbandry.BUCKET),),
            _on_mob(husbandry.milk),
            "A bucket is filled with a grown-up cow's milk.",
        ),
        Use(
            Stage.MOB,
            tuple(husbandry.fed_with()),
            _on_mob(husbandry.feed_animal),
            "Food that an animal likes makes two of a kind have young, and young ones grow: wheat "
            "for cows and sheep, carrots, potatoes and beetroots for pigs, seeds for chickens.",
        ),
        Use(
            Stage.MOB,
            husbandry.animals(husbandry.LEAD),
            _on_mob(husbandry.take_or_let_go),
            "A lead is put on an animal, or taken off it.",
        ),
        Use(
            Stage.MOB,
            husbandry.animals(EMPTY),
            _on_mob(husbandry.let_go),
            "An empty hand takes an animal off the lead.",
        ),
        Use(
            Stage.ON_BLOCK,
            (fire.FLINT_AND_STEEL, fire.FIRE_CHARGE),
            _strike,
            "Flint and steel, or a fire charge, sets the place before a block's side on fire, or "
            "fills a frame of obsidian with a portal; behind it, there is nothing.",
        ),
        Use(
            Stage.ON_BLOCK,
            (husbandry.LEAD,),
            _tie,
            "A lead ties the animals that the player leads to a fence, and unties them again.",
        ),
        Use(
            Stage.BLOCK,
            SCREEN_BLOCKS,
            _open_screen,
            "A crafting table, a furnace or a chest opens its screen; a chest that has an opaque "
            "cube on it stays shut.",
        ),
        Use(
            Stage.BLOCK,
            tuple(opened_by_hand()),
            _open_or_close,
            "A wooden door, gate or trapdoor opens or closes; a gate swings away from the player.",
        ),
        Use(
            Stage.BLOCK,
            tuple(switches()),
            _press,
            "A lever is turned, a button pressed for a second or more; what opens opens beside it, "
            "and beside the block that it hangs on. There is no other redstone.",
        ),
        Use(
            Stage.BLOCK,
            spawning.beds(),
            _lie_down,
            "A bed becomes the spawn point; at night, the player sleeps in it until morning.",
        ),
        Use(
            Stage.ON_BLOCK,
            tuple(filter(is_block_item, ITEMS)),
            place_block,
            "A block is placed against the face under the crosshair, if nobody is in the way and "
            "it has the support that it needs.",
        ),
        Use(
            Stage.ON_BLOCK,
            (husbandry.SHEARS,),
            _carve,
            "Shears carve a face into a pumpkin, which leaves four seeds.",
        ),
        Use(
            Stage.ITEM,
            projectiles.BY_HAND,
            _throw,
            "A snowball, an egg, a splash potion or a bottle of experience is thrown. Snowballs "
            "and eggs push animals away, and one egg in eight hatches; a splash potion acts within "
            "four blocks, the less the farther away; a bottle gives 3 to 11 points.",
        ),
        Use(
            Stage.ITEM,
            (projectiles.BOW,),
            _eat,
            "A bow with an arrow is drawn while the key is held, fully in a second; let go, it "
            "shoots.",
        ),
        Use(Stage.ITEM, FOOD, _eat, "Food is eaten, and milk drunk, while the key is held."),
    )
)
"""What the use key does."""


# -------------------------------------------------------------------------------------- the keys


def use_item(state: GameState, sneaks: bool) -> None:
    """Use what the player looks at, or has in hand; nothing while a block is being mined.

    Args:
        state: The game.
        sneaks: Whether the sneak key was held in the last tick.
    """
    player = state.player
    if player.records["is_mining"][0]:
        return
    outcome = USES.use(state, sneaks)
    if outcome is UseResult.HELD:
        return
    player.records["use_delay"] = USE_DELAY
    if outcome is UseResult.USED:
        combat.swing(player.records[0])


def drop_held_item(state: GameState) -> None:
    """Throw one item of the stack in hand forward."""
    player = state.player
    stack = player.inventory.take(player.selected)
    if stack.item == EMPTY:
        return
    state.throw_item(stack)
    state.statistics.add("custom", "drop")
    combat.swing(player.records[0])


# ------------------------------------------------------------------------- what several rules need


def is_vacant(state: GameState, cell: Cell, block: int) -> bool:
    """Whether a block can be put into `cell`: it is loaded, replaceable, and free of bodies."""
    return _is_free(state, cell, block) and is_replaceable(state.world.block_at(*cell))


def _is_free(state: GameState, cell: Cell, block: int) -> bool:
    """Whether `cell` is loaded, within the world, and free of bodies where a block has its own."""
    x, y, z = cell
    if not (0 <= y < HEIGHT and state.world.is_loaded(x, z)):
        return False
    player = state.player
    bodies = [
        (player.position.tolist(), WIDTH, SNEAKING_HEIGHT if player.sneaking else STANDING_HEIGHT),
        *(
            (mob["position"].tolist(), 2.0 * half_width(mob), body_height(mob))
            for mob in state.mobs.records[: state.mobs.count]
        ),
    ]
    boxes = SHAPES[default_shape(block)].body
    return not any(_touches(*body, cell, box) for body in bodies for box in boxes)


def _touches(position: list[float], width: float, height: float, cell: Cell, box: Box) -> bool:
    """Whether a body with its feet at `position` overlaps a box of a block."""
    low = position[0] - width / 2, position[1], position[2] - width / 2
    high = position[0] + width / 2, position[1] + height, position[2] + width / 2
    return all(
        at + box[axis] < high[axis] and at + box[axis + 3] > low[axis]
        for axis, at in enumerate(cell)
    )
