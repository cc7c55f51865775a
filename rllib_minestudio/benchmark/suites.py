"""Suites of tasks: folders of task files, those of the package and those of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.option_checks import Problems, shown, unknown_name
from rllib_minestudio.small_files import SmallFileError, read_yaml

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
