"""The judge beside a world that commands change: every fact against what was done."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.benchmark.judge import JudgeTaskCallback
from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.evaluation.filters import WORLD_FACTS

IDLE = {"buttons": np.array([0]), "camera": np.array([60])}


def play(success, *, time_limit=50, seed=3, world=(), **facts):
    """Begin an episode of a task on a floor of stone, whose top is below the player's feet."""
    task = BenchmarkTask.from_mapping(
        "a",
        {
            "text": "Do it.",
            "category": "c",
            "time_limit": time_limit,
            "success": success,
            "because": "x",
            **facts,
        },
    )
    floor = ["/fill ~-30 ~-8 ~-30 ~30 ~-1 ~30 stone", "/fill ~-30 ~ ~-30 ~30 ~6 ~30 air"]
    env = MineStudioEnv(
        obs_size=(32, 32),
        preferred_spawn_biome="desert",  # without dirt
        callbacks=[
            {"Commands": [*floor, *world]},
            {"JudgeReset": time_limit},
            JudgeTaskCallback.spec_of(task),
        ],
    )
    _, info = env.reset(seed=seed)
    assert info["success"] is False and info["progress"] == 0.0
    return env


def after(env, *commands):
    """Execute commands, play a step, and return all of it but the observation."""
    for command in commands:
        assert env.backend.engine.execute(command).ok, command
    return env.step(IDLE)[1:]


def told(env, fact, *commands):
    return after(env, *commands)[-1][WORLD_FACTS][fact]


def test_success_at_any_time_pays_and_terminates_once_it_holds():
    env = play("block:dirt@2,0,0>=1")
    reward, terminated, truncated, info = after(env)
    assert (reward, terminated, truncated, info["success"]) == (0.0, False, False, False)
    reward, terminated, truncated, info = after(env, "/setblock ~2 ~ ~ dirt")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert info["progress"] == 1.0 and info["task_text"] == "Do it."


def test_success_at_the_end_is_judged_when_the_time_limit_cuts_the_episode_off():
    env = play("block:dirt@2,0,0>=1", time_limit=3, judged="at_end")
    results = [after(env, "/setblock ~2 ~ ~ dirt"), after(env), after(env)]
    assert [result[-1]["success"] for result in results] == [False, False, True]
    assert [result[0] for result in results] == [0.0, 0.0, 1.0]
    assert [result[1:3] for result in results] == [(False, False)] * 2 + [(False, True)]
    env = play("block:dirt@2,0,0>=1", time_limit=2, judged="at_end")
    after(env, "/setblock ~2 ~ ~ dirt")
    assert after(env, "/setblock ~2 ~ ~ air")[-1]["success"] is False


def test_staying_alive_is_judged_at_the_end_and_fails_with_the_players_death():
    env = play("alive>=1", time_limit=2, judged="at_end")
    assert after(env)[-1]["success"] is False
    assert after(env)[-1]["success"] is True
    env = play("alive>=1", time_limit=50, judged="at_end")
    env.backend.engine.player.health = 0.0
    _, terminated, _, info = after(env)
    assert terminated and info["success"] is False


def test_placed_counts_what_is_new_and_block_what_is_there():
    block, placed = "block:d*@near", "placed:dirt@near"
    env = play(f"{block}>=99 and {placed}>=99", world=["/setblock ~2 ~ ~ dirt"])
    assert (told(env, block), told(env, placed)) == (1, 0)
    assert told(env, placed, "/setblock ~3 ~ ~ dirt") == 1
    assert told(env, block, "/setblock ~3 ~1 ~ diorite") == 3
    assert told(env, placed, "/setblock ~2 ~ ~ air", "/setblock ~2 ~ ~ dirt") == 1, "it was there"
    assert told(env, placed, "/setblock ~9 ~ ~ dirt", "/setblock ~8 ~ ~ dirt") == 2, "9 is outside"
    assert told(env, placed, "/fill ~3 ~ ~ ~8 ~ ~ air") == 0


def test_a_box_stays_where_the_episode_began_and_what_is_out_of_reach_still_counts():
    fact = "placed:dirt@2,0,0"
    env = play(f"{fact}>=9")
    x, y, z = (int(c // 1) for c in env.backend.engine.player.position.tolist())
    assert told(env, fact, f"/setblock {x + 2} {y} {z} dirt") == 1
    assert told(env, fact, f"/tp @s {x + 20} {y} {z}", "/setblock ~2 ~ ~ dirt") == 1
    assert told(env, fact, f"/tp @s {x + 400} 80 {z}", "/setblock ~2 ~ ~ dirt") == 1
    assert told(env, fact, f"/tp @s {x} {y} {z}") == 1
    assert told(env, fact, f"/setblock {x + 2} {y} {z} air") == 0


def test_inside_is_what_feet_and_eyes_are_in():
    fact = "inside:cobweb"
    env = play("not inside:air and inside:cobweb", progress={"of": "length", "goal": 1})
    assert told(env, fact) == 0
    assert told(env, fact, "/setblock ~ ~1 ~ cobweb") == 1
    assert told(env, fact, "/setblock ~ ~1 ~ air", "/setblock ~1 ~ ~ cobweb") == 0


def test_chest_counts_what_lies_in_chests_around():
    fact = "chest:oak_*"
    env = play(f"{fact}>=99")
    engine = env.backend.engine
    state = engine._game.state
    x, y, z = (int(c // 1) for c in engine.player.position.tolist())
    for dx, kind in ((2, "chest"), (16, "chest"), (17, "chest"), (3, "furnace")):
        assert engine.execute(f"/setblock {x + dx} {y} {z} {kind}").ok
        container = state.block_entities.at((x + dx, y, z), BLOCK_ID[kind])
        container.set(1, ITEM_ID["oak_log"], 5)
        container.set(0, ITEM_ID["stick"], 7)
    assert told(env, fact) == 10, "two chests are within 16 blocks, and a furnace is none"


def test_progress_is_the_greatest_so_far():
    env = play("return>=9", progress={"of": "block:dirt@2..5,0,0", "goal": 4})
    seen = [
        after(env, *commands)[-1]["progress"]
        for commands in (["/fill ~2 ~ ~ ~4 ~ ~ dirt"], ["/fill ~2 ~ ~ ~4 ~ ~ air"], [])
    ]
    assert seen == [0.75] * 3
    _, info = env.reset(seed=3)
    assert info["progress"] == 0.0
    env = play("block:dirt@near>=9", progress={"of": "block:dirt@near", "goal": 2})
    assert after(env, "/fill ~2 ~ ~ ~4 ~ ~ dirt")[-1]["progress"] == 1.0, "clipped"


@pytest.mark.parametrize(
    "name, commands, almost",
    [
        ("pillar", ["/fill ~2 ~ ~ ~2 ~3 ~ dirt"], ["/fill ~2 ~ ~ ~2 ~2 ~ dirt"]),
        (
            "gate",
            [
                "/fill ~2 ~ ~2 ~2 ~1 ~2 dirt",
                "/fill ~2 ~ ~4 ~2 ~1 ~4 dirt",
                "/fill ~2 ~2 ~2 ~2 ~2 ~4 dirt",
            ],
            ["/fill ~2 ~ ~2 ~2 ~2 ~4 dirt"],  # no way through
        ),
        ("wall", ["/fill ~2 ~ ~2 ~2 ~1 ~4 dirt"], ["/fill ~2 ~ ~2 ~2 ~1 ~3 dirt"]),
        (
            "stairs",
            ["/setblock ~4 ~ ~ dirt", "/setblock ~3 ~1 ~ dirt", "/setblock ~2 ~2 ~ dirt"],
            ["/setblock ~4 ~ ~ dirt", "/setblock ~3 ~1 ~ dirt", "/setblock ~2 ~1 ~ dirt"],
        ),
        ("bridge", ["/fill ~2 ~2 ~ ~2 ~2 ~2 dirt"], ["/fill ~2 ~ ~ ~2 ~ ~2 dirt"]),
        (
            "portal_frame",
            ["/fill ~2 ~ ~2 ~2 ~4 ~5 obsidian", "/fill ~2 ~1 ~3 ~2 ~3 ~4 air"],
            ["/fill ~2 ~ ~2 ~2 ~4 ~5 dirt", "/fill ~2 ~1 ~3 ~2 ~3 ~4 air"],
        ),
    ],
)
def test_structures(name, commands, almost):
    fact = f"structure:{name}"
    assert told(play(f"{fact}>=99"), fact, *commands) >= 1
    assert told(play(f"{fact}>=99"), fact, *almost) == 0
    assert told(play(f"{fact}>=99", world=commands), fact, "/setblock ~-3 ~ ~-3 dirt") == 0


def test_rewards_of_the_task_take_the_place_of_the_payment_for_success():
    rewards = {"Rewards": {"reward_cfg": []}}
    env = play("block:dirt@2,0,0>=1", rewards=rewards)
    reward, terminated, *_ = after(env, "/setblock ~2 ~ ~ dirt")
    assert terminated and reward == 0.0
