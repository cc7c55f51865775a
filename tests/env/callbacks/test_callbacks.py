"""What each callback does to the loop."""

import logging
import sys
import types

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.callbacks import Compose, MinecraftCallback, RewardsCallback
from rllib_minestudio.errors import InvalidOptionsError

SMALL = {"obs_size": [64, 64], "num_empty_frames": 1}
IDLE = {"buttons": 0, "camera": 60}
ATTACK = {"buttons": 4, "camera": 60}


def pay(callback, **counts):
    """The reward of one step after which the statistics are `counts`."""
    info = {"kill_entity": counts}
    return callback.after_step(None, {}, 99.0, False, False, info)[1]


def rule(**changes):
    return {
        "event": "kill_entity",
        "objects": ["cow"],
        "reward": 1.0,
        "identity": "hunt",
        "max_reward_times": 3,
        **changes,
    }


def test_rewards_pay_for_every_kill_up_to_the_limit():
    rewards = RewardsCallback([rule(objects=["cow", "sheep"], reward=2.0)])
    rewards.after_reset(None, {}, {"kill_entity": {"cow": 5}})
    assert pay(rewards, cow=5) == 0.0
    assert pay(rewards, cow=6, sheep=1, pig=4) == 4.0
    assert pay(rewards, cow=8, sheep=2) == 2.0
    assert pay(rewards, cow=9, sheep=2) == 0.0


def test_a_reset_renews_the_limit_and_takes_over_the_counts():
    rewards = RewardsCallback([rule(max_reward_times=1)])
    rewards.after_reset(None, {}, {})
    assert pay(rewards, cow=2) == 1.0
    rewards.after_reset(None, {}, {"kill_entity": {"cow": 2}})
    assert pay(rewards, cow=2) == 0.0
    assert pay(rewards, cow=3) == 1.0


def test_rules_of_one_identity_share_their_limit():
    shared = [rule(), rule(objects=["sheep"], reward=0.5)]
    rewards = RewardsCallback(shared)
    rewards.after_reset(None, {}, {})
    assert pay(rewards, cow=2, sheep=5) == 2.5
    separate = RewardsCallback([shared[0], {**shared[1], "identity": "shear"}])
    separate.after_reset(None, {}, {})
    assert pay(separate, cow=2, sheep=5) == 3.5


def test_a_rule_with_a_task_pays_in_its_episodes_only():
    rewards = RewardsCallback([rule(task="cows"), rule(objects=["pig"], identity="any")])

    def told(task, **counts):
        return {"kill_entity": counts, "task": task}

    def paid(task, **counts):
        return rewards.after_step(None, {}, 0.0, False, False, told(task, **counts))[1]

    rewards.after_reset(None, {}, told("cows"))
    assert paid("cows", cow=1) == 1.0
    rewards.after_reset(None, {}, told("sheep", cow=1))
    assert paid("sheep", cow=3, pig=1) == 1.0  # for the pig
    assert paid("cows", cow=3, pig=1) == 0.0  # nothing late, whoever changes the task meanwhile
    assert paid("cows", cow=4, pig=1) == 1.0


def test_a_rule_with_a_task_needs_somebody_to_name_the_task():
    env = MineStudioEnv(SMALL, callbacks=[{"Rewards": [rule(task="cows")]}])
    with pytest.raises(InvalidOptionsError, match="list Task or TaskFile before Rewards"):
        env.reset()


def test_summoned_mobs_surround_the_player():
    mobs = [
        {"name": "cow", "number": 3, "range_x": [4, 5], "range_z": [-5, -4]},
        {"mob_name": "minecraft:sheep", "number": 2, "range_x": [-2, 2], "range_z": [-2, 2]},
    ]
    env = MineStudioEnv(SMALL, callbacks=[{"SummonMobs": mobs}])
    env.reset(seed=4)
    player = env.sim.info["player_pos"]
    near = env.backend.mobs_near(32)
    assert sorted(mob["name"] for mob in near) == ["cow"] * 3 + ["sheep"] * 2
    for mob in near:
        if mob["name"] == "cow":
            assert 3 < mob["x"] - player["x"] < 6
            assert -6 < mob["z"] - player["z"] < -3


def test_empty_lists_do_nothing():
    env = MineStudioEnv(
        SMALL,
        num_empty_frames=0,
        callbacks=[{"SummonMobs": {"mobs": []}}, {"Commands": {"commands": []}}],
    )
    obs, info = env.reset()
    assert obs in env.observation_space and "player_pos" in info


def test_commands_run_in_order_and_complaints_are_logged_once(caplog):
    commands = ["/give @p minecraft:dirt 2", "/give @p minecraft:no_such_thing 1", "give @p stone"]
    env = MineStudioEnv(SMALL, callbacks=[{"Commands": commands}])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            _, info = env.reset()
    assert info["inventory"][0] == {"type": "dirt", "quantity": 2}
    assert info["inventory"][1] == {"type": "stone", "quantity": 1}
    assert len(caplog.records) == 1 and "no_such_thing" in caplog.text


def test_fast_resets_of_an_empty_place_do_not_complain(caplog):
    fast_reset = {"FastReset": {"biomes": ["plains"], "random_tp_range": 0}}
    env = MineStudioEnv(SMALL, callbacks=[fast_reset])
    with caplog.at_level(logging.WARNING):
        env.reset()
        env.reset()
    assert not caplog.records


def test_masked_keys_stay_up():
    env = MineStudioEnv(SMALL, callbacks=[{"MaskActions": {"forward": 0, "camera": [0, 0]}}])
    env.reset(seed=0)
    before = env.sim.info["player_pos"]
    for _ in range(10):
        env.step(env.sim.env_action_to_agent_action({"forward": 1, "camera": (5, 5)}))
    assert env.sim.info["player_pos"] == before


def test_fast_reset_moves_the_player_and_clears_the_place(cow_task):
    env = MineStudioEnv({**cow_task, **SMALL})
    env.reset(seed=0)
    first = env.sim.info["player_pos"]
    resets = 0
    engine_reset = env.backend.reset

    def counting_reset():
        nonlocal resets
        resets += 1
        return engine_reset()

    env.backend.reset = counting_reset
    _, info = env.reset()
    assert resets == 0, "a fast reset must not reload the world"
    here = info["player_pos"]
    assert max(abs(here["x"]), abs(here["z"])) < 600
    assert (here["x"], here["z"]) != (first["x"], first["z"])
    assert len(env.backend.mobs_near(100)) == 10
    assert [stack["type"] for stack in info["inventory"].values()].count("iron_sword") == 1
    env.reset(seed=1)
    assert resets == 1


class Recorder(MinecraftCallback):
    def __init__(self, name, log):
        self.name, self.log = name, log

    def before_reset(self, sim, reset_flag):
        self.log.append(self.name)
        return reset_flag

    def after_render(self, sim, image):
        return np.zeros_like(image)

    def before_close(self, sim):
        self.log.append(f"close {self.name}")


def test_compose_draws_a_reproducible_subset_and_closes_everything():
    def play(seed):
        log = []
        parts = [Recorder(name, log) for name in "abcd"]
        env = MineStudioEnv(SMALL, callbacks=[Compose(parts, options=2)])
        for i in range(6):
            env.reset(seed=seed if i == 0 else None)
        assert not env.render().any()
        env.close()
        return log

    log = play(1)
    assert log[-4:] == ["close a", "close b", "close c", "close d"]
    draws = [tuple(log[i : i + 2]) for i in range(0, 12, 2)]
    assert len(set(draws)) > 1 and all(first < second for first, second in draws)
    assert play(1) == log


class JustRewards:
    """A third party's class: no base, one hook."""

    def after_step(self, sim, obs, reward, terminated, truncated, info):
        info["steps"] = info.get("steps", 0) + 1
        return obs, reward + 1.5, terminated, truncated, info


def test_a_plain_class_with_one_hook_by_import_path(monkeypatch):
    module = types.ModuleType("third_party")
    module.JustRewards = JustRewards
    monkeypatch.setitem(sys.modules, "third_party", module)
    env = MineStudioEnv(SMALL, callbacks=["third_party.JustRewards", "third_party.JustRewards"])
    env.reset()
    for _ in range(2):
        _, reward, *_, info = env.step(IDLE)
        assert reward == 3.0
        assert info["steps"] == 2, "an info must not carry over what an earlier step added"


class VetoAll:
    def before_reset(self, sim, reset_flag):
        return False


def test_a_veto_cannot_prevent_the_first_or_a_seeded_reset():
    env = MineStudioEnv(SMALL, callbacks=[VetoAll()])
    first, _ = env.reset(seed=2)
    env.step(ATTACK)
    again, _ = env.reset(seed=2)
    np.testing.assert_array_equal(first["image"], again["image"])


class WorldOfItsOwn:
    def before_reset(self, sim, reset_flag):
        sim.env.seed(123)
        return True


def test_a_callback_may_choose_the_world():
    frames = [
        MineStudioEnv(SMALL, seed=seed, callbacks=[WorldOfItsOwn()]).reset()[0]["image"]
        for seed in (0, 1)
    ]
    np.testing.assert_array_equal(*frames)


@pytest.mark.parametrize("biome", ["plains", "forest"])
def test_the_spawn_biome_is_honoured(biome):
    env = MineStudioEnv(SMALL, preferred_spawn_biome=biome)
    _, info = env.reset(seed=0)
    assert "player_pos" in info
