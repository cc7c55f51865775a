"""Runs one planned experiment: Ray, Tune, and the summary at the end."""

from __future__ import annotations

import copy
import json
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ray import tune
from ray.tune.experiment import Trial

from rllib_minestudio.errors import CheckpointError, InvalidOptionsError, MineStudioError
from rllib_minestudio.experiments import ray_session
from rllib_minestudio.experiments.resume import code_identities
from rllib_minestudio.foundation.console import phase, stdout
from rllib_minestudio.foundation.files import read_json, write_probe, write_whole
from rllib_minestudio.foundation.processes import machine_cpus
from rllib_minestudio.foundation.provenance import versions

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

RANDOM_POLICY_FILE = "random_policy.json"
"""Returns of the random policy, in the run's folder; a resumed run does not measure again."""


def run(
    plan: Any, folder: Path, resumed_with: Sequence[str] | None, verbose: bool, start: float
) -> int:
    """Train one experiment and summarise it.

    Args:
        plan: What to run, a `tune_plan.Plan`.
        folder: The run's folder.
        resumed_with: None for a new run; the `--set` options of one that goes on.
        verbose: Show what Ray and its workers print.
        start: When the command began, by `time.monotonic`.

    Returns:
        The exit status.

    Raises:
        KeyboardInterrupt: It was interrupted; its checkpoints are saved.
    """
    with full_disk_named(folder):
        return _run(plan, folder, resumed_with, verbose, start)


def _run(
    plan: Any, folder: Path, resumed_with: Sequence[str] | None, verbose: bool, start: float
) -> int:
    from rllib_minestudio.experiments.resumed_run import anything_left, results_on_disk
    from rllib_minestudio.experiments.summary import summarize

    is_left = resumed_with is None or anything_left(plan, folder)
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
    """Let Tune train, and return its ResultGrid.

    Raises:
        KeyboardInterrupt: It was interrupted; its checkpoints are saved.
    """
    from rllib_minestudio.experiments.resumed_run import go_on
    from rllib_minestudio.experiments.summary import tell_where_it_stopped

    interrupt = SaveOnInterrupt()
    # Before Ray starts: they set environment variables.
    callbacks = [*_callbacks(plan, random_returns), interrupt]
    with ray_session.ray_session(_cpus(plan), verbose) as nodes:
        if nodes is not None:
            require_resources(plan, nodes, "the cluster")
        with interrupt.listening():
            if resumed_with is None:
                results = _tuner(plan, folder, callbacks).fit()
            else:
                results = go_on(plan, folder, callbacks, resumed_with, _run_options())
    if interrupt.requested:
        tell_where_it_stopped(folder, results)
        raise KeyboardInterrupt
    return results


def require_resources(plan: Any, nodes: Sequence[Mapping[str, float]], where: str) -> None:
    """Refuse a plan whose trials would wait without end for resources that do not exist.

    Args:
        plan: What to run.
        nodes: Resource -> amount, one mapping per machine.
        where: What they are, for the message.

    Raises:
        InvalidOptionsError: A trial does not fit.
    """
    problems = resource_problems(plan.example, _bundles(plan), nodes, where)
    if problems:
        raise InvalidOptionsError([f"{plan.name}.config: {problem}" for problem in problems])


def require_resources_here(plan: Any) -> None:
    """Refuse a plan that this machine cannot run; too few CPUs only make it slow.

    Raises:
        InvalidOptionsError: It lacks GPUs, or something else that a trial asks for.
    """
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
    """Build what watches a run, in the order in which they are told."""
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
        TrainingProgress(stop, plan.searched),
        LearningSigns(stop, plan.searched, random_returns, window),
        *([RecordVideos(interval, plan.example.env)] if interval else []),
        *logger_callbacks(plan.trackers, identity, many_trials),
    ]


def _tuner(plan: Any, folder: Path, callbacks: list[Any]) -> Any:
    """Build a new Tune run."""
    from ray import tune
    from ray.tune.search import BasicVariantGenerator

    from rllib_minestudio.experiments.result_metrics import StopAt
    from rllib_minestudio.experiments.sections import make_scheduler
    from rllib_minestudio.experiments.trial_names import trial_folder, trial_name

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


def _sync_config() -> Any:
    from ray import tune

    return tune.SyncConfig(sync_period=ray_session.SECONDS_BETWEEN_STATE_SAVES)


def _run_options() -> dict[str, Any]:
    """Return how Tune writes down and shows every run, new or resumed."""
    from ray import tune

    seconds = ray_session.SECONDS_BETWEEN_STATE_SAVES
    return {"sync_config": tune.SyncConfig(sync_period=seconds), "verbose": 0}


def random_policy_returns(plan: Any, folder: Path) -> list[float]:
    """Return the random policy's episode returns, measured now or when the run began."""
    episodes = plan.summary.random_policy_episodes
    file = folder / RANDOM_POLICY_FILE
    if file.is_file():
        return _read_returns(file)
    if not episodes:
        return []
    from rllib_minestudio.env.agents import RandomAgent
    from rllib_minestudio.evaluation.policies import ScriptedPolicy, play_episodes
    from rllib_minestudio.experiments.environment import make_env

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
    write_whole(file, json.dumps(returns))
    return returns


def _read_returns(file: Path) -> list[float]:
    """Read what an earlier start of the run measured.

    Raises:
        CheckpointError: The file is damaged.
    """
    try:
        returns = read_json(file)
        return [float(value) for value in returns]
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{str(file)!r} is damaged: {error}. Remove it; it is measured anew."
        ) from error


# --------------------- whether what a trial asks for exists, since it would wait for it without end
# A trial's processes are bundles of CPUs and GPUs; Ray starts them together once every bundle has
# found a node. One that never can leaves the trial pending without a word.

Bundle = Mapping[str, float]

SLACK = 1e-6
"""Fractions of GPUs do not always add up to whole ones."""


def machine_gpus() -> int:
    """Return how many GPUs this process may use."""
    import torch

    return torch.cuda.device_count()


def unplaced(bundles: Sequence[Bundle], nodes: Sequence[Bundle]) -> list[Bundle]:
    """Place bundles on nodes, the largest first, and return those for which there is no room.

    Args:
        bundles: Resource -> amount, one mapping per process.
        nodes: Resource -> amount, one mapping per machine, all of it free.
    """
    free = [dict(node) for node in nodes]
    left = []
    for bundle in sorted(bundles, key=lambda b: (b.get("GPU", 0), b.get("CPU", 0)), reverse=True):
        node = next((node for node in free if _fits(bundle, node)), None)
        if node is None:
            left.append(bundle)
            continue
        for name, amount in bundle.items():
            node[name] = node.get(name, 0) - amount
    return left


def _fits(bundle: Bundle, node: Bundle) -> bool:
    return all(amount <= node.get(name, 0) + SLACK for name, amount in bundle.items())


def resource_problems(
    config: AlgorithmConfig, bundles: Sequence[Bundle], nodes: Sequence[Bundle], where: str
) -> list[str]:
    """Return one sentence per kind of resource that a trial asks for and cannot have.

    Args:
        config: The trial's AlgorithmConfig, whose options are named.
        bundles: What it asks for (`Algorithm.default_resource_request(...).bundles`).
        nodes: What there is.
        where: What the nodes are, for the message, such as "this machine".
    """
    left = unplaced(bundles, nodes)
    problems = []
    for name in sorted({name for bundle in left for name in bundle}):
        asked, there = _total(bundles, name), _total(nodes, name)
        largest = max(node.get(name, 0) for node in nodes)
        biggest = max(bundle.get(name, 0) for bundle in bundles)
        if asked > there + SLACK:
            problem = f"{asked:g} {name}s are asked for, and {where} has {there:g}"
        elif biggest > largest + SLACK:
            problem = f"one process asks for {biggest:g} {name}s, and no node has over {largest:g}"
        else:
            continue
        problems.append(f"{problem}. {_options(config, name)}")
    if left and not problems:
        problems.append(
            f"the {len(bundles)} processes do not fit on the nodes of {where} side by side: "
            f"{_as_text(left[0])} finds no room. {_options(config, 'CPU')}"
        )
    return problems


def _total(bundles: Sequence[Bundle], name: str) -> float:
    return sum(bundle.get(name, 0) for bundle in bundles)


def _as_text(bundle: Bundle) -> str:
    return " + ".join(f"{amount:g} {name}" for name, amount in bundle.items())


def _options(config: AlgorithmConfig, name: str) -> str:
    """Name the options that ask for a resource, with their values, and say what to do."""
    if name not in ("CPU", "GPU"):
        return f"It is asked for by custom_resources_per_env_runner; start nodes with {name}."
    kind = name.lower()
    names = [
        "num_learners",
        f"num_{kind}s_per_learner",
        "num_env_runners",
        f"num_{kind}s_per_env_runner",
        "evaluation_num_env_runners",
    ]
    if kind == "cpu":
        names.append("num_cpus_for_main_process")
    given = ", ".join(f"{option}={getattr(config, option)}" for option in names)
    return f"Lower one of {given}, or use a machine or cluster (--address) that has them."


# ----------------------------------- names a full disk as what ended a run, whatever Ray made of it

LEAST_ROOM = 1024**2
"""Bytes that a disk with room takes; what Tune saves every few seconds is of this size."""


@contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Raise one clear error if the block fails and the disk of `folder` is full.

    Tune reads files back that it could not write, so that the error that ends the block may be
    anything, an `EOFError` for example.

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
                "run. Free space there and run the same command with --resume: training goes on "
                "from the last whole checkpoint. If there was none yet, start again without it."
            ) from error
        raise


# ------------------------------------------------------------------------------- Ctrl-C and SIGTERM
# every trial saves a checkpoint, and the run ends; a second ends it at once.
#
# SIGTERM is what a container's runtime sends to its process some time before it kills. Sent to the
# whole process group, it also ends Ray's processes, and nothing can be saved.

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}

SAVING = (
    "the run ends once the iteration under way is trained and its checkpoint saved; a second one "
    "ends it at once"
)

TUNES_HANDLER_OFF = "TUNE_DISABLE_SIGINT_HANDLER"
"""Environment variable; Tune's own handler ends a run without a checkpoint."""


class SaveOnInterrupt(tune.Callback):
    """Has the trials save after Ctrl-C or SIGTERM, and then Tune end the run.

    Tune ends it as after a kill (`SIGUSR1`, which it handles for this purpose): its notes say of no
    trial that it is at its end, so that `--resume` goes on with them all.

    Attributes:
        requested: What the end was requested by, in a user's words; empty if by nothing.
    """

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self.requested = ""
        self._unsaved: set[str] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take note of the signals in the block, in place of Tune; not outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        tunes = os.environ.get(TUNES_HANDLER_OFF)
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        os.environ[TUNES_HANDLER_OFF] = "1"
        try:
            yield
        finally:
            for number, handler in before.items():
                # A handler in C, such as Ray's, is None here, and cannot be put back from Python.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            if tunes is None:
                del os.environ[TUNES_HANDLER_OFF]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = SIGNALS[signal.Signals(number)]

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Tune calls this several times a second: have trials save, or end the run."""
        if not self.requested:
            return
        running = {trial.trial_id for trial in trials if trial.status == Trial.RUNNING}
        if self._unsaved is None:
            self._unsaved = running
            for trial in trials:  # the next result's iteration is saved, whatever its number
                _save_every(trial, 1)
            stdout.print(f"{self.requested}: {SAVING}")
        self._unsaved &= running
        if not self._unsaved:
            signal.raise_signal(signal.SIGUSR1)

    def on_trial_save(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Tune calls this after it has noted a checkpoint."""
        if self._unsaved is not None:
            self._unsaved.discard(trial.trial_id)
            _save_every(trial, 0)  # it trains on while others are waited for


def _save_every(trial: Any, iterations: int) -> None:
    manager = trial.run_metadata.checkpoint_manager
    config = copy.copy(manager.checkpoint_config)  # the trials share one
    config.checkpoint_frequency = iterations
    manager._checkpoint_config = config
