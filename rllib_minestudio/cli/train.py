"""`rllib train file`: from an experiment file to trained agents and a summary."""

import os
import time
from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rllib_minestudio.console import stderr, stdout
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments.reading.assignments import parse_assignments
from rllib_minestudio.experiments.reading.experiment_file import (
    TUNES_SAVE_INTERVAL,
    Experiment,
    load_experiments,
    load_tuner,
)
from rllib_minestudio.experiments.reading.named_objects import make_importable
from rllib_minestudio.experiments.running import ray_session
from rllib_minestudio.experiments.running.resume import (
    resumed_experiment,
    resumed_record,
    run_to_resume,
)
from rllib_minestudio.experiments.running.run_record import RunRecord, describe, write_run_record
from rllib_minestudio.experiments.running.tune_run import require_resources_here, run


def train(arguments: Namespace) -> int:
    """Run the experiments of a file one after the other.

    Args:
        arguments: As `main` parses them.

    Returns:
        The exit status: 0 if every trial trained to its end, else 1.

    Raises:
        MineStudioError: The file, an option, or the folder to resume from is not in order.
    """
    start = time.monotonic()
    if arguments.address:
        os.environ["RAY_ADDRESS"] = arguments.address
    ray_session.set_environment()
    make_importable(Path.cwd())
    path = Path(arguments.file)
    tuner = load_tuner(path)
    if tuner is not None:
        return _run_own_tuner(tuner, arguments)
    in_file = load_experiments(path)
    stdout.print(f"checking {path} ...")  # loading Ray takes a few seconds
    jobs = _jobs(path, in_file, arguments)
    statuses = []
    for job in jobs:
        stdout.print(f"{job.plan.name}: results go to {job.folder}")
        job.folder.mkdir(parents=True, exist_ok=True)
        write_run_record(job.folder, job.record)
        sets = arguments.set if arguments.resume else None
        statuses.append(run(job.plan, job.folder, sets, arguments.verbose, start))
    return max(statuses)


@dataclass(frozen=True)
class Job:
    """A planned experiment, the folder of its run, and what is noted there about it."""

    plan: Any
    folder: Path
    record: RunRecord


def _jobs(path: Path, in_file: list[Experiment], arguments: Namespace) -> list[Job]:
    """Validate all experiments before any of them starts."""
    if not arguments.resume:
        experiments = load_experiments(path, arguments.set)
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        folders = [_parent(arguments, experiment) / now for experiment in experiments]
    else:
        folders = [run_to_resume(_parent(arguments, experiment)) for experiment in in_file]
        pairs = zip(in_file, folders, strict=True)
        experiments = [resumed_experiment(*pair, arguments) for pair in pairs]
    _apply_options(experiments, arguments)
    plans = _validated(experiments, arguments.verbose)
    jobs = []
    for file, experiment, plan, folder in zip(in_file, experiments, plans, folders, strict=True):
        if arguments.resume:
            record = resumed_record(folder, file, experiment, plan, arguments.set)
        else:
            record = RunRecord(describe(file), describe(experiment))
        if not os.environ.get("RAY_ADDRESS"):  # a cluster is looked at once it is joined
            require_resources_here(plan)
        jobs.append(Job(plan, folder, record))
    return jobs


def _parent(arguments: Namespace, experiment: Experiment) -> Path:
    """Return the folder that holds the runs of an experiment."""
    return (Path(arguments.out) / experiment.name).resolve()


def _apply_options(experiments: list[Experiment], arguments: Namespace) -> None:
    """Lay the command line's options over what the file says."""
    stop = parse_assignments(arguments.stop, "--stop")
    for experiment in experiments:
        experiment.stop.update(stop)
        if arguments.num_samples is not None:
            experiment.num_samples = arguments.num_samples
        if arguments.save_interval is not None:
            experiment.checkpoint_config.pop(TUNES_SAVE_INTERVAL, None)
            experiment.checkpoint_config["save_interval"] = arguments.save_interval


def _validated(experiments: list[Experiment], verbose: bool) -> list[Any]:
    """Validate all experiments before any of them starts."""
    from rllib_minestudio.experiments.reading.tune_plan import make_plan

    ray_session.quieten(verbose)
    plans, problems = [], []
    for experiment in experiments:
        try:
            plans.append(make_plan(experiment))
        except InvalidOptionsError as error:
            problems.extend(error.problems)
    if problems:
        raise InvalidOptionsError(problems)
    return plans


def _run_own_tuner(tuner: Any, arguments: Namespace) -> int:
    """Run the Tuner that a Python file defines, as it is."""
    given = [
        option
        for option, value in (
            ("--set", arguments.set),
            ("--stop", arguments.stop),
            ("--num-samples", arguments.num_samples),
            ("--save-interval", arguments.save_interval),
            ("--resume", arguments.resume),
        )
        if value
    ]
    if given:
        raise InvalidOptionsError(
            f"{', '.join(given)}: not with a file that defines a `tuner`; "
            "set them in the file, or let it define `config`."
        )
    with ray_session.ray_session(ray_session.machine_cpus(), arguments.verbose):
        results = tuner.fit()
    for error in results.errors:
        stderr.print(str(error), style="red", markup=False)
    stdout.print(f"{len(results)} trials, {results.num_errors} failed: {results.experiment_path}")
    return 1 if results.num_errors else 0
