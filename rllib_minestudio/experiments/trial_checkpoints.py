"""The checkpoints of trials: the best and every n-th are kept, and an interrupted run saves all.

A kept checkpoint shares its files with Tune's (hard links), so it takes no space until Tune deletes
its own. Every step is a single rename, so it may be interrupted anywhere.
"""

from __future__ import annotations

import copy
import logging
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from ray import tune
from ray.tune.experiment import Trial

from rllib_minestudio.checkpoints.checkpoint import POLICY_FOLDER
from rllib_minestudio.checkpoints.lookup import (
    BEST,
    KEPT,
    POLICY_AVERAGE,
    SavedCheckpoint,
    best_checkpoint,
)
from rllib_minestudio.checkpoints.record import read_record
from rllib_minestudio.checkpoints.trust import SEAL_FILE, is_sealed, seal
from rllib_minestudio.errors import CheckpointError
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.files import Unfinished, save_whole

logger = logging.getLogger(__name__)


def keep(trial_folder: Path, folder: Path, keep_interval: int | None) -> None:
    """Keep a new checkpoint permanently if it is due or the best so far.

    Args:
        trial_folder: The trial's folder.
        folder: The new, complete checkpoint.
        keep_interval: Checkpoints at multiples of this iteration are kept; None keeps only the
            best.

    Raises:
        CheckpointError: The new checkpoint is incomplete.
    """
    new = SavedCheckpoint(folder, read_record(folder))
    name = f"iteration_{new.record.iteration:06d}"
    target = trial_folder / KEPT / name
    best = best_checkpoint(trial_folder)
    is_best = new.mean_return is not None and (
        best is None or best.mean_return is None or new.mean_return > best.mean_return
    )
    # After a resume an iteration may be repeated, with a worse result than the best.
    holds_best = best is not None and best.folder == target.resolve()
    if is_best or (_is_due(new.record.iteration, keep_interval) and not holds_best):
        link_folder(folder, target)
    if is_best:
        _point(trial_folder / BEST, Path(KEPT, name))
    _drop_former_best(trial_folder, keep_interval)


def _is_due(iteration: int, keep_interval: int | None) -> bool:
    return bool(keep_interval) and iteration % int(keep_interval or 1) == 0


def link_folder(source: Path, target: Path) -> None:
    """Replace `target` by a copy of `source` that consists of hard links where possible."""
    Unfinished(target).remove_abandoned()
    save_whole(target, lambda folder: shutil.copytree(source, folder, copy_function=_link_or_copy))


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _point(link: Path, target: Path) -> None:
    """Point the symbolic link `link` to `target`, atomically."""
    new = Unfinished(link)
    new.remove_abandoned()
    new.partial.symlink_to(target)
    new.complete()


def _drop_former_best(trial_folder: Path, keep_interval: int | None) -> None:
    """Delete kept checkpoints that are neither due nor the best any more."""
    best = (trial_folder / BEST).resolve()
    for folder in (trial_folder / KEPT).glob("iteration_*"):
        iteration = int(folder.name.removeprefix("iteration_"))
        if folder.resolve() != best and not _is_due(iteration, keep_interval):
            shutil.rmtree(folder, ignore_errors=True)


def _seal_from_other_machine(folder: Path) -> None:
    """Seal a checkpoint of this run again if its trial's machine has another key of this user."""
    policies = (folder / name for name in (POLICY_FOLDER, POLICY_AVERAGE))
    for part in (folder, *policies):
        if (part / SEAL_FILE).is_file() and not is_sealed(part):
            seal(part)


class KeepCheckpoints(tune.Callback):
    """A callback that keeps every `keep_interval`-th checkpoint and the best.

    Args:
        keep_interval: In iterations, a multiple of the checkpoint interval; None keeps only the
            best.
    """

    def __init__(self, keep_interval: int | None = None) -> None:
        self._keep_interval = keep_interval

    def on_checkpoint(
        self, iteration: int, trials: list[Any], trial: Any, checkpoint: Any, **info: Any
    ) -> None:
        """Keep a new checkpoint; Tune calls this before it deletes older ones."""
        try:
            _seal_from_other_machine(Path(checkpoint.path))
            keep(Path(trial.path), Path(checkpoint.path), self._keep_interval)
        except (CheckpointError, OSError) as error:
            # Tune's checkpoint is intact, so training goes on.
            logger.error("Checkpoint %s could not be kept for good: %s", checkpoint.path, error)


# ------------------- handling of Ctrl-C and SIGTERM: all trials save checkpoints, then the run ends
# A second signal ends the run at once. A container's runtime sends SIGTERM to its main process
# some time before it kills it. Sent to the whole process group, SIGTERM also ends Ray's processes,
# and nothing can be saved.

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}

SAVING = (
    "the run ends once the iteration under way is trained and its checkpoint saved; a second one "
    "ends it at once"
)

TUNES_HANDLER_OFF = "TUNE_DISABLE_SIGINT_HANDLER"
"""Environment variable that disables Tune's handler, which ends a run without a checkpoint."""


class SaveOnInterrupt(tune.Callback):
    """A callback that saves all trials after Ctrl-C or SIGTERM, and then has Tune end the run.

    Tune ends it as if killed (on `SIGUSR1`, which it handles for this purpose): its state marks no
    trial as terminated, so `--resume` continues all of them.

    Attributes:
        requested: The signal that requested the end, as named to users; empty if there was none.
    """

    def __init__(self) -> None:
        self.requested = ""
        self._unsaved: set[str] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals in the block instead of Tune; do nothing outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        tunes = os.environ.get(TUNES_HANDLER_OFF)
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        os.environ[TUNES_HANDLER_OFF] = "1"
        try:
            yield
        finally:
            for number, handler in before.items():
                # A handler in C, such as Ray's, is None here and cannot be restored from Python.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            if tunes is None:
                del os.environ[TUNES_HANDLER_OFF]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = SIGNALS[signal.Signals(number)]

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Make trials save, or end the run; Tune calls this several times a second."""
        if not self.requested:
            return
        running = {trial.trial_id for trial in trials if trial.status == Trial.RUNNING}
        if self._unsaved is None:
            self._unsaved = running
            for trial in trials:  # save at the next result
                _save_every(trial, 1)
            stdout.print(f"{self.requested}: {SAVING}")
        self._unsaved &= running
        if not self._unsaved:
            signal.raise_signal(signal.SIGUSR1)

    def on_trial_save(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Note that a trial is saved; Tune calls this after it has recorded a checkpoint."""
        if self._unsaved is not None:
            self._unsaved.discard(trial.trial_id)
            _save_every(trial, 0)  # it trains on until the others are saved


def _save_every(trial: Any, iterations: int) -> None:
    manager = trial.run_metadata.checkpoint_manager
    config = copy.copy(manager.checkpoint_config)  # the trials share it
    config.checkpoint_frequency = iterations
    manager._checkpoint_config = config
