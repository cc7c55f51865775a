"""Results of a benchmark: totals, files, comparisons."""

import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binom

from rllib_minestudio.benchmark.report import comparison_table
from rllib_minestudio.benchmark.results import (
    FAILED,
    MARKED,
    BenchmarkResults,
    compare_benchmarks,
)
from rllib_minestudio.cli.main import main
from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.summary import Rate
from tests.benchmark.conftest import results_of, task_result

YES, NO = True, False


def test_tasks_count_alike_and_marked_and_failed_ones_nowhere():
    results = results_of(
        task_result("a", [YES, YES, NO, NO], category="x"),
        task_result("b", [YES, NO, NO, NO], category="y"),
        task_result("c", [], category="y", status=MARKED, reason="no water"),
        task_result("d", [], category="z", status=FAILED, reason="it broke"),
    )
    assert results.total.yes_rate == 0.375
    assert results.total.progress == pytest.approx(0.25 + 0.75 * 0.375)
    assert (results.total.tasks, results.total.episodes) == (2, 8)
    assert list(results.categories) == ["x", "y"]
    assert results.categories["y"].yes_rate == 0.25
    low, high = results.total.yes_rate_interval
    assert low <= Rate(3, 8).interval[0] and high >= Rate(3, 8).interval[1]


def test_where_nothing_succeeds_the_total_has_wilsons_interval():
    results = results_of(task_result("a", [NO] * 4), task_result("b", [NO] * 4))
    assert results.total.yes_rate_interval == Rate(0, 8).interval
    assert results_of().total is None


def test_results_come_back_from_their_file(tmp_path):
    results = results_of(
        task_result("a", [YES, NO], seconds=1.5, videos={"success": "tasks/a/success.mp4"}),
        task_result("b", [], status=MARKED, reason="no water"),
    )
    results.save(tmp_path / "benchmark.json")
    assert BenchmarkResults.load(tmp_path) == results
    facts = json.loads((tmp_path / "benchmark.json").read_text())
    assert facts["tasks"][0]["yes_rate_interval"] == list(Rate(1, 2).interval)
    assert "yes_rate" not in facts["tasks"][1]
    assert facts["counts"] == {"played": 1, "marked": 1, "failed": 0}


@pytest.mark.parametrize(
    "damage",
    [{"version": 99}, {"tasks": [{}]}, {"request": {}}, {"format": "another"}],
    ids=str,
)
def test_other_files_are_refused(tmp_path, damage):
    results_of(task_result("a", [YES])).save(tmp_path / "benchmark.json")
    facts = json.loads((tmp_path / "benchmark.json").read_text())
    (tmp_path / "benchmark.json").write_text(json.dumps({**facts, **damage}))
    with pytest.raises(MineStudioError, match="holds no results of a benchmark"):
        BenchmarkResults.load(tmp_path)


def test_a_played_task_without_episodes_is_refused(tmp_path):
    results_of(task_result("a", [YES])).save(tmp_path / "benchmark.json")
    facts = json.loads((tmp_path / "benchmark.json").read_text())
    facts["tasks"][0]["episodes"] = []
    (tmp_path / "benchmark.json").write_text(json.dumps(facts))
    with pytest.raises(MineStudioError, match="status"):
        BenchmarkResults.load(tmp_path)


def test_a_comparison_in_closed_form():
    first = [YES] * 2 + [NO] * 8
    second = [NO] * 1 + [YES] * 8 + [NO] * 1
    found = compare_benchmarks(
        results_of(task_result("a", first), task_result("b", [YES, NO])),
        results_of(task_result("a", second), task_result("b", [YES, NO]), player="two"),
    )
    a, b = found.tasks
    assert (a.pairs, a.only_first, a.only_second) == (10, 1, 7)
    assert a.p == pytest.approx(2 * binom(8, 0.5).cdf(1))
    assert a.rate.mean == pytest.approx(0.6)
    assert a.progress.mean == pytest.approx(0.75 * 0.6)
    # Differences are -1 once, 0 twice, +1 seven times; their mean's variance is known.
    error = math.sqrt((0.8 - 0.36) / 10)
    assert a.rate.interval[0] == pytest.approx(0.6 - 1.96 * error, abs=0.11)
    assert a.rate.interval[1] == pytest.approx(0.6 + 1.96 * error, abs=0.11)
    assert (b.p, b.rate.mean, b.rate.interval) == (1.0, 0.0, (0.0, 0.0))
    assert found.rate.mean == pytest.approx(0.3)
    assert (found.first, found.second, found.unpaired) == ("one", "two", ())


def test_a_comparison_pairs_what_both_played():
    first = results_of(task_result("a", [YES, NO, NO]), task_result("b", [YES]))
    second = results_of(
        task_result("a", [YES, YES]), task_result("b", [], status=MARKED, reason="not shipped")
    )
    found = compare_benchmarks(first, second)
    assert [(task.name, task.pairs) for task in found.tasks] == [("a", 2)]
    assert found.unpaired == ("b",)


@pytest.mark.parametrize(
    ("changes", "seed", "message"),
    [
        ({}, 1, r"seeds differ \(0 and 1\)"),
        ({"time_limit": 20, "digest": "x"}, 0, r"time limits differ \(a\)"),
        ({"digest": "x"}, 0, r"tasks of the same name are not the same \(a\)"),
        ({"name": "c"}, 0, "no task was played in both"),
    ],
    ids=str,
)
def test_what_met_other_worlds_is_refused(changes, seed, message):
    other = replace(task_result("a", [YES]), **changes)
    with pytest.raises(MineStudioError, match=message):
        compare_benchmarks(results_of(task_result("a", [YES])), results_of(other, seed=seed))


def test_a_comparison_shows_the_tasks_in_80_columns():
    first, second = (results_of(task_result("simple/mine", flags)) for flags in ([False], [True]))
    console = Console(width=80, file=io.StringIO())
    console.print(comparison_table(compare_benchmarks(first, second)))
    shown = console.file.getvalue().splitlines()
    assert max(map(len, shown)) <= 80
    place = shown.index("simple/mine")
    assert "rate +100%" in " ".join(shown[place + 1 : place + 3])


def test_the_command_prints_and_writes_the_comparison(tmp_path, capsys):
    for name, successes in (("A", [NO, NO]), ("B", [YES, NO])):
        results_of(task_result("a", successes), player=name).save(
            tmp_path / name / "benchmark.json"
        )
    file = tmp_path / "comparison.json"
    words = ["benchmark", "compare", str(tmp_path / "A"), str(tmp_path / "B"), "--out", str(file)]
    assert main(words) == 0
    assert "+50%" in capsys.readouterr().out
    assert json.loads(file.read_text())["tasks"][0]["only_second"] == 1
    assert main([*words, "--export", "rliable"]) == 0
    assert "B improves on A with probability 0.75" in " ".join(capsys.readouterr().out.split())
    with np.load(tmp_path / "rliable.npz") as scores:
        progress = {name: scores[name].tolist() for name in scores}
    assert progress == {"A": [[0.25], [0.25]], "B": [[1.0], [0.25]]}
    assert main([*words[:4], "--export", "rliable"]) == 2
    assert "needs --out" in capsys.readouterr().err
    assert main(["benchmark", "compare", str(tmp_path / "A"), str(tmp_path / "C")]) == 2
    assert "holds no results of a benchmark" in capsys.readouterr().err
    assert main([*words[:-1], str(tmp_path / "A" / "benchmark.json" / "x")]) == 2
    assert "cannot be written" in capsys.readouterr().err
