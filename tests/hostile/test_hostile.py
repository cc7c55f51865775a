"""No file and no command line ends in a traceback, a crash, gigabytes, or accepted nonsense.

`docs/checkpoints.md` says what is promised; `count.py` counts how many attacks end how.
"""

from importlib import import_module
from pathlib import Path

import pytest
from judging import (
    ACCEPTED,
    CRASH,
    REFUSED,
    SLOW,
    TRACEBACK,
    Case,
    failures,
    judge,
    judged_in_turns,
)

CATEGORIES = (
    *("weights", "recordings", "experiments", "command_lines", "checkpoints", "policies"),
    "packs",
)
TRACE = Path("/tmp/rllib_minestudio_was_run")


@pytest.mark.slow
@pytest.mark.parametrize("category", CATEGORIES)
def test_what_should_be_refused_is_refused(category, tmp_path):
    TRACE.unlink(missing_ok=True)
    assert not failures(import_module(f"hostile_{category}").cases(), tmp_path)
    assert not TRACE.exists()  # nothing that a file named has run


@pytest.mark.sweep
@pytest.mark.timeout(1800)  # a busy machine takes long, and changes no verdict
@pytest.mark.parametrize(
    "sweep", ["options", "recordings", "weights", "checkpoints", "experiments", "documents"]
)
def test_thousands_of_attacks_end_well(sweep, turn, tmp_path):
    module = import_module("hostile_sweep")
    cases = list(getattr(module, sweep)())
    assert len(cases) >= 125
    ends = judged_in_turns(cases[turn], tmp_path)
    assert not [f"{c.name}: {v}" for c, v in ends if not module.ended_well(c, v.kind)]


def crash(_):
    import ctypes

    ctypes.string_at(0)


def allocate(_):
    return len(bytes(range(256)) * (3 * 1024**2))


def loop(_):
    while True:
        pass


ENDS = [(str, ACCEPTED), (int, TRACEBACK), (crash, CRASH), (allocate, "large"), (loop, SLOW)]


@pytest.mark.parametrize(
    "attack, expected", [*ENDS[:-1], pytest.param(*ENDS[-1], marks=pytest.mark.slow)]
)
def test_the_judge_tells_one_end_from_another(attack, expected, monkeypatch):
    verdict = judge(attack, "x")
    assert verdict.kind == expected != REFUSED


@pytest.mark.slow
def test_attacks_that_take_turns_are_told_apart_whatever_ends_their_process(tmp_path):
    ends = [end for pair in zip(ENDS, [ENDS[0]] * len(ENDS), strict=True) for end in pair]
    cases = [Case(str(n), lambda _: "x", *end) for n, end in enumerate(ends)]
    judged = judged_in_turns(cases, tmp_path)
    assert [(case.name, verdict.kind) for case, verdict in judged] == [
        (case.name, case.expected) for case in cases
    ]
