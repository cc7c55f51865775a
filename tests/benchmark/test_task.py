"""Task files and folders of them: what they say, and every mistake at once."""

from __future__ import annotations

import pytest
import yaml

from rllib_minestudio.benchmark.task import (
    AT_END,
    BenchmarkTask,
    ProgressGoal,
    find_suites,
    load_suite,
)
from rllib_minestudio.errors import InvalidOptionsError, UntrustedError

FACTS = {
    "text": "Fell a tree.",
    "category": "collect",
    "time_limit": 600,
    "success": "pickup:*_log>=1",
    "because": "Logs come from trees.",
}

COWS = {"name": "cow", "number": 2, "range_x": [-3, 3], "range_z": [-3, 3]}


def task(**changes):
    return BenchmarkTask.from_mapping("simple/wood", {**FACTS, **changes})


def test_what_a_file_says():
    world = {"biomes": ["minecraft:forest"], "time": 500, "commands": ["/give @s stick"]}
    found = task(
        text="  Fell \n a tree.",
        world=world,
        judged="at_end",
        progress={"of": "pickup:*_log", "goal": 4},
        rewards={"Rewards": {"reward_cfg": []}},
    )
    assert (found.name, found.text, found.judged) == ("simple/wood", "Fell a tree.", AT_END)
    assert found.progress == ProgressGoal("pickup:*_log", 4.0)
    assert found.world.biomes == ("forest",)
    settings, commands = found.world.callbacks
    assert settings == {"Commands": ["/time set 500", "/weather clear", "/difficulty easy"]}
    assert commands == {"Commands": ["/give @s stick"]}
    assert found.marks() == [] == found.marks("minecraft")


def test_a_time_limit_can_be_capped_but_not_raised():
    assert [task().capped(steps).time_limit for steps in (100, 900, None)] == [100, 600, 600]


def test_why_a_task_is_not_played():
    wet = task(needs=["fluids"])
    (reason,) = wet.marks()
    assert "water" in reason and wet.marks("minecraft") == []
    built = task(success="placed:dirt@near>=1 or structure:pillar>=1")
    assert built.marks() == []
    (reason,) = built.marks("minecraft")
    assert "placed:dirt@near, structure:pillar" in reason
    facts = {key: FACTS[key] for key in ("text", "category", "time_limit")}
    vague = BenchmarkTask.from_mapping("x", {**facts, "undecidable": "Beauty is in the eye."})
    assert vague.condition is None
    assert vague.marks() == vague.marks("minecraft") == ["Beauty is in the eye."]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"sucess": "return>1"}, "unknown field 'sucess'. Did you mean 'success'"),
        ({"text": "a" * 257}, "must have at most 256 bytes"),
        ({"text": 3}, "text must be text; got 3"),
        ({"time_limit": 0}, "time_limit must be at least 1; got 0"),
        ({"judged": "any time"}, "judged must be one of 'any_time', 'at_end'"),
        ({"success": None}, "success is missing"),
        ({"success": "pickup:log"}, "filter, column 11: expected one of"),
        ({"because": None}, "because is missing"),
        ({"undecidable": "no"}, "must not be given where there is a success"),
        ({"progress": {"of": "pickup:a"}}, "progress.goal is missing"),
        ({"progress": {"of": "pickup:a", "goal": 0}}, "progress.goal must be above 0; got 0"),
        ({"progress": {"of": "pikup:a", "goal": 1}}, "quantity, column 1: expected a quantity"),
        ({"needs": ["fluid"]}, "unknown capability in needs 'fluid'. Did you mean 'fluids'"),
        ({"needs": "fluids"}, "needs must be a list"),
        ({"success": "structure:pilar>=1"}, "unknown structure 'pilar'. Did you mean 'pillar'"),
        (
            {"success": "placed:oak_plank@near>=1"},
            "no block fits 'oak_plank'. Did you mean 'oak_pl",
        ),
        ({"success": "chest:stik>=1"}, "no item fits 'stik'. Did you mean 'stick'"),
        ({"success": "seconds<9"}, "must not ask for seconds, which differ"),
        ({"world": {"biome": ["plains"]}}, "world: unknown field 'biome'. Did you mean 'biomes'"),
        ({"world": {"time": "dusk"}}, "world.time must be one of 'day', 'noon', 'night'"),
        ({"world": {"time": 24001}}, "world.time must be one of day, .*, or ticks"),
        (
            {"world": {"summon": [{**COWS, "number": "2"}]}},
            r"SummonMobs: mobs\[0\].number must be an int",
        ),
        (
            {"world": {"commands": ["a\nb"]}},
            r"world: Commands: commands\[0\] must be one non-empty",
        ),
        ({"world": []}, "world must be a mapping"),
        ({"rewards": {"Reward": 1}}, "rewards: unknown callback 'Reward'. Did you mean 'Rewards'"),
        ({"solution": "fell_tree"}, "solution must be one name and its arguments"),
    ],
)
def test_a_mistake_is_one_sentence(changes, message):
    with pytest.raises(InvalidOptionsError, match=message) as caught:
        task(**changes)
    assert all(problem.startswith("task simple/wood: ") for problem in caught.value.problems)
    assert len(caught.value.problems) == 1


def test_a_task_needs_text_category_and_time_limit():
    with pytest.raises(InvalidOptionsError) as caught:
        BenchmarkTask.from_mapping("x", {"success": "return>1", "because": "y"})
    assert [problem.split(": ")[1] for problem in caught.value.problems] == [
        f"{name} is missing." for name in ("text", "category", "time_limit")
    ]


def test_a_folder_of_ones_own(tmp_path):
    (tmp_path / "easy").mkdir()
    (tmp_path / "easy" / "wood.yaml").write_text(yaml.safe_dump(FACTS))
    (tmp_path / "stone.yaml").write_text(yaml.safe_dump(FACTS))
    suite = load_suite(tmp_path)
    assert [found.name for found in suite.tasks] == ["easy/wood", "stone"]
    assert suite.title == tmp_path.name
    (tmp_path / "suite.yaml").write_text("title: Mine\ntext: For me.\n")
    suite = load_suite(str(tmp_path))
    assert (suite.title, suite.text, len(suite.tasks)) == ("Mine", "For me.", 2)
    assert [found.name for found in suite.matching("wo*")] == ["easy/wood"]
    assert [found.name for found in suite.matching("easy/*")] == ["easy/wood"]
    with pytest.raises(InvalidOptionsError, match=r"fits 'stony'. Did you mean 'stone'"):
        suite.matching("stony")
    with pytest.raises(InvalidOptionsError, match=r"task 'stoned'. Did you mean 'stone'"):
        suite.task("stoned")


def test_every_wrong_file_of_a_folder_is_named(tmp_path):
    (tmp_path / "suite.yaml").write_text("titel: Mine\n")
    (tmp_path / "a.yaml").write_text("text: [")
    (tmp_path / "b.yaml").write_text(yaml.safe_dump({**FACTS, "time_limit": "long"}))
    (tmp_path / "c.yaml").write_text("- a list")
    with pytest.raises(InvalidOptionsError) as caught:
        load_suite(tmp_path)
    about = [("suite.yaml", "titel"), ("a.yaml", "cannot be read"), ("task b", "'long'")]
    for problem, parts in zip(caught.value.problems, [*about, ("task c", "mapping")], strict=True):
        assert all(part in problem for part in parts)


def test_a_folder_from_elsewhere_is_data(tmp_path):
    """A class that it names is not imported, and a path not used; what is misspelt is told."""
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**FACTS, "rewards": {"evil_module.CB": {}}}))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump({**FACTS, "rewards": {"TaskFile": "/x"}}))
    with pytest.raises(UntrustedError) as caught:
        load_suite(tmp_path)
    assert f"{str(tmp_path)!r} is a suite that asks for more than data: " in str(caught.value)
    assert "a: rewards.0 'evil_module.CB' (a class to import and run); b: rewards.0.TaskF" in str(
        caught.value
    )
    with pytest.raises(InvalidOptionsError, match="evil_module"):
        load_suite(tmp_path, trust=True)
    (tmp_path / "b.yaml").unlink()
    for rewards in (
        {"RecordCallback": {"record_path": "/x"}},
        {"ComposeCallback": {"callbacks": [{"Record": "/x"}]}},
        {"Compose": [{"evil_module.CB": {}}]},
    ):
        (tmp_path / "a.yaml").write_text(yaml.safe_dump({**FACTS, "rewards": rewards}))
        with pytest.raises(UntrustedError):
            load_suite(tmp_path)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**FACTS, "rewards": {"TechTreRewards": {}}}))
    with pytest.raises(InvalidOptionsError, match="Did you mean 'TechTreeRewards'"):
        load_suite(tmp_path)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**FACTS, "rewards": {"TechTreeRewards": {}}}))
    assert load_suite(tmp_path).tasks[0].rewards == {"TechTreeRewards": {}}


def test_what_is_no_suite(tmp_path):
    with pytest.raises(InvalidOptionsError, match=r"suite 'minestdio'. Did you mean 'mine"):
        load_suite("minestdio")
    with pytest.raises(InvalidOptionsError, match="has no task files"):
        load_suite(tmp_path)


def test_a_part_of_a_suite_names_tasks_as_the_suite_does():
    suites = find_suites()
    assert {"minestudio", "minestudio-simple", "minestudio-hard"} <= suites.keys()
    whole, part = load_suite("minestudio"), load_suite("minestudio-simple")
    assert {task.name for task in part.tasks} < {task.name for task in whole.tasks}
    assert part.title.startswith(whole.title)
