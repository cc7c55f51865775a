"""tools/mutants: mutants have their tests, and what kills one is the mutant and nothing else."""

import json
import shutil
import subprocess

import pytest

from tools.mutants import judging
from tools.mutants.drawing import MOST_TESTS, Coverage, evaluated, seconds_by_test
from tools.mutants.judging import ROOT, judge
from tools.mutants.verdicts import Mutant, Verdict, table, verdicts_in

GAE = "rllib_minestudio/algorithms/learner/gae.py"
NEAR = "tests/algorithms/learner/test_gae.py::test_fragment_border_bootstraps_from_the_last_value"
FAR = "tests/cli/test_train_command.py::test_something"


def line_of(text):
    lines = (ROOT / GAE).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture
def tests_of(tmp_path, monkeypatch):
    """Which tests a change of a line of gae.py gets, by what coverage says of its lines."""
    monkeypatch.chdir(ROOT)

    def find(changed, contexts, durations=""):
        report = tmp_path / "coverage.json"
        by_line = {str(line_of(text)): tests for text, tests in contexts.items()}
        report.write_text(json.dumps({"files": {GAE: {"contexts": by_line}}}))
        line = line_of(changed)
        before = (ROOT / GAE).read_text().splitlines(keepends=True)[line - 1]
        mutant = Mutant(GAE, "core/AddNot", 0, line, before, "")
        return Coverage(report, seconds_by_test(durations)).tests_of(mutant)

    return find


def test_a_line_is_judged_by_the_tests_that_run_it(tests_of):
    dotted = NEAR.replace("/", ".").replace(".py::", ".")
    contexts = {"next_value_tb *= gamma": ["", dotted, "no.test.of_ours"], "trace_b =": [FAR]}
    assert tests_of("next_value_tb *= gamma", contexts) == ("line", [NEAR])


def test_a_line_that_no_test_is_known_to_run_by_those_of_its_function_or_file(tests_of):
    contexts = {"trace_b =": [f"{FAR}[a]|tests.of_its.own"], "np.ascontiguousarray": [""]}
    assert tests_of("next_value_tb *= gamma", contexts) == ("function", [FAR])
    assert tests_of("def compute_gae(", contexts) == ("function", [FAR])
    assert tests_of("import numpy as np", contexts) == ("file", [FAR])
    assert tests_of("import numpy as np", {"trace_b =": [""]}) == ("", [])


def test_of_tests_that_run_it_in_other_processes_those_of_its_folder_count(tests_of):
    near = "tests/algorithms/learner/test_distributed.py::test_two"
    assert tests_of("trace_b =", {"trace_b =": [FAR, near]}) == ("line", [near, FAR])
    contexts = {"trace_b =": [FAR, near, f"{NEAR}|tests.of_its.own"]}
    assert tests_of("trace_b =", contexts) == ("line", [near, NEAR])


def test_near_and_quick_tests_come_first(tests_of):
    contexts = {"trace_b =": [f"{test}|tests.of_its.own" for test in (FAR, NEAR)]}
    assert tests_of("trace_b =", contexts)[1] == [NEAR, FAR]
    slow = f"0.50s setup    {NEAR}[a]\n20.00s call     {NEAR}[b]\n0.01s call     {FAR}\n"
    assert seconds_by_test(slow) == {NEAR: 20.5, FAR: 0.01}
    assert tests_of("trace_b =", contexts, slow)[1] == [FAR, NEAR]


def test_of_many_the_quickest_are_kept_and_all_of_the_own_folder(tests_of):
    contexts = [f"{test}|tests.of_its.own" for test in (NEAR, *(f"{FAR}_{i}" for i in range(99)))]
    durations = f"90.00s call     {NEAR}\n" + "".join(
        f"{i / 10:.2f}s call     {FAR}_{i}\n" for i in range(99)
    )
    kept = tests_of("trace_b =", {"trace_b =": contexts}, durations)[1]
    assert kept == [*(f"{FAR}_{i}" for i in range(MOST_TESTS - 1)), NEAR]


def test_what_nothing_evaluates_is_no_mutant():
    source = 'def f(a: int, *, b: int = 1) -> int:\n    """One."""\n    x: int\n    return a * b\n'
    for change in (("*,", "/,"), ("One", "Two"), ("x: int", "x: str"), ("a: int", "a: -int")):
        assert evaluated(source.replace(*change)) == evaluated(source)
    for change in (("a * b", "a / b"), ("= 1", "= 2")):
        assert evaluated(source.replace(*change)) != evaluated(source)


def test_a_mutant_of_other_code_is_refused():
    mutant = Mutant("a.py", "core/AddNot", 0, 2, "b = 1\n", "b = 2\n")
    assert mutant.mutate("a = 1\nb = 1\nc = 1\n") == "a = 1\nb = 2\nc = 1\n"
    with pytest.raises(ValueError, match="not what it was"):
        mutant.mutate("a = 1\na = 1\nb = 1\n")


def test_the_table_counts_each_mutant_once_and_no_killed_one_as_equivalent(tmp_path):
    verdicts = [
        Verdict(GAE, "core/AddNot", i, 10 + i, "if a | b:\n", "if not a:\n", verdict=verdict)
        for i, verdict in enumerate(["survived", "timeout", "survived", "survived", "killed"])
    ]
    verdicts.append(Verdict(GAE, "core/AddNot", 0, 10, "a\n", "b\n", verdict="killed"))
    file = tmp_path / "judged.jsonl"
    file.write_text("".join(json.dumps(vars(one)) + "\n" for one in verdicts))
    printed = table(verdicts_in(file), {"learner/gae.py AddNot 2": "Both are zero."})
    assert "| all | 5 | 2 | 1 | 1 | 1 | 0 | 75.0 % |" in printed
    assert r"| learner/gae.py AddNot 3 | 13 | `if a \| b:` | `if not a:` |" in printed
    assert "| Both are zero. |" in printed
    with pytest.raises(ValueError, match=r"AddNot 4 is said to be equivalent, but .* kills it"):
        table(verdicts_in(file), {"learner/gae.py AddNot 4": "It seems so."})


PACKAGE = "def double(number):\n    return number * 2\n"
TESTS = """
import subprocess, sys
from rllib_minestudio import double

def test_that_never_passes():
    assert double(0)

def test_in_another_process():
    print_it = "from rllib_minestudio import double; print(double(2))"
    assert subprocess.check_output([sys.executable, "-c", print_it]) == b"4\\n"

def test_zero():
    assert double(0) == 0
"""


@pytest.mark.slow
def test_mutants_are_killed_by_tests_that_pass_without_them(tmp_path, monkeypatch):
    root = tmp_path / "root"
    for name, text in {
        "rllib_minestudio/__init__.py": PACKAGE,
        "tests/test_double.py": TESTS,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copytree(ROOT / "tools" / "mutants", root / "tools" / "mutants")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All of it"]):
        author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *author, *words], cwd=root, check=True)
    monkeypatch.setattr(judging, "ROOT", root)
    changed = {
        "return number ** 2": ("survived", ""),
        "return number * 3": ("killed", "test_in_another_process"),
        "return number * 2 + 1": ("killed", "test_in_another_process"),
        "return number / 0": ("killed", "test_in_another_process"),
        "return 4 if number else exit()": ("killed", "test_zero"),
        "return 4 if number else __import__('os').abort()": ("killed", "test_zero"),
        "return 4 if number else __import__('time').sleep(600)": ("timeout", "test_zero"),
        "return double": ("killed", "test_in_another_process"),
        "return (": ("killed", "test_in_another_process"),
    }
    tests = [f"tests/test_double.py::{name}" for name in ("test_that_never_passes",)]
    tests += [f"tests/test_double.py::test_{name}" for name in ("in_another_process", "zero")]
    drawn = [
        Mutant("rllib_minestudio/__init__.py", "by hand", number, 2, "    return number * 2\n",
               f"    {line}\n", "line", tests)
        for number, line in enumerate(changed)
    ]  # fmt: skip
    out = tmp_path / "judged.jsonl"
    for _ in range(2):
        judge(drawn, out, workers=2, hang_s=20, again=False)
    verdicts = sorted(verdicts_in(out), key=lambda one: one.occurrence)
    assert len(out.read_text().splitlines()) == len(changed), "they were judged once"
    found = [(one.verdict, one.test.removeprefix("tests/test_double.py::")) for one in verdicts]
    assert found == list(changed.values())
    assert verdicts[0].unfit == ["tests/test_double.py::test_that_never_passes"]
