"""Runs a benchmark: its tasks one after the other, each kept as it ends.

A task that cannot be played does not stop the others. A run that was interrupted goes on where it
was: tasks that were played to the end are not played again.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import rllib_minestudio
from rllib_minestudio.benchmark.judge import PROGRESS
from rllib_minestudio.benchmark.plan import BenchmarkPlan, PlannedTask, make_plan
from rllib_minestudio.benchmark.progress import BenchmarkProgress, each_warning_once
from rllib_minestudio.benchmark.report.page import write_page
from rllib_minestudio.benchmark.request import BenchmarkRequest
from rllib_minestudio.benchmark.results import (
    PAGE_FILE,
    RESULTS_FILE,
    TASKS_FOLDER,
    BenchmarkResults,
)
from rllib_minestudio.benchmark.task_result import FAILED, MARKED, PLAYED, EpisodeResult, TaskResult
from rllib_minestudio.benchmark.videos import KeptVideos
from rllib_minestudio.env.backends import voxel
from rllib_minestudio.env.callbacks.tech_tree import TECH_TREE
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.errors import MineStudioError, describe
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import SUMMARY_FILE
from rllib_minestudio.evaluation.evaluation_summary import Summary
from rllib_minestudio.evaluation.request import PlaySettings
from rllib_minestudio.experiments.running import ray_session
from rllib_minestudio.experiments.running.kernels import compile_kernels
from rllib_minestudio.provenance import code_identity, versions
from rllib_minestudio.small_files import read_json
from rllib_minestudio.whole_file import write_whole

RESULT_FILE = "result.json"
"""A task's result in its folder, with the digest of the request that it answers."""

ERROR_FILE = "error.txt"
"""Why a task could not be played, in full."""


def run_benchmark(request: BenchmarkRequest) -> BenchmarkResults:
    """Check everything, play what is not played yet, and save the results.

    Raises:
        MineStudioError: The request is not in order, or results cannot be written.
        KeyboardInterrupt: Of the user; what was played to the end is kept.
    """
    ray_session.set_environment()
    ray_session.quieten(request.verbose)
    plan = make_plan(request)
    kept = {planned.task.name: _kept_result(plan, planned) for planned in plan.tasks}
    progress = BenchmarkProgress(plan, {name for name, found in kept.items() if found is not None})
    if progress.left and plan.engine == VOXEL:
        compile_kernels()  # before any task's time is taken
    results = []
    with _session(plan, bool(progress.left)), each_warning_once(voxel.__name__), progress:
        try:
            for planned in plan.tasks:
                result = kept[planned.task.name] or _result(plan, planned, progress)
                results.append(result)
        finally:
            plan.player.close()
    return _saved(plan, results)


def _session(plan: BenchmarkPlan, is_needed: bool) -> AbstractContextManager[Any]:
    """Run Ray if processes of it are going to play."""
    workers = max(plan.request.workers, plan.player.least_workers)
    if not workers or not is_needed:
        return nullcontext()
    return ray_session.ray_session(workers, plan.request.verbose)


def _saved(plan: BenchmarkPlan, results: list[TaskResult]) -> BenchmarkResults:
    """Put the results together and write them.

    Raises:
        MineStudioError: They cannot be written.
    """
    found = BenchmarkResults(
        suite=plan.suite,
        tasks=tuple(results),
        player=plan.player.identity,
        request=plan.facts,
        versions={**versions(), **code_identity(Path(rllib_minestudio.__file__).parent)},
        seconds=sum(result.seconds for result in results),
        created=datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    try:
        found.save(plan.folder / RESULTS_FILE)
        write_page(found, plan.folder / PAGE_FILE)
    except OSError as error:
        raise _unwritable(plan.folder, error) from error
    return found


# ---------------------------------------------------------------- one task


def _result(plan: BenchmarkPlan, planned: PlannedTask, progress: BenchmarkProgress) -> TaskResult:
    """Play a task unless it is marked; whatever goes wrong is its result."""
    if planned.mark is not None:
        return _task_result(planned, status=MARKED, reason=planned.mark)
    started = perf_counter()
    folder = plan.folder / TASKS_FOLDER / planned.task.name
    progress.begin(planned)
    try:
        result = _play(plan, planned, folder, progress, started)
    except Exception as error:
        # Whatever state environments and processes are in, the next task gets new ones.
        plan.player.close()
        text = "".join(traceback.format_exception(error))
        _write(folder / ERROR_FILE, text)
        reason = str(error) if isinstance(error, MineStudioError) else describe(error)
        seconds = round(perf_counter() - started, 3)
        result = _task_result(planned, status=FAILED, reason=reason, seconds=seconds)
    progress.end(result)
    return result


def _play(
    plan: BenchmarkPlan,
    planned: PlannedTask,
    folder: Path,
    progress: BenchmarkProgress,
    started: float,
) -> TaskResult:
    """Play a task and keep its result.

    Raises:
        Exception: Of the environment, or of the task.
    """
    request = plan.request
    episodes = []
    with KeptVideos(folder, planned.env_config) as videos:
        settings = PlaySettings(
            seed=request.seed,
            deterministic=request.deterministic,
            recorder=None if request.no_videos else videos.recorder,
            policy=plan.player.identity,
            env_config=planned.env_config,
        )
        for played in plan.player.play(planned.task, request.episodes, settings):
            episode = videos.note(played)
            episodes.append(episode)
            progress.note(episode)
        files = videos.finish()
    seconds = round(perf_counter() - started, 3)
    for problem in sorted(set(videos.problems)):
        progress.warn(f"{planned.task.name}: {problem}")
    summary = Summary.of(
        episodes,
        seed=request.seed,
        filter=None,
        policy=plan.player.identity,
        config={"env_config": dict(planned.env_config), "digest": planned.digest},
        seconds=seconds,
    )
    if summary.failures:
        failed = summary.failures[0]
        raise MineStudioError(f"Episode {failed.index} could not be played: {failed.error}")
    result = _task_result(
        planned,
        status=PLAYED,
        episodes=tuple(map(_episode_result, summary.episodes)),
        seconds=seconds,
        videos={name: file.relative_to(plan.folder).as_posix() for name, file in files.items()},
    )
    kept = {"request": plan.facts["digest"], **result.to_json()}
    _write(folder / SUMMARY_FILE, json.dumps(summary.to_json(), indent=1) + "\n")
    _write(folder / RESULT_FILE, json.dumps(kept, indent=1) + "\n")
    (folder / ERROR_FILE).unlink(missing_ok=True)
    return result


def _task_result(planned: PlannedTask, **what: Any) -> TaskResult:
    """Return what became of a task."""
    task = planned.task
    return TaskResult(
        name=task.name,
        category=task.category,
        text=task.text,
        success=task.success,
        time_limit=task.time_limit,
        digest=planned.digest,
        **what,
    )


def _episode_result(episode: EvaluatedEpisode) -> EpisodeResult:
    """Return what tables and comparisons need of an episode."""
    items: Mapping[str, float] = episode.info.get(TECH_TREE) or {}
    return EpisodeResult(
        index=episode.index,
        seed=episode.seed,
        success=episode.counts_as_success,
        progress=float(episode.info[PROGRESS]),
        undiscounted_return=episode.undiscounted_return,
        length=episode.length,
        items=dict(items),
    )


def _kept_result(plan: BenchmarkPlan, planned: PlannedTask) -> TaskResult | None:
    """Return the result of a task that was played before, for the same request.

    Raises:
        MineStudioError: Its file is damaged.
    """
    file = plan.folder / TASKS_FOLDER / planned.task.name / RESULT_FILE
    if not file.is_file():
        return None
    try:
        facts = dict(read_json(file))
        if facts["request"] != plan.facts["digest"]:
            return None
        return TaskResult.from_json(facts)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise MineStudioError(
            f"{str(file)!r} is damaged: {error}. Remove it, and the task is played again."
        ) from error


def _write(file: Path, text: str) -> None:
    """Write a file of the results.

    Raises:
        MineStudioError: It cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    except OSError as error:
        raise _unwritable(file.parent, error) from error


def _unwritable(folder: Path, error: OSError) -> MineStudioError:
    return MineStudioError(
        f"Results cannot be written to {str(folder)!r}: {error.strerror or error}. Tasks that were "
        "played are kept; the same command goes on."
    )
