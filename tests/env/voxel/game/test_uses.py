"""The table of uses: Minecraft's order, what ends it, and what agrees with it."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import MOB_KIND_ID
from rllib_minestudio.env.voxel.game.use_and_drop import USES, Stage, Use, UseResult, Uses
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.player.player import USE_DELAY
from rllib_minestudio.env.voxel.world.blocks import ACTS_WHEN_USED, BLOCK_ID
from tests.env.voxel.arena import FLOOR, arena, state

SHEARS, STONE = ITEM_ID["shears"], BLOCK_ID["stone"]


@pytest.fixture(scope="module")
def stage():
    return arena()


def asked(engine, sneaks=False, **outcomes):
    """The stages that are asked of shears, a sheep and stone; each passes unless given."""
    found = []

    def row(stage, thing):
        def act(game, target):
            found.append(stage.name)
            return outcomes.get(stage.name, UseResult.PASSED)

        return Use(stage, (thing,), act, "It is written down.")

    things = ((MOB_KIND_ID["sheep"], SHEARS), STONE, SHEARS, SHEARS)
    uses = Uses(tuple(row(stage, thing) for stage, thing in zip(Stage, things, strict=True)))
    return found, uses.use(state(engine), sneaks)


def look_at(engine, *, sheep=False, stone=False, item="shears"):
    game = state(engine)
    game.mobs.clear()
    game.world.set_block(0, FLOOR + 1, 2, STONE if stone else 0)
    engine.player.inventory.clear()
    if item:
        engine.player.inventory.set(0, ITEM_ID[item], 1)
    if sheep:
        game.spawn_mob(MOB_KIND_ID["sheep"], 0.5, float(FLOOR), 2.0)
    engine.player.pitch = 15.0 if sheep else 0.0
    engine.tick({})


def test_the_order_is_minecrafts(stage):
    look_at(stage, stone=True)
    assert asked(stage) == (["BLOCK", "ON_BLOCK", "ITEM"], UseResult.PASSED)
    assert asked(stage, sneaks=True) == (["ON_BLOCK", "ITEM"], UseResult.PASSED)
    look_at(stage, stone=True, item=None)
    assert asked(stage, sneaks=True) == (["BLOCK"], UseResult.PASSED)
    look_at(stage, sheep=True)
    assert asked(stage) == (["MOB", "ITEM"], UseResult.PASSED)
    look_at(stage)
    assert asked(stage) == (["ITEM"], UseResult.PASSED)


@pytest.mark.parametrize("outcome", [UseResult.USED, UseResult.FAILED, UseResult.HELD])
def test_a_row_that_does_not_pass_ends_the_search(stage, outcome):
    look_at(stage, stone=True)
    assert asked(stage, BLOCK=outcome) == (["BLOCK"], outcome)
    assert asked(stage, ON_BLOCK=outcome) == (["BLOCK", "ON_BLOCK"], outcome)
    look_at(stage, sheep=True)
    assert asked(stage, MOB=outcome) == (["MOB"], outcome)


def test_a_dying_mob_cannot_be_used(stage):
    look_at(stage, sheep=True)
    state(stage).mobs.records["death_ticks"][0] = 1
    assert asked(stage)[0] == ["ITEM"]


def test_a_block_that_cannot_be_placed_swings_no_arm_but_delays_the_next_use(stage):
    look_at(stage, stone=True, item="dirt")
    state(stage).spawn_mob(MOB_KIND_ID["pig"], 0.5, FLOOR + 1.0, 1.5)
    stage.player.pitch = 0.0
    record = stage.player.records
    # The pig is above the line of sight, with its feet in the place.
    state(stage).mobs.position[0, 1] = FLOOR + 1.7
    stage.tick({"use": 1})
    assert record["use_delay"][0] == USE_DELAY and record["swing_ticks"][0] == 0
    assert stage.player.inventory[0].quantity == 1
    state(stage).mobs.clear()
    for _ in range(USE_DELAY):
        assert stage.player.inventory[0].quantity == 1
        stage.tick({"use": 1})
    assert stage.player.inventory[0].quantity == 0 and record["swing_ticks"][0] > 0


def test_blocks_with_a_use_of_their_own_keep_food_from_being_eaten():
    by_themselves = {block for row in USES.rows if row.stage is Stage.BLOCK for block in row.of}
    assert by_themselves == set(np.flatnonzero(ACTS_WHEN_USED).tolist())


def test_every_row_has_a_sentence():
    for row in USES.rows:
        assert row.of and row.sentence.endswith("."), row
