"""`rllib benchmark list`: suites, and the tasks of some."""

import json
import re

import pytest
import yaml

from rllib_minestudio.benchmark.task import load_suite
from rllib_minestudio.cli.main import main
from rllib_minestudio.foundation.console import stdout

FACTS = {
    "text": "Dig.",
    "category": "dig",
    "time_limit": 100,
    "success": "mine_block:dirt>=1",
    "because": "The game counts.",
}


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.setattr(stdout, "_width", 200)
    tasks = {
        "dig": FACTS,
        "dive": {**FACTS, "category": "swim", "needs": ["fluids"]},
        "build": {**FACTS, "success": "structure:pillar>=1", "solution": {"pile": {"blocks": 4}}},
    }
    for name, facts in tasks.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(facts))
    return str(tmp_path)


def rows(printed):
    cells = (re.split(r"\s{2,}", line.strip()) for line in printed.splitlines())
    return {row[0]: row[1:] for row in cells}


def test_the_suites(capsys):
    assert main(["benchmark", "list"]) == 0
    shown = rows(capsys.readouterr().out)
    assert {"minestudio", "minestudio-simple", "animals", "memory"} <= shown.keys()
    assert shown["minestudio"][0] == "153"


def test_nothing_is_cut_off_in_a_pipe_unless_columns_are_asked_for(monkeypatch, capsys):
    monkeypatch.delitem(stdout._environ, "COLUMNS", raising=False)
    monkeypatch.setattr(stdout, "_width", None)  # rich's, from COLUMNS when it was imported
    assert main(["benchmark", "list", "minestudio-simple"]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert {task.name for task in load_suite("minestudio-simple").tasks} <= rows(printed).keys()
    names = {task.name for task in load_suite("minestudio-simple").tasks}
    for width in (60, 160):
        monkeypatch.setitem(stdout._environ, "COLUMNS", str(width))
        assert main(["benchmark", "list", "minestudio-simple"]) == 0
        lines = capsys.readouterr().out.split("what is missing")[0].splitlines()
        assert max(map(len, lines)) <= width
        assert names <= {line.split(" ")[0] for line in lines}


def test_the_tasks_of_a_suite(suite, capsys):
    assert main(["benchmark", "list", suite]) == 0
    printed = capsys.readouterr().out
    shown = rows(printed)
    assert shown["build"] == ["100", "yes", "yes", "dig", "structure:pillar>=1"]
    assert shown["dive"] == ["100", "no: fluids", "swim", "mine_block:dirt>=1"]
    assert shown["swim"] == ["1", "0", "0"] and shown["all"] == ["3", "2", "1"]
    assert "   1  There is no water" in printed
    assert main(["benchmark", "list", suite, "--engine", "minecraft", "--tasks", "*i*"]) == 0
    shown = rows(capsys.readouterr().out)
    assert "yes" in shown["dive"] and "no: not told" in shown["build"]


def test_as_json(suite, capsys):
    assert main(["benchmark", "list", suite, "--json", "--tasks", "di*"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    dig, dive = listed["tasks"]
    assert (dig["name"], dig["time_limit"], dig["marks"]) == ("dig", 100, [])
    assert dive["needs"] == ["fluids"] and len(dive["marks"]) == 1


@pytest.mark.parametrize(
    "words, message",
    [
        (["minestdio"], "Did you mean 'minestudio'"),
        (["minestudio", "--tasks", "colect_wood"], "no task that fits 'colect_wood'"),
        (["--tasks", "a*"], "--tasks needs the SUITE whose tasks are meant"),
    ],
)
def test_mistakes(words, message, capsys):
    assert main(["benchmark", "list", *words]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("error:") == 1
