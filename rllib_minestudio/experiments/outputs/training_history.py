"""How a trial was trained, as the records of its checkpoints tell it.

Options and code change only where a trial is resumed, and the record of what it was resumed from
stays (`checkpoints.note_origin`): so the stages between records miss no change, though Tune deletes
most checkpoints.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rllib_minestudio.checkpoints.record import (
    RECORD_FILE,
    CheckpointRecord,
    parse_record,
    read_record,
)
from rllib_minestudio.checkpoints.trial_folder import (
    RESUMED_FROM,
    checkpoint_folders,
    complete_checkpoints,
    folders_of_trial,
    kept_checkpoints,
    trial_of,
)
from rllib_minestudio.errata import Stage
from rllib_minestudio.errors import CheckpointError

_Named = tuple[str, CheckpointRecord]
"""A record, and where in the trial's folder it lies."""


def stages_of(folder: Path) -> dict[Path, list[Stage]]:
    """Read how a run was trained.

    Args:
        folder: A checkpoint, or what holds some: a trial, a run, an experiment's runs.

    Returns:
        The stages of each trial by its folder, in the order of time; of a checkpoint those that
        led to it, by its own folder.

    Raises:
        CheckpointError: There is no whole checkpoint.
    """
    if (folder / RECORD_FILE).is_file():
        return {folder: _stages(_on_the_way_to(folder.resolve()))}
    trials = dict.fromkeys(map(trial_of, checkpoint_folders(folder)))
    found = {trial: list(_records(trial)) for trial in trials}
    if not any(found.values()):
        raise CheckpointError(
            f"{str(folder)!r} "
            + ("holds no whole checkpoint" if folder.is_dir() else "is no folder")
            + ": give a run's folder (results/EXPERIMENT/RUN), one of its trials, or a checkpoint."
        )
    return {trial: _stages(records) for trial, records in found.items() if records}


def _on_the_way_to(checkpoint: Path) -> list[_Named]:
    """List the records of a checkpoint and of those in its trial that training came by."""
    record = read_record(checkpoint)
    trial = trial_of(checkpoint)
    if checkpoint not in folders_of_trial(trial):  # saved from Python, or copied elsewhere
        return [(checkpoint.name, record)]
    return [
        (name, earlier)
        for name, earlier in _records(trial)
        if earlier.saved_at <= record.saved_at and earlier.iteration <= record.iteration
    ]


def _records(trial: Path) -> Iterator[_Named]:
    """Yield all records of a trial, also of checkpoints that are no more."""
    for checkpoint in (*kept_checkpoints(trial), *complete_checkpoints(trial)):
        yield checkpoint.folder.relative_to(trial).as_posix(), checkpoint.record
    for file in sorted((trial / RESUMED_FROM).glob("iteration_*.yaml")):
        yield file.relative_to(trial).as_posix(), parse_record(file)


def _stages(records: Sequence[_Named]) -> list[Stage]:
    """Chain records in the order of time; one that has several names counts once."""
    by_time: dict[tuple[str, int], _Named] = {}
    for name, record in records:
        by_time.setdefault((record.saved_at, record.iteration), (name, record))
    stages: list[Stage] = []
    for _, (name, record) in sorted(by_time.items()):
        stages.append(
            Stage(
                where=name,
                numerics=record.numerics,
                iteration=record.iteration,
                config=record.config,
                result=record.result,
                before=stages[-1] if stages else None,
            )
        )
    return stages
