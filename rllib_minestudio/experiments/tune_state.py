"""Continuing a Tune run after its driver was killed at any moment.

Tune writes what it knows about the trials every few seconds, not atomically. So after a kill its
notes may be torn, may lack the newest checkpoints, and may name some that are deleted already.
Two things put that right:

- `back_up_state` copies Tune's notes whenever a checkpoint is saved; `repair_state` puts the copy
  in the place of torn ones.
- `ContinueTrials` looks at what lies on disk before a trial starts, and lets it go on from its
  newest whole checkpoint.
"""

from __future__ import annotations

import copy
import json
import logging
import pickle
import shutil
from collections.abc import Callable, Mapping
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
from rllib_minestudio.foundation.files import whole_file, write_whole

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
"""What Tune notes about its controller that would overrule what a resumed run is started with, or
that was decided just before the end, such as to stop a trial once its checkpoint is saved."""

BACKUP = ".state_backup"
"""Folder inside the run's folder that holds the copy of Tune's notes."""


def can_resume(run_folder: Path) -> bool:
    """Return whether Tune, or the copy of its notes, knows the trials of a run."""
    return any(
        _is_whole(file)
        for folder in (run_folder, run_folder / BACKUP)
        for file in folder.glob(STATE_PATTERN)
    )


def back_up_state(run_folder: Path) -> None:
    """Copy Tune's notes if they are whole, each file atomically."""
    files = _notes(run_folder)
    if not any(file.match(STATE_PATTERN) for file in files) or not all(map(_is_whole, files)):
        return
    backup = run_folder / BACKUP
    backup.mkdir(exist_ok=True)
    for file in files:
        with whole_file(backup / file.name) as partial:
            shutil.copy2(file, partial)


def repair_state(run_folder: Path) -> None:
    """Replace torn notes by their copies, or remove them where there is no copy."""
    notes = {file.name: file for file in _notes(run_folder)}
    copies = {file.name: file for file in _notes(run_folder / BACKUP)}
    for name in sorted({*notes, *copies}):
        if name in notes and _is_whole(notes[name]):
            continue
        logger.warning("%s was cut short; using the copy from before.", run_folder / name)
        if name in copies:
            shutil.copy2(copies[name], run_folder / name)
        else:
            notes[name].unlink()


def prepare_state(run_folder: Path, decide: Callable[[Any, Path], str]) -> list[str]:
    """Write into Tune's notes which trials are to go on, and drop what was of the moment.

    Args:
        run_folder: The run's folder, its notes in order.
        decide: Called with each of Tune's trials and its folder; returns `Trial.PENDING` for one
            that is to go on and `Trial.TERMINATED` for one that is at its end.

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
    """Return Tune's trials of a run as its notes have them."""
    return list(tune.ExperimentAnalysis(str(run_folder)).trials)


def _notes(folder: Path) -> list[Path]:
    """List the files with which Tune resumes: the trials, the search and the callbacks."""
    return sorted(path for path in folder.glob("*state*") if path.suffix in (".json", ".pkl"))


def _is_whole(file: Path) -> bool:
    """Return whether a file was written to its end; Tune names some pickles `.json`."""
    data = file.read_bytes()
    if not data.startswith(b"{"):
        return data.endswith(pickle.STOP)
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


class BackUpState(tune.Callback):
    """Copies Tune's notes after each step in which a checkpoint was saved."""

    def on_trial_save(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Tune calls this after it has noted a checkpoint."""
        try:
            back_up_state(Path(trial.path).parent)
        except OSError as error:
            logger.warning("Tune's notes could not be copied: %s", error)


class ContinueTrials(tune.Callback):
    """Lets every unfinished trial go on from its newest whole checkpoint on disk.

    Finished ones get the result of their last: Tune's notes may be from before it.

    Args:
        change: Takes a trial's config and returns it with the options changed that the resumed
            run is to have; called once per trial. None changes nothing.
        checkpoint_config: How Tune is to save from now on.
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
        """Tune calls this before it starts the actors of its trials."""
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
    """Replace what Tune believes about a trial's checkpoints by what lies on disk.

    Leaves trials alone whose checkpoints say nothing about themselves (RLlib's own algorithms).
    Removes folders after the newest whole checkpoint: the end came while they were written.

    Raises:
        CheckpointFormatError: One of them is of another format.
    """
    found = loadable_checkpoints(trial_folder)
    manager = trial.run_metadata.checkpoint_manager
    if not found:
        manager._checkpoint_config = checkpoint_config
        return
    trial.run_metadata.checkpoint_manager = type(manager)(checkpoint_config=checkpoint_config)
    for checkpoint in found:
        trial.on_checkpoint(_as_result(checkpoint))
    newest = found[-1]
    for folder in numbered_folders(trial_folder):
        if number_of(folder) > number_of(newest.folder):
            logger.warning("%s was cut short; it is removed.", folder)
            shutil.rmtree(folder, ignore_errors=True)
    # Tune counts on from here; an index too low would write over a checkpoint in place.
    trial.storage.current_checkpoint_index = number_of(newest.folder)
    # A record has the config as plain data, beside its result; Tune has it inside.
    trial.update_last_result({**copy.deepcopy(newest.record.result), "config": trial.config})


def _as_result(checkpoint: SavedCheckpoint) -> _TrainingResult:
    """Return a checkpoint as Tune's own bookkeeping has it."""
    path = str(checkpoint.folder.resolve())
    return _TrainingResult(
        checkpoint=tune.Checkpoint(path, filesystem=LocalFileSystem()),
        metrics=copy.deepcopy(checkpoint.record.result),
    )
