"""What a run was started with: `experiment.yaml` in its folder, and what differs from it now."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rllib_minestudio.errors import CheckpointError
from rllib_minestudio.experiments.reading.experiment_file import Experiment
from rllib_minestudio.plain_values import recordable
from rllib_minestudio.provenance import NUMERICS, code_identity, versions
from rllib_minestudio.small_files import SmallFileError, read_yaml
from rllib_minestudio.whole_file import write_whole

RUN_RECORD_FILE = "experiment.yaml"

ABSENT = "(absent)"
"""Stands in a table for an option that one side does not have."""


@dataclass(frozen=True)
class RunRecord:
    """The contents of `experiment.yaml`.

    Attributes:
        file: The experiment as its file said, before the command line's options.
        experiment: The experiment as it is run.
        versions: Package -> version.
        code: Where git knows it, the identity of this package and of the folder that the
            command was started in (`provenance.code_identity`).
        numerics: Revision of the learner's numerics (`provenance.NUMERICS`).
    """

    file: dict[str, Any]
    experiment: dict[str, Any]
    versions: dict[str, str] = field(default_factory=versions)
    code: dict[str, Any] = field(default_factory=lambda: code_identities())
    numerics: int = NUMERICS


def code_identities() -> dict[str, Any]:
    """Identify the code of this package and of the folder we are in."""
    return {
        "rllib_minestudio": code_identity(Path(__file__).parent),
        "working_folder": code_identity(Path.cwd()),
    }


def describe(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment as plain data."""
    fields = {
        item.name: getattr(experiment, item.name)
        for item in dataclasses.fields(experiment)
        if item.name != "algorithm_config"
    }
    if experiment.algorithm_config is not None:
        from rllib_minestudio.algorithms.checkpoint_record import resolved_options

        options = resolved_options(experiment.algorithm_config)
        fields["config"] = {**options, **experiment.config}
    return dict(recordable(fields))


def write_run_record(folder: Path, record: RunRecord) -> None:
    """Save a record in a run's folder, replacing an older one atomically."""
    text = yaml.safe_dump(asdict(record), sort_keys=False, allow_unicode=True)
    write_whole(folder / RUN_RECORD_FILE, text)


def read_run_record(folder: Path) -> RunRecord:
    """Read what the run in `folder` was last started with.

    Raises:
        CheckpointError: There is no such record, or it is damaged.
    """
    file = folder / RUN_RECORD_FILE
    try:
        return RunRecord(**read_yaml(file))
    except OSError as error:
        raise CheckpointError(
            f"{str(folder)!r} has no {RUN_RECORD_FILE}, so nothing tells what it was started with. "
            "Start a new run, from one of its checkpoints if need be."
        ) from error
    except (yaml.YAMLError, SmallFileError, TypeError) as error:
        raise CheckpointError(f"{str(file)!r} is damaged: {error}") from error


class ChangedOption(NamedTuple):
    """An option or version that is not what it was."""

    name: str
    then: Any
    now: Any


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[ChangedOption]:
    """List what differs between two trees of plain data, by dotted path."""
    old, new = dict(_leaves(then)), dict(_leaves(now))
    return [
        ChangedOption(name, old.get(name, ABSENT), new.get(name, ABSENT))
        for name in dict.fromkeys([*old, *new])
        if old.get(name, ABSENT) != new.get(name, ABSENT)
    ]


def _leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a tree by dotted path; a list of numbers or names is one value."""
    if isinstance(tree, Mapping) and tree:
        children = list(tree.items())
    elif isinstance(tree, list) and any(isinstance(item, Mapping | list) for item in tree):
        children = list(enumerate(tree))
    else:
        yield path, tree
        return
    for key, child in children:
        yield from _leaves(child, f"{path}.{key}" if path else str(key))
