"""`location_stats` follows the world: light under things, the hour, the weather, the biome."""

import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game.survey import CLIMATES, sun_brightness
from rllib_minestudio.env.voxel.world.climate import BIOMES
from tests.env.voxel.arena import arena


@pytest.fixture
def engine():
    return arena()


def stats(engine, *commands):
    for command in commands:
        assert engine.execute(command).ok, command
    return engine.info()["location_stats"]


def test_each_biome_has_its_climate():
    assert set(CLIMATES) == set(BIOMES)
    engine = VoxelEngine(frame_size=(32, 32))
    told = {}
    for biome in BIOMES:
        engine.reset(3, biome)
        told[biome] = {key: value for key, value in stats(engine).items() if "biome" in key}
    assert told["desert"] == {
        "biome_id": 2,
        "biome_temperature": 2.0,
        "biome_rainfall": 0.0,
    }
    assert [told[name]["biome_id"] for name in ("plains", "forest")] == [1, 4]


def test_light_by_the_hour_and_the_weather(engine):
    noon = stats(engine, "/time set 6000")
    assert (noon["can_see_sky"], noon["sky_light_level"]) == (True, 1.0)
    assert (noon["light_level"], noon["sun_brightness"]) == (15, 1.0)
    rain = stats(engine, "/weather rain")
    assert (rain["light_level"], rain["sun_brightness"]) == (12, 1 - 5 / 16)
    midnight = stats(engine, "/weather clear", "/time set 18000")
    assert (midnight["light_level"], midnight["sun_brightness"]) == (4, 0.0)
    assert midnight["sky_light_level"] == 1.0
    assert 0.0 < sun_brightness(13000, False) < 1.0


def test_light_under_a_roof_comes_from_its_edge(engine):
    under = stats(engine, "/time set 6000", "/fill ~-2 ~4 ~-2 ~2 ~4 ~2 stone")
    assert (under["can_see_sky"], under["light_level"]) == (False, 12)  # three steps to the edge
    assert under["sky_light_level"] == 12 / 15
    walled = stats(engine, "/fill ~-1 ~ ~-1 ~1 ~3 ~1 stone", "/fill ~ ~ ~ ~ ~1 ~ air")
    assert (walled["light_level"], walled["sky_light_level"]) == (0, 0.0)


@pytest.mark.parametrize(
    ("block", "light"),
    [("glass", 15), ("torch", 15), ("ice", 10), ("oak_leaves", 10), ("bricks", 0), ("furnace", 0)],
)
def test_light_falls_through_what_it_passes_in_minecraft(engine, block, light):
    shaft = ("/fill ~-1 ~ ~-1 ~1 ~3 ~1 stone", "/fill ~ ~ ~ ~ ~3 ~ air")
    roofed = stats(engine, "/time set 6000", *shaft, f"/setblock ~ ~4 ~ {block}")
    assert roofed["light_level"] == light  # what is not clear leaves five steps to the open air


def test_torches_light_the_night_and_caves(engine):
    dark = stats(
        engine, "/time set 18000", "/fill ~-2 ~-1 ~-2 ~2 ~3 ~2 stone", "/fill ~ ~ ~ ~1 ~1 ~ air"
    )
    assert dark["light_level"] == 0
    lit = stats(engine, "/setblock ~1 ~ ~ torch")
    assert (lit["light_level"], lit["sky_light_level"], lit["can_see_sky"]) == (13, 0.0, False)
    assert stats(engine, "/setblock ~1 ~ ~ furnace[lit=true]")["light_level"] == 12
    assert stats(engine, "/setblock ~1 ~ ~ furnace")["light_level"] == 0


def test_light_falls_through_leaves_and_fades_in_a_tunnel(engine):
    assert stats(engine, "/time set 6000", "/setblock ~ ~4 ~ oak_leaves")["light_level"] == 14
    tunnel = ("/fill ~-1 ~-1 ~-1 ~1 ~2 ~20 stone", "/fill ~ ~ ~ ~ ~1 ~20 air")
    stats(engine, "/setblock ~ ~4 ~ air", *tunnel)
    lights = []
    for _ in range(11):
        lights.append(stats(engine)["light_level"])
        engine.execute("/tp @p ~ ~ ~2")
    # The tunnel ends 21 blocks from where it begins, and one steps two blocks at a time.
    assert lights == [max(15 - (21 - 2 * step), 0) for step in range(11)]
