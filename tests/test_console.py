"""What commands print: tables that cut nothing off, and notices that `--quiet` silences."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from rllib_minestudio.foundation import console
from rllib_minestudio.foundation.console import Aligned, notices, phase, print_next

WORDS = st.text("abcdefgh/_", min_size=1, max_size=30)
TEXTS = st.lists(WORDS, min_size=0, max_size=8).map(" ".join)


def printed(table, width):
    target = Console(width=width, file=io.StringIO(), soft_wrap=True)
    target.print(table)
    return target.file.getvalue().splitlines()


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(WORDS, st.integers(0, 10**9).map(str), TEXTS), min_size=1, max_size=5),
    width=st.integers(1, 120),
)
def test_nothing_is_cut_off_at_any_width(rows, width):
    table = Aligned(rows=rows, key="key", numbers=("number",), texts=("text",))
    lines = printed(table, width)
    whole = "".join("".join(lines).split())
    for row in rows:
        for cell in row:
            for letters in cell.split():
                assert letters in whole
    keys = {line.split(" ")[0] for line in lines}
    assert {key for key, _, _ in rows} <= keys, "a key can be copied whole"


def test_columns_are_aligned_and_end_without_spaces():
    table = Aligned(
        rows=[("a", "1", "x"), (), ("long/key", "1,000", "")],
        key="task",
        numbers=("steps",),
        texts=("what",),
        title="Tasks",
        notes="end",
    )
    assert printed(table, 80) == [
        "Tasks",
        "task      steps  what",
        "a             1  x",
        "",
        "long/key  1,000",
        "end",
    ]


def test_a_narrow_terminal_gets_everything_below_the_key_with_its_label():
    table = Aligned(rows=[("a/long/key", "12", "34 %")], key="task", numbers=("n", "rate"))
    assert printed(table, 18) == ["a/long/key", "  n 12  rate 34 %"]


def test_quiet_silences_notices_but_no_results(monkeypatch, capsys):
    monkeypatch.setattr(notices, "quiet", True)
    with phase("playing") as show:
        show("step 1")
    print_next({"rllib play": "again"})
    console.stdout.print("a result")
    assert capsys.readouterr().out == "a result\n"


def test_what_a_command_is_for_stands_above_it_on_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setattr(notices, "_width", 30)
    print_next({"rllib evaluate here": "success rate and return"})
    expected = ["", "next:", "  # success rate and return", "  rllib evaluate here"]
    assert capsys.readouterr().out.splitlines() == expected


def test_commands_that_may_follow_can_be_copied_with_what_they_are_for(capsys):
    print_next({"rllib evaluate here": "how good", "rllib play x": "a film"})
    assert capsys.readouterr().out.splitlines() == [
        "",
        "next:",
        "  rllib evaluate here  # how good",
        "  rllib play x         # a film",
    ]
