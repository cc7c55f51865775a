"""Running a planned experiment with Ray and Tune, and summarising it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from rllib_minestudio.checkpoints.record import versions
from rllib_minestudio.errors import (
    CheckpointError,
    EngineError,
    InvalidOptionsError,
    MineStudioError,
)
from rllib_minestudio.experiments import ray_session
from rllib_minestudio.experiments.resume_options import code_identities
from rllib_minestudio.foundation.console import counted, phase, stdout
from rllib_minestudio.foundation.files import SmallFileError, read_json, write_probe, write_whole
from rllib_minestudio.foundation.processes import machine_cpus

RANDOM_POLICY_FILE = "random_policy.json"
"""File with the random policy's returns in the run's folder, which a resumed run reads."""
MOST_CUT_SHORT = 3
"""How many of the random policy's episodes may be cut short by errors."""
RANDOM_POLICY_SECONDS = 300.0
"""Longest time for which the random policy is measured."""


def run(
    plan: Any,
    folder: Path,
    resumed_with: Sequence[str] | None,
    verbose: bool,
    start: float,
    trust: bool,
) -> int:
    """Train one experiment and summarise it.

    Args:
        plan: The `plan.Plan` to run.
        folder: The run's folder.
        resumed_with: None for a new run; the `--set` options for a resumed one.
        verbose: Show the output of Ray and its workers.
        start: Start of the command, by `time.monotonic`.
        trust: Whether to resume a run that somebody else wrote.

    Returns:
        The exit status.

    Raises:
        KeyboardInterrupt: The run was interrupted; its checkpoints are saved.
    """
    from rllib_minestudio.experiments.resume_trials import anything_left, results_on_disk
    from rllib_minestudio.experiments.summary import summarize

    with full_disk_named(folder):
        is_left = resumed_with is None or anything_left(plan, folder, trust=trust)
        random_returns = random_policy_returns(plan, folder)
        if is_left:
            results = _train(plan, folder, resumed_with, verbose, random_returns)
        else:
            results = results_on_disk(plan, folder)
        return summarize(plan, folder, results, random_returns, time.monotonic() - start)


def _train(
    plan: Any,
    folder: Path,
    resumed_with: Sequence[str] | None,
    verbose: bool,
    random_returns: Sequence[float],
) -> Any:
    """Train with Tune and return its ResultGrid.

    Raises:
        KeyboardInterrupt: The run was interrupted; its checkpoints are saved.
    """
    from rllib_minestudio.experiments.resume_trials import go_on
    from rllib_minestudio.experiments.summary import tell_where_it_stopped
    from rllib_minestudio.experiments.trial_checkpoints import SaveOnInterrupt
    from rllib_minestudio.experiments.tune_state import back_up_state

    interrupt = SaveOnInterrupt()
    # Built before Ray starts, since they set environment variables.
    callbacks = [*_callbacks(plan, random_returns), interrupt]
    with ray_session.ray_session(_cpus(plan), verbose) as nodes:
        if nodes is not None:
            require_resources(plan, nodes, "the cluster")
        with interrupt.listening():
            if resumed_with is None:
                results = _tuner(plan, folder, callbacks).fit()
            else:
                results = go_on(plan, folder, callbacks, resumed_with, _run_options())
        back_up_state(folder)  # how it ended
    if interrupt.requested:
        tell_where_it_stopped(folder, results)
        raise KeyboardInterrupt
    return results


def require_resources(plan: Any, nodes: Sequence[Mapping[str, float]], where: str) -> None:
    """Refuse a plan whose trials would wait forever for resources that do not exist.

    Args:
        plan: The plan.
        nodes: Resource -> amount, one mapping per machine.
        where: What the nodes are, for messages.

    Raises:
        InvalidOptionsError: A trial does not fit.
    """
    from rllib_minestudio.experiments.sections import resource_problems

    problems = resource_problems(plan.example, _bundles(plan), nodes, where)
    if problems:
        raise InvalidOptionsError([f"{plan.name}.config: {problem}" for problem in problems])


def require_resources_here(plan: Any) -> None:
    """Refuse a plan that this machine cannot run; too few CPUs only make it slow.

    Raises:
        InvalidOptionsError: The machine lacks GPUs or other resources that a trial requests.
    """
    from rllib_minestudio.experiments.sections import machine_gpus

    asked, there = _cpus(plan), machine_cpus()
    node = {"CPU": max(asked, there), "GPU": machine_gpus(), "memory": math.inf}
    require_resources(plan, [node], "this machine")
    if asked > there:
        stdout.print(
            f"{plan.name}: a trial asks for {asked} CPUs and this machine has {there}: its "
            "processes share them."
        )


def _bundles(plan: Any) -> list[dict[str, float]]:
    request = plan.algorithm.default_resource_request(plan.example.to_dict())
    return [dict(bundle) for bundle in request.bundles]


def _cpus(plan: Any) -> int:
    return max(1, math.ceil(sum(bundle.get("CPU", 0) for bundle in _bundles(plan))))


def _callbacks(plan: Any, random_returns: Sequence[float]) -> list[Any]:
    """Build a run's callbacks, in the order in which Tune calls them."""
    from rllib_minestudio.experiments.progress import LearningSigns, TrainingProgress
    from rllib_minestudio.experiments.sections import scheduled_end
    from rllib_minestudio.experiments.trackers import logger_callbacks
    from rllib_minestudio.experiments.trial_checkpoints import KeepCheckpoints
    from rllib_minestudio.experiments.tune_state import BackUpState
    from rllib_minestudio.experiments.videos import RecordVideos

    identity = {"versions": versions(), "code": code_identities()}
    many_trials = bool(plan.searched) or plan.num_samples > 1
    interval = plan.record_video_interval
    stop = {**scheduled_end(plan.scheduler), **plan.stop}
    window = int(plan.example.metrics_num_episodes_for_smoothing)
    return [
        KeepCheckpoints(plan.checkpoints.keep_interval),
        BackUpState(),
        TrainingProgress(stop, plan.searched, fmean(random_returns) if random_returns else None),
        LearningSigns(stop, plan.searched, random_returns, window),
        *([RecordVideos(interval, plan.example.env)] if interval else []),
        *logger_callbacks(plan.trackers, identity, many_trials),
    ]


def _tuner(plan: Any, folder: Path, callbacks: list[Any]) -> Any:
    """Build the Tuner of a new run."""
    from ray import tune
    from ray.tune.search import BasicVariantGenerator

    from rllib_minestudio.experiments.result_metrics import StopAt
    from rllib_minestudio.experiments.resume_options import trial_folder, trial_name
    from rllib_minestudio.experiments.sections import make_scheduler

    return tune.Tuner(
        plan.algorithm,
        param_space=plan.space,
        tune_config=tune.TuneConfig(
            num_samples=plan.num_samples,
            scheduler=make_scheduler(plan.scheduler),
            # The same seed draws the same settings.
            search_alg=BasicVariantGenerator(random_state=plan.example.seed),
            trial_name_creator=trial_name,
            trial_dirname_creator=trial_folder,
        ),
        run_config=tune.RunConfig(
            name=folder.name,
            storage_path=str(folder.parent),
            stop=StopAt(plan.stop),
            checkpoint_config=plan.checkpoints.for_tune(),
            callbacks=callbacks,
            **_run_options(),
        ),
    )


def _run_options() -> dict[str, Any]:
    """Return the options of saving and output, for new and resumed runs."""
    from ray import tune

    seconds = ray_session.SECONDS_BETWEEN_STATE_SAVES
    return {"sync_config": tune.SyncConfig(sync_period=seconds), "verbose": 0}


def random_policy_returns(plan: Any, folder: Path) -> list[float]:
    """Return the random policy's episode returns, measured now or at the first start of the run."""
    episodes = plan.summary.random_policy_episodes
    file = folder / RANDOM_POLICY_FILE
    if file.is_file():
        return _read_returns(file)
    if not episodes:
        return []
    from rllib_minestudio.env.agents import RandomAgent
    from rllib_minestudio.evaluation.episode import LONGEST_EPISODE
    from rllib_minestudio.evaluation.inference import ScriptedPolicy, play_episodes, step_messages
    from rllib_minestudio.experiments.environment import make_env

    limits = f"{counted(episodes, 'episode')} of at most {LONGEST_EPISODE:,} steps"
    with phase(f"measuring the random policy ({limits})") as show:
        seed = plan.example.seed or 0
        env = make_env(plan.example)
        returns = play_episodes(
            env,
            ScriptedPolicy(RandomAgent(seed), env),
            episodes,
            seed=seed,
            on_step=step_messages(show, episodes),
            on_cut_short=_CutShort(),
            max_seconds=RANDOM_POLICY_SECONDS,
        )
        env.close()
    if len(returns) < episodes:
        stdout.print(
            f"  {counted(len(returns), 'episode')} of {episodes} ended within "
            f"{RANDOM_POLICY_SECONDS / 60:.0f} minutes, which have to do as the random policy. If "
            "the task has no time limit, give it one, such as `JudgeReset: {time_limit: 600}`."
        )
    write_whole(file, json.dumps(returns))
    return returns


class _CutShort:
    """Tells the first error that cuts an episode of the random policy short, and limits them."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, error: str) -> None:
        self._count += 1
        if self._count == 1:
            stdout.print(
                f"  an error cut an episode short, which does not count: {error}", style="yellow"
            )
        if self._count == MOST_CUT_SHORT:
            raise EngineError(
                f"Errors cut short {MOST_CUT_SHORT} episodes of the random policy, the last time: "
                f"{error}. Correct what raises, most likely a callback of the environment."
            )


def _read_returns(file: Path) -> list[float]:
    """Read the returns that an earlier start of the run measured.

    Raises:
        CheckpointError: The file is damaged.
    """
    from rllib_minestudio.checkpoints.formats import ReturnsDocument
    from rllib_minestudio.foundation.documents import parse_document

    try:
        return parse_document({"returns": read_json(file)}, ReturnsDocument).returns
    except (OSError, SmallFileError) as error:
        raise CheckpointError(
            f"{str(file)!r} is damaged: {error}. Remove it, and it is measured again."
        ) from error


# ----------------------------------------------------------- runs that end because the disk is full

LEAST_ROOM = 1024**2
"""Bytes written to probe the disk, about what Tune saves every few seconds."""


@contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Raise one clear error if the block fails and the disk of `folder` is full.

    Tune reads back files that it could not write, so the block may fail with any error, such as an
    `EOFError`; other errors are raised unchanged if the disk is not full.

    Raises:
        MineStudioError: The block failed, and the disk is full.
    """
    try:
        yield
    except Exception as error:
        try:
            write_probe(folder, LEAST_ROOM)
        except OSError as full:
            raise MineStudioError(
                f"{str(folder)!r} cannot be written to any more ({full.strerror}), which ended the "
                "run. Free space there, or make it writable again, and run the same command with "
                "--resume: training goes on from the last whole checkpoint. If there was none yet, "
                "start again without it."
            ) from error
        raise
