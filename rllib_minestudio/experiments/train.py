"""`rllib train file`: from an experiment file to trained agents and a summary.

The file is read (`experiment_file`) and validated (`plan`), run (`run`) or resumed
(`resume_options`), and summarised (`summary`).
"""

import os
import time
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments import ray_session
from rllib_minestudio.experiments.experiment_file import (
    TUNES_SAVE_INTERVAL,
    Experiment,
    load_experiments,
    load_tuner,
    make_importable,
    parse_assignments,
    pin_weights,
)
from rllib_minestudio.experiments.resume_options import (
    FIXED,
    RunRecord,
    recorded,
    resumed_experiment,
    resumed_record,
    run_to_resume,
    write_run_record,
)
from rllib_minestudio.experiments.run import require_resources_here, run
from rllib_minestudio.foundation.console import notices, stderr, stdout
from rllib_minestudio.foundation.files import make_new_folder, sole_use, write_whole
from rllib_minestudio.foundation.options import Flag, broken_rule, is_integer, option
from rllib_minestudio.foundation.processes import machine_cpus


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """A request to train an experiment file, with the command line's changes.

    Attributes:
        kept: Name -> text of files to store in a new run's folder: the experiment file and its
            source, if it was translated for this run only.
    """

    file: Path = option(
        MISSING,
        "A .yaml, .yml or .py file, or the name of an example in the package, such as cow, or of "
        "one of MineStudio's configs, such as gate_kl.",
        Flag("FILE", is_positional=True),
    )
    overrides: tuple[str, ...] = option(
        (),
        "Set an option below `config`, by its dotted path; repeatable. Values are YAML, list "
        "elements go by number: `env_config.callbacks.0.JudgeReset.time_limit=300`.",
        Flag("KEY=VALUE", names=("--set",)),
    )
    stop: tuple[str, ...] = option(
        (),
        "Add or change a stop criterion: training_iteration, time_total_s, "
        "num_env_steps_sampled_lifetime, env_runners/episode_return_mean, or any other of "
        "docs/metrics.md; repeatable.",
        Flag("METRIC=VALUE"),
    )
    num_samples: int | None = option(
        None, "Repeat the search space N times. Default: the file's, else 1.", least=1
    )
    seeds: int | None = option(
        None,
        "Train with N seeds, counted from the experiment's on, and draw their mean and range.",
        least=1,
        most=1000,
    )
    resume: bool = option(
        False,
        "Continue the newest run of this experiment in --out from its last checkpoint, with the "
        "options it was started with; --set and --stop change them.",
    )
    save_interval: int | None = option(
        None,
        "Save a checkpoint every N iterations. Default: the file's, else 10.",
        Flag(names=("--save-interval", "--checkpoint-freq")),
    )
    out: Path = option(Path("results"), "Results folder.", Flag("DIR"))
    address: str | None = option(
        None,
        "Train on the Ray cluster there (`auto`: the one that this machine belongs to) instead of "
        "on this machine only.",
        Flag("HOST:PORT"),
    )
    trust: bool = option(
        False,
        "With --resume: go on with a run that somebody else wrote, whose files can run any "
        "program. Your own needs no flag.",
    )
    verbose: bool = option(False, "Show what Ray and its workers print.")
    quiet: bool = option(False, "Print results, warnings and errors only.")
    kept: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """An experiment that was run.

    Attributes:
        plan: Its `plan.Plan`.
        folder: The folder of its results.
        status: 0 if every trial trained to its end, else 1.
    """

    plan: Any
    folder: Path
    status: int


def train(request: TrainingRequest) -> int:
    """Run the experiments of a file one after the other.

    Returns:
        The exit status: 0 if every trial trained to its end, else 1.

    Raises:
        MineStudioError: The file, an option, or the folder to resume from is invalid.
    """
    start = time.monotonic()
    _prepare(request)
    tuner = load_tuner(request.file)
    if tuner is not None:
        return _run_own_tuner(tuner, request)
    return max(done.status for done in _run_all(request, start))


def train_experiments(request: TrainingRequest) -> list[Run]:
    """Run the experiments of a YAML file, and return their plans and results folders.

    Raises:
        MineStudioError: See `train`.
    """
    start = time.monotonic()
    _prepare(request)
    return _run_all(request, start)


def _prepare(request: TrainingRequest) -> None:
    """Set what Ray's processes inherit, before anything imports Ray, and look for the cluster.

    Raises:
        MineStudioError: No cluster answers at the address that is given.
    """
    if request.address:
        os.environ["RAY_ADDRESS"] = request.address
    ray_session.set_environment()
    if address := os.environ.get("RAY_ADDRESS"):
        origin = "--address" if request.address else "RAY_ADDRESS"
        ray_session.require_cluster(address, origin)
    make_importable(Path.cwd())


def _run_all(request: TrainingRequest, start: float) -> list[Run]:
    in_file = load_experiments(request.file)
    # Users would not look for a file that was made for this run only.
    shown = request.file.name if request.kept else request.file
    notices.print(f"checking {shown} ...")  # loading Ray takes a few seconds
    jobs = _jobs(in_file, request)
    runs = []
    for job in jobs:
        # Two runs that begin in the same second get folders of their own.
        folder = job.folder if request.resume else make_new_folder(job.folder)
        with sole_use(folder):
            stdout.print(f"{job.plan.name}: results go to {folder}")
            _tell_demonstrations(job.plan)
            write_run_record(folder, job.record)
            if not request.resume:
                for name, text in request.kept.items():
                    write_whole(folder / name, text)
            sets = request.overrides if request.resume else None
            status = run(job.plan, folder, sets, request.verbose, start, request.trust)
        runs.append(Run(job.plan, folder, status))
    return runs


def _tell_demonstrations(plan: Any) -> None:
    """Print what a clone is to learn from."""
    from rllib_minestudio.algorithms.options import CloningOptions
    from rllib_minestudio.demonstrations import survey

    if isinstance(plan.example, CloningOptions):
        given = plan.example.input_
        found = survey([given] if isinstance(given, str) else given)
        stdout.print(f"{plan.name}: demonstrations: {found}", markup=False)


@dataclass(frozen=True)
class Job:
    """A planned experiment, the folder of its run, and the record to store there."""

    plan: Any
    folder: Path
    record: RunRecord


def _jobs(in_file: list[Experiment], request: TrainingRequest) -> list[Job]:
    """Validate all experiments before any of them starts."""
    if not request.resume:
        experiments = load_experiments(request.file, request.overrides)
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        folders = [_parent(request, experiment) / now for experiment in experiments]
    else:
        folders = [run_to_resume(_parent(request, experiment)) for experiment in in_file]
        if request.num_samples is not None:
            raise InvalidOptionsError(f"--num-samples with --resume: {FIXED['num_samples']}.")
        if request.seeds is not None:
            raise InvalidOptionsError(f"--seeds with --resume: {FIXED['num_samples']}.")
        pairs = zip(in_file, folders, strict=True)
        experiments = [
            resumed_experiment(*pair, request.overrides, trust=request.trust) for pair in pairs
        ]
    for experiment in experiments:
        pin_weights(experiment)
    _apply_options(experiments, request)
    plans = _validated(experiments, request.verbose)
    jobs = []
    for file, experiment, plan, folder in zip(in_file, experiments, plans, folders, strict=True):
        if request.resume:
            record = resumed_record(folder, file, experiment, plan, request.overrides)
        else:
            record = RunRecord(recorded(file), recorded(experiment))
        if not os.environ.get("RAY_ADDRESS"):  # a cluster's resources are checked after joining it
            require_resources_here(plan)
        jobs.append(Job(plan, folder, record))
    return jobs


def _parent(request: TrainingRequest, experiment: Experiment) -> Path:
    """Return the folder that holds the runs of an experiment."""
    return (request.out / experiment.name).resolve()


def _apply_options(experiments: list[Experiment], request: TrainingRequest) -> None:
    """Apply the command line's options to the experiments."""
    stop = parse_assignments(request.stop, "--stop")
    for experiment in experiments:
        experiment.stop.update(stop)
        if request.seeds is not None:
            _search_seeds(experiment, request.seeds)
        if request.num_samples is not None:
            experiment.num_samples = request.num_samples
        if request.save_interval is not None:
            experiment.checkpoint_config.pop(TUNES_SAVE_INTERVAL, None)
            experiment.checkpoint_config["save_interval"] = request.save_interval


def _search_seeds(experiment: Experiment, count: int) -> None:
    """Add a grid search over `count` seeds to an experiment.

    Raises:
        InvalidOptionsError: The experiment's seed is not a number, for instance a search.
    """
    first = experiment.config.get("seed", getattr(experiment.algorithm_config, "seed", None)) or 0
    if not is_integer(first):
        problem = broken_rule(f"{experiment.name}.config.seed", first, "must be a whole number")
        raise InvalidOptionsError(f"{problem} --seeds {count} counts from it.")
    experiment.config["seed"] = {"grid_search": list(range(first, first + count))}


def _validated(experiments: list[Experiment], verbose: bool) -> list[Any]:
    """Validate all experiments before any of them starts."""
    from rllib_minestudio.experiments.plan import make_plan

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


def _run_own_tuner(tuner: Any, request: TrainingRequest) -> int:
    """Run the Tuner that a Python file defines, unchanged."""
    given = [
        option
        for option, value in (
            ("--set", request.overrides),
            ("--stop", request.stop),
            ("--num-samples", request.num_samples),
            ("--seeds", request.seeds),
            ("--save-interval", request.save_interval),
            ("--resume", request.resume),
        )
        if value
    ]
    if given:
        raise InvalidOptionsError(
            f"{', '.join(given)}: not with a file that defines a `tuner`; "
            "set them in the file, or let it define `config`."
        )
    with ray_session.ray_session(machine_cpus(), request.verbose):
        results = tuner.fit()
    for error in results.errors:
        stderr.print(str(error), style="red", markup=False)
    stdout.print(f"{len(results)} trials, {results.num_errors} failed: {results.experiment_path}")
    return 1 if results.num_errors else 0
