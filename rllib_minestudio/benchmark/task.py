"""Benchmark tasks: a world, an instruction, and the condition of success; and suites of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from rllib_minestudio.checkpoints.trust import refuse_untrusted
from rllib_minestudio.env.callbacks import CALLBACKS, check_callbacks
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim
from rllib_minestudio.env.callbacks.builder import SUFFIX
from rllib_minestudio.env.env_options import VOXEL, requests_of_callbacks
from rllib_minestudio.env.voxel.data import DAY_TICKS, DIFFICULTIES, NAMESPACE, TIMES, WEATHERS
from rllib_minestudio.env.voxel.entities.records import MOB_KIND_ID
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCKS
from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.evaluation.filters import (
    EpisodeFilter,
    WorldFact,
    parse_filter,
    parse_quantity,
)
from rllib_minestudio.evaluation.filters.conditions import CHEST, MOBS, STRUCTURE, matches
from rllib_minestudio.foundation.documents import (
    HUGE,
    Document,
    Name,
    NotOneOf,
    PlainMapping,
    Text,
    TupleOf,
    given,
    one_of,
    parse_written,
    read_plain,
)
from rllib_minestudio.foundation.files import SmallFileError, read_yaml
from rllib_minestudio.foundation.options import Problems, is_integer, unknown_name

# ------------ structures of `structure:NAME`, defined in `structures.yaml`, and the search for them

_STRUCTURES_FILE = Path(__file__).parent / "structures.yaml"

_NEW, _SOLID, _AIR, _ANYTHING = "#", "X", "_", "."

Cells = frozenset[tuple[int, int, int, str]]
"""x, y and z relative to the lowest corner, and the letter of the required block."""


@dataclass(frozen=True)
class Structure:
    """A structure of blocks, in all orientations.

    Attributes:
        name: As in `structure:NAME`.
        text: Its description.
        legend: Letter -> shell patterns of blocks.
        variants: The shapes, in each distinct rotation by quarter turns.
    """

    name: str
    text: str
    legend: Mapping[str, Sequence[str]]
    variants: tuple[Cells, ...]


@cache
def known_structures() -> Mapping[str, Structure]:
    """Return all structures by name."""
    return {name: _structure(name, facts) for name, facts in read_yaml(_STRUCTURES_FILE).items()}


def find_structures(
    structure: Structure, blocks: NDArray[np.uint16], before: NDArray[np.uint16]
) -> list[NDArray[np.bool_]]:
    """Find the places of a structure in a box.

    Args:
        structure: The structure.
        blocks: Present block ids of the box, [x, y, z].
        before: Block ids at the start of the episode, [x, y, z].

    Returns:
        Per variant a bool array, [x, y, z], of the places of its lowest corner; smaller than the
        box by the variant's size less one along each axis.
    """
    present = {_SOLID: blocks != AIR, _AIR: blocks == AIR}
    present[_NEW] = present[_SOLID] & (blocks != before)
    for letter, patterns in structure.legend.items():
        present[letter] = np.any([matching_blocks(pattern) for pattern in patterns], 0)[blocks]
    return [_places(variant, present) for variant in structure.variants]


def _places(cells: Cells, present: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return at which corners all cells match."""
    size = np.max([cell[:3] for cell in cells], axis=0) + 1
    room = np.maximum(np.array(present[_SOLID].shape) - size + 1, 0).tolist()
    found = np.ones(room, np.bool_)
    for x, y, z, letter in sorted(cells):
        found &= present[letter][x : x + room[0], y : y + room[1], z : z + room[2]]
    return found


def _structure(name: str, facts: Mapping[str, Any]) -> Structure:
    """Build a structure from its entry in the file."""
    variants = {turned: None for shape in facts["shapes"] for turned in _turned(_cells(shape))}
    text = " ".join(facts["text"].split())
    return Structure(name, text, facts.get("legend", {}), tuple(variants))


def _cells(shape: Sequence[str | Sequence[str]]) -> Cells:
    """Return the cells of a shape, whose rows run along x and are stacked along z."""
    layers = [[layer] if isinstance(layer, str) else layer for layer in shape]
    return frozenset(
        (x, y, z, letter)
        for y, layer in enumerate(layers)
        for z, row in enumerate(layer)
        for x, letter in enumerate(row)
        if letter != _ANYTHING
    )


def _turned(cells: Cells) -> Iterator[Cells]:
    """Yield a shape rotated about the vertical axis by 0 to 3 quarter turns."""
    for _ in range(4):
        low_x, low_z = min(cell[0] for cell in cells), min(cell[2] for cell in cells)
        cells = frozenset((x - low_x, y, z - low_z, letter) for x, y, z, letter in cells)
        yield cells
        cells = frozenset((-z, y, x, letter) for x, y, z, letter in cells)


# ---------------------------------------------------------------- blocks and items by shell pattern

__all__ = ["AIR", "BLOCK_NAMES", "matching_blocks"]

BLOCK_NAMES: tuple[str, ...] = tuple(block.name for block in BLOCKS)
"""Names of all blocks of Minecraft 1.16.5, by block id."""


@cache
def matching_blocks(pattern: str) -> NDArray[np.bool_]:
    """Return bool [blocks]: by block id, whether the name matches a shell pattern."""
    return np.array([matches(name, pattern) for name in BLOCK_NAMES])


# ------------------------------------------------------------------------------ the world of a task


def _short_name(biome: str) -> str:
    return biome.removeprefix(NAMESPACE)


def _time_of_day(value: Any) -> Any:
    if isinstance(value, str) and value not in TIMES:
        raise NotOneOf(TIMES)
    if not isinstance(value, str) and not (is_integer(value) and 0 <= value <= DAY_TICKS):
        raise ValueError(
            f"must be one of {', '.join(TIMES)}, or ticks since sunrise, 0 to {DAY_TICKS}"
        )
    return value


class WorldDocument(Document):
    """The initial state of a task's episodes, which is determined by the episode's seed.

    Attributes:
        biomes: Biomes, one of which is drawn for each episode; the engine decides which exist.
        commands: Chat commands, executed in order.
        inventory: Items, in the form of `InitInventory`.
        summon: Mobs around the player, in the form of `SummonMobs`.
        time: Time of day in ticks since sunrise, or one of `TIMES`.
        weather: One of `WEATHERS`.
        difficulty: One of `DIFFICULTIES`.
    """

    biomes: Annotated[
        TupleOf[Annotated[Name, AfterValidator(_short_name)]], Field(min_length=1)
    ] = ("plains",)
    commands: TupleOf[Text] = ()
    inventory: TupleOf[PlainMapping] = ()
    summon: TupleOf[PlainMapping] = ()
    time: Annotated[
        Any,
        BeforeValidator(_time_of_day),
        WithJsonSchema(
            {"anyOf": [{"enum": [*TIMES]}, {"type": "integer", "minimum": 0, "maximum": DAY_TICKS}]}
        ),
    ] = "day"
    weather: Annotated[Name, one_of(WEATHERS)] = "clear"
    difficulty: Annotated[Name, one_of(DIFFICULTIES)] = "easy"

    @cached_property
    def callbacks(self) -> tuple[Mapping[str, Any], ...]:
        """Callbacks that prepare the world after a reset, in the form of `env_config.callbacks`."""
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


# ------------------------------------------------------------------------------------------- a task

ANY_TIME, AT_END = "any_time", "at_end"
"""A task succeeds as soon as its condition holds, or if it holds at the end."""

LONGEST_TEXT = 256
"""Most bytes of a task's text in UTF-8."""
LONGEST_TIME_LIMIT = 1_000_000
"""Most steps of an episode: fourteen hours of game time."""

_SECONDS = re.compile(r"\bseconds[<>=!]")


def _one_line(text: str) -> str:
    """Return a text with its white space as single spaces."""
    words = " ".join(text.split())
    if not words:
        raise ValueError("must not be empty")
    return words


def _short(text: str) -> str:
    if len(text.encode()) > LONGEST_TEXT:
        raise ValueError(f"must have at most {LONGEST_TEXT} bytes in UTF-8")
    return text


def _one_call(example: str) -> BeforeValidator:
    """Return the validator of a mapping with one name and its arguments."""

    def check(value: Any) -> Any:
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"must be one name and its arguments, such as {example}")
        return value

    return BeforeValidator(check)


_Words = Annotated[Text, AfterValidator(_one_line)]


class ProgressDocument(Document):
    """A quantity of the filter language, and the amount of it that is the goal."""

    of: Text
    goal: Annotated[float, Field(gt=0, le=HUGE)]


class TaskDocument(Document):
    """A task file; `BenchmarkTask` says what the fields mean."""

    text: Annotated[_Words, AfterValidator(_short)]
    category: Annotated[Name, AfterValidator(_one_line)]
    time_limit: Annotated[int, Field(ge=1, le=LONGEST_TIME_LIMIT)]
    world: WorldDocument = WorldDocument()
    success: _Words | None = None
    judged: Annotated[Name, one_of((ANY_TIME, AT_END))] = ANY_TIME
    progress: ProgressDocument | None = None
    because: _Words | None = None
    needs: TupleOf[Name] = ()
    undecidable: _Words | None = None
    by_chance: _Words | None = None
    solution: Annotated[PlainMapping, _one_call("{fell_tree: {logs: 1}}")] | None = None
    rewards: Annotated[PlainMapping, _one_call("{TechTreeRewards: {}}")] | None = None
    origin: _Words | None = None


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
    world: WorldDocument = field(default_factory=WorldDocument)
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
        problems = Problems(f"task {name}")
        told = parse_written(given, TaskDocument, problems)
        problems.raise_if_any()
        assert told is not None
        goal = _checked_progress(problems, told.progress)
        _check_judgement(problems, told)
        for capability in told.needs:
            if capability not in lacking_capabilities():
                problems.unknown("capability in needs", capability, lacking_capabilities())
        _check_callbacks(problems, told)
        problems.raise_if_any()
        return cls(name, **{**dict(told), "progress": goal})

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


def _check_judgement(problems: Problems, told: TaskDocument) -> None:
    """Add problems of the condition."""
    if told.success is not None and told.undecidable is not None:
        problems.add("undecidable", told.undecidable, "must not be given where there is a success")
    elif told.success is None and told.undecidable is None and not told.needs:
        problems.messages.append(
            f"{problems.owner}: success is missing; a task that no program can decide says why in "
            "undecidable."
        )
    if told.success is not None:
        _check_condition(problems, told.success)
        if told.because is None:
            problems.messages.append(
                f"{problems.owner}: because is missing; say why the condition represents the text."
            )


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


def _checked_progress(problems: Problems, told: ProgressDocument | None) -> ProgressGoal | None:
    """Return the measure of progress; add the problems of its quantity."""
    if told is None:
        return None
    try:
        quantity = parse_quantity(told.of)
    except InvalidOptionsError as error:
        problems.include(error)
        return None
    _check_names(problems, quantity.needed_facts())
    return ProgressGoal(str(quantity), float(told.goal))


def _check_callbacks(problems: Problems, told: TaskDocument) -> None:
    """Add the problems that the callbacks of world and rewards find."""
    for section, specs in (
        ("world", told.world.callbacks),
        ("rewards", [] if told.rewards is None else [told.rewards]),
    ):
        for spec in specs:
            try:
                check_callbacks([spec])
            except InvalidOptionsError as error:
                problems.messages.extend(
                    f"{problems.owner}: {section}: {problem.removeprefix('callbacks[0]: ')}"
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
    if fact.kind == MOBS:
        return _unfit("mob", fact.pattern, list(MOB_KIND_ID))
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


class SuiteDocument(Document):
    """The file of a suite."""

    title: _Words = ""
    text: _Words = ""


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


def load_suite(source: str | Path, *, trust: bool = False) -> Suite:
    """Load a suite and validate its tasks.

    Args:
        source: The name of a suite in the package, or a folder with task files.
        trust: Whether classes and paths that a folder's tasks name may be imported and used.

    Raises:
        InvalidOptionsError: There is no such suite, or a file is wrong; lists all problems.
        UntrustedError: Tasks of a folder name classes or paths, and it is not trusted.
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
    files = _task_files(problems, folder, root)
    if not trust and not folder.is_relative_to(FOLDER):
        requests = [f"{task}: {it}" for task, told in files.items() for it in _requests(told)]
        refuse_untrusted(name, requests, because="is a suite that")
    tasks = _checked_tasks(problems, files)
    problems.raise_if_any()
    if not tasks:
        raise InvalidOptionsError(f"the folder {name!r} has no task files (*{_SUFFIX}).")
    title = described.get("title", folder.name)
    return Suite(name, title, described.get("text", ""), folder, tasks)


def _task_files(problems: Problems, folder: Path, root: Path) -> dict[str, Any]:
    """Read the task files below a folder; tasks are named by their paths relative to `root`."""
    files = {}
    for file in sorted(folder.rglob(f"*{_SUFFIX}")):
        name = file.relative_to(root).with_suffix("").as_posix()
        if file.name == SUITE_FILE or name.startswith(".") or "/." in name:
            continue
        try:
            files[name] = _read(file)
        except InvalidOptionsError as error:
            problems.include(error)
    return files


def _requests(told: Any) -> list[str]:
    """Return what a task file, which need not be valid, asks for beyond data."""
    rewards = told.get("rewards") if isinstance(told, Mapping) else None
    if not isinstance(rewards, Mapping) or all(map(_is_misspelt, rewards)):
        return []  # `BenchmarkTask` says what is wrong
    return requests_of_callbacks("rewards", [rewards])


def _is_misspelt(name: Any) -> bool:
    """Whether a name is neither a known callback nor the path of a class, which has a dot."""
    return isinstance(name, str) and "." not in name and name.removesuffix(SUFFIX) not in CALLBACKS


def _checked_tasks(problems: Problems, files: Mapping[str, Any]) -> tuple[BenchmarkTask, ...]:
    tasks = []
    for name, told in files.items():
        try:
            tasks.append(BenchmarkTask.from_mapping(name, told))
        except InvalidOptionsError as error:
            problems.include(error)
    return tuple(tasks)


def _description(problems: Problems, folder: Path) -> Mapping[str, Any]:
    """Return title and text of a suite; a subfolder without a file inherits its suite's."""
    file = folder / SUITE_FILE
    if not file.is_file() and folder.is_relative_to(FOLDER):
        suite = _description(problems, folder.parent)
        return {**suite, "title": f"{suite.get('title', folder.parent.name)}: {folder.name}"}
    if not file.is_file():
        return {}
    owner = Problems(str(file))
    told = None
    try:
        told = parse_written(_read(file), SuiteDocument, owner)
    except InvalidOptionsError as error:
        problems.include(error)
    problems.messages.extend(owner.messages)
    return {} if told is None else given(told)


def _read(file: Path) -> Any:
    """Return the contents of a YAML file.

    Raises:
        InvalidOptionsError: The file cannot be read.
    """
    try:
        return read_plain(file)
    except (OSError, SmallFileError) as error:
        what = " ".join(str(error).split())
        raise InvalidOptionsError(f"the file {file} cannot be read: {what}") from error
