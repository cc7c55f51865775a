"""The env over the game equals the env over the embedded engine, which serves as the game here."""

import cv2
import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents import ScriptedHunter

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")


@pytest.fixture
def same(make_env):
    """Both environments from the same options."""

    def make(**options):
        options = {
            "obs_size": [128, 128],
            "render_size": [128, 128],
            "num_empty_frames": 2,
            "natural_animals": True,  # as in the game, which does not know the callbacks
            **options,
        }
        return make_env(**options), MineStudioEnv(options)

    return make


def assert_same(ours, embedded):
    obs, *values, info = ours
    obs_embedded, *values_embedded, info_embedded = embedded
    np.testing.assert_array_equal(obs["image"], obs_embedded["image"])
    assert values == values_embedded
    assert info == info_embedded


def test_a_hunt_over_two_episodes(same, cow_task):
    cow_task["callbacks"].append({"JudgeReset": 150})
    del cow_task["engine"]
    game, embedded = same(**{**cow_task, "obs_size": [128, 128]})
    hunter = ScriptedHunter(["cow"])
    assert_same(game.reset(seed=7), embedded.reset(seed=7))
    rewards, lengths = [], [0]
    while len(lengths) < 3:
        action = hunter.act(embedded)
        step = embedded.step(action)
        assert_same(game.step(action), step)
        rewards.append(step[1])
        lengths[-1] += 1
        if step[2] or step[3]:
            hunter.reset()
            lengths.append(0)
            assert_same(game.reset(), embedded.reset())
    assert sum(rewards) >= 2
    assert lengths == [150, 150, 0]


def test_keys_and_degrees(same):
    game, embedded = same(action_type="env", obs_size=[96, 64], render_size=[96, 64])
    assert_same(game.reset(seed=1), embedded.reset(seed=1))
    embedded.action_space.seed(3)
    for _ in range(30):
        action = embedded.action_space.sample()
        assert_same(game.step(action), embedded.step(action))


def test_another_camera_inventory_and_biome(same):
    game, embedded = same(
        camera_config={"camera_binsize": 1, "camera_maxval": 20},
        inventory={0: {"type": "iron_axe"}, 9: {"type": "minecraft:oak_planks", "quantity": 17}},
        preferred_spawn_biome="forest",
        seed=5,
    )
    assert game.action_space == embedded.action_space
    (obs, info), (obs_embedded, info_embedded) = game.reset(), embedded.reset()
    np.testing.assert_array_equal(obs["image"], obs_embedded["image"])
    assert info["inventory"] == info_embedded["inventory"]
    assert info["inventory"][9] == {"type": "oak_planks", "quantity": 17}
    embedded.action_space.seed(3)
    for _ in range(30):
        action = embedded.action_space.sample()
        assert_same(game.step(action), embedded.step(action))


def test_observations_are_scaled_from_the_games_frame_as_in_minestudio(same):
    game, embedded = same(obs_size=[128, 96], render_size=[320, 180])
    obs, _ = game.reset(seed=2)
    embedded.reset(seed=2)
    frame = embedded.render()
    assert frame.shape == (180, 320, 3)
    np.testing.assert_array_equal(game.render(), frame)
    scaled = cv2.resize(frame, dsize=(128, 96), interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(obs["image"], scaled)
    assert game.observation_space["image"].shape == (96, 128, 3)


def test_the_players_death_ends_the_episode_and_the_next_is_a_new_world(same):
    falling = [{"Commands": ["/tp @p ~ 120 ~"]}]
    game, embedded = same(callbacks=falling, obs_size=[32, 32], render_size=[32, 32])
    assert_same(game.reset(seed=3), embedded.reset(seed=3))
    idle = {"buttons": 0, "camera": 60}
    terminated = False
    for _ in range(200):
        step = embedded.step(idle)
        assert_same(game.step(idle), step)
        if terminated := step[2]:
            break
    assert terminated
    assert_same(game.reset(), embedded.reset())


def test_minestudios_own_callbacks_by_import_path(same):
    time_limit = 3
    package = "minestudio.simulator.callbacks"
    cows = {"name": "cow", "number": 3, "range_x": [-5, 5], "range_z": [-5, 5]}
    callbacks = [
        {f"{package}.SummonMobsCallback": {"mobs": [cows]}},
        {f"{package}.MaskActionsCallback": {"inventory": 0}},
        {f"{package}.CommandsCallback": {"commands": ["/give @p minecraft:iron_sword 1"]}},
        {f"{package}.FastResetCallback": {"biomes": ["plains"], "random_tp_range": 400}},
        {f"{package}.JudgeResetCallback": {"time_limit": time_limit}},
        {f"{package}.TaskCallback": {"task_cfg": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}},
    ]
    game, embedded = same(callbacks=callbacks)
    assert_same(game.reset(seed=6), embedded.reset(seed=6))
    idle = {"buttons": 0, "camera": 60}
    for _ in range(2):
        for tick in range(1, time_limit + 1):
            step = embedded.step(idle)
            assert_same(game.step(idle), step)
            assert step[2:4] == (False, tick == time_limit)
        assert_same(game.reset(), embedded.reset())


def test_native_callbacks_do_the_same_in_both(same, tmp_path):
    callbacks = [
        {"HardReset": [{"seed": seed, "position": [seed, 80, 7.5]} for seed in (3, 4, 5)]},
        {"Commands": ["/setblock ~3 ~ ~ obsidian"]},
        {"InitInventory": {"init_inventory": [{"slot": 3, "type": "stick", "quantity": ">5"}]}},
        {"Task": [{"name": "dig", "text": "dig a hole"}, {"name": "chop"}]},
        "PrevAction",
        "GateRewards",
        {"Voxels": [-4, 4, 0, 4, -4, 4]},
        {"Record": {"record_path": str(tmp_path), "record_origin_observation": True}},
    ]
    game, embedded = same(callbacks=callbacks)
    embedded.action_space.seed(3)
    for episode in range(2):
        first, second = game.reset(seed=episode), embedded.reset(seed=episode)
        assert_same(first, second)
        for _ in range(5):
            action = embedded.action_space.sample()
            assert_same(game.step(action), embedded.step(action))
            np.testing.assert_equal(game.sim.obs, embedded.sim.obs)
    game.close()
    embedded.close()
    of_game, of_embedded = (
        [np.load(tmp_path / f"episode_{number}.npy") for number in numbers]
        for numbers in ((1, 3), (2, 4))
    )
    np.testing.assert_array_equal(of_game, of_embedded)
