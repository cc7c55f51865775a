"""Herds that come with the land: how many, of what, once, and where their animals go and return."""

from collections import Counter

import numpy as np
import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.entities import herds as herds_module
from rllib_minestudio.env.voxel.entities.herds import CHANCES, GROUPS, Mobs, herds_of
from rllib_minestudio.env.voxel.entities.records import (
    DYES,
    MOB_CAPACITY,
    MOB_KIND_ID,
    MOB_KINDS,
    YOUNG_AGE,
)
from rllib_minestudio.env.voxel.world import climate
from rllib_minestudio.env.voxel.world.blocks import GRASS_BLOCK
from rllib_minestudio.env.voxel.world.box_field import CHUNK
from rllib_minestudio.env.voxel.world.climate import BIOMES, biome_at
from rllib_minestudio.env.voxel.world.world import World

LACKING = {"horse", "donkey", "rabbit", "wolf", "fox", "llama", "polar_bear"}


def loaded(seed, x=0, z=0, biome=None):
    """A world loaded around a place, or around one well inside a biome."""
    world = World()
    world.reset(seed)
    if biome is not None:
        place = np.zeros(2, np.int64)
        assert climate.find_biome(BIOMES.index(biome), 0, 0, seed, place)
        x, z = place.tolist()
    world.load_around(x, z)
    return world


def chunks_of(world, biome):
    """The loaded chunks whose middle is in a biome."""
    x, z = world.centre
    for i in range(x - 5, x + 6):
        for k in range(z - 5, z + 6):
            if BIOMES[biome_at(i * CHUNK + 8, k * CHUNK + 8, world.seed)] == biome:
                yield i, k


def all_herds(biome, chunks):
    """The herds of so many chunks of a biome."""
    found, counted, seed = [], 0, 0
    while counted < chunks:
        seed += 1
        world = loaded(seed, biome=biome)
        for chunk in chunks_of(world, biome):
            counted += 1
            found.extend(herds_of(world, chunk))
    return found, counted


def check(name, found, wanted, deviation):
    """What is found is within four standard deviations of what is wanted; returns a row."""
    low, high = wanted - 4 * deviation, wanted + 4 * deviation
    assert low - 1e-9 <= found <= high + 1e-9, name
    return f"{name:34} {wanted:8.3f} {found:8.3f}   {max(low, 0):.3f} to {high:.3f}"


def check_herds(biome, chunks):
    """Numbers, kinds and sizes of herds; returns a table: wanted, found, interval."""
    found, counted = all_herds(biome, chunks)
    chance, groups = CHANCES[biome], GROUPS[biome]
    if not groups:
        assert not found
        return []
    wanted, deviation = chance / (1 - chance), np.sqrt(chance / counted) / (1 - chance)
    rows = [check(f"{biome}: herds a chunk", len(found) / counted, wanted, deviation)]
    weight = sum(group.weight for group in groups)
    for group in groups:
        herds = [herd for herd in found if herd.mob == group.mob]
        share = group.weight / weight
        deviation = np.sqrt(share * (1 - share) / len(found))
        rows.append(
            check(f"{biome}: share of {group.mob}", len(herds) / len(found), share, deviation)
        )
        assert all(group.least <= herd.size <= group.most for herd in herds)
        is_there = group.mob in MOB_KIND_ID
        members = sum(len(herd.members) for herd in herds)
        # Nearly all find a place on open land; under trees, on slopes and stone, fewer.
        assert members == 0 if not is_there else members >= 0.6 * sum(herd.size for herd in herds)
        if is_there:
            rows.append(
                f"{biome + ': members of a herd of ' + group.mob:34} {group.least:8.3f} "
                f"{members / len(herds):8.3f}"
            )
    return rows


def test_the_tables_are_those_of_the_game():
    assert sum(group.weight for group in GROUPS["plains"]) == 46
    assert {group.mob: group.weight for group in GROUPS["plains"]}["cow"] == 8
    names = {group.mob for groups in GROUPS.values() for group in groups}
    assert names - set(MOB_KIND_ID) == LACKING
    assert {mob.name for mob in MOB_KINDS if mob.food} <= names
    assert CHANCES["plains"] == 0.1 and CHANCES["mountains"] == CHANCES["snowy_tundra"] == 0.07


def test_herds_are_as_frequent_as_in_the_game():
    check_herds("plains", 121)


@pytest.mark.slow
@pytest.mark.parametrize("biome", BIOMES)
def test_herds_of_4000_chunks(biome):
    """With `-s` they print a table: wanted, found, interval."""
    print("", *check_herds(biome, 4000), sep="\n")


def test_one_in_twenty_members_is_young_and_sheep_have_minecrafts_colours():
    herds, _ = all_herds("plains", 4000)
    young, coats = [], Counter()
    for herd in herds:
        for number, member in enumerate(herd.members):
            assert member.age in (0, YOUNG_AGE) and (number or not member.age)
            young += [member.age < 0] if number else []
            if herd.mob == "sheep":
                coats[DYES[member.coat]] += 1
    for found, share, of in (
        (sum(young), 0.05, len(young)),
        (coats["white"], 0.82, coats.total()),
        (coats["brown"], 0.03, coats.total()),
    ):
        check("members", found / of, share, np.sqrt(share * (1 - share) / of))


def test_members_stand_on_grass_with_room_within_their_chunk():
    seen = 0
    for biome in ("forest", "savanna", "mountains"):
        world = loaded(5, biome=biome)
        for chunk in chunks_of(world, biome):
            for herd in herds_of(world, chunk):
                for (x, y, z), *_ in herd.members:
                    seen += 1
                    column = int(x // 1), int(z // 1)
                    assert (column[0] // CHUNK, column[1] // CHUNK) == chunk
                    assert world.kind_at(column[0], int(y) - 1, column[1]) == GRASS_BLOCK
                    assert y > 62
    assert seen > 30


def test_the_herds_of_a_chunk_do_not_depend_on_how_one_came_there():
    direct, wandering = loaded(7), loaded(7, -300, 200)
    wandering.load_around(-60, 40)
    wandering.load_around(0, 0)
    chunks = [(x, z) for x in range(-5, 6) for z in range(-5, 6)]
    of_each = [[list(herds_of(world, chunk)) for chunk in chunks] for world in (direct, wandering)]
    assert of_each[0] == of_each[1] and any(of_each[0])


# ------------------------------------------------------------------------------------- in a game


def begun(seed=7, natural_animals=True):
    engine = VoxelEngine(frame_size=(32, 32))
    engine.reset(seed, "plains", natural_animals)
    return engine, engine._game.state


def census(state):
    """Kinds and places of all animals, also of those whose land is not loaded."""
    return sorted(
        (int(row["kind"]), *row["position"].tolist())
        for crowd in (state.mobs, state.herds.away)
        for row in crowd.records[: crowd.count]
    )


def stay(engine, x, z):
    """Go somewhere, so far that all others stand still, and load the land there."""
    engine.execute(f"/tp @p {x} 90 {z}")
    engine._game.state.world.load_around(x, z)
    state = engine._game.state
    state.herds.follow(state.world, state.mobs)


def test_herds_are_there_when_the_game_begins_if_asked_for():
    engine, state = begun()
    assert state.mobs.count > 0 and len(state.herds.done) > 0
    assert len(engine.mobs_near(100)) > 0
    _, bare = begun(natural_animals=False)
    assert bare.mobs.count == 0 and not bare.herds.done
    other = VoxelEngine(frame_size=(32, 32))
    other.reset(7, "plains")
    assert other._game.state.mobs.count == 0


def test_herds_appear_once_and_wait_for_the_player():
    engine, state = begun()
    before = census(state)
    stay(engine, 1000, 0)
    assert state.herds.away.count == len(before)
    positions = state.mobs.position[:, [0, 2]]
    assert np.abs(positions - (1000, 0)).max() < 100
    new = state.mobs.count
    assert new > 0 and len(census(state)) == len(before) + new
    stay(engine, 0, 0)
    assert state.mobs.count == len(before) and state.herds.away.count == new
    assert set(before) <= set(census(state))
    for _ in range(3):
        stay(engine, 1000, 0)
        stay(engine, 0, 0)
    assert len(census(state)) == len(before) + new


def test_who_is_killed_does_not_return():
    engine, state = begun()
    assert engine.execute("/kill @e[type=!player]").ok
    stay(engine, 1000, 0)
    stay(engine, 0, 0)
    assert state.mobs.count == 0


def test_what_is_remembered_is_bounded(monkeypatch):
    engine, state = begun()
    monkeypatch.setattr(herds_module, "MOST_CHUNKS", 30)
    state.herds.away = Mobs(40)
    for step in range(1, 12):
        stay(engine, 400 * step, 0)
        assert len(state.herds.done) <= 30 and state.herds.away.count <= 40
    assert len(state.herds.done) == 30 and state.herds.away.count == 40
    assert (state.herds.away.position[:, 0] > 2000).all(), "the oldest are forgotten"


def test_herds_without_room_wait(monkeypatch):
    engine, state = begun()
    stay(engine, 5000, 0)
    here = state.mobs.count
    while state.mobs.count < MOB_CAPACITY:
        state.spawn_mob(MOB_KIND_ID["cow"], 5000.5, 100.0, 0.5)
    state.mobs.records["position"][:, 0] += 300.0
    stay(engine, 5300, 0)
    assert state.mobs.count == MOB_CAPACITY and here > 0
    assert state.mobs.displaced == 0


@pytest.mark.parametrize("chicken_first", [True, False])
def test_a_restored_game_has_the_same_herds(chicken_first):
    engine, state = begun(11)
    places = [(40, 0), (900, 0), (40, 0), (-300, 100), (0, 0)]
    for x, z in places[: 2 + chicken_first]:
        engine.execute(f"/tp @p {x} 90 {z}")
        engine.tick({})
    saved = engine.snapshot()
    other = VoxelEngine(frame_size=(32, 32))
    other.restore(saved)
    assert other.snapshot() == saved and state.herds.away.count > 0
    for x, z in places[2:]:
        for one in (engine, other):
            one.execute(f"/tp @p {x} 90 {z}")
            for _ in range(20):
                one.tick({"forward": 1})
        assert engine.snapshot() == other.snapshot()
