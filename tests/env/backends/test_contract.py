"""What a backend tells, key by key: MineStudio's names, from the state of the world.

`tests/env/voxel/server/test_minestudio.py` compares the same with what MineStudio's own client
tells.
"""

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.backends.voxel import VoxelBackend
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.errors import InvalidActionError

OBSERVED = {
    *("pov", "inventory", "equipped_items", "player_pos", "is_gui_open"),
    *("use_item", "pickup", "break_item", "craft_item", "mine_block", "damage_dealt", "custom"),
    "kill_entity",
}
TOLD = {"isGuiOpen", "location_stats", "health", "food_level"}
PLACES = {
    *("sun_brightness", "sky_light_level", "light_level", "can_see_sky", "is_raining"),
    *("biome_rainfall", "biome_temperature", "biome_id", "sea_level"),
    *("pitch", "yaw", "xpos", "ypos", "zpos"),
}

CHANGES = [
    ("/give @p stone 3", "inventory", 0),
    ("/replaceitem entity @p armor.head iron_helmet", "equipped_items", "head"),
    ("/tp @p ~ ~ ~3", "player_pos", "z"),
    ("/tp @p ~ ~ ~3", "location_stats", "zpos"),
    ("/tp @p ~ ~ ~ 40 20", "location_stats", "yaw"),
    ("/tp @p ~ ~ ~ 40 20", "location_stats", "pitch"),
    ("/time set 18000", "location_stats", "sun_brightness"),
    ("/time set 18000", "location_stats", "light_level"),
    ("/weather rain", "location_stats", "is_raining"),
    ("/fill ~-3 ~3 ~-3 ~3 ~3 ~3 stone", "location_stats", "can_see_sky"),
    ("/fill ~-3 ~3 ~-3 ~3 ~3 ~3 stone", "location_stats", "sky_light_level"),
    ("/teleportbiome @p desert 0 ~0 0", "location_stats", "biome_id"),
    ("/teleportbiome @p desert 0 ~0 0", "location_stats", "biome_temperature"),
    ("/teleportbiome @p desert 0 ~0 0", "location_stats", "biome_rainfall"),
    ("/kill", "custom", "deaths"),
    ({"inventory": 1}, "is_gui_open", None),
    ({"inventory": 1}, "isGuiOpen", None),
    ({"jump": 1}, "custom", "jump"),
]
"""What is done, and the entry that it changes."""


@pytest.fixture(scope="module")
def backend():
    options = {
        "obs_size": [32, 32],
        "preferred_spawn_biome": "plains",
        "natural_animals": False,
    }
    return VoxelBackend(EnvOptions.from_mapping(options))


def everything(backend, what):
    """Observation and info as `MinecraftSim` joins them."""
    command = isinstance(what, str)
    obs, _, _, info = backend.execute_cmd(what) if command else backend.step(what)
    return {**obs, **info}


def entry(told, key, name):
    value = told[key]
    return value if name is None else value.get(name)


def test_the_keys_are_minestudios(backend):
    assert set(backend.reset()) == OBSERVED
    for obs, _, _, info in (
        backend.step(backend.noop_action()),
        backend.execute_cmd("/time set 0"),
    ):
        assert (set(obs), set(info)) == (OBSERVED, TOLD)
        assert set(info["location_stats"]) == PLACES


@pytest.mark.parametrize(("what", "key", "name"), CHANGES)
def test_what_is_told_follows_the_world(backend, what, key, name):
    backend.seed(1)
    backend.reset()
    backend.step({})  # lands
    before = entry(everything(backend, {}), key, name)
    assert entry(everything(backend, what), key, name) != before


def test_crafting_is_told(backend):
    backend.seed(1)
    backend.reset()
    backend.execute_cmd("/give @p oak_log 2")
    backend.step({"inventory": 1})
    for camera in ((10.05, -10.8), (-18.6, 13.5), (1.5, 8.4)):
        backend.step({"camera": camera})
        backend.step({"attack": 1})
        told = everything(backend, {})
    assert told["craft_item"] == {"oak_planks": 4} and told["is_gui_open"]


def test_blocks_mobs_and_commands_on_request(backend):
    backend.seed(1)
    backend.reset()
    backend.step({"chat": "/setblock ~1 ~ ~ obsidian"})
    backend.execute_cmd("/summon cow ~ ~ ~3")
    box = np.array([-1, 1, 0, 1, -1, 1], np.int32)
    *_, info = backend.step({"voxels": box, "mobs": [-5, 5, -5, 5, -5, 5]})
    assert len(info["voxels"]) == 18
    assert [block["type"] for block in info["voxels"]].count("obsidian") == 1
    assert [mob["name"] for mob in info["mobs"]] == ["cow"]
    assert "voxels" not in backend.step({"voxels": [0] * 6})[-1]
    for name, bounds in (
        ("voxels", [1, -1, 0, 0, 0, 0]),
        ("voxels", [-50, 50] * 3),
        ("voxels", [1, 2]),
        ("voxels", 7),
        ("mobs", [-1, float("nan"), 0, 0, 0, 0]),
        ("mobs", ["a"] * 6),
    ):
        with pytest.raises(InvalidActionError, match=name):
            backend.step({name: bounds})


class PaysForObsidian:
    """Asks for blocks as MineStudio's VoxelsCallback does, and pays as its GateRewards does."""

    def before_step(self, sim, action):
        action["voxels"] = [-3, 3, -3, 3, -3, 3]
        return action

    def after_step(self, sim, obs, reward, terminated, truncated, info):
        reward = sum(block["type"] == "obsidian" for block in info["voxels"])
        return obs, reward, terminated, truncated, info


class Adds:
    """Adds to observations as MineStudio's PrevActionCallback and TaskCallback do."""

    def after_reset(self, sim, obs, info):
        obs["task"] = {"name": "dig", "text": "dig a hole"}
        return obs, info

    def after_step(self, sim, obs, reward, terminated, truncated, info):
        obs["env_prev_action"] = {"camera": np.zeros(2)}
        return obs, reward, terminated, truncated, info


def test_callbacks_get_the_blocks_that_they_ask_for():
    build = {"Commands": ["/setblock ~1 ~ ~ obsidian", "/setblock ~-1 ~ ~ obsidian"]}
    env = MineStudioEnv(obs_size=[32, 32], callbacks=[build, PaysForObsidian()])
    env.reset(seed=1)
    _, reward, *_, info = env.step({"buttons": 0, "camera": 60})
    assert reward == 2.0
    assert "voxels" not in info  # large, and only callbacks have use for it
    env.close()


def test_observations_stay_in_their_space_whatever_callbacks_add():
    env = MineStudioEnv(obs_size=[32, 32], callbacks=[Adds()])
    obs, _ = env.reset(seed=1)
    assert set(obs) == {"image"} and obs in env.observation_space
    assert env.sim.obs["task"] == {"name": "dig", "text": "dig a hole"}
    obs, *_ = env.step({"buttons": 0, "camera": 60})
    assert set(obs) == {"image"} and obs in env.observation_space
    assert list(env.sim.obs["env_prev_action"]) == ["camera"]
    env.close()
