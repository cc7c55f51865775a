"""Names of tasks and filters with brackets and dollars, infinite returns: tables, plots, page."""

import json
import math

import pytest
from rich.console import Console

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.report import comparison_table, summary_table, write_page
from rllib_minestudio.evaluation.summary import Summary, compare, require_same_worlds
from rllib_minestudio.foundation import console

NAMES = ("[/x]", "[bold]", "$x$ $", "$\\frac{", "<b>", ":smile:", "{{ 1 }}", "a\nb")


def summary(returns=(1.0, 2.0), seed=0, task="t", text=None):
    episodes = [
        EvaluatedEpisode(i, i, task, 5, value, success=i % 2 == 0)
        for i, value in enumerate(returns)
    ]
    return Summary.of(episodes, seed=seed, filter=text, policy={"name": task}, config={})


def printed(*renderables):
    target = Console(width=300, record=True, markup=False, emoji=False, file=open("/dev/null", "w"))  # noqa: SIM115
    for renderable in renderables:
        target.print(renderable)
    return target.export_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_as_it_is(name, tmp_path):
    a = summary(task=name, text=f"task:{name}")
    text = printed(summary_table(a), comparison_table(a, a, compare(a, a)))
    assert name.partition("\n")[0] in text
    write_page(a, tmp_path / "summary.html", (a, compare(a, a)))
    assert (tmp_path / "summary.html").stat().st_size > 1000


def test_the_commands_take_nothing_for_markup():
    with console.stdout.capture() as seen:
        console.stdout.print("[/x] :smile:")
        with console.phase("[/x]") as show:
            show("[/y]")
    assert "[/x] :smile:" in seen.get()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_return_that_is_no_number_costs_nothing(value, tmp_path):
    a, b = summary((value, 1.0, 2.0)), summary((1.0, 1.5, value))
    a.save(tmp_path / "summary.json")
    assert len(Summary.load(tmp_path).episodes) == 3
    printed(summary_table(a), comparison_table(a, b, compare(a, b)))
    write_page(a, tmp_path / "summary.html", (b, compare(a, b)))
    only = summary((value,))
    compare(only, only)
    write_page(only, tmp_path / "only.html")


def test_evaluations_of_other_worlds_are_told_before_either_is_played():
    with pytest.raises(MineStudioError, match="seeds differ"):
        require_same_worlds(Summary((), 1, None), summary(seed=2))


@pytest.mark.parametrize(
    "change",
    [
        {"episodes": []},
        {"episodes": 5},
        {"policy": 5},
        {"config": [1]},
        {"episodes": [{"index": "a", "seed": 0, "task": "t", "length": 1}]},
        {"episodes": [{"index": 0, "seed": 0, "task": 5, "length": 1, "undiscounted_return": 1.0}]},
    ],
)
def test_a_summary_that_is_none_is_refused(change, tmp_path):
    summary().save(tmp_path / "summary.json")
    facts = json.loads((tmp_path / "summary.json").read_text())
    (tmp_path / "summary.json").write_text(json.dumps({**facts, **change}))
    with pytest.raises(MineStudioError, match="not the summary"):
        Summary.load(tmp_path)
