"""Resuming a run: choosing the trials that continue, and handing them to Tune again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune.experiment import Trial

from rllib_minestudio.checkpoints.lookup import SavedCheckpoint, loadable_checkpoints
from rllib_minestudio.checkpoints.trust import is_sealed, refuse_untrusted
from rllib_minestudio.experiments.result_metrics import ENV_STEPS, StopAt, metric
from rllib_minestudio.experiments.resume_options import config_change, trial_folder, trial_name
from rllib_minestudio.experiments.sections import make_scheduler
from rllib_minestudio.experiments.tune_state import (
    ContinueTrials,
    catch_up,
    prepare_state,
    repair_state,
    take_own_state,
)
from rllib_minestudio.foundation.console import stdout


def anything_left(plan: Any, folder: Path, *, trust: bool = False) -> bool:
    """Decide by the checkpoints on disk which trials continue, and tell Tune and the user.

    Args:
        plan: The `plan.Plan` of the run.
        folder: The run's folder.
        trust: Whether its pickles are read whoever wrote them.

    Returns:
        Whether any trial continues.

    Raises:
        UntrustedError: Somebody else wrote the run, or has changed it.
    """
    reached = StopAt(plan.stop)
    origins: list[SavedCheckpoint | None] = []

    def decide(trial: Any, trial_folder: Path) -> str:
        if plan.scheduler and trial.status == Trial.TERMINATED:
            return str(Trial.TERMINATED)  # by the scheduler, or at its end
        checkpoints = loadable_checkpoints(trial_folder)
        if checkpoints and not trust and not is_sealed(checkpoints[-1].folder):
            refuse_untrusted(
                checkpoints[-1].folder, ["RLlib's state (pickles, which can run any program)"]
            )
        if checkpoints:
            at_end = reached(trial.trial_id, checkpoints[-1].record.result)
        else:
            at_end = trial.checkpoint is not None and reached(trial.trial_id, trial.last_result)
        if at_end:
            return str(Trial.TERMINATED)
        origins.append(checkpoints[-1] if checkpoints else None)
        return str(Trial.PENDING)

    if not trust:
        take_own_state(folder)
    repair_state(folder)
    known = len(prepare_state(folder, decide))
    is_left = bool(origins) or known < plan.num_samples
    stdout.print(going_on(folder, origins, known) if is_left else nothing_left(folder))
    return is_left


def going_on(folder: Path, origins: Sequence[SavedCheckpoint | None], trials: int) -> str:
    """Return the message about where a run continues.

    Args:
        folder: The run's folder.
        origins: The checkpoint of each trial that continues; None for one without a checkpoint.
        trials: Number of all trials.
    """
    if trials == 1 and origins and origins[0] is not None:
        return f"going on from {_place(origins[0])}: {origins[0].folder}"
    saved = [origin for origin in origins if origin is not None]
    if not saved:
        return f"going on with {folder} from the beginning: it has no checkpoint yet"
    furthest = max(saved, key=lambda origin: origin.record.iteration)
    return (
        f"going on with {len(origins)} of {trials} trials, {len(saved)} of them from a checkpoint, "
        f"the furthest from {_place(furthest)}: {folder}"
    )


def nothing_left(folder: Path) -> str:
    """Return the message that a run has already ended."""
    return f"nothing to resume: {folder} has reached its end already; --stop sets another."


def _place(origin: SavedCheckpoint) -> str:
    steps = metric(origin.record.result, ENV_STEPS) or 0
    return f"iteration {origin.record.iteration}, {steps:,.0f} steps"


def go_on(
    plan: Any,
    folder: Path,
    callbacks: Sequence[Any],
    sets: Sequence[str],
    run_options: Mapping[str, Any],
) -> Any:
    """Continue the trials of a run with Tune.

    `Tuner.restore` is not used because it restores the stop criteria and callbacks of the first
    start.

    Args:
        plan: The plan of the run.
        folder: The run's folder.
        callbacks: Tune callbacks.
        sets: The `--set` options.
        run_options: Further arguments of `tune.run`.
    """
    change = config_change(plan, sets) if sets else None
    analysis = tune.run(
        plan.algorithm,
        config=plan.space,
        num_samples=plan.num_samples,
        scheduler=make_scheduler(plan.scheduler),
        trial_name_creator=trial_name,
        trial_dirname_creator=trial_folder,
        name=folder.name,
        storage_path=str(folder.parent),
        resume_config=tune.ResumeConfig(),
        stop=StopAt(plan.stop),
        checkpoint_config=plan.checkpoints.for_tune(),
        callbacks=[ContinueTrials(change, plan.checkpoints.for_tune()), *callbacks],
        raise_on_failed_trial=False,
        **run_options,
    )
    return tune.ResultGrid(analysis)


def results_on_disk(plan: Any, folder: Path) -> Any:
    """Return the results of a run that has ended, as `Tuner.fit` would."""
    analysis = tune.ExperimentAnalysis(str(folder))
    for trial in analysis.trials:
        catch_up(trial, Path(trial.path), plan.checkpoints.for_tune())
    return tune.ResultGrid(analysis)
