"""Scripted solutions: each task that has one is solved by it, by MineStudio's actions only."""

from dataclasses import replace

import gymnasium
import pytest

from rllib_minestudio.benchmark.players import task_env_config
from rllib_minestudio.benchmark.solutions import FAMILIES, SolutionAgent, make_solution
from rllib_minestudio.benchmark.task import load_suite
from rllib_minestudio.env.actions import ENV_KEYS
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError

SUITE = load_suite("minestudio")
OTHERS = [load_suite(name) for name in ("animals", "memory", "tech-tree")]
SOLVED = [
    (suite, task) for suite in (SUITE, *OTHERS) for task in suite.tasks if task.solution is not None
]
SAMPLE = {
    "mine": "hard/mine_grass",
    "clear": "simple/mine_grass",
    "dig_and_fill": "hard/build_dig3fill1",
    "pillar": "hard/build_pillar",
    "gate": "simple/build_gate",
    "craft": "hard/craft_to_cake",
    "chest": "hard/prepare_a_birthday_present_for_your_neighbor",
    "walk": "simple/run_and_explore",
    "find_biome": "simple/find_forest",
    "hunt": "simple/hunt_a_sheep",
    "use_on_block": "hard/carve_pumpkins",
    "use_on_animal": "simple/collect_wool",
    "sleep": "hard/sleep_in_bed",
    "set_fire": "simple/set_fires",
    "portal": "simple/build_nether_portal",
    "shoot": "simple/use_bow",
    "enchant": "simple/enchant_sword",
    "in_turn": "simple/smelt_food",
}
"""A quick task by family; `in_turn` has the families `back` and `smelt` in it."""


LUCKY = {"simple/tool_flint"}
"""Tasks that luck decides: twenty blocks of gravel, of which one in ten has a flint, are mined by
hand in the time; in one of eight worlds none has."""


def play(task, seed, **config):
    """Play one episode; returns the actions and the last info."""
    env = MineStudioEnv(task_env_config(task, {"obs_size": (16, 16), **config}))
    agent = SolutionAgent(task.solution, seed=seed)
    env.reset(seed=seed)
    actions, ended = [], False
    while not ended:
        actions.append(agent.act(env))
        _, _, terminated, truncated, info = env.step(actions[-1])
        ended = terminated or truncated
    env.close()
    return actions, info


def families_in(solution):
    """Names of the families that a solution consists of."""
    ((name, parameters),) = solution.items()
    return {name}.union(*map(families_in, parameters.get("steps", ())))


@pytest.mark.parametrize("family", SAMPLE)
def test_a_task_of_each_family_is_solved(family):
    task = SUITE.task(SAMPLE[family])
    assert family in task.solution
    _, info = play(task, seed=11)
    assert info["success"], info


def test_a_hunt_leads_down_from_a_tower_and_around_walls():
    """Straight to the animal there is no way: the same hunt without the path fails."""
    task = load_suite("memory").task("two_pens")
    _, info = play(task, seed=11)
    assert info["success"], info
    _, info = play(replace(task, solution={"hunt": {"prey": ["cow"]}}), seed=11)
    assert not info["success"]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "task", [pytest.param(task, id=f"{suite.name}-{task.name}") for suite, task in SOLVED]
)
def test_every_solution_reaches_the_success_within_the_time_limit(task):
    failed = {}
    for seed in (1, 2):
        _, info = play(task, seed)
        if not info["success"]:
            failed[seed] = info
    assert len(failed) <= (task.name in LUCKY), failed


def test_what_can_be_played_of_minestudio_has_a_solution_and_nothing_else():
    solved = {task.name for suite, task in SOLVED if suite is SUITE}
    assert solved == {task.name for task in SUITE.tasks if not task.marks()}
    assert len(solved) >= 40
    assert set(FAMILIES) == set().union(*(families_in(task.solution) for _, task in SOLVED))


def test_every_solution_is_one_of_the_families_with_parameters_in_order():
    for _, task in SOLVED:
        make_solution(task.solution)


def test_tokens_and_keys_are_the_same_play():
    task = SUITE.task("simple/build_pillar")
    tokens, told = play(task, seed=5)
    keys, told_too = play(task, seed=5, action_type="env")
    assert told["success"] and told["player_pos"] == told_too["player_pos"]
    assert len(tokens) == len(keys)
    assert all(set(action) == {"buttons", "camera"} for action in tokens)
    assert all(set(action) == {*ENV_KEYS, "camera"} for action in keys)


def test_a_solution_that_cannot_work_plays_on_without_success():
    task = SUITE.task("simple/collect_dirt").capped(30)
    env = MineStudioEnv(task_env_config(task, {"obs_size": (16, 16)}))
    agent = SolutionAgent({"craft": {"items": {"beacon": 1}}}, seed=0)
    env.reset(seed=0)
    for _ in range(30):
        _, _, _, truncated, info = env.step(agent.act(env))
    assert truncated and not info["success"] and "engine_error" not in info
    env.close()


@pytest.mark.parametrize(
    ("solution", "named"),
    [
        ({"mien": {}}, "unknown family of solutions 'mien'. Did you mean 'mine'?"),
        ({"mine": {}, "walk": {}}, "must be one family and its parameters"),
        ({"mine": {"blocks": ["dirty"]}}, "Did you mean 'dirt'?"),
        ({"mine": {"blocks": ["dirt"], "count": 0}}, "solution.mine.count must be an integer"),
        ({"mine": {"blocks": ["dirt"], "block": ["dirt"]}}, "unknown option 'block'"),
        ({"mine": {}}, "solution.mine.blocks is missing"),
        ({"clear": {"box": [0, 1, 2]}}, "solution.clear.box"),
        ({"craft": {"items": {"torch": "many"}}}, "solution.craft.items.torch"),
        ({"in_turn": {"steps": [{"walk": {"distance": -1}}]}}, "steps[0].walk.distance"),
        ({"hunt": {"prey": ["dragon"]}}, "solution.hunt.prey: unknown animal 'dragon'"),
    ],
)
def test_a_wrong_solution_is_one_sentence(solution, named):
    with pytest.raises(InvalidOptionsError) as caught:
        make_solution(solution)
    assert len(caught.value.problems) == 1
    assert named in caught.value.problems[0]


def test_all_mistakes_are_told_at_once():
    with pytest.raises(InvalidOptionsError) as caught:
        make_solution({"dig_and_fill": {"depth": 0, "fill": "sanded"}})
    assert len(caught.value.problems) == 2


def test_it_plays_the_embedded_engine_only():
    with pytest.raises(TypeError, match="MineStudioEnv"):
        SolutionAgent({"walk": {"distance": 5}}).act(gymnasium.make("CartPole-v1"))
