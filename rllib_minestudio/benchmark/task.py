"""A task: a world, what to do in it in words, and the condition that decides the success."""

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
from rllib_minestudio.env.voxel.data.vocabulary import (
    DAY_TICKS,
    DIFFICULTIES,
    NAMESPACE,
    TIMES,
    WEATHERS,
)
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
# What an episode begins with.


@dataclass(frozen=True)
class TaskWorld:
    """What an episode of a task begins with; everything in it follows from the episode's seed.

    Attributes:
        biomes: The episode begins in one of these, drawn.
        commands: Chat commands, executed in order.
        inventory: Items, as `InitInventory` takes them.
        summon: Mobs around the player, as `SummonMobs` takes them.
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
    """What prepares the world after a reset, as `env_config.callbacks` takes it."""

    def __post_init__(self) -> None:
        """Check everything.

        Raises:
            InvalidOptionsError: Something is wrong; lists all problems.
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
            InvalidOptionsError: It is not in order; lists all problems.
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
        """Note what is wrong with the biomes; their names are checked by the engine."""
        names = self.biomes
        if not is_list(names) or not names or not all(isinstance(name, str) for name in names):
            problems.add("biomes", names, "must be a non-empty list of names, such as [plains]")
            return
        object.__setattr__(self, "biomes", tuple(name.removeprefix(NAMESPACE) for name in names))

    def _callbacks(self) -> tuple[Mapping[str, Any], ...]:
        """Return the callbacks; those for what a task does not ask for are left out."""
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
        """Have the callbacks check their parts, and name them as the file does."""
        for spec in self.callbacks:
            try:
                check_callbacks([spec])
            except InvalidOptionsError as error:
                problems.messages.extend(
                    problem.removeprefix("callbacks[0]: ") for problem in error.problems
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


# ---------------------------------- the biome that an episode begins in, where a task names several


class BiomeCallback(MinecraftCallback):
    """Moves the player to the nearest of a biome, drawn from a list, when an episode begins."""

    def __init__(self, biomes: Sequence[str]) -> None:
        self.biomes = list(biomes)

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Draw the biome and go there, which takes a tick."""
        biome = self.biomes[sim.np_random.integers(len(self.biomes))]
        raw_obs, _, _, raw_info = sim.env.execute_cmd(f"/teleportbiome @a {biome}")
        return sim._wrap_obs_info(raw_obs, raw_info)

    def __repr__(self) -> str:
        return f"BiomeCallback({self.biomes!r})"


# ----------------------------------------------------- what tasks need and an engine lacks, by name
# A task that needs one of these is marked.

_FILE = Path(__file__).parent / "capabilities.yaml"


@cache
def lacking_capabilities() -> Mapping[str, str]:
    """Return what the embedded engine lacks: name -> a sentence that says what is missing."""
    found = read_yaml(_FILE)
    return {str(name): " ".join(str(sentence).split()) for name, sentence in found.items()}


# ------------------------------------------------------------------------------ names in conditions
# A pattern that nothing of the game fits is a mistake.


def name_problem(fact: WorldFact) -> str | None:
    """Say that nothing fits the pattern of a fact of the world; None if something does."""
    if fact.kind == STRUCTURE:
        known = known_structures()
        return None if fact.pattern in known else unknown_name("structure", fact.pattern, known)
    if fact.kind == CHEST:
        return _unfit("item", fact.pattern, list(ITEM_ID))
    return _unfit("block", fact.pattern, BLOCK_NAMES)


def _unfit(kind: str, pattern: str, names: Sequence[str]) -> str | None:
    """Say that no name fits a shell pattern; None if one does."""
    if any(matches(name, pattern) for name in names):
        return None
    hint = did_you_mean(pattern.removeprefix(NAMESPACE), names)
    return f"no {kind} fits {pattern!r}.{hint}"


# ---------------------------------------------------------------------------------- suites of tasks
# Folders of task files, those of the package and those of users.

FOLDER = Path(__file__).parent / "suites"
"""The suites that come with the package."""

SUITE_FILE = "suite.yaml"
"""Says what a suite is called and what it is for: `title` and `text`."""

_SUFFIX = ".yaml"


@dataclass(frozen=True)
class Suite:
    """A set of tasks.

    Attributes:
        name: What `--suite` takes: the name of a suite of the package, or a folder.
        title: A few words.
        text: What the suite is for.
        folder: Where its files are.
        tasks: All its tasks, by name.
    """

    name: str
    title: str
    text: str
    folder: Path
    tasks: tuple[BenchmarkTask, ...]

    def task(self, name: str) -> BenchmarkTask:
        """Return the task of a name.

        Raises:
            InvalidOptionsError: There is none.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        names = [task.name for task in self.tasks]
        raise InvalidOptionsError(unknown_name("task", name, names, f"suite {self.name}"))

    def matching(self, pattern: str | None) -> tuple[BenchmarkTask, ...]:
        """Return the tasks whose names fit a shell pattern.

        Args:
            pattern: Such as `simple/collect_*`; without a `/` it may also fit the last part of a
                name alone. None takes all.

        Raises:
            InvalidOptionsError: No name fits.
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
    """Return the suites of the package, name -> folder.

    A subfolder of `minestudio` that is called `simple` is the suite `minestudio-simple` as well.
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
    """Load a suite and check each of its tasks.

    Args:
        source: The name of a suite of the package, or a folder with task files.

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
    """Read the task files below a folder; names are their paths below `root`."""
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
    """Return what a suite's file says; of a subfolder without one, what the suite's says."""
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
    """Return what a file of YAML says.

    Raises:
        InvalidOptionsError: It cannot be read.
    """
    try:
        return read_yaml(file)
    except (OSError, SmallFileError, yaml.YAMLError) as error:
        what = " ".join(str(error).split())
        raise InvalidOptionsError(f"the file {file} cannot be read: {what}") from error
