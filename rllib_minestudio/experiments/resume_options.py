"""`--resume`: the experiment that a run continues with, and what has changed since its start.

A resumed run keeps the options it was started with; only the command line changes them. So edits of
the experiment file are reported but not applied, whereas `--set` and `--stop` are applied and
reported. Changes that would break the saved state are refused.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rllib_minestudio.checkpoints.record import NUMERICS, code_identity, versions
from rllib_minestudio.checkpoints.trust import is_sealed, refuse_untrusted, write_sealed
from rllib_minestudio.errors import CheckpointError, InvalidOptionsError, MineStudioError
from rllib_minestudio.experiments.experiment_file import (
    Experiment,
    rooted,
    value_at,
    with_overrides,
)
from rllib_minestudio.foundation.console import short, stdout
from rllib_minestudio.foundation.files import SmallFileError
from rllib_minestudio.foundation.values import recordable

FIXED = {
    "run": "the checkpoints belong to this algorithm",
    "env": "the network and its memory belong to this environment",
    "num_samples": "the trials exist already",
    "config.env": "the network and its memory belong to this environment",
    "config.env_config.obs_size": "it is the size of the network's images",
    "config.model": "the saved weights belong to this network",
    "config.zero_init_value_head": "it counts only when training begins",
}
"""Options that a resumed run cannot change, including all options below them -> the reason."""

FREE = ("config.model.precision", "config.model.compile", "config.model.freeze")
"""Exceptions to `FIXED`, which only change how the network is computed and which parts learn."""


def run_to_resume(parent: Path) -> Path:
    """Return the newest run of an experiment that can be resumed.

    Raises:
        MineStudioError: There is no such run in `parent`.
    """
    from rllib_minestudio.experiments.tune_state import can_resume

    folders = sorted(folder for folder in parent.glob("*") if folder.is_dir())
    runs = [folder for folder in folders if can_resume(folder)]
    if not runs:
        raise MineStudioError(
            f"--resume: there is no run to resume in {str(parent)!r}. "
            "Start one without --resume, or say where it is with --out."
        )
    if runs[-1] != folders[-1]:
        stdout.print(f"{folders[-1]} had not begun to train; resuming the run before it")
    return runs[-1]


def resumed_experiment(
    in_file: Experiment, folder: Path, overrides: Sequence[str], *, trust: bool = False
) -> Experiment:
    """Return the experiment that a run was started with, changed by `--set`.

    Args:
        in_file: The experiment as the file is now, without the command line's options.
        folder: The run's folder.
        overrides: The `--set` options.
        trust: Whether to do what the run's record says, whoever wrote it.

    Raises:
        CheckpointError: The folder has no valid record of the run's start.
        InvalidOptionsError: An override cannot be applied.
        UntrustedError: Somebody else wrote the record, or has changed it.
    """
    if not trust and not is_sealed(folder, [RUN_RECORD_FILE]):
        read_run_record(folder)  # what is missing or damaged is said first
        refuse_untrusted(folder, [f"{RUN_RECORD_FILE} (names of classes to import and run)"])
    saved = read_run_record(folder).experiment
    body = {key: value for key, value in saved.items() if key != "name"}
    if in_file.algorithm_config is not None:
        # Objects cannot be read back from YAML; the trials' own configs contain them.
        body["config"] = {}
    try:
        changed = with_overrides(body, overrides)
        return Experiment(name=in_file.name, algorithm_config=in_file.algorithm_config, **changed)
    except TypeError as error:
        raise CheckpointError(
            f"{str(folder)!r} was started by another version of this package: {error}."
        ) from error


def resumed_record(
    folder: Path, in_file: Experiment, experiment: Experiment, plan: Any, sets: Sequence[str]
) -> RunRecord:
    """Print what has changed since the run was last started, and return the record of this start.

    Args:
        folder: The run's folder.
        in_file: The experiment as the file is now.
        experiment: The experiment that the run continues with.
        plan: Its plan.
        sets: The `--set` options.

    Raises:
        InvalidOptionsError: An option would change that cannot.
    """
    from rllib_minestudio.experiments.plan import parse_search_space, searched_paths

    then = read_run_record(folder)
    now = recorded(experiment)
    if experiment.algorithm_config is not None:
        # The file may have been edited; only the command line's changes are applied.
        keys = changed_keys(sets)
        now["config"] = {**then.experiment["config"], **{k: now["config"][k] for k in keys}}
    changes = differences(then.experiment, now)
    then_searched = searched_paths(parse_search_space(then.experiment["config"], "config", []))
    _refuse_fixed(experiment.name, changes, [*then_searched, *plan.searched])
    _report(then, recorded(in_file), changes)
    return RunRecord(then.file, now)


def _refuse_fixed(
    name: str, changes: Sequence[ChangedOption], searched: Sequence[tuple[Any, ...]]
) -> None:
    """Refuse changes that would break the saved state, or make the trials of a search equal."""
    fixed = {**FIXED, **{_dotted(path): "the trials differ in it" for path in searched}}
    problems = [
        f"{name}.{change.name}: cannot change from {change.then!r} to {change.now!r} in a run "
        f"that is resumed: {reason}. Start a new run, without --resume."
        for change in changes
        if (reason := _reason(change.name, fixed)) is not None
    ]
    if problems:
        raise InvalidOptionsError(problems)


def _reason(name: str, fixed: Mapping[str, str]) -> str | None:
    """Return why an option cannot change; None if it can."""
    if name in FREE:
        return None
    for path, reason in fixed.items():
        if name == path or name.startswith(f"{path}."):
            return reason
    return None


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(["config", *map(str, path)])


def changed_keys(sets: Sequence[str]) -> list[str]:
    """Return the options directly below `config` that `--set` changes."""
    keys = [rooted(override).partition("=")[0].split(".") for override in sets]
    return list(dict.fromkeys(key[1] for key in keys if key[0] == "config" and len(key) > 1))


def config_change(plan: Any, sets: Sequence[str]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function from a saved trial's config to the one that it continues with."""
    touched = changed_keys(sets)
    if any(rooted(override).startswith("evaluation") for override in sets):
        # The section is an alternative to these options.
        touched += [key for key in plan.space if key.startswith("evaluation_")]
    keys = [key for key in plan.space if key in touched]

    def change(config: Mapping[str, Any]) -> dict[str, Any]:
        changed = dict(config)
        for key in keys:
            changed[key] = copy.deepcopy(plan.space[key])
        for path in plan.searched:  # keep this trial's values
            if path[0] in keys:
                _put(changed, path, value_at(config, path))
        return changed

    return change


def _put(tree: Any, path: Sequence[Any], value: Any) -> None:
    value_at(tree, path[:-1])[path[-1]] = value


def _report(then: RunRecord, file_now: dict[str, Any], applied: Sequence[ChangedOption]) -> None:
    """Print what has changed since the run was last started, and the consequences."""
    now = RunRecord(file_now, {})
    rows = [(change, "applied") for change in applied]
    rows += [
        (change, "edited in the file: not applied; use --set or --stop")
        for change in differences(then.file, now.file)
    ]
    rows += [(change, "another version") for change in differences(then.versions, now.versions)]
    rows += [(change, "other code") for change in differences(then.code, now.code)]
    if then.numerics != now.numerics:
        change = ChangedOption("numerics", then.numerics, now.numerics)
        rows.append((change, "the learner computes differently"))
    if not rows:
        stdout.print("resuming, with the options that the run was started with")
        return
    stdout.print("resuming, with the options that the run was started with, except for:")
    width = max(len(change.name) for change, _ in rows)
    for change, meaning in rows:
        line = f"{change.name:{width}}  {short(change.then)} -> {short(change.now)}  ({meaning})"
        stdout.print(f"  {line}", markup=False)


# ---------------------------------------------------------------------- the record of a run's start
# `experiment.yaml` in its folder, and what has changed since.

RUN_RECORD_FILE = "experiment.yaml"

ABSENT = "(absent)"
"""Shown for an option that only one side has."""


@dataclass(frozen=True)
class RunRecord:
    """The contents of `experiment.yaml`.

    Attributes:
        file: The experiment in its file, before the command line's options.
        experiment: The experiment that is run.
        versions: Package -> version.
        code: Identity, if known to git, of this package and of the working folder of the command
            (`record.code_identity`).
        numerics: Revision of the learner's numerics (`record.NUMERICS`).
    """

    file: dict[str, Any]
    experiment: dict[str, Any]
    versions: dict[str, str] = field(default_factory=versions)
    code: dict[str, Any] = field(default_factory=lambda: code_identities())
    numerics: int = NUMERICS


def code_identities() -> dict[str, Any]:
    """Return the identity of the code of this package and of the working folder."""
    return {
        "rllib_minestudio": code_identity(Path(__file__).parent),
        "working_folder": code_identity(Path.cwd()),
    }


def recorded(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment as a run's record keeps it: plain data."""
    fields = {
        item.name: getattr(experiment, item.name)
        for item in dataclasses.fields(experiment)
        if item.name != "algorithm_config"
    }
    if experiment.algorithm_config is not None:
        from rllib_minestudio.algorithms.saving import resolved_options

        options = resolved_options(experiment.algorithm_config)
        fields["config"] = {**options, **experiment.config}
    return dict(recordable(fields))


def write_run_record(folder: Path, record: RunRecord) -> None:
    """Write a record to a run's folder, replacing an older one atomically."""
    text = yaml.safe_dump(asdict(record), sort_keys=False, allow_unicode=True)
    write_sealed(folder / RUN_RECORD_FILE, text)


def read_run_record(folder: Path) -> RunRecord:
    """Read the record of the last start of the run in `folder`.

    Raises:
        CheckpointError: There is no record, or it is damaged.
    """
    from rllib_minestudio.checkpoints.formats import RunDocument
    from rllib_minestudio.foundation.documents import given, read_document

    file = folder / RUN_RECORD_FILE
    try:
        return RunRecord(**given(read_document(file, RunDocument)))
    except OSError as error:
        raise CheckpointError(
            f"{str(folder)!r} has no {RUN_RECORD_FILE}, so it is unknown what it was started with. "
            "Start a new run, from one of its checkpoints if need be."
        ) from error
    except SmallFileError as error:
        raise CheckpointError(f"{str(file)!r} is damaged: {error}.") from error


class ChangedOption(NamedTuple):
    """An option or version that has changed."""

    name: str
    then: Any
    now: Any


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[ChangedOption]:
    """Return the differences between two trees of plain data, by dotted path."""
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


# ------------------------ names of trials and of their folders, which contain the searched settings

LONGEST = 130
"""Most characters of a name without its date, as in Tune."""


def trial_name(trial: Any) -> str:
    """Return a trial's name for tables and messages.

    Tune's own names contain the environment class, which is a placeholder at that point
    (`('__ref_ph', 'c2960e0c')`).
    """
    return f"{trial.trainable_name}_{trial.trial_id}"


def trial_folder(trial: Any) -> str:
    """Return the name of a trial's folder.

    Tune would write settings with four decimals, and so every small learning rate as 0.0000.
    """
    settings = [f"{path}={short(value)}" for path, value in (trial.evaluated_params or {}).items()]
    name = "_".join([trial_name(trial), *([",".join(settings)] if settings else [])])
    # Tune replaces the other characters that folder names must not contain.
    return f"{name.replace('/', '.')[:LONGEST]}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
