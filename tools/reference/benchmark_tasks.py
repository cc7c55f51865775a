"""Every task of the benchmark's suites, and what the engine lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rllib_minestudio.benchmark.task import (
    AT_END,
    FOLDER,
    SUITE_FILE,
    BenchmarkTask,
    Suite,
    lacking_capabilities,
    load_suite,
)
from tools.reference.tables import table

_INTRODUCTION = """\
# The benchmark's tasks

The text that each task gives to the agent, and the condition that decides it, in the language of
[filters](evaluation.md#filters), read from the files in `rllib_minestudio/benchmark/suites`. Each
file also says what an episode begins with, and, in `because`, why its condition stands for its
text.

A task that needs something the embedded engine lacks is marked: it is listed, but not played there,
and never counted as failed. So is a task that no program can decide. A task is solved if it has a
scripted solution: the table names its families, and `solution` in the task's file has the details.
Steps are those of the time limit; 20 steps are one second of game time.
"""

_MISSING = """## What the embedded engine lacks

The number of tasks that could be played if everything in a row existed:

"""

_CAPABILITIES = """The capabilities one by one, with the number of tasks that need them:

"""


def page() -> str:
    """Return the page."""
    suites = [load_suite(file.parent.name) for file in sorted(FOLDER.glob(f"*/{SUITE_FILE}"))]
    tasks = [task for suite in suites for task in suite.tasks]
    counts = table(
        ((suite.name, *map(str, _counts(suite))) for suite in suites),
        ("Suite", "Tasks", "Played", "Solved", "Marked"),
    )
    missing = _MISSING + _unlocked(tasks)
    capabilities = _CAPABILITIES + _capabilities(tasks)
    return "\n".join([_INTRODUCTION, counts, missing, capabilities, *map(_section, suites)])


def _counts(suite: Suite) -> tuple[int, int, int, int]:
    """Return how many tasks there are, and how many are played here, solved, and marked."""
    marked = sum(bool(task.marks()) for task in suite.tasks)
    solved = sum(task.solution is not None for task in suite.tasks)
    return len(suite.tasks), len(suite.tasks) - marked, solved, marked


def _unlocked(tasks: list[BenchmarkTask]) -> str:
    """Return a table of what tasks lack, and the number of tasks that lack exactly that."""
    sets = Counter(", ".join(sorted(task.needs)) for task in tasks if task.needs)
    order = sorted(sets, key=lambda names: (-sets[names], names))
    return table(((names, str(sets[names])) for names in order), ("Missing", "Tasks"))


def _capabilities(tasks: list[BenchmarkTask]) -> str:
    needed = Counter(name for task in tasks for name in task.needs)
    order = sorted(lacking_capabilities(), key=lambda name: (-needed[name], name))
    rows = ((name, str(needed[name]), lacking_capabilities()[name]) for name in order)
    return table(rows, ("Capability", "Tasks", "What is missing"))


def _section(suite: Suite) -> str:
    rows = (
        (task.name, task.text, _condition(task), _solution(task), "; ".join(_marks(task)))
        for task in suite.tasks
    )
    header = ("Task", "Text", "Success", "Solution", "Marked")
    return f"## {suite.title} (`{suite.name}`)\n\n{suite.text}\n\n{table(rows, header)}"


def _condition(task: BenchmarkTask) -> str:
    if task.success is None:
        return ""
    words = [f"`{task.success}`"]
    if task.judged == AT_END:
        words.append("at the end")
    if task.progress is not None:
        words.append(f"progress: `{task.progress.of}` of {task.progress.goal:g}")
    return "; ".join([*words, f"{task.time_limit} steps"])


def _solution(task: BenchmarkTask) -> str:
    """Return the families that the task's scripted solution consists of, each once."""
    return "" if task.solution is None else ", ".join(dict.fromkeys(_families(task.solution)))


def _families(solution: Mapping[str, Any]) -> Iterator[str]:
    """Yield a solution's family, or those of the steps that it plays in turn."""
    ((name, parameters),) = solution.items()
    if name == "in_turn":
        for step in parameters["steps"]:
            yield from _families(step)
    else:
        yield name


def _marks(task: BenchmarkTask) -> Iterator[str]:
    yield from task.needs
    if task.undecidable is not None:
        yield task.undecidable
