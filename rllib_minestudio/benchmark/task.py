"""Benchmark tasks: a world, an instruction, and the condition of success; and suites of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.benchmark.structures import BLOCK_NAMES, known_structures
from rllib_minestudio.env.callbacks import check_callbacks
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.env.voxel.data import DAY_TICKS, DIFFICULTIES, NAMESPACE, TIMES, WEATHERS
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.evaluation.filters import (
    EpisodeFilter,
    WorldFact,
    parse_filter,
    parse_quantity,
)
from rllib_minestudio.evaluation.filters.conditions import CHEST, STRUCTURE, matches
from rllib_minestudio.foundation.files import SmallFileError, read_yaml
from rllib_minestudio.foundation.options import (
    Problems,
    broken_rule,
    is_integer,
    is_list,
    is_number,
    shown,
    unknown_name,
)

# ------------------------------------------------------------------------------ the world of a task


@dataclass(frozen=True)
class TaskWorld:
    """The initial state of a task's episodes, which is determined by the episode's seed.

    Attributes:
        biomes: Biomes, one of which is drawn for each episode.
        commands: Chat commands, executed in order.
        inventory: Items, in the form of `InitInventory`.
        summon: Mobs around the player, in the form of `SummonMobs`.
        time: Time of day in ticks since sunrise, or one of `TIMES`.
        weather: One of `WEATHERS`.
        difficulty: One of `DIFFICULTIES`.
    """

    biomes: tuple[str, ...] = ("plains",)
    commands: tuple[str, ...] = ()
    inventory: tuple[Mapping[str, Any], ...] = ()
    summon: tuple[Mapping[str, Any], ...] = ()
    time: int | str = "day"
    weather: str = "clear"
    difficulty: str = "easy"
    callbacks: tuple[Mapping[str, Any], ...] = field(init=False)
    """Callbacks that prepare the world after a reset, in the form of `env_config.callbacks`."""

    def __post_init__(self) -> None:
        """Validate all fields and build the callbacks.

        Raises:
            InvalidOptionsError: A field is wrong; lists all problems.
        """
        problems = Problems()
        self._check_biomes(problems)
        for name in ("commands", "inventory", "summon"):
            value = getattr(self, name)
            if is_list(value):
                object.__setattr__(self, name, tuple(value))
            else:
                problems.add(name, value, "must be a list")
        if not isinstance(self.time, str):
            if not is_integer(self.time) or not 0 <= self.time <= DAY_TICKS:
                rule = (
                    f"must be one of {', '.join(TIMES)}, or ticks since sunrise, 0 to {DAY_TICKS}"
                )
                problems.add("time", self.time, rule)
        else:
            problems.choice("time", self.time, TIMES)
        problems.choice("weather", self.weather, WEATHERS)
        problems.choice("difficulty", self.difficulty, DIFFICULTIES)
        problems.raise_if_any()
        object.__setattr__(self, "callbacks", self._callbacks())
        self._check_callbacks(problems)
        problems.raise_if_any()

    @classmethod
    def from_mapping(cls, given: Any) -> TaskWorld:
        """Read the section `world` of a task file.

        Raises:
            InvalidOptionsError: The section is invalid; lists all problems.
        """
        names = [option.name for option in fields(cls) if option.init]
        if not isinstance(given, Mapping):
            rule = f"must be a mapping with some of {', '.join(names)}"
            raise InvalidOptionsError(broken_rule("world", given, rule))
        problems = Problems("world")
        known = problems.known("field", given, names)
        world = cls()
        try:
            world = cls(**known)
        except InvalidOptionsError as error:
            problems.include(error)
        problems.raise_if_any()
        return world

    def _check_biomes(self, problems: Problems) -> None:
        """Add problems of the biomes, except unknown names, which the engine decides."""
        names = self.biomes
        if not is_list(names) or not names or not all(isinstance(name, str) for name in names):
            problems.add("biomes", names, "must be a non-empty list of names, such as [plains]")
            return
        object.__setattr__(self, "biomes", tuple(name.removeprefix(NAMESPACE) for name in names))

    def _callbacks(self) -> tuple[Mapping[str, Any], ...]:
        """Return the callbacks that the task needs."""
        time = TIMES[self.time] if isinstance(self.time, str) else self.time
        settings = [
            f"/time set {time}",
            f"/weather {self.weather}",
            f"/difficulty {self.difficulty}",
        ]
        specs: list[Mapping[str, Any]] = []
        if len(self.biomes) > 1:
            specs.append({"rllib_minestudio.benchmark.task.BiomeCallback": list(self.biomes)})
        specs.append({"Commands": settings})
        if self.summon:
            specs.append({"SummonMobs": [dict(mobs) for mobs in self.summon]})
        if self.commands:
            specs.append({"Commands": list(self.commands)})
        if self.inventory:
            items = [dict(item) for item in self.inventory]
            specs.append({"InitInventory": {"init_inventory": items}})
        return tuple(specs)

    def _check_callbacks(self, problems: Problems) -> None:
        """Add the problems that the callbacks find, under the names used in the file."""
        for spec in self.callbacks:
            try:
                check_callbacks([spec])
            except InvalidOptionsError as error:
                problems.messages.extend(
                    problem.removeprefix("callbacks[0]: ") for problem in error.problems
                )


ANY_TIME, AT_END = "any_time", "at_end"
"""A task succeeds as soon as its condition holds, or if it holds at the end."""

LONGEST_TEXT = 256
"""Most bytes of a task's text in UTF-8."""
LONGEST_TIME_LIMIT = 1_000_000
"""Most steps of an episode: fourteen hours of game time."""

_SECONDS = re.compile(r"\bseconds[<>=!]")

_TEXTS = ("success", "because", "undecidable", "by_chance", "origin")
"""Optional text fields."""


@dataclass(frozen=True)
class ProgressGoal:
    """The measure of an episode's progress: a quantity divided by its goal.

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
        text: The instruction to the agent.
        category: Group of tasks in summaries.
        time_limit: Steps per episode; 20 are one second of game time.
        world: The initial state of episodes.
        success: The condition, in the filter language; None if the task cannot be decided.
        judged: `any_time`: the episode succeeds, and ends, as soon as the condition holds;
            `at_end`: it is judged at its last step.
        progress: Measure of progress, where success alone is too coarse.
        because: Why the condition represents the text.
        needs: Required capabilities that the embedded engine lacks, by their names in
            `capabilities.yaml`.
        undecidable: Why no program can decide the task, instead of `success`.
        by_chance: Why it is acceptable that doing nothing, or acting at random, may succeed.
        solution: A family of scripted solutions and its parameters; None if there is none.
        rewards: A callback that rewards steps, and its arguments; None gives a reward of 1 at
            success.
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
        """Build a task from a task file.

        Args:
            name: The task's name.
            given: The file's contents.

        Raises:
            InvalidOptionsError: The task is invalid; lists all problems.
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
        """The parsed condition of success; None if the task cannot be decided."""
        return None if self.success is None else parse_filter(self.success)

    @cached_property
    def needed_facts(self) -> frozenset[WorldFact]:
        """Facts of the world that the judge must query from the game."""
        facts = frozenset() if self.condition is None else self.condition.needed_facts()
        if self.progress is not None:
            facts |= parse_quantity(self.progress.of).needed_facts()
        return facts

    def marks(self, engine: str = VOXEL) -> list[str]:
        """Return the reasons why the task cannot be played on an engine, one sentence each.

        Args:
            engine: `voxel` or `minecraft`.
        """
        reasons = [] if self.undecidable is None else [self.undecidable]
        if engine == VOXEL:
            reasons += [lacking_capabilities()[name] for name in self.needs]
        elif untold := sorted(fact.key for fact in self.needed_facts):
            reasons.append(f"The real Minecraft does not report {', '.join(untold)}.")
        return reasons

    def capped(self, steps: int | None) -> BenchmarkTask:
        """Return the task with a time limit of at most `steps`; None does not change it."""
        if steps is None or steps >= self.time_limit:
            return self
        return replace(self, time_limit=steps)


def _check_words(problems: Problems, facts: dict[str, Any]) -> None:
    """Add problems of texts and numbers; normalise the texts' white space."""
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
    """Add problems of the condition and the progress."""
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
                f"{problems.owner}: because is missing; say why the condition represents the text."
            )
    _check_progress(problems, facts)


def _check_condition(problems: Problems, text: str) -> None:
    """Add problems of a condition."""
    try:
        condition = parse_filter(text)
    except InvalidOptionsError as error:
        problems.include(error)
        return
    _check_names(problems, condition.needed_facts())
    if _SECONDS.search(str(condition)):
        problems.add("success", text, "must not ask for seconds, which differ between runs")


def _check_names(problems: Problems, facts: Iterable[WorldFact]) -> None:
    """Add a problem for each pattern that matches nothing in the game."""
    for fact in sorted(facts, key=lambda fact: fact.key):
        if problem := name_problem(fact):
            problems.messages.append(f"{problems.owner}: {fact.key}: {problem}")


def _check_progress(problems: Problems, facts: dict[str, Any]) -> None:
    """Add problems of the progress, and turn it into a `ProgressGoal`."""
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
    """Add problems of unknown capabilities."""
    needs = facts.setdefault("needs", ())
    if not is_list(needs):
        problems.add("needs", needs, "must be a list of names in capabilities.yaml")
        return
    facts["needs"] = tuple(needs)
    for name in needs:
        if name not in lacking_capabilities():
            problems.unknown("capability in needs", name, lacking_capabilities())


def _check_parts(problems: Problems, facts: dict[str, Any]) -> None:
    """Add problems of world, rewards and solution, and turn the world into a `TaskWorld`."""
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


# ------------------------------------------------------ the starting biome, if a task names several


class BiomeCallback(MinecraftCallback):
    """A callback that moves the player to the nearest biome of a drawn kind after a reset."""

    def __init__(self, biomes: Sequence[str]) -> None:
        self.biomes = list(biomes)

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Draw the biome and teleport there, which takes a tick."""
        biome = self.biomes[sim.np_random.integers(len(self.biomes))]
        raw_obs, _, _, raw_info = sim.env.execute_cmd(f"/teleportbiome @a {biome}")
        return sim._wrap_obs_info(raw_obs, raw_info)

    def __repr__(self) -> str:
        return f"BiomeCallback({self.biomes!r})"


# ------------------------------------------------------ capabilities that the embedded engine lacks
# A task that needs one of these is marked.

_FILE = Path(__file__).parent / "capabilities.yaml"


@cache
def lacking_capabilities() -> Mapping[str, str]:
    """Return the capabilities that the embedded engine lacks: name -> sentence."""
    found = read_yaml(_FILE)
    return {str(name): " ".join(str(sentence).split()) for name, sentence in found.items()}


# ------------------------------------------------------------------------------ names in conditions
# A pattern that matches nothing in the game is a mistake.


def name_problem(fact: WorldFact) -> str | None:
    """Return a problem if the pattern of a world fact matches nothing in the game."""
    if fact.kind == STRUCTURE:
        known = known_structures()
        return None if fact.pattern in known else unknown_name("structure", fact.pattern, known)
    if fact.kind == CHEST:
        return _unfit("item", fact.pattern, list(ITEM_ID))
    return _unfit("block", fact.pattern, BLOCK_NAMES)


def _unfit(kind: str, pattern: str, names: Sequence[str]) -> str | None:
    """Return a problem if no name matches a shell pattern."""
    if any(matches(name, pattern) for name in names):
        return None
    hint = did_you_mean(pattern.removeprefix(NAMESPACE), names)
    return f"no {kind} fits {pattern!r}.{hint}"


# ---------------------------------------------------------------------------------- suites of tasks
# Folders of task files, in the package or of users.

FOLDER = Path(__file__).parent / "suites"
"""The suites that come with the package."""

SUITE_FILE = "suite.yaml"
"""File with the `title` and `text` of a suite."""

_SUFFIX = ".yaml"


@dataclass(frozen=True)
class Suite:
    """A set of tasks.

    Attributes:
        name: The argument of `--suite`: the name of a suite in the package, or a folder.
        title: A few words.
        text: The suite's purpose.
        folder: Folder of its files.
        tasks: All its tasks, ordered by name.
    """

    name: str
    title: str
    text: str
    folder: Path
    tasks: tuple[BenchmarkTask, ...]

    def task(self, name: str) -> BenchmarkTask:
        """Return the task with a name.

        Raises:
            InvalidOptionsError: There is no such task.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        names = [task.name for task in self.tasks]
        raise InvalidOptionsError(unknown_name("task", name, names, f"suite {self.name}"))

    def matching(self, pattern: str | None) -> tuple[BenchmarkTask, ...]:
        """Return the tasks whose names match a shell pattern.

        Args:
            pattern: For example `simple/collect_*`; it may also match only the last part of a name.
                None matches all.

        Raises:
            InvalidOptionsError: No name matches.
        """
        if pattern is None:
            return self.tasks
        found = tuple(
            task
            for task in self.tasks
            if fnmatchcase(task.name, pattern) or fnmatchcase(task.name.rpartition("/")[2], pattern)
        )
        if not found:
            hint = did_you_mean(pattern, [task.name for task in self.tasks])
            raise InvalidOptionsError(f"suite {self.name} has no task that fits {pattern!r}.{hint}")
        return found


def find_suites() -> dict[str, Path]:
    """Return the suites in the package, name -> folder.

    A subfolder `simple` of the suite `minestudio` is also the suite `minestudio-simple`.
    """
    found: dict[str, Path] = {}
    for file in sorted(FOLDER.glob(f"*/{SUITE_FILE}")):
        suite = file.parent
        found[suite.name] = suite
        for folder in sorted(filter(Path.is_dir, suite.iterdir())):
            if any(folder.rglob(f"*{_SUFFIX}")):
                found[f"{suite.name}-{folder.name}"] = folder
    return found


def load_suite(source: str | Path) -> Suite:
    """Load a suite and validate its tasks.

    Args:
        source: The name of a suite in the package, or a folder with task files.

    Raises:
        InvalidOptionsError: There is no such suite, or a file is wrong; lists all problems.
    """
    suites = find_suites()
    name = str(source)
    folder = suites.get(name, Path(source).expanduser())
    if not folder.is_dir():
        raise InvalidOptionsError(
            unknown_name("suite", name, suites).removesuffix(".")
            + "; a suite of your own is named by the path of its folder."
        )
    problems = Problems()
    described = _description(problems, folder)
    root = folder.parent if folder.parent in suites.values() else folder
    tasks = _load_tasks(problems, folder, root)
    problems.raise_if_any()
    if not tasks:
        raise InvalidOptionsError(f"the folder {name!r} has no task files (*{_SUFFIX}).")
    title = described.get("title", folder.name)
    return Suite(name, title, described.get("text", ""), folder, tasks)


def _load_tasks(problems: Problems, folder: Path, root: Path) -> tuple[BenchmarkTask, ...]:
    """Load the task files below a folder; tasks are named by their paths relative to `root`."""
    tasks = []
    for file in sorted(folder.rglob(f"*{_SUFFIX}")):
        name = file.relative_to(root).with_suffix("").as_posix()
        if file.name == SUITE_FILE or name.startswith(".") or "/." in name:
            continue
        try:
            tasks.append(BenchmarkTask.from_mapping(name, _read(file)))
        except InvalidOptionsError as error:
            problems.include(error)
    return tuple(tasks)


def _description(problems: Problems, folder: Path) -> Mapping[str, str]:
    """Return title and text of a suite; a subfolder without a file inherits its suite's."""
    file = folder / SUITE_FILE
    if not file.is_file() and folder.is_relative_to(FOLDER):
        suite = _description(problems, folder.parent)
        return {**suite, "title": f"{suite.get('title', folder.parent.name)}: {folder.name}"}
    if not file.is_file():
        return {}
    owner = Problems(str(file))
    found: Any = {}
    try:
        found = _read(file)
    except InvalidOptionsError as error:
        problems.include(error)
    if not isinstance(found, Mapping) or not set(found) <= {"title", "text"}:
        owner.messages.append(f"{file} must hold title and text; got {shown(found)}.")
        found = {}
    for key, value in found.items():
        if not isinstance(value, str) or not value.strip():
            owner.add(key, value, "must be a text")
    problems.messages.extend(owner.messages)
    return {key: " ".join(str(value).split()) for key, value in found.items()}


def _read(file: Path) -> Any:
    """Return the contents of a YAML file.

    Raises:
        InvalidOptionsError: The file cannot be read.
    """
    try:
        return read_yaml(file)
    except (OSError, SmallFileError, yaml.YAMLError) as error:
        what = " ".join(str(error).split())
        raise InvalidOptionsError(f"the file {file} cannot be read: {what}") from error
