"""Running a benchmark, task by task.

A task that fails does not stop the others. An interrupted run continues: completed tasks are saved,
and not played again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import monotonic, perf_counter
from types import TracebackType
from typing import Any

import rllib_minestudio
from rllib_minestudio.benchmark.judge import PROGRESS
from rllib_minestudio.benchmark.players import BenchmarkPlayer, check_tasks, make_player
from rllib_minestudio.benchmark.report import write_page
from rllib_minestudio.benchmark.request import BenchmarkRequest, claim_folder, task_digest
from rllib_minestudio.benchmark.results import (
    FAILED,
    MARKED,
    PAGE_FILE,
    PLAYED,
    RESULTS_FILE,
    TASKS_FOLDER,
    BenchmarkResults,
    EpisodeResult,
    TaskResult,
)
from rllib_minestudio.benchmark.results_file import KeptTaskDocument
from rllib_minestudio.benchmark.task import BenchmarkTask, load_suite
from rllib_minestudio.checkpoints.record import code_identity, versions
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.backends import voxel
from rllib_minestudio.env.backends.minecraft import prerequisites
from rllib_minestudio.env.callbacks.rewards import TECH_TREE
from rllib_minestudio.env.env_options import VOXEL, EnvOptions
from rllib_minestudio.env.voxel import RULES
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError, describe
from rllib_minestudio.evaluation.during_training import remove_recording
from rllib_minestudio.evaluation.episode import OUTCOMES, EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import SUMMARY_FILE
from rllib_minestudio.evaluation.request import PlaySettings, only_episodes
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.experiments import ray_session
from rllib_minestudio.experiments.ray_session import compile_kernels
from rllib_minestudio.foundation.console import (
    clock,
    counted,
    episodes_so_far,
    notices,
    phase,
    stderr,
)
from rllib_minestudio.foundation.documents import read_document
from rllib_minestudio.foundation.files import SmallFileError, sole_use, write_whole
from rllib_minestudio.foundation.names import POV
from rllib_minestudio.foundation.recording_options import OBSERVATION
from rllib_minestudio.recordings.layout import VIDEO_FILE

RESULT_FILE = "result.json"
"""File of a task's result, with the digest of the request."""

ERROR_FILE = "error.txt"
"""File of the full error of a task that failed."""


def run_benchmark(request: BenchmarkRequest) -> BenchmarkResults:
    """Check everything, play the tasks that are not complete yet, and save the results.

    Raises:
        MineStudioError: The request is invalid, or results cannot be written.
        FolderInUseError: Another process plays a benchmark into the folder.
        KeyboardInterrupt: The user interrupted the run; completed tasks are kept.
    """
    ray_session.set_environment()
    ray_session.quieten(request.verbose)
    plan = make_plan(request)
    with sole_use(plan.folder):
        return _run(plan)


def _run(plan: BenchmarkPlan) -> BenchmarkResults:
    kept = {planned.task.name: _kept_result(plan, planned) for planned in plan.tasks}
    progress = BenchmarkProgress(plan, {name for name, found in kept.items() if found is not None})
    if progress.left and plan.engine == VOXEL:
        compile_kernels()  # so that no task's time includes it
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
    """Return a Ray session if Ray's processes will play, else a null context."""
    workers = max(plan.request.workers, plan.player.least_workers)
    if not workers or not is_needed:
        return nullcontext()
    return ray_session.ray_session(workers, plan.request.verbose)


def _saved(plan: BenchmarkPlan, results: list[TaskResult]) -> BenchmarkResults:
    """Assemble the results and write them.

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


# ----------------------------------------------------------------------------------------- one task


def _result(plan: BenchmarkPlan, planned: PlannedTask, progress: BenchmarkProgress) -> TaskResult:
    """Play a task unless it is marked; any error becomes a failed result."""
    if planned.mark is not None:
        return _task_result(planned, status=MARKED, reason=planned.mark)
    started = perf_counter()
    folder = plan.folder / TASKS_FOLDER / planned.task.name
    progress.begin(planned)
    try:
        result = _play(plan, planned, folder, progress, started)
    except Exception as error:
        # Environments and processes may be in any state, so the next task gets new ones.
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
    """Play a task and save its result.

    Raises:
        Exception: Any error of the environment or the task.
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
            tells_steps=True,
        )
        played = plan.player.play(planned.task, request.episodes, settings)
        for ended in only_episodes(played, progress.note_steps):
            episode = videos.note(ended)
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
    """Build the result of a task; `what` are the fields that `planned` does not have."""
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
    """Return the facts of an episode that tables and comparisons need."""
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
    """Return a task's saved result for the same request, or None.

    Raises:
        MineStudioError: Its file is damaged.
    """
    file = plan.folder / TASKS_FOLDER / planned.task.name / RESULT_FILE
    if not file.is_file():
        return None
    try:
        told = read_document(file, KeptTaskDocument)
    except (OSError, SmallFileError) as error:
        raise MineStudioError(
            f"{str(file)!r} is damaged: {error}. Remove it, and the task is played again."
        ) from error
    return TaskResult.of(told) if told.request == plan.facts["digest"] else None


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
        "played are kept; repeat the command to continue."
    )


# -------------------------------------------------------------------------- progress of a benchmark
# Shows a line per task, and the remaining time.


class BenchmarkProgress:
    """A context manager that shows the progress of a benchmark.

    Args:
        plan: The benchmark.
        done: Names of the tasks that were completed before.

    Attributes:
        left: Tasks that still have to be played.
    """

    def __init__(self, plan: BenchmarkPlan, done: set[str]) -> None:
        playable = [planned for planned in plan.tasks if planned.mark is None]
        self.left = [planned for planned in playable if planned.task.name not in done]
        self._plan, self._num_done = plan, len(playable) - len(self.left)
        self._num_playable, self._number = len(playable), self._num_done
        self._steps_left = sum(planned.task.time_limit for planned in self.left)
        self._steps_done = 0

    def __enter__(self) -> None:
        """Start the display."""
        if self._num_done:
            notices.print(f"{self._num_done} of {counted(self._num_playable, 'task')} are done")
        title = f"benchmark {self._plan.suite}, {counted(len(self.left), 'task')}"
        self._phase = phase(title)
        self._show = self._phase.__enter__()
        self._started = monotonic()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the display; after an interruption, print how to continue."""
        if kind is not None:
            stderr.print(
                f"{self._num_done} of {counted(self._num_playable, 'task')} are done and kept in "
                f"{str(self._plan.folder)!r}; repeat the command to continue."
            )
        self._phase.__exit__(kind, error, trace)

    def begin(self, planned: PlannedTask) -> None:
        """Begin a task."""
        self._task, self._episodes, self._successes, self._steps = planned.task, 0, 0, 0
        self._number += 1
        self._tell()

    def note(self, episode: EvaluatedEpisode) -> None:
        """Count an episode of the task."""
        self._episodes += 1
        self._successes += episode.counts_as_success
        self._tell()

    def note_steps(self, steps: int) -> None:
        """Count environment steps of the task."""
        self._steps += steps
        self._tell()

    def end(self, result: TaskResult) -> None:
        """End the task and print a line about it."""
        self._steps_done += self._task.time_limit
        self._num_done += result.status != FAILED
        if result.status == FAILED:
            stderr.print(f"{result.name}: failed: {result.reason}", style="red")
            return
        rate = result.rate
        notices.print(
            f"{result.name}: {rate.num_yes} of {counted(rate.num_episodes, 'episode')}, "
            f"progress {result.progress:.2f}, {result.seconds:.1f} s"
        )

    def warn(self, message: str) -> None:
        """Print a warning about a problem that does not affect results."""
        stderr.print(f"warning: {message}", style="yellow")

    def _tell(self) -> None:
        told = episodes_so_far(
            self._episodes, self._plan.request.episodes, self._successes, self._steps
        )
        place = f"task {self._number} of {self._num_playable}"
        self._show(f"{place}, {told}{self._rest()}: {self._task.name}")

    def _rest(self) -> str:
        """Return the remaining time at the present pace, in words."""
        share = self._episodes / self._plan.request.episodes
        done = self._steps_done + share * self._task.time_limit
        if not done:
            return ""
        seconds = (monotonic() - self._started) * (self._steps_left - done) / done
        return f", {clock(seconds)} left"


@contextmanager
def each_warning_once(source: str) -> Iterator[None]:
    """Show each warning of a logger once, since every environment of a task logs the same ones.

    Args:
        source: The logger's name.
    """
    said: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        known = message in said
        said.add(message)
        return not known

    logger = logging.getLogger(source)
    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)


# ----------------------------------------------------------------------------- the videos of a task
# All episodes are recorded; the first success and the first failure are kept.

_RECORDINGS = "recordings"
"""Temporary folder for recordings while a task is played."""

_CRF = 30
"""Quality of x264: a minute of 128x128 takes some hundred KB, and pixels stay sharp."""


class KeptVideos:
    """The recordings of the first success and the first failure by episode index.

    The order in which episodes end does not matter, so the videos do not depend on the number of
    workers.

    Args:
        folder: The task's folder.
        env_config: Options of its environment.
    """

    def __init__(self, folder: Path, env_config: Mapping[str, Any]) -> None:
        self._folder = folder
        self._recordings = folder / _RECORDINGS
        self._kept: dict[str, EvaluatedEpisode] = {}
        self._env_config = env_config
        self.problems: list[str] = []
        """Why episodes could not be recorded."""
        shutil.rmtree(self._recordings, ignore_errors=True)

    @property
    def recorder(self) -> dict[str, Any]:
        """Options of the recorder.

        The player's observations are recorded, unless their width or height is odd, which H.264
        does not support.
        """
        sides = self._env_config.get("obs_size", (128, 128))
        source = POV if any(side % 2 for side in sides) else OBSERVATION
        folder = str(self._recordings.resolve())
        return {"folder": folder, "source": source, "crf": _CRF}

    def __enter__(self) -> KeptVideos:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary recordings."""
        shutil.rmtree(self._recordings, ignore_errors=True)

    def note(self, episode: EvaluatedEpisode) -> EvaluatedEpisode:
        """Keep or remove an episode's recording; return the episode without it."""
        if episode.recording_error is not None:
            self.problems.append(episode.recording_error)
        if episode.recording is not None:
            kept = self._kept.get(episode.outcome)
            if kept is None or episode.index < kept.index:
                self._kept[episode.outcome], episode_to_go = episode, kept
            else:
                episode_to_go = episode
            if episode_to_go is not None:
                remove_recording(str(episode_to_go.recording))
        return replace(episode, recording=None)

    def finish(self) -> dict[str, Path]:
        """Move the kept videos to the task's folder.

        Returns:
            Outcome -> file.
        """
        files = {}
        for outcome in OUTCOMES:
            if outcome in self._kept:
                video = Path(str(self._kept[outcome].recording)) / VIDEO_FILE
                files[outcome] = self._folder / f"{outcome}.mp4"
                video.replace(files[outcome])
        return files


# ----------------------------------------------------------------- checks before anything is played


@dataclass(frozen=True)
class PlannedTask:
    """A task of the plan, to be played or marked.

    Attributes:
        task: The task, with the time limit that is played.
        digest: See `request.task_digest`.
        env_config: Options of its environment; empty if it is marked.
        mark: Why it is not played; None if it is played.
    """

    task: BenchmarkTask
    digest: str
    env_config: Mapping[str, Any]
    mark: str | None = None


@dataclass(frozen=True)
class BenchmarkPlan:
    """A validated benchmark, ready to run.

    Attributes:
        request: The request.
        suite: The suite's name.
        tasks: The chosen tasks, in the suite's order.
        player: The player.
        facts: Identity of the results; see `BenchmarkRequest.facts`.
        folder: The results' folder, which exists and is writable.
    """

    request: BenchmarkRequest
    suite: str
    tasks: tuple[PlannedTask, ...]
    player: BenchmarkPlayer
    facts: Mapping[str, Any]
    folder: Path

    @property
    def engine(self) -> str:
        """The engine: `voxel` or `minecraft`."""
        return str(self.player.env_config.get("engine", VOXEL))


def make_plan(request: BenchmarkRequest) -> BenchmarkPlan:
    """Validate a request and everything it refers to, and claim its folder.

    Raises:
        MineStudioError: Something is wrong with it.
    """
    request = request.checked()
    suite = load_suite(request.suite, trust=request.trust)
    chosen = suite.matching(request.tasks)
    player = make_player(
        request.player,
        workers=request.workers,
        envs=request.envs,
        gpus=request.gpus,
        deterministic=request.deterministic,
        overrides=request.overrides,
        agent_timeout_s=request.agent_timeout_s,
        trust=request.trust,
    )
    engine = str(player.env_config.get("engine", VOXEL))
    rules = RULES if engine == VOXEL else None
    tasks = _planned([task.capped(request.steps) for task in chosen], player, engine, rules)
    if engine != VOXEL and "RAY_ADDRESS" not in os.environ:  # otherwise other machines play
        prerequisites.require(EnvOptions.from_mapping(player.env_config).minecraft)
    digests = {planned.task.name: planned.digest for planned in tasks}
    facts = request.facts(player.identity, player.env_config, rules, digests)
    folder = Path(request.out)
    claim_folder(folder, facts)
    return BenchmarkPlan(request, suite.name, tasks, player, facts, folder)


def _planned(
    tasks: Sequence[BenchmarkTask], player: BenchmarkPlayer, engine: str, rules: int | None
) -> tuple[PlannedTask, ...]:
    """Decide which tasks are played, and in which environments.

    Raises:
        InvalidOptionsError: The player does not fit the environments; lists all problems, each
            once.
    """
    marks = {}
    for task in tasks:
        unfit = player.unfit(task)
        marks[task.name] = task.marks(engine) or ([] if unfit is None else [unfit])
    env_configs = check_tasks([t for t in tasks if not marks[t.name]], player.env_config)
    problems: dict[str, None] = {}
    for env_config in env_configs.values():
        try:
            MineStudioEnv.check_options(env_config)
            player.check(env_config)
        except InvalidOptionsError as error:
            problems.update(dict.fromkeys(error.problems))
    if problems:
        raise InvalidOptionsError(list(problems))
    return tuple(
        PlannedTask(
            task,
            task_digest(task, engine, rules),
            env_configs.get(task.name, {}),
            " ".join(marks[task.name]) or None,
        )
        for task in tasks
    )
