"""The toolmaker makes its tools in ten of ten worlds, and knows no more than a player does."""

import copy

import numpy as np
import pytest
import yaml

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.actions import check_env_action
from rllib_minestudio.env.agents import HumanLimits, Toolmaker
from rllib_minestudio.env.agents.scripted import make_agent
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.names import PRACTISED_TOOLMAKER
from tests.docs.pages import DOCS

TASK = DOCS.parent / "tuned_examples" / "iron_pickaxe_bc.yaml"
MOST_STEPS = {"wooden_pickaxe": 2500, "stone_pickaxe": 5000, "iron_pickaxe": 12000}


def task_config(**changes):
    """The options of the tuned example, with small frames."""
    (experiment,) = yaml.safe_load(TASK.read_text()).values()
    return {**copy.deepcopy(experiment["config"]["env_config"]), "obs_size": [64, 64], **changes}


def play(env, agent, seed, tools, on_action=None):
    """Play until the last of the tools is in the inventory, in time for each of them.

    Returns:
        How many steps each tool took that was made in time.
    """
    agent.reset()
    _, info = env.reset(seed=seed)
    taken = {}
    for step in range(MOST_STEPS[tools[-1]]):
        held = {stack["type"] for stack in info["inventory"].values()}
        for tool in held.intersection(tools).difference(taken):
            assert info["craft_item"][tool] == 1
            taken[tool] = step
        if tools[-1] in taken:
            break
        action = agent.act(env)
        if on_action is not None:
            on_action(action)
        info = env.step(action)[-1]
    return {tool: step for tool, step in taken.items() if step < MOST_STEPS[tool]}


def test_from_nothing_to_a_wooden_pickaxe_with_tokens_that_say_what_is_done():
    env = MineStudioEnv(task_config())
    mapper = env.sim.mapper
    pressed = set()

    def check(action):
        tokens = (action["buttons"], action["camera"])
        keys = mapper.to_env(*tokens)
        assert env.action_space.contains(
            {name: np.array([token]) for name, token in action.items()}
        )
        assert mapper.from_env(keys) == tokens
        pressed.update(key for key, held in keys.items() if key != "camera" and held)

    assert play(env, Toolmaker("wooden_pickaxe", seed=8), 8, ["wooden_pickaxe"], check)
    assert {"forward", "attack", "use", "sneak", "inventory"} <= pressed
    assert "drop" not in pressed


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(10))
def test_from_nothing_to_an_iron_pickaxe_in_ten_of_ten_worlds(seed):
    """Thousands of steps each; the stone pickaxe is made on the way."""
    tools = ["stone_pickaxe", "iron_pickaxe"]
    env = MineStudioEnv(task_config(obs_size=[16, 16]))
    assert set(play(env, Toolmaker(tools[-1], seed=seed), seed, tools)) == set(tools)


def test_it_digs_for_ore_that_lies_deep_below_and_sees_it_when_it_is_there():
    tools = [("stone_pickaxe", 1), ("stone_pickaxe", 1), ("oak_planks", 20), ("crafting_table", 1)]
    given = [{"slot": i, "type": name, "quantity": n} for i, (name, n) in enumerate(tools)]
    vein = "/fill ~-12 55 ~-12 ~12 55 ~12 iron_ore"  # below, whatever the direction
    callbacks = [{"Commands": [vein]}, {"InitInventory": given}]
    env = MineStudioEnv(task_config(callbacks=callbacks, obs_size=[16, 16]))
    agent, (_, info) = Toolmaker("iron_pickaxe", seed=2), env.reset(seed=2)
    surface, layers = info["player_pos"]["y"], []
    while not info["pickup"].get("iron_ore") and len(layers) < 2500:
        info = env.step(agent.act(env))[-1]
        layers.append(info["player_pos"]["y"])
    assert info["pickup"]["iron_ore"] and surface - 4 > min(layers) > 54


def test_one_seed_is_one_way_to_play_whatever_the_type_of_actions():
    played = []
    for action_type in ("agent", "agent", "env"):
        env = MineStudioEnv(task_config(action_type=action_type))
        env.reset(seed=3)
        agent = Toolmaker(seed=8)
        for _ in range(150):
            action = agent.act(env)
            if action_type == "env":
                check_env_action(action)
            env.step(action)
        played.append(env.sim.info["player_pos"])
    assert played[0] == played[1] == played[2]


@pytest.mark.parametrize("seed", [1, 2])
def test_it_takes_over_where_another_left_its_screen_and_its_things(seed):
    give = {"InitInventory": {"init_inventory": [{"slot": 0, "type": "oak_log", "quantity": 8}]}}
    env = MineStudioEnv(task_config(callbacks=[give], obs_size=[16, 16], action_type="env"))
    env.reset(seed=seed)
    away = {1: (9.0, 0.0), 2: (0.0, 40.0)}[seed]  # off the panel, where a click throws things away
    keys = [{"inventory": 1}, {}, {"camera": (10.2, -9.6)}, {"attack": 1}, {}]
    keys += [{"camera": away}, {"use": 1}, {}, {"hotbar.7": 1}]
    for key in keys:
        _, _, _, _, info = env.step({**env.sim.noop_action(), **key})
    held = sum(stack["quantity"] for stack in info["inventory"].values())
    assert info["isGuiOpen"] and held < 8
    agent = make_agent(PRACTISED_TOOLMAKER, goal="wooden_pickaxe", seed=seed)
    agent.take_over()
    for _ in range(900):
        info = env.step(agent.act(env))[-1]
        if info["craft_item"].get("wooden_pickaxe"):
            break
    assert info["craft_item"].get("wooden_pickaxe") == 1
    assert not info["mine_block"].get("oak_log")  # it had picked up what was thrown away


def test_it_does_not_notice_what_is_behind_it_or_inside_the_rock():
    positions = []
    for commands in ([], ["/fill ~-3 ~ ~-9 ~3 ~3 ~-6 iron_ore", "/setblock ~ ~-6 ~4 iron_ore"]):
        level = ["/fill ~-20 ~ ~-20 ~20 ~9 ~20 air", "/tp @p ~ ~ ~ 0 0", *commands]
        env = MineStudioEnv(task_config(callbacks=[{"Commands": {"commands": level}}]))
        env.reset(seed=1)
        agent = Toolmaker(seed=1, limits=HumanLimits(search_speed=0.0))  # never turns round
        for _ in range(40):
            env.step(agent.act(env))
        positions.append(env.sim.info["player_pos"])
    assert positions[0] == positions[1]


def test_the_task_says_what_to_make():
    make = {"name": "stone", "make": "stone_pickaxe"}
    env = MineStudioEnv(task_config(callbacks=[{"Task": {"task_cfg": make}}]))
    env.reset(seed=0)
    agent = Toolmaker(seed=0)
    agent.act(env)
    assert agent.goal == "stone_pickaxe"
    agent.reset()
    assert agent.goal == "iron_pickaxe"


def test_it_makes_what_it_knows_how_to_make_only():
    with pytest.raises(InvalidOptionsError, match="Did you mean 'iron_pickaxe'"):
        Toolmaker("iron_pikaxe")
    make = {"name": "cake", "make": "cake"}
    env = MineStudioEnv(task_config(callbacks=[{"Task": {"task_cfg": make}}]))
    env.reset(seed=0)
    with pytest.raises(InvalidOptionsError, match="make of the task 'cake'"):
        Toolmaker().act(env)


def test_a_practised_one_makes_a_stone_pickaxe_within_a_minute():
    (experiment,) = yaml.safe_load((TASK.parent / "stone_pickaxe_bc.yaml").read_text()).values()
    env = MineStudioEnv({**experiment["config"]["env_config"], "obs_size": [64, 64]})
    agent = make_agent(PRACTISED_TOOLMAKER, seed=904, goal="stone_pickaxe")
    assert play(env, agent, 904, ("wooden_pickaxe", "stone_pickaxe"))["stone_pickaxe"] < 900
    assert env.sim.info["craft_item"]["oak_planks"] == 8 * 4  # all logs at once
