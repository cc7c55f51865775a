"""A trial's checkpoints on disk: which are whole, which are kept for good, which is best.

<trial>/checkpoint_000011/       the newest few, numbered by Tune, which deletes older ones
<trial>/kept/iteration_000200/   every keep_interval-th, and the best; nothing deletes them
<trial>/best                     link to the one with the highest mean return
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rllib_minestudio.checkpoints.record import CheckpointRecord, check_digests, read_record
from rllib_minestudio.errors import CheckpointError, CheckpointFormatError

logger = logging.getLogger(__name__)

PREFIX = "checkpoint_"
KEPT = "kept"
BEST = "best"


class SavedCheckpoint(NamedTuple):
    """A complete checkpoint: its folder and what it says about itself."""

    folder: Path
    record: CheckpointRecord

    @property
    def mean_return(self) -> float | None:
        """Mean return of the episodes that ended last before it was saved."""
        return self.record.mean_return


def numbered_folders(trial_folder: Path) -> list[Path]:
    """List the folders that Tune numbers, whole or not, oldest first."""
    folders = [path for path in trial_folder.glob(f"{PREFIX}*") if path.is_dir()]
    return sorted(path for path in folders if path.name.removeprefix(PREFIX).isdigit())


def checkpoint_folders(folder: Path, levels: int | None = None) -> Iterator[Path]:
    """Yield all checkpoints' folders below a folder, whole or not, trial by trial, oldest first.

    Args:
        folder: Of a trial, or what holds some.
        levels: How far below it a trial may lie; None: anywhere.
    """
    if not folder.is_dir():
        return
    yield from folders_of_trial(folder)
    if levels == 0:
        return
    for child in sorted(folder.iterdir()):
        other = not child.is_dir() or child.is_symlink()
        if not other and not child.name.startswith((".", KEPT, PREFIX)):
            yield from checkpoint_folders(child, None if levels is None else levels - 1)


def folders_of_trial(trial_folder: Path) -> list[Path]:
    """List a trial's checkpoints, those kept for good first, whole or not, oldest first."""
    return [*sorted((trial_folder / KEPT).glob("iteration_*")), *numbered_folders(trial_folder)]


def trial_of(folder: Path) -> Path:
    """Return the trial's folder that a checkpoint, kept or not, lies in."""
    return folder.parent.parent if folder.parent.name == KEPT else folder.parent


def number_of(folder: Path) -> int:
    """Return the number in the name of one of Tune's checkpoint folders."""
    return int(folder.name.removeprefix(PREFIX))


def read_checkpoint(folder: Path) -> SavedCheckpoint | None:
    """Return a checkpoint if it is whole, else None.

    Raises:
        CheckpointFormatError: It is of another format: nothing is wrong with it.
    """
    try:
        return SavedCheckpoint(folder, read_record(folder))
    except CheckpointFormatError:
        raise
    except CheckpointError:
        return None


def complete_checkpoints(trial_folder: Path) -> list[SavedCheckpoint]:
    """List a trial's whole checkpoints under Tune's numbers, oldest first."""
    found = [read_checkpoint(folder) for folder in numbered_folders(trial_folder)]
    return [checkpoint for checkpoint in found if checkpoint is not None]


def loadable_checkpoints(trial_folder: Path) -> list[SavedCheckpoint]:
    """List the whole checkpoints up to the newest one whose files are as they were written."""
    found = complete_checkpoints(trial_folder)
    while found:
        try:
            check_digests(found[-1].folder)
            break
        except CheckpointError as error:
            logger.warning("%s", error)
            found.pop()
    return found


def best_checkpoint(trial_folder: Path) -> SavedCheckpoint | None:
    """Return the checkpoint with the highest mean return so far, if there is one."""
    link = trial_folder / BEST
    return read_checkpoint(link.resolve()) if link.exists() else None


def newest_checkpoint(trial_folder: Path) -> SavedCheckpoint | None:
    """Return the whole checkpoint of the highest iteration on disk, if there is one."""
    newest_first = reversed(folders_of_trial(trial_folder))  # those that are kept are older
    return next((found for folder in newest_first if (found := read_checkpoint(folder))), None)
