"""Callbacks from plain data: what is accepted, and how mistakes are reported."""

import re
from pathlib import Path

import pytest

from rllib_minestudio.env.callbacks import (
    CALLBACKS,
    Compose,
    FastResetCallback,
    JudgeResetCallback,
    MaskActionsCallback,
    SummonMobsCallback,
    build_callbacks,
    check_callbacks,
)
from rllib_minestudio.errors import InvalidOptionsError


class OnlyAfterReset:
    """What a third party might write: no base class, one hook, one option."""

    def __init__(self, goal, patience=3):
        self.goal, self.patience = goal, patience

    def after_reset(self, sim, obs, info):
        return obs, info


class NoHooks:
    pass


class Explosive:
    def __init__(self):
        raise RuntimeError("boom")

    def after_reset(self, sim, obs, info):
        return obs, info


@pytest.fixture(autouse=True)
def importable(monkeypatch, tmp_path):
    """Make the classes above importable as a package of the user's."""
    import sys
    import types

    module = types.ModuleType("users_tasks")
    module.OnlyAfterReset, module.NoHooks, module.Explosive = OnlyAfterReset, NoHooks, Explosive
    monkeypatch.setitem(sys.modules, "users_tasks", module)


def test_the_cow_task_builds(cow_task):
    names = [type(callback).__name__ for callback in build_callbacks(cow_task["callbacks"])]
    assert names == [
        "SummonMobsCallback",
        "MaskActionsCallback",
        "RewardsCallback",
        "CommandsCallback",
        "FastResetCallback",
        "JudgeResetCallback",
    ]


def test_every_form_of_a_spec():
    given = OnlyAfterReset("gold")
    built = build_callbacks(
        [
            "JudgeReset",
            {"JudgeResetCallback": None},
            {"JudgeReset": {"time_limit": 7}},
            {"JudgeReset": 8},
            {"MaskActions": {"hotbar.1": 0, "camera": [0, 0]}},
            {"users_tasks.OnlyAfterReset": {"goal": "iron"}},
            given,
            {"Compose": {"callbacks": ["JudgeReset", {"JudgeReset": 9}], "options": 1}},
        ]
    )
    assert [c.time_limit for c in built[:4]] == [600, 600, 7, 8]
    assert isinstance(built[4], MaskActionsCallback)
    assert isinstance(built[5], OnlyAfterReset) and built[5].goal == "iron"
    assert built[6] is given
    assert isinstance(built[7], Compose) and built[7].callbacks[1].time_limit == 9
    assert build_callbacks([]) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("JugdeReset", r"unknown callback 'JugdeReset'\. Did you mean 'JudgeReset'\?"),
        ("users_tasks.OnlyAfterRest", r"has no class.*Did you mean 'OnlyAfterReset'"),
        ("no_such_package.Thing", r"cannot import 'no_such_package'"),
        ("users_tasks.NoHooks", r"has none of the hooks"),
        ("users_tasks.Explosive", r"constructor raised RuntimeError: boom"),
        ("users_tasks.OnlyAfterReset", r"argument 'goal' is missing"),
        ({"JudgeReset": {"time_limt": 5}}, r"argument 'time_limt'. Did you mean 'time_limit'"),
        ({"JudgeReset": {"time_limit": "600"}}, r"JudgeReset: time_limit must be an integer"),
        ({"JudgeReset": {"time_limit": 0}}, r"from 1 to 1000000000; got 0"),
        ({"JudgeReset": None, "FastReset": None}, r"Is the indentation"),
        ({"MaskActions": {"invntory": 0}}, r"unknown key 'invntory'. Did you mean 'inventory'"),
        ({"MaskActions": {"inventory": 2}}, r"inventory must be in \[0, 1\]"),
        ({"Commands": {"commands": "/kill"}}, r"commands must be a list"),
        ({"Commands": {"commands": ["/say a\n/kill"]}}, r"one non-empty line"),
        ({"FastReset": {"biomes": []}}, r"argument 'random_tp_range' is missing"),
        (
            {"FastReset": {"biomes": [], "random_tp_range": 1.5, "start_weather": "sunny"}},
            r"(?s)biomes must be.*random_tp_range must be.*start_weather must be one of",
        ),
        ({"Rewards": [{"event": "kill_entty"}]}, r"Did you mean 'kill_entity'"),
        (
            {"SummonMobs": [{"name": "cow", "number": -1, "range_x": [5, -5], "range_z": 1}]},
            r"(?s)mobs\[0\]\.number.*mobs\[0\]\.range_x.*mobs\[0\]\.range_z",
        ),
        ({"SummonMobs": [{"nmae": "cow"}]}, r"unknown field of mobs\[0\] 'nmae'"),
        ({"Compose": {"callbacks": ["JudgeReset"], "options": 2}}, r"0 to the 1 callbacks"),
        ({"Compose": {"callbacks": ["JugdeReset"]}}, r"Compose: callbacks\[0\]: unknown callback"),
        (JudgeResetCallback, r"must be a name"),
        (42, r"must be a name"),
    ],
)
def test_mistakes_are_named(spec, message):
    with pytest.raises(InvalidOptionsError, match=message):
        build_callbacks([spec])


HUNT = {"event": "kill_entity", "objects": ["cow"], "reward": 1.0, "identity": "cow"}


@pytest.mark.parametrize("act", [build_callbacks, check_callbacks])
def test_rewards_are_for_tasks_that_there_are(act):
    rewards = {"Rewards": [{**HUNT, "max_reward_times": 3, "task": "cows"}]}
    cows, others = {"Task": [{"name": "cows"}]}, {"Task": [{"name": "cow"}, {"name": "sheep"}]}
    act([cows, rewards])
    act([{"Compose": {"callbacks": [cows, others]}}, rewards])
    act([OnlyAfterReset("iron"), rewards])  # it may name tasks of its own
    with pytest.raises(InvalidOptionsError, match=r"reward_cfg\[0\]\.task .*Did you mean 'cow'"):
        act([others, rewards])
    with pytest.raises(InvalidOptionsError, match="list Task first; got 'cows'"):
        act([others, rewards, cows])
    with pytest.raises(InvalidOptionsError, match="task must be the name of a task"):
        act([{"Rewards": [{**HUNT, "max_reward_times": 3, "task": 5}]}])


def test_a_check_calls_no_constructor_of_the_users():
    explosive = "users_tasks.Explosive"
    check_callbacks([explosive, {"Compose": {"callbacks": [explosive]}}])
    with pytest.raises(InvalidOptionsError, match="argument 'goal' is missing"):
        check_callbacks([{"Compose": {"callbacks": ["users_tasks.OnlyAfterReset"]}}])


def test_all_mistakes_are_reported_together():
    with pytest.raises(InvalidOptionsError) as caught:
        build_callbacks(["Nonsense", {"JudgeReset": -1}, "JudgeReset", {"Commands": 5}])
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "callbacks[0]",
        "callbacks[1]",
        "callbacks[3]",
    ]


def test_callbacks_have_minestudios_signatures():
    SummonMobsCallback([{"mob_name": "cow", "number": 1, "range_x": (0, 1), "range_z": (0, 1)}])
    FastResetCallback(["plains"], 1000, 0, "clear")
    JudgeResetCallback(600)
    MaskActionsCallback(inventory=0)
    Compose([JudgeResetCallback()], -1)


def test_the_docs_list_every_callback():
    text = (Path(__file__).parents[3] / "docs" / "callbacks.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == sorted(CALLBACKS)
