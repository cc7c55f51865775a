"""Resuming a Tune run whose driver was killed at any moment.

Tune saves the state of the trials every few seconds, but not atomically. After a kill, its state
files may be truncated, lack the newest checkpoints, or name deleted ones. Two measures repair this:

- `back_up_state` copies Tune's state files whenever a checkpoint is saved; `repair_state` replaces
  truncated files by the copies.
- `ContinueTrials` makes each trial continue from the newest complete checkpoint on disk.
"""

from __future__ import annotations

import copy
import json
import logging
import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyarrow.fs import LocalFileSystem
from ray import tune
from ray.train._internal.session import _TrainingResult

from rllib_minestudio.checkpoints.lookup import (
    SavedCheckpoint,
    loadable_checkpoints,
    number_of,
    numbered_folders,
)
from rllib_minestudio.checkpoints.record import CheckpointRecord
from rllib_minestudio.checkpoints.trust import is_sealed, refuse_untrusted, seal
from rllib_minestudio.experiments.result_metrics import ITERATION
from rllib_minestudio.experiments.summary import RESULTS_FILE, read_history
from rllib_minestudio.foundation.files import Unfinished, save_whole, whole_file, write_whole

logger = logging.getLogger(__name__)

STATE_PATTERN = "experiment_state-*.json"
OF_THE_MOMENT = (
    "_stopper",
    "_trial_checkpoint_config",
    "_cached_trial_decisions",
    "_queued_trial_decisions",
    "_should_stop_experiment",
    "_earliest_stopping_actor",
)
"""Entries of Tune's controller state that would override the options of a resumed run, or that were
decided just before the end, such as to stop a trial once its checkpoint is saved."""

BACKUP = ".state_backup-"
"""Beginning of the names of subfolders of a run's folder with copies of Tune's state files; their
numbers follow. There is one, but for the moment in which the next one takes its place."""


def backups(run_folder: Path) -> list[Path]:
    """Return a run's folders with copies of Tune's state files, the newest first."""
    numbers = {
        int(folder.name.removeprefix(BACKUP)): folder
        for folder in run_folder.glob(f"{BACKUP}*")
        if folder.name.removeprefix(BACKUP).isdecimal()
    }
    return [numbers[number] for number in sorted(numbers, reverse=True)]


def can_resume(run_folder: Path) -> bool:
    """Return whether a run's folder has a complete state file, or a copy of one."""
    return any(
        _is_whole(file)
        for folder in (run_folder, *backups(run_folder))
        for file in folder.glob(STATE_PATTERN)
    )


def back_up_state(run_folder: Path) -> None:
    """Copy Tune's state files if all are complete, and seal the copies.

    They take the place of the copies before as a whole: whoever dies in between leaves those.
    """
    files = _notes(run_folder)
    if not any(file.match(STATE_PATTERN) for file in files) or not all(map(_is_whole, files)):
        return
    before = backups(run_folder)
    number = int(before[0].name.removeprefix(BACKUP)) + 1 if before else 0
    backup = run_folder / f"{BACKUP}{number}"
    Unfinished(backup).remove_abandoned()

    def copy_notes(folder: Path) -> None:
        folder.mkdir()
        for file in files:
            with whole_file(folder / file.name) as partial:
                shutil.copy2(file, partial)
        seal(folder, [file.name for file in _notes(folder)])

    save_whole(backup, copy_notes)
    for folder in before:
        shutil.rmtree(folder, ignore_errors=True)


def take_own_state(run_folder: Path) -> None:
    """Replace Tune's state files, which are pickles, by the newest copies with this user's seal.

    Raises:
        UntrustedError: There are none: the run is somebody else's, or was changed.
    """
    for backup in backups(run_folder):
        copies = [file.name for file in _notes(backup)]
        if copies and is_sealed(backup, copies):
            break
    else:
        refuse_untrusted(run_folder, ["Tune's state files (pickles, which can run any program)"])
    for file in _notes(run_folder):
        if file.name not in copies:
            file.unlink()
    for name in copies:
        with whole_file(run_folder / name) as partial:
            shutil.copy2(backup / name, partial)


def repair_state(run_folder: Path) -> None:
    """Replace truncated or missing state files by their copies; remove those without a copy."""
    notes = {file.name: file for file in _notes(run_folder)}
    newest = backups(run_folder)[:1]
    copies = {file.name: file for folder in newest for file in _notes(folder)}
    for name in sorted({*notes, *copies}):
        if name in notes and _is_whole(notes[name]):
            continue
        logger.warning("%s was cut short; using the copy from before.", run_folder / name)
        if name in copies:
            shutil.copy2(copies[name], run_folder / name)
        else:
            notes[name].unlink()


def prepare_state(run_folder: Path, decide: Callable[[Any, Path], str]) -> list[str]:
    """Set in Tune's state which trials continue, and drop the entries `OF_THE_MOMENT`.

    Args:
        run_folder: The run's folder, with complete state files.
        decide: Called with each of Tune's trials and its folder; returns `Trial.PENDING` for one
            that continues and `Trial.TERMINATED` for one that has ended.

    Returns:
        The statuses, one per trial.
    """
    trials = {trial.trial_id: trial for trial in load_trials(run_folder)}
    file = max(run_folder.glob(STATE_PATTERN))
    state = json.loads(file.read_text())
    statuses = []
    for pair in state["trial_data"]:
        notes = json.loads(pair[0])
        trial = trials[notes["trial_id"]]
        notes["status"] = decide(trial, Path(trial.path))
        statuses.append(notes["status"])
        pair[0] = json.dumps(notes)
    for name in OF_THE_MOMENT:
        state["runner_data"].pop(name, None)
    write_whole(file, json.dumps(state))
    return statuses


def load_trials(run_folder: Path) -> list[Any]:
    """Return the trials of a run from Tune's state files."""
    return list(tune.ExperimentAnalysis(str(run_folder)).trials)


def _notes(folder: Path) -> list[Path]:
    """Return the files from which Tune resumes: trials, search and callbacks."""
    return sorted(path for path in folder.glob("*state*") if path.suffix in (".json", ".pkl"))


def _is_whole(file: Path) -> bool:
    """Return whether a file is complete; Tune names some pickles `.json`."""
    data = file.read_bytes()
    if not data.startswith(b"{"):
        return data.endswith(pickle.STOP)
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


class BackUpState(tune.Callback):
    """A callback that copies Tune's state files after each saved checkpoint, and once before."""

    _was_copied = False

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Make the first copies as soon as there are files; Tune calls this very often."""
        if trials and not self._was_copied:
            run_folder = Path(trials[0].path).parent
            self._was_copied = any(run_folder.glob(STATE_PATTERN))
            if self._was_copied:
                self.on_trial_save(iteration, trials, trials[0])

    def on_trial_save(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Copy the state files; Tune calls this after it has recorded a checkpoint."""
        try:
            back_up_state(Path(trial.path).parent)
        except OSError as error:
            logger.warning("Tune's notes could not be copied: %s", error)


class ContinueTrials(tune.Callback):
    """A callback that continues unfinished trials from their newest complete checkpoint on disk.

    Finished trials get the result of their last checkpoint, which Tune's state may lack.

    Args:
        change: Returns a trial's config with the changed options of the resumed run; called once
            per trial. None changes nothing.
        checkpoint_config: How Tune saves from now on.
    """

    def __init__(
        self,
        change: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None,
        checkpoint_config: tune.CheckpointConfig | None = None,
    ) -> None:
        self._change = change
        self._checkpoint_config = checkpoint_config
        self._seen: set[str] = set()

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Update trials not seen before; Tune calls this before it starts their actors."""
        for trial in trials:
            if trial.trial_id not in self._seen:
                self._continue(trial)
            self._seen.add(trial.trial_id)

    def _continue(self, trial: Any) -> None:
        if self._change is not None and not trial.is_finished():
            trial.set_config(self._change(trial.config))
            request = trial.get_trainable_cls().default_resource_request(trial.config)
            trial.update_resources(request)
        manager = trial.run_metadata.checkpoint_manager
        config = self._checkpoint_config or manager.checkpoint_config
        catch_up(trial, Path(trial.path), config)


def catch_up(trial: Any, trial_folder: Path, checkpoint_config: tune.CheckpointConfig) -> None:
    """Replace Tune's list of a trial's checkpoints by those on disk.

    Trials whose checkpoints have no record (RLlib's own algorithms) keep their list. Folders after
    the newest complete checkpoint are removed: the run ended while they were written.

    Raises:
        CheckpointFormatError: A checkpoint has another format.
    """
    found = loadable_checkpoints(trial_folder)
    manager = trial.run_metadata.checkpoint_manager
    if not found:
        manager._checkpoint_config = checkpoint_config
        return
    trial.run_metadata.checkpoint_manager = type(manager)(checkpoint_config=checkpoint_config)
    for checkpoint in found:
        trial.on_checkpoint(_as_result(checkpoint))
    log_missing_results(trial_folder, [checkpoint.record for checkpoint in found])
    newest = found[-1]
    for folder in numbered_folders(trial_folder):
        if number_of(folder) > number_of(newest.folder):
            logger.warning("%s was cut short; it is removed.", folder)
            shutil.rmtree(folder, ignore_errors=True)
    # Tune counts on from here; too low an index would overwrite a checkpoint in place.
    trial.storage.current_checkpoint_index = number_of(newest.folder)
    # A record keeps the config as plain data next to its result; Tune keeps it in the result.
    trial.update_last_result({**copy.deepcopy(newest.record.result), "config": trial.config})


def log_missing_results(trial_folder: Path, records: Sequence[CheckpointRecord]) -> None:
    """Append the results of checkpoints to `result.json` if it lacks their iterations.

    Tune saves the checkpoint of an iteration before it logs the result: a driver that was killed in
    between would leave a gap in the learning curve. One that was killed while it logged leaves a
    line without an end, to which Tune would append the next result.

    Args:
        trial_folder: The trial's folder.
        records: The records of its checkpoints.
    """
    logged = {result[ITERATION] for result in read_history(trial_folder)}
    missing = [record.result for record in records if record.iteration not in logged]
    file = trial_folder / RESULTS_FILE
    text = file.read_text() if file.is_file() else ""
    is_cut_short = text != "" and not text.endswith("\n")
    if missing or is_cut_short:
        lines = [*text.splitlines(), *(json.dumps(result) for result in missing)]
        write_whole(file, "".join(f"{line}\n" for line in lines))


def _as_result(checkpoint: SavedCheckpoint) -> _TrainingResult:
    """Return a checkpoint in Tune's representation."""
    path = str(checkpoint.folder.resolve())
    return _TrainingResult(
        checkpoint=tune.Checkpoint(path, filesystem=LocalFileSystem()),
        metrics=copy.deepcopy(checkpoint.record.result),
    )
