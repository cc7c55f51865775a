"""`rllib checkpoint`: lists the checkpoints of a run, or shows one and what it was made with."""

import argparse
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.checkpoints.lookup import BEST, LATEST, checkpoint_folders, locate, trial_of
from rllib_minestudio.checkpoints.record import RECORD_FILE, read_record
from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.errors import CheckpointError, CheckpointFormatError
from rllib_minestudio.experiments.resume_options import differences
from rllib_minestudio.foundation.console import stderr, stdout
from rllib_minestudio.foundation.options import Flag, option

IS_DAMAGED = 1
"""Exit status if a checkpoint is incomplete, the same as in `rllib model info`."""

DESCRIPTION = """\
Inspect checkpoints. PATH is a checkpoint, or a folder that contains some: a trial, a run, the
results. PATH/latest is the one among them that was saved last, PATH/best the one with the highest
mean return.

A single checkpoint is compared with its record, and shown with its result, versions, code and
config. The checkpoints in a folder are listed, oldest first.
"""

EXAMPLES = """\
examples:
  rllib checkpoint info results/cow
  rllib checkpoint info results/cow/best
  rllib checkpoint info results/cow/latest --all > config.yaml
"""


@dataclass(frozen=True, kw_only=True)
class CheckpointInfoRequest:
    """Options of `rllib checkpoint info`."""

    path: str = option(
        MISSING, "A checkpoint, or a folder that contains some.", Flag("PATH", is_positional=True)
    )
    all: bool = option(False, "Print the whole record as YAML, including all options.")


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib checkpoint info`."""
    commands = parser.add_subparsers(dest="checkpoint_command", required=True, metavar="COMMAND")
    info = commands.add_parser(
        "info",
        help="print iteration, steps, return, versions, code and config, or list a folder's",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_flags(info, CheckpointInfoRequest, run)


def run(request: CheckpointInfoRequest) -> int:
    """Show a checkpoint, or list those below a folder, and return the exit status.

    Raises:
        CheckpointError: There is no checkpoint.
        CheckpointMismatchError: `latest` or `best` names no checkpoint.
    """
    folder = Path(request.path)
    if not folder.is_dir() and folder.name in (BEST, LATEST):
        folder = locate(request.path)
    if not (folder / RECORD_FILE).is_file():
        return _list(folder)
    record = read_record(folder)
    if request.all:
        stdout.print((folder / RECORD_FILE).read_text(), markup=False, end="")
    else:
        _show(folder, record)
    return 0


def _show(folder: Path, record: Any) -> None:
    from rllib_minestudio.env.voxel.contract import described

    size = sum(record.files.values()) / 1e6
    code = record.code.get("commit", "not under git")
    facts = {
        "checkpoint": f"{folder} ({len(record.files)} files, {size:,.1f} MB, complete)",
        **_facts(record),
        "saved": record.saved_at,
        "versions": ", ".join(f"{name} {version}" for name, version in record.versions.items()),
        "format": f"{record.format}",
        "code": code + (", modified" if record.code.get("modified") else ""),
        "numerics": f"revision {record.numerics}",
        "looks": "-" if record.looks is None else described(record.looks),
    }
    for name, value in facts.items():
        stdout.print(f"{name:12} {value}", markup=False)
    stdout.print("\nconfig, where it differs from the defaults:")
    stdout.print(yaml.safe_dump(_not_default(record.config), sort_keys=True), markup=False, end="")


def _facts(record: Any) -> dict[str, str]:
    from rllib_minestudio.experiments.result_metrics import ENV_STEPS, RETURN, metric

    steps, mean = metric(record.result, ENV_STEPS), metric(record.result, RETURN)
    return {
        "iteration": f"{record.iteration}",
        "env steps": "-" if steps is None else f"{steps:,.0f}",
        "return": "-" if mean is None else f"{mean:.2f}",
    }


def _not_default(config: dict[str, Any]) -> dict[str, Any]:
    """Return the options that differ from MineStudioPPO's defaults."""
    from rllib_minestudio.algorithms import MineStudioPPOConfig
    from rllib_minestudio.algorithms.saving import resolved_options

    changed = differences(resolved_options(MineStudioPPOConfig()), config)
    keys = dict.fromkeys(change.name.partition(".")[0] for change in changed)
    return {key: config[key] for key in keys if key in config}


def _list(folder: Path) -> int:
    """Print a table of the checkpoints below a folder.

    Raises:
        CheckpointError: There are none.
    """
    found = list(checkpoint_folders(folder))
    if not found:
        raise CheckpointError(
            f"{str(folder)!r} holds no checkpoint"
            + ("." if folder.is_dir() else ": there is no such folder.")
        )
    damaged: list[CheckpointError] = []
    trial = None
    for checkpoint in found:
        if trial_of(checkpoint) != trial:
            trial = trial_of(checkpoint)
            stdout.print(str(trial), markup=False)
            stdout.print(_row("", "iteration", "env steps", "return", "saved"))
        name = str(checkpoint.relative_to(trial_of(checkpoint)))
        try:
            record = read_record(checkpoint)
        except CheckpointError as error:
            damaged.append(error)
            is_whole = isinstance(error, CheckpointFormatError)
            state = "of another format" if is_whole else "incomplete"
            stdout.print(_row(name, "-", "-", "-", state))
            continue
        best = " best" if _is_best(checkpoint) else ""
        iteration, steps, mean = _facts(record).values()
        stdout.print(_row(name, iteration, steps, mean, record.saved_at + best))
    for problem in damaged:
        stderr.print(str(problem), style="red", markup=False)
    return IS_DAMAGED if damaged else 0


def _row(name: str, iteration: str, steps: str, mean: str, saved: str) -> str:
    return f"  {name:22} {iteration:>9} {steps:>12} {mean:>8}  {saved}"


def _is_best(checkpoint: Path) -> bool:
    best = trial_of(checkpoint) / BEST
    return best.exists() and best.resolve() == checkpoint.resolve()
