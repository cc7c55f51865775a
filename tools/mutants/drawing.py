"""Draws mutants, and finds the tests that run each of them."""

from __future__ import annotations

import ast
import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.mutants.verdicts import Mutant

MUTATED = ("rllib_minestudio/algorithms/learner", "rllib_minestudio/algorithms/training_loop")
NEVER_RAISED = "UnicodeWarning"
"""Takes the place of an exception that is caught; cosmic-ray's own exists in its process only."""

FAR_LAST = (
    ("tests/correctness/", "tests/algorithms/"),
    ("tests/policies/", "tests/rllib_contract/", "tests/test_"),
    ("tests/cli/", "tests/docs/", "tests/evaluation/", "tests/benchmark/"),
)
"""Folders of tests, after the one that mirrors the mutant's: those at the end find the least."""
PER_RANK = 2.0
"""By how much longer a test may take that is a rank closer, and still come first."""
MOST_TESTS = 60
"""For one mutant, except for tests in the folder of its part, which all count."""
USUAL_SECONDS, EXTRA_SECONDS = 1.0, 0.1
"""Of a test whose duration was not measured, and for what pytest does around each."""


def draw(report: Path, durations: Path | None, count: int, seed: int) -> Iterator[Mutant]:
    """Yield mutants in random order, each with the tests that run it.

    Which mutants are drawn depends on the code and the seed only, not on the coverage.

    Args:
        report: What `coverage json --show-contexts` wrote, as in `cover`.
        durations: What pytest printed with `--durations=0`, if the order is to go by it.
        count: How many.
        seed: Of the order.
    """
    coverage = Coverage(report, seconds_by_test(durations.read_text()) if durations else {})
    places = list(all_places())
    random.Random(seed).shuffle(places)
    seen = set()
    for place in places:
        mutant = made(*place)
        if mutant is None or (mutant.path, mutant.line, mutant.after) in seen:
            continue
        seen.add((mutant.path, mutant.line, mutant.after))
        mutant.covered_by, mutant.tests = coverage.tests_of(mutant)
        yield mutant
        if len(seen) == count:
            return


def all_places() -> Iterator[tuple[str, str, int]]:
    """Yield file, operator and occurrence of everything that cosmic-ray can change."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    for path in (file for folder in MUTATED for file in sorted(Path(folder).glob("*.py"))):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name in sorted(operator_names()):
            if not get_operator(name).arguments():
                operator = get_operator(name)()
                places = [place for node in nodes for place in operator.mutation_positions(node)]
                yield from ((str(path), name, occurrence) for occurrence in range(len(places)))


def made(path: str, operator: str, occurrence: int) -> Mutant | None:
    """Make a mutant; None if nothing evaluates what changes."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = Path(path).read_text()
    code = mutate_code(source, get_operator(operator)(), occurrence)
    if code is None:
        return None
    code = code.replace("CosmicRayTestingException", NEVER_RAISED)
    try:
        if evaluated(code) == evaluated(source):
            return None
    except SyntaxError:
        return None
    old, new = source.splitlines(keepends=True), code.splitlines(keepends=True)
    start = next(i for i, pair in enumerate(itertools.zip_longest(old, new)) if len({*pair}) == 2)
    rest = min(len(old), len(new)) - start
    same = 0
    while same < rest and old[-1 - same] == new[-1 - same]:
        same += 1
    before, after = old[start : len(old) - same], new[start : len(new) - same]
    while not after and not before[0].strip():  # blank lines above a decorator that goes
        before, start = before[1:], start + 1
    return Mutant(path, operator, occurrence, start + 1, "".join(before), "".join(after))


def evaluated(source: str) -> str:
    """The syntax tree without annotations, docstrings, and kinds of parameters.

    Nothing evaluates the former (PEP 563). As to the latter, cosmic-ray takes the star before
    parameters that are given by name for a multiplication.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.arguments):
            node.posonlyargs, node.args, node.kwonlyargs = (
                [],
                [*node.posonlyargs, *node.args, *node.kwonlyargs],
                [],
            )
            node.kw_defaults, node.defaults = [], [*node.defaults, *filter(None, node.kw_defaults)]
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        if isinstance(body := getattr(node, "body", None), list):
            kept = [one for one in body if not _is_text(one)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    """Whether it is a docstring, of a name perhaps."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


class Coverage:
    """Which tests run a mutant.

    A line that no test is known to run is one that importing runs, a fixture, or a process of its
    own such as a Ray actor; the tests of its function, or else of its file, are tried then.

    Of tests that run a line in another process only, those count that are in the folder of the
    mutant, or all if there are no others: `tests/processes.py` trains for an iteration in a process
    that belongs to any of them.
    """

    def __init__(self, report: Path, seconds: dict[str, float]) -> None:
        self._seconds = seconds
        self._here: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._elsewhere: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for path, file in json.loads(report.read_text())["files"].items():
            for line, contexts in file["contexts"].items():
                for context in contexts:
                    test, is_here = test_of_context(context)
                    by_line = self._here[path] if is_here else self._elsewhere[path]
                    by_line[int(line)] |= {test} if test else set()

    def tests_of(self, mutant: Mutant) -> tuple[str, list[str]]:
        """What the tests run, and the tests, those first that are the likeliest to fail soon."""
        here, elsewhere = self._here[mutant.path], self._elsewhere[mutant.path]
        last = mutant.line + len(mutant.before.splitlines()) - 1
        function, body = scope_of(mutant)
        found: dict[str, range | list[int]] = {"file": [*here, *elsewhere]}
        if function:
            found = {"function": body, **found}
        if mutant.line in body:
            found = {"line": range(mutant.line, last + 1), **found}
        for covered_by, lines in found.items():
            tests = {test for line in lines for test in here[line]}
            others = {test for line in lines for test in elsewhere[line]}
            if tests:
                others = {test for test in others if test.startswith(own_tests(mutant.path))}
            if tests | others:
                return covered_by, self._best(mutant.path, tests | others)
        return "", []

    def _best(self, path: str, tests: set[str]) -> list[str]:
        """Sort tests by what they cost, and leave out the worst if there are many."""
        ordered = sorted(tests, key=lambda test: self._cost(path, test))
        near = {test for test in tests if test.startswith(own_tests(path))}
        far = [test for test in ordered if test not in near][: max(MOST_TESTS - len(near), 0)]
        return [test for test in ordered if test in near or test in far]

    def _cost(self, path: str, test: str) -> tuple[float, str]:
        folders = ((own_tests(path),), *FAR_LAST)
        rank = next((i for i, some in enumerate(folders) if test.startswith(some)), len(folders))
        seconds = self._seconds.get(test, USUAL_SECONDS) + EXTRA_SECONDS
        return seconds * PER_RANK**rank, test


def own_tests(path: str) -> str:
    """The folder of tests that mirrors that of a file."""
    return str(Path("tests", *Path(path).parts[1:-1])) + "/"


def scope_of(mutant: Mutant) -> tuple[bool, range]:
    """Whether the mutant is part of a function, and the lines of the innermost one's body."""
    body = range(0)
    for node in ast.walk(ast.parse(Path(mutant.path).read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            lines = range(start, (node.end_lineno or start) + 1)
            if mutant.line in lines and (not body or len(lines) < len(body)):
                body = range(node.body[0].lineno, lines.stop)
    return bool(body), body


@cache
def test_of_context(context: str) -> tuple[str | None, bool]:
    """The test that a context of coverage names, and whether the line was run in its own process.

    Coverage's own contexts are such as `tests.algorithms.test_gae.test_a`; those that `cover` names
    are ids of pytest, with one of coverage's own behind them if the test itself ran the line. There
    is None if a context names no test of ours.
    """
    named, _, own = context.rpartition("|")
    if "::" in context:
        return (named or own).partition("[")[0], bool(named)
    parts = own.split(".")
    for end in range(len(parts) - 1, 1, -1):
        file = Path(*parts[:end]).with_suffix(".py")
        if parts[0] == "tests" and file.exists():
            name = "::".join(parts[end:])
            return (f"{file}::{name}" if name in names_of_tests(file) else None), True
    return None, True


@cache
def names_of_tests(file: Path) -> set[str]:
    """The tests of a file: functions, and methods as CLASS::METHOD."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (one for one in node.body if isinstance(one, ast.FunctionDef))
            found |= {f"{node.name}::{method.name}" for method in methods}
    return found


def seconds_by_test(printed: str) -> dict[str, float]:
    """Sum what pytest printed with `--durations=0`, over fixtures and parameters."""
    found: dict[str, float] = defaultdict(float)
    lines = re.findall(r"^([\d.]+)s (?:setup|call|teardown)\s+(\S+::[^\s\[]+)", printed, re.M)
    for seconds, test in lines:
        found[test] += float(seconds)
    return found
