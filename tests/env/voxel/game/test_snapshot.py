"""A restored game has the future of the one that was saved: to the last bit, in any process."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game import snapshot as snapshots
from rllib_minestudio.errors import SnapshotError
from tests.processes import run_python

COMMANDS = (
    "/summon cow ~2 ~ ~2",
    "/summon sheep ~-3 ~ ~1",
    "/give @s stone_pickaxe",
    "/give @s oak_planks 7",
    "/setblock ~ ~ ~2 furnace",
    "/setblock ~1 ~ ~2 crafting_table",
    "/setblock ~-1 ~ ~2 chest",
    "/fill ~3 ~4 ~3 ~5 ~6 ~5 sand",
    "/fill ~-6 ~-1 ~-6 ~-3 ~1 ~-3 air",
    "/setblock ~2 ~1 ~-1 glowstone",
    "/effect give @s haste 20 1",
    "/time set 13000",
    "/tp @s ~40 ~2 ~-25",
    "/kill @e[type=cow]",
)
KEYS = (
    *("forward", "back", "left", "right", "jump", "sneak", "sprint", "attack", "use", "inventory"),
    *(f"hotbar.{slot}" for slot in range(1, 10)),
)


def actions(seed, ticks):
    """Keys that are held for a while, turns of the head, and commands now and then."""
    rng = random.Random(seed)
    held = set()
    for _ in range(ticks):
        for key in KEYS:
            often = 0.02 if key in ("inventory", "sneak") or "hotbar" in key else 0.1
            if rng.random() < often:
                held ^= {key}
        camera = (rng.gauss(0, 12), rng.gauss(0, 12)) if rng.random() < 0.5 else (0.0, 0.0)
        command = rng.choice(COMMANDS) if rng.random() < 0.04 else None
        yield {**dict.fromkeys(held, 1), "camera": np.array(camera)}, command


def play(engine, seed, ticks):
    for action, command in actions(seed, ticks):
        if command is not None:
            engine.execute(command)
        engine.tick(action)


def begun(seed, ticks):
    """A game in which something is going on."""
    engine = VoxelEngine(frame_size=(48, 27))
    engine.reset(seed, natural_animals=True)
    inventory = engine.player.inventory
    for slot, (item, quantity) in enumerate(ITEMS):
        inventory.set(slot, item, quantity)
    play(engine, seed, ticks)
    return engine


def item(name):
    from rllib_minestudio.env.voxel.items.items import ITEM_ID

    return ITEM_ID[name]


ITEMS = [
    (item(name), quantity)
    for name, quantity in (
        *(("iron_axe", 1), ("furnace", 2), ("chest", 2), ("sand", 30), ("oak_log", 20)),
        *(("coal", 9), ("porkchop", 5), ("crafting_table", 1), ("torch", 8)),
    )
]


@pytest.mark.parametrize("seed", range(4))
def test_a_restored_game_has_the_same_future(seed):
    engine = begun(seed, 150)
    other = VoxelEngine(frame_size=(48, 27))
    other.reset(99)
    play(other, 99, 20)
    saved = engine.snapshot()
    other.restore(saved)
    assert other.snapshot() == saved
    np.testing.assert_array_equal(other.render(), engine.render())
    for part in range(4):
        play(engine, 100 * seed + part, 60)
        play(other, 100 * seed + part, 60)
        assert other.snapshot() == engine.snapshot(), f"{60 * (part + 1)} ticks later"
        assert other.info() == engine.info()
        np.testing.assert_array_equal(other.render(), engine.render())


@pytest.mark.sweep
def test_thousands_of_ticks_after_a_restore_are_the_same(turn):
    """Screens open, furnaces burn and animals die in between."""
    seen = Counter()
    for seed in range(100, 132)[turn]:
        engine = begun(seed, 400)
        other = VoxelEngine(frame_size=(48, 27))
        for part in range(8):
            other.restore(engine.snapshot())
            play(engine, seed * 8 + part, 400)
            play(other, seed * 8 + part, 400)
            assert other.snapshot() == engine.snapshot(), (seed, part)
            state = engine._game.state
            seen["screens"] += state.screen is not None
            seen["containers"] += len(state.block_entities)
            seen["deaths"] += int((state.mobs.death_ticks > 0).sum())
    assert seen["screens"] and seen["containers"]


ELSEWHERE = """
import sys
from pathlib import Path
from rllib_minestudio.env.voxel.engine import VoxelEngine
from tests.env.voxel.game.test_snapshot import play
engine = VoxelEngine(frame_size=(48, 27))
engine.restore(Path(sys.argv[1]).read_bytes())
play(engine, 5, 100)
Path(sys.argv[2]).write_bytes(engine.snapshot())
"""


def test_it_has_that_future_in_another_process_as_well(tmp_path):
    engine = begun(5, 200)
    (tmp_path / "before").write_bytes(engine.snapshot())
    play(engine, 5, 100)
    status, printed = run_python("-c", ELSEWHERE, tmp_path / "before", tmp_path / "after")
    assert status == 0, printed
    assert (tmp_path / "after").read_bytes() == engine.snapshot()


def test_a_snapshot_is_some_kilobytes():
    assert len(begun(1, 100).snapshot()) < 20_000


@pytest.fixture(scope="module")
def game():
    """An engine, and a snapshot of its game."""
    engine = begun(3, 120)
    return engine, engine.snapshot()


def test_a_damaged_snapshot_is_refused_and_the_game_goes_on(game):
    engine, saved = game
    rng = random.Random(0)
    for _ in range(50):
        place = rng.randrange(len(saved))
        flipped = bytearray(saved)
        flipped[place] ^= 1 << rng.randrange(8)
        with pytest.raises(SnapshotError, match=r"damaged|another version"):
            engine.restore(bytes(flipped))
    for part in (b"", saved[:30], saved[:-1]):
        with pytest.raises(SnapshotError):
            engine.restore(part)
    assert engine.snapshot() == saved


def forged(saved, change):
    """A snapshot whose contents were changed by somebody who knows the format."""
    facts = json.loads(snapshots.contents(saved))
    change(facts)
    return snapshots.packed(json.dumps(facts).encode())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.update(rules_revision=99), r"rules of revision 99; here it is"),
        (lambda f: f.update(tables="00"), r"tables of blocks, items and animals .* 00; here"),
        (lambda f: f["player"]["record"].update(held_item=10**6), r"held_item must be"),
        (lambda f: f["player"]["inventory"].__setitem__(0, [1023, 1, 0]), r"no item 1023"),
        (lambda f: f["world"].update(centre=[0, 10**12]), r"centre"),
        (lambda f: f.update(random=0), r"random must be"),
        (
            lambda f: f["world"]["edits"].append({"chunk": [0, 0], "places": [4, 3], "blocks": []}),
            r"must ascend",
        ),
        (
            lambda f: f["world"]["edits"].append(
                {"chunk": [9, 9], "places": [3], "blocks": [1023]}
            ),
            r"there is no block 1023",
        ),
        (  # stone has one state only
            lambda f: f["world"]["edits"].append(
                {"chunk": [9, 9], "places": [3], "blocks": [63 << 10 | 1]}
            ),
            r"there is no block 64513",
        ),
        (lambda f: f["player"]["record"].update(mining_y=10**6), r"mining_y must be"),
        (lambda f: f["target"].update(y=-1), r"target.y must be"),
        (
            lambda f: f["containers"].append(
                {"place": [0, 0, 0], "block": 1, "stacks": [], "furnace": None}
            ),
            r"the block at \(0, 0, 0\) has no such container",
        ),
        (lambda f: f.update(surplus=1), r"surplus"),
    ],
)
def test_what_a_forged_snapshot_holds_is_checked(game, change, message):
    engine, saved = game
    with pytest.raises(SnapshotError, match=message):
        engine.restore(forged(saved, change))
    assert engine.snapshot() == saved


def test_a_bomb_is_not_unpacked(game, monkeypatch):
    engine, _ = game
    monkeypatch.setattr(snapshots, "LARGEST", 10**6)
    with pytest.raises(SnapshotError, match="at most 1,000,000 bytes"):
        engine.restore(snapshots.packed(b" " * 10**7))
