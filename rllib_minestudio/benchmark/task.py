"""A task: a world, what to do in it in words, and the condition that decides the success."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from rllib_minestudio.benchmark.capabilities import lacking_capabilities
from rllib_minestudio.benchmark.names import name_problem
from rllib_minestudio.benchmark.world import TaskWorld
from rllib_minestudio.env.callbacks import check_callbacks
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.filters import (
    EpisodeFilter,
    WorldFact,
    parse_filter,
    parse_quantity,
)
from rllib_minestudio.option_checks import (
    Problems,
    broken_rule,
    is_integer,
    is_list,
    is_number,
    shown,
)

ANY_TIME, AT_END = "any_time", "at_end"
"""When a task is judged: it succeeds as soon as the condition holds, or if it does in the end."""

LONGEST_TEXT = 256
"""Bytes of a task's text in UTF-8."""
LONGEST_TIME_LIMIT = 1_000_000
"""Steps: fourteen hours of game time."""

_SECONDS = re.compile(r"\bseconds[<>=!]")

_TEXTS = ("success", "because", "undecidable", "by_chance", "origin")
"""Fields that hold a text or nothing."""


@dataclass(frozen=True)
class ProgressGoal:
    """How far an episode got: a quantity over the amount that counts as all of it.

    Attributes:
        of: A quantity of the filter language, such as `pickup:*_log`.
        goal: The amount at which the progress is 1.
    """

    of: str
    goal: float


@dataclass(frozen=True)
class BenchmarkTask:
    """One task of a suite.

    Attributes:
        name: Unique in its suite: the file's path below the suite's folder, without suffix.
        text: What the agent is told.
        category: What it is summed up with.
        time_limit: Steps per episode; 20 are one second of game time.
        world: What an episode begins with.
        success: The condition, in the filter language; None if the task cannot be decided.
        judged: `any_time`: the episode succeeds, and ends, as soon as the condition holds;
            `at_end`: it is judged at its last step.
        progress: How far an episode got, where success alone is too coarse.
        because: Why the condition stands for the text.
        needs: Capabilities that the embedded engine lacks, names in `capabilities.yaml`.
        undecidable: Why no program can decide the task, instead of `success`.
        by_chance: Why it is right that doing nothing, or acting at random, may succeed.
        solution: A family of scripted solutions and its parameters; None if none is shipped.
        rewards: A callback that rewards steps and its arguments; None pays 1 at success.
        origin: MineStudio's name of the task, if it has it.
    """

    name: str
    text: str
    category: str
    time_limit: int
    world: TaskWorld = field(default_factory=TaskWorld)
    success: str | None = None
    judged: str = ANY_TIME
    progress: ProgressGoal | None = None
    because: str | None = None
    needs: tuple[str, ...] = ()
    undecidable: str | None = None
    by_chance: str | None = None
    solution: Mapping[str, Any] | None = None
    rewards: Mapping[str, Any] | None = None
    origin: str | None = None

    @classmethod
    def from_mapping(cls, name: str, given: Any) -> BenchmarkTask:
        """Read what a task file says.

        Args:
            name: The task's name.
            given: The file's contents.

        Raises:
            InvalidOptionsError: The task is not in order; lists all problems.
        """
        options = [option for option in fields(cls) if option.name != "name"]
        known = [option.name for option in options]
        if not isinstance(given, Mapping):
            rule = f"must be a mapping with some of {', '.join(known)}"
            raise InvalidOptionsError(broken_rule(f"task {name}", given, rule))
        problems = Problems(f"task {name}")
        facts = problems.known("field", given, known)
        for option in options:
            required = option.default is MISSING and option.default_factory is MISSING
            if required and option.name not in given:
                problems.messages.append(f"task {name}: {option.name} is missing.")
        _check_words(problems, facts)
        _check_judgement(problems, facts)
        _check_needs(problems, facts)
        _check_parts(problems, facts)
        problems.raise_if_any()
        return cls(name, **facts)

    @cached_property
    def condition(self) -> EpisodeFilter | None:
        """The condition of success; None if the task cannot be decided."""
        return None if self.success is None else parse_filter(self.success)

    @cached_property
    def needed_facts(self) -> frozenset[WorldFact]:
        """What the judge has to ask the game for."""
        facts = frozenset() if self.condition is None else self.condition.needed_facts()
        if self.progress is not None:
            facts |= parse_quantity(self.progress.of).needed_facts()
        return facts

    def marks(self, engine: str = VOXEL) -> list[str]:
        """Return why the task cannot be played on an engine, one sentence each; [] if it can.

        Args:
            engine: `voxel` or `minecraft`.
        """
        reasons = [] if self.undecidable is None else [self.undecidable]
        if engine == VOXEL:
            reasons += [lacking_capabilities()[name] for name in self.needs]
        elif untold := sorted(fact.key for fact in self.needed_facts):
            reasons.append(f"The real Minecraft does not tell a program {', '.join(untold)}.")
        return reasons

    def capped(self, steps: int | None) -> BenchmarkTask:
        """Return the task with a time limit of at most `steps`; None leaves it as it is."""
        if steps is None or steps >= self.time_limit:
            return self
        return replace(self, time_limit=steps)


def _check_words(problems: Problems, facts: dict[str, Any]) -> None:
    """Note what is wrong with texts and numbers; texts lose the white space around them."""
    for name in ("text", "category", *_TEXTS):
        value = facts.get(name)
        if value is None and (name in _TEXTS or name not in facts):
            facts.pop(name, None)
        elif not isinstance(value, str) or not value.strip():
            problems.add(name, value, "must be a text")
        else:
            facts[name] = " ".join(value.split())
    text = facts.get("text", "")
    if isinstance(text, str) and len(text.encode(errors="replace")) > LONGEST_TEXT:
        problems.add("text", text, f"must have at most {LONGEST_TEXT} bytes in UTF-8")
    limit = facts.get("time_limit", 1)
    if not is_integer(limit) or not 1 <= limit <= LONGEST_TIME_LIMIT:
        problems.add("time_limit", limit, f"must be an integer from 1 to {LONGEST_TIME_LIMIT}")
    problems.choice("judged", facts.setdefault("judged", ANY_TIME), (ANY_TIME, AT_END))


def _check_judgement(problems: Problems, facts: dict[str, Any]) -> None:
    """Note what is wrong with the condition and the progress."""
    success, undecidable = facts.get("success"), facts.get("undecidable")
    if success is not None and undecidable is not None:
        problems.add("undecidable", undecidable, "must not be given where there is a success")
    elif success is None and undecidable is None and not facts.get("needs"):
        problems.messages.append(
            f"{problems.owner}: success is missing; a task that no program can decide says why in "
            "undecidable."
        )
    if isinstance(success, str):
        _check_condition(problems, success)
        if facts.get("because") is None:
            problems.messages.append(
                f"{problems.owner}: because is missing; say why the condition stands for the text."
            )
    _check_progress(problems, facts)


def _check_condition(problems: Problems, text: str) -> None:
    """Note what is wrong with a condition."""
    try:
        condition = parse_filter(text)
    except InvalidOptionsError as error:
        problems.include(error)
        return
    _check_names(problems, condition.needed_facts())
    if _SECONDS.search(str(condition)):
        problems.add("success", text, "must not ask for seconds, which differ between runs")


def _check_names(problems: Problems, facts: Iterable[WorldFact]) -> None:
    """Note patterns that nothing in the game fits."""
    for fact in sorted(facts, key=lambda fact: fact.key):
        if problem := name_problem(fact):
            problems.messages.append(f"{problems.owner}: {fact.key}: {problem}")


def _check_progress(problems: Problems, facts: dict[str, Any]) -> None:
    """Note what is wrong with the progress; it becomes a `ProgressGoal`."""
    progress = facts.get("progress")
    if progress is None:
        return
    if not isinstance(progress, Mapping) or set(progress) != {"of", "goal"}:
        problems.add("progress", progress, "must be a mapping of a quantity `of` and its `goal`")
        return
    of, goal = progress["of"], progress["goal"]
    if not is_number(goal) or goal <= 0:
        problems.add("progress.goal", goal, "must be a number above 0")
    elif not isinstance(of, str):
        problems.add("progress.of", of, "must be a quantity, such as 'pickup:*_log'")
    else:
        try:
            quantity = parse_quantity(of)
            _check_names(problems, quantity.needed_facts())
            facts["progress"] = ProgressGoal(str(quantity), float(goal))
        except InvalidOptionsError as error:
            problems.include(error)


def _check_needs(problems: Problems, facts: dict[str, Any]) -> None:
    """Note names of capabilities that are not known."""
    needs = facts.setdefault("needs", ())
    if not is_list(needs):
        problems.add("needs", needs, "must be a list of names in capabilities.yaml")
        return
    facts["needs"] = tuple(needs)
    for name in needs:
        if name not in lacking_capabilities():
            problems.unknown("capability in needs", name, lacking_capabilities())


def _check_parts(problems: Problems, facts: dict[str, Any]) -> None:
    """Note what is wrong with world, rewards and solution; the world becomes a `TaskWorld`."""
    try:
        facts["world"] = TaskWorld.from_mapping(facts.get("world", {}))
    except InvalidOptionsError as error:
        problems.include(error)
    for name, example in (
        ("rewards", "{TechTreeRewards: {}}"),
        ("solution", "{fell_tree: {logs: 1}}"),
    ):
        value = facts.get(name)
        is_one = isinstance(value, Mapping) and len(value) == 1
        if value is not None and not is_one:
            problems.messages.append(
                f"{problems.owner}: {name} must be one name and its arguments, such as {example}; "
                f"got {shown(value)}."
            )
        elif name == "rewards" and is_one:
            try:
                check_callbacks([value])
            except InvalidOptionsError as error:
                problems.messages.extend(
                    f"{problems.owner}: rewards: {problem.removeprefix('callbacks[0]: ')}"
                    for problem in error.problems
                )
