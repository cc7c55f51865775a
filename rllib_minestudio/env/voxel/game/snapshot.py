"""A game as bytes, from which any process goes on as the game itself would.

Land follows from its seed and from what was changed in it, so that a snapshot holds the changes
alone, with the records of player, animals, items and containers: some kilobytes.

A snapshot is data. It begins with a line that names its version, and a digest of the rest, which
is JSON, compressed. Every field has a type and bounds, since kernels read numbers unchecked. What
was saved with other blocks, items, animals or rules is refused: its numbers would mean others.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from functools import cache
from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError, create_model

from rllib_minestudio.env.voxel import RULES
from rllib_minestudio.env.voxel.data import DIFFICULTIES
from rllib_minestudio.env.voxel.entities.goals import GOAL_CODE
from rllib_minestudio.env.voxel.entities.herds import AWAY_CAPACITY, MOST_CHUNKS
from rllib_minestudio.env.voxel.entities.particles import PARTICLE_CAPACITY, PARTICLE_DTYPE
from rllib_minestudio.env.voxel.entities.records import (
    COATS,
    FALLING_CAPACITY,
    FALLING_DTYPE,
    ITEM_CAPACITY,
    ITEM_DTYPE,
    MOB_CAPACITY,
    MOB_DTYPE,
    MOB_KINDS,
    THROWN_CAPACITY,
    THROWN_DTYPE,
    TIED,
    UNTIED,
    Records,
)
from rllib_minestudio.env.voxel.game.game import BLOCK_TICKS
from rllib_minestudio.env.voxel.game.game_state import GAME_RULES, GameState
from rllib_minestudio.env.voxel.game.projectiles import THROWN
from rllib_minestudio.env.voxel.game.screen_handling import open_again, prepare_inventory
from rllib_minestudio.env.voxel.game.statistics import STATISTICS
from rllib_minestudio.env.voxel.items.items import (
    EMPTY,
    HOTBAR_SLOTS,
    ITEMS,
    LARGEST_DATA,
    SLOTS,
    ItemStack,
    level_of,
    mining_speeds,
    mining_ticks,
)
from rllib_minestudio.env.voxel.player.player import EFFECTS, PLAYER_DTYPE, Player
from rllib_minestudio.env.voxel.player.raycast import TARGET_DTYPE
from rllib_minestudio.env.voxel.screens.crafting import CHEST_SIZE, Furnace, Smelting
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS, WINDOW
from rllib_minestudio.env.voxel.screens.screen import ClickMemory, Screen
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, Shape, states_of
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT
from rllib_minestudio.errors import SnapshotError
from rllib_minestudio.foundation.documents import (
    Count,
    Document,
    MappingOf,
    Name,
    Seed,
    Share,
    first_problem,
    one_of,
)

_BLOCKS = frozenset(
    block
    for kind, its in enumerate(BLOCKS)
    if its.shape is not Shape.REFUSED
    for block in states_of(kind)
)
"""All blocks that a game may have: kernels read tables with them, unchecked."""

VERSION = 1
"""Of the format; other ones are not read."""
_MAGIC = f"rllib_minestudio game {VERSION}\n".encode()
_DIGEST_SIZE = hashlib.sha256().digest_size
LARGEST = 256 * 1024**2
"""Limit on the bytes of the JSON: all 32,768 blocks of each of a thousand chunks fit."""

# ----------------------------------------------------------------------------------- what it holds

_FARTHEST = 2**31 - 1
_Number = Annotated[float, Field(ge=-1e6, le=1e6)]
_Distance = Annotated[float, Field(ge=0, le=1e12)]
_At = Annotated[float, Field(ge=-3e7, le=3e7)]
"""A coordinate: Minecraft's world ends there."""
_Speed = Annotated[float, Field(ge=-1e3, le=1e3)]
"""Blocks per tick: movement goes through every block on its way."""
_Integer = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
_Flag = Annotated[int, Field(ge=0, le=1)]
_Kind = Annotated[int, Field(ge=0, le=len(MOB_KINDS) - 1)]
_ItemId = Annotated[int, Field(ge=0, le=max(ITEMS))]
_Block = Annotated[int, Field(ge=0, le=2**16 - 1)]
_Goal = Annotated[int, Field(ge=0, le=max(GOAL_CODE.values()))]
_Coordinate = Annotated[int, Field(ge=-_FARTHEST, le=_FARTHEST)]
_Place = Annotated[tuple[_Coordinate, _Coordinate, _Coordinate], Field(strict=False)]
_ChunkAt = Annotated[tuple[_Coordinate, _Coordinate], Field(strict=False)]
_Layer = Annotated[int, Field(ge=0, le=HEIGHT - 1)]
_Quantity = Annotated[int, Field(ge=0, le=2**15)]
_Data = Annotated[int, Field(ge=0, le=LARGEST_DATA)]
_Stack = Annotated[tuple[_ItemId, _Quantity, _Data], Field(strict=False)]
_Level = Annotated[int, Field(ge=0, le=256)]
_Effect = Annotated[tuple[_Level, Count], Field(strict=False)]
_Smelted = Annotated[tuple[_ItemId, _Number, Count, Count], Field(strict=False)]
_Cursor = Annotated[
    tuple[Annotated[float, Field(ge=0, le=WINDOW[0])], Annotated[float, Field(ge=0, le=WINDOW[1])]],
    Field(strict=False),
]
_Slot = Annotated[int, Field(ge=0, le=100)]
_HotbarSlot = Annotated[int, Field(ge=0, le=HOTBAR_SLOTS - 1)]
_Button = Annotated[int, Field(ge=0, le=1)]
_Keys = Annotated[int, Field(ge=0, le=2**16 - 1)]

_BOUNDED: dict[str, Any] = {
    "kind": _Kind,
    "item": _ItemId,
    "held_item": _ItemId,
    "hand_item": _ItemId,
    "block": _Block,
    "goal": _Goal,
    "fireproof": _Flag,
    "invisible": _Flag,
    **dict.fromkeys(("is_clear", "is_critical", "is_lost"), _Flag),
    **dict.fromkeys(("punch", "flame"), Annotated[int, Field(ge=0, le=7)]),
    "data": _Data,
    "effect_ticks": Annotated[int, Field(ge=0, le=2**31 - 1)],
    "effect_levels": _Level,
    "leash": Annotated[int, Field(ge=UNTIED, le=TIED)],
    "knot": _Coordinate,
    "coat": Annotated[int, Field(ge=0, le=COATS - 1)],
    **dict.fromkeys(("position", "seen", "goal_x", "goal_z"), _At),
    **dict.fromkeys(("velocity", "speed"), _Speed),
    **dict.fromkeys(("walked", "sprinted", "crept"), _Distance),
    "mining_y": _Layer,
    **dict.fromkeys(("bob", "hand_drop", "swing", "hold"), Share),
    **dict.fromkeys(("bob_seen", "hand_drop_seen", "swing_seen"), Share),
    **dict.fromkeys(("fov_gain", "fov_gain_seen"), Annotated[float, Field(ge=-0.9, le=10)]),
}
"""Fields of records with bounds of their own: kernels read tables with them, or loop over them."""
_DERIVED = ("mining_speed", "mining_ticks")
"""Fields of the player's record that follow from the item in hand and the effects."""


def _model(name: str, dtype: np.dtype[np.void], **bounded: Any) -> type[Document]:
    """Return the model of a record; its fields are the record's."""
    fields: dict[str, Any] = {}
    assert dtype.fields is not None
    for field, (kind, *_) in dtype.fields.items():
        if field in _DERIVED:
            continue
        of_one = (_BOUNDED | bounded).get(field) or (_Number if kind.base.kind == "f" else _Integer)
        size = kind.shape[0] if kind.shape else 0
        several = Annotated[list[of_one], Field(min_length=size, max_length=size)]  # type: ignore[valid-type]
        fields[field] = (several if kind.shape else of_one, ...)
    return create_model(name, __base__=Document, **fields)


_PlayerRecord: Any = _model("PlayerRecordDocument", PLAYER_DTYPE)
_MobRecord: Any = _model("MobDocument", MOB_DTYPE)
_ItemRecord: Any = _model(
    "DroppedItemDocument",
    ITEM_DTYPE,
    item=Annotated[int, Field(ge=1, le=max(ITEMS))],
    quantity=_Quantity,  # 0 for one that was picked up, which vanishes in the next tick
)
_ThrownRecord: Any = _model("ThrownItemDocument", THROWN_DTYPE)
_FallingRecord: Any = _model("FallingBlockDocument", FALLING_DTYPE)
_ParticleRecord: Any = _model("ParticleDocument", PARTICLE_DTYPE)
_Row = Annotated[int, Field(ge=-1, le=MOB_CAPACITY - 1)]
_TargetKind = Annotated[int, Field(ge=0, le=2)]
_TargetRecord: Any = _model("TargetDocument", TARGET_DTYPE, kind=_TargetKind, mob=_Row, y=_Layer)


class EditsDocument(Document):
    """What was changed in a chunk: places in it, ascending, and the blocks there."""

    chunk: _ChunkAt
    places: Annotated[
        list[Annotated[int, Field(ge=0, le=CHUNK * CHUNK * HEIGHT - 1)]],
        Field(max_length=CHUNK * CHUNK * HEIGHT, fail_fast=True),
    ]
    blocks: Annotated[list[_Block], Field(max_length=CHUNK * CHUNK * HEIGHT, fail_fast=True)]


class SavedWorldDocument(Document):
    """The blocks."""

    seed: Seed
    has_plants: bool
    centre: _ChunkAt
    ceiling: Annotated[int, Field(ge=0, le=HEIGHT)]
    unsupported: Annotated[list[_Place], Field(max_length=10**6, fail_fast=True)]
    edits: Annotated[list[EditsDocument], Field(max_length=10**6, fail_fast=True)]


class PlayerDocument(Document):
    """The player; `equipped` is the item that the record is about."""

    record: _PlayerRecord
    inventory: Annotated[list[_Stack], Field(min_length=SLOTS, max_length=SLOTS)]
    effects: Annotated[
        dict[Annotated[Name, one_of(EFFECTS)], _Effect],
        Field(max_length=len(EFFECTS)),
    ]
    hidden_effects: Annotated[
        list[Annotated[Name, one_of(EFFECTS)]], Field(max_length=len(EFFECTS))
    ]
    selected: _HotbarSlot
    experience: Count
    enchanting_seed: Count
    fire_ticks: _Integer
    damage_bonus: _Number
    attack_haste: _Number
    mining_haste: _Level
    mining_fatigue: _Level
    equipped: _ItemId | None
    equipped_data: _Data


class FurnaceDocument(Document):
    """A furnace's fire, and what it has smelted: (result, experience, ticks, how many)."""

    burning: Count
    burn_ticks: Count
    progress: Count
    smelted: Annotated[list[_Smelted], Field(max_length=len(ITEMS))]


class ContainerDocument(Document):
    """The container of a block."""

    place: _Place
    block: Annotated[int, Field(ge=0, le=len(BLOCKS) - 1)]
    stacks: Annotated[list[_Stack], Field(max_length=CHEST_SIZE)]
    furnace: FurnaceDocument | None


class ScheduledDocument(Document):
    """A scheduled tick of a block."""

    kind: Annotated[Name, one_of(BLOCK_TICKS)]
    due: Count
    priority: _Integer
    place: _Place


class ClicksDocument(Document):
    """The memory of the mouse buttons, as in `ClickMemory`; `last_tick` is null for never."""

    last_slot: _Slot | None
    last_button: _Button | None
    last_tick: Count | None
    is_double: bool
    ignores_release: bool
    active: _Button | None
    dragging: _Button | None
    dragged: Annotated[list[_Slot], Field(max_length=100)]
    moved_across: _Stack


class ScreenDocument(Document):
    """The open screen; `loose` are the stacks in a crafting grid."""

    kind: Annotated[Name, one_of(LAYOUTS)]
    place: _Place | None
    carried: _Stack
    loose: Annotated[list[_Stack], Field(max_length=9)]
    cursor: _Cursor
    ticks: Count
    clicks: ClicksDocument


class HerdsDocument(Document):
    """What is known of herds, as in `Herds`; `are_natural` animals come with the land."""

    are_natural: bool
    centre: _ChunkAt | None
    done: Annotated[list[_ChunkAt], Field(max_length=MOST_CHUNKS, fail_fast=True)]
    away: Annotated[list[_MobRecord], Field(max_length=AWAY_CAPACITY)]


class GameDocument(Document):
    """A whole game, as in `GameState`."""

    rules_revision: Count
    tables: Name
    world: SavedWorldDocument
    player: PlayerDocument
    mobs: Annotated[list[_MobRecord], Field(max_length=MOB_CAPACITY)]
    herds: HerdsDocument
    items: Annotated[list[_ItemRecord], Field(max_length=ITEM_CAPACITY)]
    thrown: Annotated[list[_ThrownRecord], Field(max_length=THROWN_CAPACITY)]
    falling: Annotated[list[_FallingRecord], Field(max_length=FALLING_CAPACITY)]
    particles: Annotated[list[_ParticleRecord], Field(max_length=PARTICLE_CAPACITY)]
    containers: Annotated[list[ContainerDocument], Field(max_length=10**6)]
    scheduled: Annotated[list[ScheduledDocument], Field(max_length=10**6, fail_fast=True)]
    block_time: Count
    statistics: Annotated[
        dict[Annotated[Name, one_of(STATISTICS)], MappingOf[Count]],
        Field(max_length=len(STATISTICS)),
    ]
    target: _TargetRecord
    time: Count
    game_time: Count
    raining: bool
    difficulty: Annotated[Name, one_of(DIFFICULTIES)]
    rules: MappingOf[Name]
    screen: ScreenDocument | None
    player_dead: bool
    held_keys: _Keys
    dead_keys: _Keys
    held_slot: Annotated[int, Field(ge=-1, le=HOTBAR_SLOTS - 1)]
    named_item: _ItemId
    name_ticks: Count
    bed: _Place | None
    sleep_ticks: Count
    spawn_point: _Place | None
    random: Annotated[int, Field(ge=1, le=2**64 - 1)]
    random_of_particles: Annotated[int, Field(ge=1, le=2**64 - 1)]


@cache
def _tables() -> str:
    """Return a digest of the tables that numbers of a snapshot are indices of."""
    names = [
        *(block.name for block in BLOCKS),
        *(f"{number} {item.name}" for number, item in sorted(ITEMS.items())),
        *(kind.name for kind in MOB_KINDS),
    ]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


# ------------------------------------------------------------------------------------------ saving


def saved(state: GameState) -> bytes:
    """Return a snapshot of a game between two ticks."""
    return packed(json.dumps(_facts(state), separators=(",", ":"), allow_nan=False).encode())


def packed(text: bytes) -> bytes:
    """Return a snapshot with this JSON in it."""
    body = zlib.compress(text, level=1)
    return _MAGIC + hashlib.sha256(body).digest() + body


def _facts(state: GameState) -> dict[str, Any]:
    world, player = state.world, state.player
    return {
        "rules_revision": RULES,
        "tables": _tables(),
        "world": {
            "seed": world.seed,
            "has_plants": world.has_plants,
            "centre": world.centre,
            "ceiling": world.ceiling,
            "unsupported": world.unsupported,
            "edits": [
                {"chunk": chunk, "places": places.tolist(), "blocks": blocks.tolist()}
                for chunk, (places, blocks) in world.edits().items()
            ],
        },
        "player": {
            "record": _row(player.records[0]),
            "inventory": player.inventory.stacks(),
            "effects": player.effects,
            "hidden_effects": sorted(player.hidden_effects),
            **{name: getattr(player, name) for name in _OF_PLAYER},
        },
        "mobs": _rows(state.mobs),
        "herds": {
            "are_natural": state.herds.are_natural,
            "centre": state.herds.centre,
            "done": list(state.herds.done),
            "away": _rows(state.herds.away),
        },
        "items": _rows(state.items),
        "thrown": _rows(state.thrown),
        "falling": _rows(state.falling),
        "particles": _rows(state.particles),
        "containers": [
            {
                "place": place,
                "block": block,
                "stacks": container.stacks,
                "furnace": _furnace(container) if isinstance(container, Furnace) else None,
            }
            for place, block, container in state.block_entities.entries()
        ],
        "scheduled": [
            {"kind": kind, "due": due, "priority": priority, "place": place}
            for kind, due, priority, place in state.block_ticks.scheduled()
        ],
        "block_time": state.block_ticks.now,
        "statistics": state.statistics.copy(),
        "target": _row(state.target[0]),
        "screen": None if state.screen is None else _screen(state.screen),
        "random": int(state.rng[0]),
        "random_of_particles": int(state.particles.rng[0]),
        **{name: getattr(state, name) for name in _OF_GAME},
    }


_OF_GAME = (
    *("time", "game_time", "raining", "difficulty", "rules", "player_dead", "held_keys"),
    *("dead_keys", "held_slot", "named_item", "name_ticks", "bed", "sleep_ticks", "spawn_point"),
)
_OF_PLAYER = (
    *(
        "selected",
        "experience",
        "enchanting_seed",
        "fire_ticks",
        "damage_bonus",
        "attack_haste",
        "mining_haste",
    ),
    *("mining_fatigue", "equipped", "equipped_data"),
)
"""Attributes that are saved and restored under their names."""


def _rows(records: Records) -> list[dict[str, Any]]:
    return [_row(row) for row in records.records[: records.count]]


def _row(row: np.void) -> dict[str, Any]:
    assert row.dtype.names is not None
    return {name: row[name].tolist() for name in row.dtype.names if name not in _DERIVED}


def _furnace(furnace: Furnace) -> dict[str, Any]:
    return {
        "burning": furnace.burning,
        "burn_ticks": furnace.burn_ticks,
        "progress": furnace.progress,
        "smelted": [(*smelting, count) for smelting, count in furnace.smelted.items()],
    }


def _screen(screen: Screen) -> dict[str, Any]:
    memory = screen.clicks.memory
    return {
        "kind": screen.kind,
        "place": screen.place,
        "carried": screen.menu.carried,
        "loose": [slot.stack for slot in screen.menu.loose()],
        "cursor": (screen.cursor.x, screen.cursor.y),
        "ticks": screen.ticks,
        "clicks": {
            **vars(memory),
            "last_tick": None if memory.last_tick == -math.inf else int(memory.last_tick),
        },
    }


# --------------------------------------------------------------------------------------- restoring


def restore(state: GameState, snapshot: bytes) -> None:
    """Make a game the one that was saved; if the snapshot is refused, it stays as it is.

    Raises:
        SnapshotError: The bytes are no snapshot, are damaged, or are of another version, other
            rules or other tables.
    """
    told = _read(snapshot)
    _check(told)
    before = saved(state)
    try:
        _apply(state, told)
    except SnapshotError:
        _apply(state, _read(before))
        raise


def _apply(state: GameState, told: GameDocument) -> None:
    _restore_world(state, told.world)
    _restore_player(state, told.player)
    state.herds.begin_with(told.herds.are_natural, told.herds.centre, told.herds.done)
    for records, rows in (
        (state.mobs, told.mobs),
        (state.herds.away, told.herds.away),
        (state.items, told.items),
        (state.thrown, told.thrown),
        (state.falling, told.falling),
        (state.particles, told.particles),
    ):
        records.clear()
        records.displaced = 0
        for row in rows:
            _fill(records.append(), row)
    _restore_blocks(state, told)
    state.statistics.clear()
    for group, counters in told.statistics.items():
        for name, amount in counters.items():
            state.statistics.set(group, name, amount)
    _fill(state.target[0], told.target)
    state.rng[0], state.particles.rng[0] = told.random, told.random_of_particles
    for name in _OF_GAME:
        setattr(state, name, getattr(told, name))
    state.rules = dict(told.rules)
    state.screen = state.next_screen = None
    if told.screen is None or told.screen.kind != "inventory":
        prepare_inventory(state)
    if told.screen is not None:
        _restore_screen(state, told.screen)


def contents(snapshot: bytes) -> bytes:
    """Return the JSON in a snapshot.

    Raises:
        SnapshotError: The bytes are no snapshot, are damaged, or too many.
    """
    if not snapshot.startswith(_MAGIC):
        line = snapshot[:40].partition(b"\n")[0]
        raise SnapshotError(
            f"The snapshot must begin with the line {_MAGIC.decode().strip()!r}, and begins with "
            f"{line!r}: it was saved by another version, or is none."
        )
    digest = snapshot[len(_MAGIC) : len(_MAGIC) + _DIGEST_SIZE]
    body = snapshot[len(_MAGIC) + _DIGEST_SIZE :]
    if hashlib.sha256(body).digest() != digest:
        raise SnapshotError("The snapshot is damaged: its digest is not that of its contents.")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(body, LARGEST)
    except zlib.error as error:
        raise SnapshotError(f"The snapshot cannot be unpacked: {error}.") from None
    if unpacker.unconsumed_tail:
        raise SnapshotError(f"The snapshot must unpack to at most {LARGEST:,} bytes.")
    return text


def _read(snapshot: bytes) -> GameDocument:
    """Return what a snapshot holds, with all types and bounds checked."""
    try:
        return GameDocument.model_validate_json(contents(snapshot))
    except ValidationError as error:
        raise _wrong(first_problem(error)) from None


def _check(told: GameDocument) -> None:
    """Check what bounds do not say.

    Raises:
        SnapshotError: It is of other rules or tables, or names what there is not.
    """
    for name, actual, own in (
        ("rules of revision", told.rules_revision, RULES),
        ("tables of blocks, items and animals with the digest", told.tables, _tables()),
    ):
        if actual != own:
            raise SnapshotError(f"The snapshot was saved with {name} {actual}; here it is {own}.")
    single = (told.player.record.held_item, told.player.record.hand_item, told.named_item)
    items = {*single, *(row.item for row in told.items), *(stack[0] for stack in _stacks(told))}
    if unknown := items - ITEMS.keys() - {EMPTY}:
        raise _wrong(f"there is no item {min(unknown)}")
    if unknown := {row.item for row in told.thrown} - THROWN.keys():
        raise _wrong(f"the item {min(unknown)} cannot be thrown")
    if any((item == EMPTY) != (quantity == 0) for item, quantity, _ in _stacks(told)):
        raise _wrong("empty slots, and no others, must hold 0 items")
    if lacking := GAME_RULES.keys() - told.rules.keys():
        raise _wrong(f"the rule {min(lacking)} is missing")
    for entry in told.containers:
        if entry.furnace is not None and entry.furnace.burning > entry.furnace.burn_ticks:
            raise _wrong("a furnace burns for longer than its fuel lasts")
    blocks = {block for edits in told.world.edits for block in edits.blocks}
    blocks |= {row.block for row in (*told.falling, *told.particles)}
    if unknown := blocks - _BLOCKS:
        raise _wrong(f"there is no block {min(unknown)}, which stands for a kind in a state")
    for edits in told.world.edits:
        is_ascending = all(a < b for a, b in zip(edits.places, edits.places[1:], strict=False))
        if len(edits.places) != len(edits.blocks) or not is_ascending:
            raise _wrong("the places of an edited chunk must ascend, with a block for each")


def _wrong(what: str) -> SnapshotError:
    return SnapshotError(f"The snapshot is wrong: {what}.")


def _stacks(told: GameDocument) -> list[tuple[int, int, int]]:
    screen = told.screen
    return [
        *told.player.inventory,
        *(stack for container in told.containers for stack in container.stacks),
        *([] if screen is None else [screen.carried, *screen.loose, screen.clicks.moved_across]),
    ]


def _fill(row: np.void, told: Document) -> None:
    for name, value in told:
        row[name] = value


def _restore_world(state: GameState, told: SavedWorldDocument) -> None:
    edits = {
        edited.chunk: (np.array(edited.places, np.intp), np.array(edited.blocks, np.uint16))
        for edited in told.edits
    }
    state.world.begin_with(told.seed, told.has_plants, edits, told.centre)
    state.world.ceiling = told.ceiling
    state.world.unsupported[:] = told.unsupported


def _restore_player(state: GameState, told: PlayerDocument) -> None:
    player = state.player = Player()
    for name in _OF_PLAYER:
        setattr(player, name, getattr(told, name))
    for slot, stack in enumerate(told.inventory):
        player.inventory.set(slot, *stack)
    player.effects.update(told.effects)
    player.hidden_effects.update(told.hidden_effects)
    row = player.records[0]
    _fill(row, told.record)
    item = ITEMS.get(told.equipped or EMPTY)
    efficiency = level_of(told.equipped or EMPTY, told.equipped_data, "efficiency")
    row["mining_speed"] = mining_speeds(item, told.mining_haste, told.mining_fatigue, efficiency)
    row["mining_ticks"] = mining_ticks(item)


def _restore_blocks(state: GameState, told: GameDocument) -> None:
    """Restore containers and scheduled ticks.

    Raises:
        SnapshotError: A block has no such container.
    """
    state.block_entities.clear()
    for entry in told.containers:
        container = state.block_entities.at(entry.place, entry.block)
        if container is None or len(container) != len(entry.stacks):
            raise _wrong(f"the block at {entry.place} has no such container")
        for slot, stack in enumerate(entry.stacks):
            container.set(slot, *stack)
        if isinstance(container, Furnace) and entry.furnace is not None:
            fire = entry.furnace
            container.burning, container.burn_ticks = fire.burning, fire.burn_ticks
            container.progress = fire.progress
            for result, experience, ticks, count in fire.smelted:
                container.smelted[Smelting(result, experience, ticks)] = count
    scheduled = [(tick.kind, tick.due, tick.priority, tick.place) for tick in told.scheduled]
    state.block_ticks.begin_with(told.block_time, scheduled)


def _restore_screen(state: GameState, told: ScreenDocument) -> None:
    screen = open_again(state, told.kind, told.place)
    loose = screen.menu.loose()
    if len(loose) != len(told.loose) or max(told.clicks.dragged, default=0) >= len(
        screen.menu.slots
    ):
        raise _wrong(f"the screen {told.kind!r} has no such slots")
    screen.menu.carried = ItemStack(*told.carried)
    for slot, stack in zip(loose, told.loose, strict=True):
        slot.put(ItemStack(*stack))
    screen.cursor.x, screen.cursor.y = told.cursor
    screen.ticks = told.ticks
    clicks = told.clicks
    screen.clicks.memory = ClickMemory(
        **{
            **dict(clicks),
            "last_tick": -math.inf if clicks.last_tick is None else clicks.last_tick,
            "moved_across": ItemStack(*clicks.moved_across),
        }
    )
