"""`rllib train file`: from an experiment file to trained agents and a summary."""

import json
import os
import sys
import time
from argparse import Namespace
from datetime import datetime
from pathlib import Path
from typing import Any

from rllib_minestudio.cli import ray_session
from rllib_minestudio.cli.console import phase, stderr, stdout
from rllib_minestudio.cli.experiment import (
    Experiment,
    load_experiments,
    load_tuner,
    parse_assignments,
)
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError

RANDOM_POLICY_FILE = "random_policy.json"
"""Returns of the random policy, in the run's folder; a resumed run does not measure again."""


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
    ray_session.set_environment()
    _make_importable(Path.cwd())
    path = Path(arguments.file)
    tuner = load_tuner(path)
    if tuner is not None:
        return _run_own_tuner(tuner, arguments)
    experiments = load_experiments(path, arguments.set)
    stdout.print(f"checking {path} ...")  # loading Ray takes a few seconds
    _apply_options(experiments, arguments)
    plans = _validated(experiments, arguments.verbose)
    folders = [_run_folder(Path(arguments.out) / plan.name, arguments.resume) for plan in plans]
    pairs = zip(plans, folders, strict=True)
    statuses = [_run(plan, folder, arguments, start) for plan, folder in pairs]
    return max(statuses)


def _make_importable(folder: Path) -> None:
    """Let dotted names in experiment files reach modules in `folder`, here and in Ray's workers."""
    sys.path.insert(0, str(folder))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), inherited]))


def _apply_options(experiments: list[Experiment], arguments: Namespace) -> None:
    """Lay the command line's options over what the file says."""
    stop = parse_assignments(arguments.stop, "--stop")
    for experiment in experiments:
        experiment.stop.update(stop)
        if arguments.num_samples is not None:
            experiment.num_samples = arguments.num_samples
        if arguments.checkpoint_freq is not None:
            experiment.checkpoint_config["checkpoint_frequency"] = arguments.checkpoint_freq


def _validated(experiments: list[Experiment], verbose: bool) -> list[Any]:
    """Validate all experiments before any of them starts."""
    from rllib_minestudio.cli.plan import make_plan

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


def _run_folder(parent: Path, resume: bool) -> Path:
    """Return a new folder named after the moment, or the newest one to resume."""
    parent = parent.resolve()
    if not resume:
        return parent / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    from ray import tune

    runs = sorted(folder for folder in parent.glob("*") if tune.Tuner.can_restore(str(folder)))
    if not runs:
        raise MineStudioError(
            f"--resume: there is no run to resume in {str(parent)!r}. "
            "Start one without --resume, or say where it is with --out."
        )
    return runs[-1]


def _run(plan: Any, folder: Path, arguments: Namespace, start: float) -> int:
    """Train one experiment and summarise it; `start` is when the command began."""
    from rllib_minestudio.cli.summary import summarize

    stdout.print(f"{plan.name}: results go to {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    random_returns = _random_returns(plan, folder)
    request = plan.algorithm.default_resource_request(plan.example.to_dict())
    cpus = int(request.required_resources.get("CPU", 1))
    with ray_session.ray_session(cpus, arguments.verbose):
        results = _tuner(plan, folder, arguments).fit()
    return summarize(plan, folder, results, random_returns, time.monotonic() - start)


def _tuner(plan: Any, folder: Path, arguments: Namespace) -> Any:
    """Build Tune's run, or restore it from its folder."""
    from ray import tune

    from rllib_minestudio.cli.progress import StopAt, TrainingProgress

    if arguments.resume:
        stdout.print("resuming, with the options that the run was started with")
        return tune.Tuner.restore(
            str(folder),
            trainable=plan.algorithm,
            resume_unfinished=True,
            restart_errored=False,
            resume_errored=True,
        )
    return tune.Tuner(
        plan.algorithm,
        param_space=plan.space,
        tune_config=tune.TuneConfig(num_samples=plan.num_samples),
        run_config=tune.RunConfig(
            name=folder.name,
            storage_path=str(folder.parent),
            stop=StopAt(plan.stop),
            checkpoint_config=tune.CheckpointConfig(**plan.checkpoints),
            callbacks=[TrainingProgress(plan.stop, plan.searched)],
            sync_config=tune.SyncConfig(sync_period=ray_session.SECONDS_BETWEEN_STATE_SAVES),
            verbose=0,
        ),
    )


def _random_returns(plan: Any, folder: Path) -> list[float]:
    """Return the random policy's episode returns, measured now or when the run began."""
    episodes = plan.summary.random_policy_episodes
    file = folder / RANDOM_POLICY_FILE
    if file.is_file():
        return list(json.loads(file.read_text()))
    if not episodes:
        return []
    from rllib_minestudio.cli.environment import make_env
    from rllib_minestudio.env.agents import RandomAgent
    from rllib_minestudio.evaluation.rollout import ScriptedPolicy, play_episodes

    with phase("measuring the random policy") as show:
        seed = plan.example.seed or 0
        env = make_env(plan.example)
        returns = play_episodes(
            env,
            ScriptedPolicy(RandomAgent(seed), env),
            episodes,
            seed=seed,
            on_episode=lambda done, _: show(f"episode {done} of {episodes}"),
        )
        env.close()
    file.write_text(json.dumps(returns))
    return returns


def _run_own_tuner(tuner: Any, arguments: Namespace) -> int:
    """Run the Tuner that a Python file defines, as it is."""
    given = [
        option
        for option, value in (
            ("--set", arguments.set),
            ("--stop", arguments.stop),
            ("--num-samples", arguments.num_samples),
            ("--checkpoint-freq", arguments.checkpoint_freq),
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
