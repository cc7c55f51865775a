"""What MineStudio's further callbacks do without MineStudio: expectations written by hand.

`tests/env/backends/minecraft/test_callbacks_beside_minestudio.py` compares each with the original.
"""

import logging

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv, minestudio_env
from rllib_minestudio.env.callbacks import GateRewardsCallback, build_callbacks
from rllib_minestudio.env.callbacks.rewards import gate_score
from rllib_minestudio.errors import InvalidOptionsError

SMALL = {"obs_size": [32, 32], "num_empty_frames": 1, "preferred_spawn_biome": "plains"}
IDLE = {"buttons": 0, "camera": 60}
ATTACK_AND_TURN = {"buttons": 5, "camera": 60 + 5}

FRAME = """
#####
#...#
#...#
#####
"""
"""A portal's frame lying on its side: columns are heights."""


def portal(picture, along="x"):
    """Blocks of obsidian where a picture has a #."""
    places = [
        (across, up)
        for across, line in enumerate(picture.split())
        for up, mark in enumerate(line)
        if mark == "#"
    ]
    turned = {"x": lambda across: (across, 0), "z": lambda across: (0, across)}[along]
    return [
        {"type": "obsidian", "x": 7 + turned(across)[0], "y": 64 + up, "z": turned(across)[1] - 9}
        for across, up in places
    ]


@pytest.mark.parametrize("along", ["x", "z"])
@pytest.mark.parametrize(
    ("picture", "score"),
    [
        ("", 0.0),
        ("#", 1 - 0.1),
        ("###", 3 - 0.3),
        (FRAME, 14 + 2 - 1.4),
        (FRAME.replace("#####\n#...#", "####.\n#...#"), 13 + 1 - 1.3),
        (FRAME.replace("...", "##.", 1), 14 + 2 - 2 - 1.6),
        # Without its lower corner, the best is a frame one block higher: 8 blocks, 2 in its way.
        (".####\n#...#\n#...#\n#####", 8 - 2 - 1.3),
    ],
)
def test_the_score_of_a_gate(picture, score, along):
    assert gate_score(portal(picture, along)) == pytest.approx(score)
    others = [{"type": "dirt", "x": i, "y": 64, "z": -9} for i in range(7, 11)]
    assert gate_score([*others, *portal(picture, along)]) == gate_score(portal(picture, along))


def test_a_gate_pays_the_difference_of_scores_and_keeps_what_it_cannot_see():
    gate = GateRewardsCallback()

    def pay(info):
        return gate.after_step(None, {}, 5.0, False, False, info)[1]

    gate.after_reset(None, {}, {})
    assert pay({"voxels": portal("###")}) == pytest.approx(2.7)
    assert pay({"voxels": portal("####")}) == pytest.approx(0.9)
    assert pay({}) == 0.0
    assert pay({"voxels": portal("##")}) == pytest.approx(-1.8)
    gate.after_reset(None, {}, {})
    assert pay({"voxels": portal("##")}) == pytest.approx(1.8)


@pytest.mark.parametrize("asked", [[], ["Voxels"], [{"Voxels": [1, 1, 0, 0, 0, 0]}]])
def test_a_gate_asks_for_blocks_if_nobody_else_does(asked):
    build = {"Commands": ["/setblock ~3 ~ ~ obsidian"]}
    env = MineStudioEnv(SMALL, callbacks=[build, "GateRewards", *asked])
    env.reset(seed=1)
    _, reward, *_ = env.step(IDLE)
    box = 1 if len(asked) and isinstance(asked[0], dict) else 15**3
    assert len(env.sim.info["voxels"]) == box
    assert reward == (0.0 if box == 1 else pytest.approx(0.9))


def test_a_hard_reset_loads_another_world_and_goes_to_its_place():
    spawns = [{"seed": seed, "position": [10 * seed, 90, -7.25]} for seed in (3, 4, 5)]
    env = MineStudioEnv(SMALL, callbacks=[{"HardReset": spawns}])
    resets, reset = [], env.backend.reset
    env.backend.reset = lambda: resets.append(env.backend._seed) or reset()
    places = []
    for i in range(8):
        _, info = env.reset(seed=6 if i == 0 else None)
        places.append(info["player_pos"])
        assert 60 < info["player_pos"]["y"] < 90  # it has landed
    assert [place["x"] for place in places] == [10 * seed + 0.5 for seed in resets]
    assert {place["z"] for place in places} == {-7.25}
    assert set(resets) == {3, 4, 5}
    again = MineStudioEnv(SMALL, callbacks=[{"HardReset": spawns}])
    assert again.reset(seed=6)[1]["player_pos"] == places[0]


def test_the_task_is_drawn_and_told():
    tasks = [{"name": name, "text": f"{name} it", "level": 2} for name in ("dig", "chop", "hunt")]
    env = MineStudioEnv(SMALL, callbacks=[{"Task": tasks}])
    seen = []
    for i in range(10):
        _, info = env.reset(seed=1 if i == 0 else None)
        assert env.sim.obs["task"] in tasks
        assert info["task"] == env.sim.obs["task"]["name"]
        for told in (info, env.step(IDLE)[-1]):
            assert (told["task"], told["task_text"]) == (info["task"], f"{info['task']} it")
        seen.append(info["task"])
    assert set(seen) == {"dig", "chop", "hunt"}
    (one,) = build_callbacks([{"Task": {"task_cfg": {"name": "mine"}}}])
    assert one.task_cfg == [{"name": "mine"}]


def test_a_tasks_text_is_in_every_observation_as_bytes():
    tasks = [{"name": "chop", "text": "fälle den Baum"}, {"name": "idle"}]
    env = MineStudioEnv(SMALL, callbacks=[{"Task": {"task_cfg": tasks, "max_text_bytes": 15}}])
    seen = set()
    for i in range(8):
        obs, info = env.reset(seed=i)
        for told in (obs, env.step(IDLE)[0]):
            assert told["task_text"].shape == (15,) and told["task_text"].dtype == np.uint8
            assert bytes(told["task_text"]).rstrip(b"\0").decode() == info["task_text"]
            assert set(told) == {"image", "task_text"}
            told["task_text"][:] = 1  # whoever changes it changes nobody else's
        seen.add(info["task"])
    assert seen == {"chop", "idle"}


def test_the_previous_action_is_that_of_the_callbacks_before():
    env = MineStudioEnv(SMALL, callbacks=[{"MaskActions": {"attack": 0}}, "PrevAction"])
    obs, _ = env.reset(seed=1)
    told = obs["env_prev_action"]
    assert len(told) == 21 and not any(value.any() for value in told.values())
    keys = {"attack": 1, "jump": 1, "camera": np.array([0.0, 4.0])}
    for _ in range(2):
        obs, *_ = env.step(env.sim.env_action_to_agent_action(keys))
    told = obs["env_prev_action"]
    pressed = [key for key, value in told.items() if key != "camera" and value]
    assert pressed == ["jump"]
    assert told["camera"][0] == 0.0 and 3.0 < told["camera"][1] < 5.0
    assert {(value.shape, value.dtype.kind) for value in told.values()} == {((), "i"), ((2,), "f")}
    assert env.render().shape == (360, 640, 3)


class AddsCompass:
    def after_step(self, sim, obs, *result):
        return {**obs, "compass": np.zeros(2)}, *result


def test_what_policies_do_not_see_is_said_once_by_name(caplog):
    minestudio_env._note_left_out.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            env = MineStudioEnv(SMALL, callbacks=[AddsCompass(), {"Task": [{"name": "dig"}]}])
            assert set(env.reset()[0]) == set(env.step(IDLE)[0]) == {"image", "task_text"}
            assert "compass" in env.sim.obs
    (record,) = caplog.records  # the task is told in the info
    assert "'compass'" in record.getMessage() and "observation_spaces(self)" in record.getMessage()


def test_the_speed_test_prints_every_so_often(capsys):
    env = MineStudioEnv(SMALL, callbacks=[{"SpeedTest": 3}])
    env.reset()
    for _ in range(7):
        env.step(IDLE)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" over ")[1] for line in lines] == ["3 steps", "6 steps"]
    rate, milliseconds = lines[-1].removeprefix("SpeedTest: ").split(" over ")[0].split(", ")
    assert float(rate.split()[0]) * float(milliseconds.split()[0]) == pytest.approx(1000, rel=0.05)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"GateRewards": {"size": 3}}, r"unknown argument 'size'"),
        ({"Voxels": {"voxel_ins": [1]}}, r"argument 'voxel_ins'\. Did you mean 'voxels_ins'"),
        ({"Voxels": [3, -3, 0, 0, 0, 0]}, r"must be x0,x1,y0,y1,z0,z1 in order"),
        ({"Voxels": [0, 0.5, 0, 0, 0, 0]}, r"must be six integers"),
        ({"Voxels": [-50, 50, -50, 50, -50, 50]}, r"may ask for at most 32768 blocks"),
        ({"Voxels": [0] * 6}, r"must not be all zeros"),
        ({"HardReset": []}, r"must be a non-empty list"),
        ({"HardReset": [{"seed": "7", "position": [1, 2]}]}, r"(?s)seed must be.*position must be"),
        ({"HardReset": [{"seeds": 7}]}, r"Did you mean 'seed'"),
        ({"HardReset": [{"seed": 2**63, "position": [0, 64, 4e7]}]}, r"(?s)64 bits.*30000000"),
        ({"Task": []}, r"must be a non-empty list"),
        ({"Task": [{"nmae": "dig"}]}, r"task_cfg\[0\]\.name must be the name"),
        ({"Task": [{"name": "dig", "text": 3}]}, r"task_cfg\[0\]\.text must say in words"),
        ({"Task": [{"name": "dig", "text": "a\0b"}]}, r"task_cfg\[0\]\.text must say in words"),
        ({"Task": [{"name": "dig", "text": "\ud800"}]}, r"task_cfg\[0\]\.text must say in words"),
        (
            {"Task": {"task_cfg": [{"name": "dig", "text": "ä" * 40}]}},
            r"text of the task 'dig' must be at most max_text_bytes=64 .* set max_text_bytes: 80",
        ),
        (
            {"Task": {"task_cfg": {"name": "dig"}, "max_text_bytes": 0}},
            r"max_text_bytes must be an integer from 1 to 4096; got 0",
        ),
        ({"SpeedTest": 0}, r"interval must be an integer from 1"),
        ({"PrevAction": {"keys": []}}, r"unknown argument 'keys'"),
    ],
)
def test_mistakes_are_named(spec, message):
    with pytest.raises(InvalidOptionsError, match=message):
        build_callbacks([spec])
