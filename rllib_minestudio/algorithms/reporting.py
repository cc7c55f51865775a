"""What the training loop reports: staleness and reuse, which parts are busy, episodes, stages."""

from __future__ import annotations

import json
import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ray
from ray.experimental import internal_kv
from ray.rllib.core import DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_DURATION_SEC_MEAN,
    EPISODE_LEN_MAX,
    EPISODE_LEN_MEAN,
    EPISODE_LEN_MIN,
    EPISODE_RETURN_MAX,
    EPISODE_RETURN_MEAN,
    EPISODE_RETURN_MIN,
    NUM_AGENT_STEPS_SAMPLED,
    NUM_ENV_STEPS_SAMPLED,
    NUM_EPISODES,
    NUM_MODULE_STEPS_SAMPLED,
)
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from rllib_minestudio.algorithms.env_pool import Episode
from rllib_minestudio.algorithms.env_pool.processes import CAUSES
from rllib_minestudio.algorithms.fragment import SAMPLING, RolloutReport
from rllib_minestudio.algorithms.options import ReplayBufferOptions
from rllib_minestudio.algorithms.training_loop.learners import RESTARTS
from rllib_minestudio.algorithms.training_loop.replay_buffer import SampledFragment

REPLAY_BUFFER_RESULTS = "replay_buffer"
LAST_BIN = 8
"""Histograms have a bin for each value below this, and one for all from it on."""


COUNTS_OF_ROLLOUTS = (
    (NUM_ENV_STEPS_SAMPLED,),
    (NUM_AGENT_STEPS_SAMPLED, DEFAULT_AGENT_ID),
    (NUM_MODULE_STEPS_SAMPLED, DEFAULT_MODULE_ID),
    (NUM_EPISODES,),
)
"""RLlib's sums over the rollouts of an iteration."""


def report_of_no_rollout() -> dict[str, Any]:
    """Metrics of an env runner that played nothing, to be aggregated with those of all others.

    An iteration may be trained wholly on what the buffer held. RLlib's sums would be NaN in it, and
    so would every sum that a reader takes over iterations.
    """
    metrics = MetricsLogger()
    for count in COUNTS_OF_ROLLOUTS:
        metrics.log_value(count, 0, reduce="sum")
    return metrics.reduce()


def sample_metrics(
    samples: Sequence[SampledFragment[Any]], limits: ReplayBufferOptions
) -> dict[tuple[str, ...], float]:
    """Staleness and reuse of what was trained on: means, and shares by value.

    Args:
        samples: One iteration's.
        limits: Of the replay buffer; they say which bins the histograms have.
    """
    staleness = [sample.staleness for sample in samples]
    uses = [sample.use for sample in samples]
    measured: dict[tuple[str, ...], float] = {
        ("staleness_mean",): sum(staleness) / len(staleness),
        ("staleness_max",): max(staleness),
        ("reuse_mean",): sum(uses) / len(uses),
    }
    for name, values, bins in (
        ("staleness", staleness, range(limits.max_staleness + 1)),
        ("reuse", uses, range(1, limits.max_reuse + 1)),
    ):
        measured |= {(name, bin_): share for bin_, share in _histogram(values, bins).items()}
    return {(REPLAY_BUFFER_RESULTS, *name): value for name, value in measured.items()}


def _histogram(values: Sequence[int], possible: Iterable[int]) -> dict[str, float]:
    """The share of each value; all bins are there, so that columns do not come and go."""
    bins = dict.fromkeys(map(_bin, possible), 0.0)
    for name, count in Counter(map(_bin, values)).items():
        bins[name] = count / len(values)
    return bins


def _bin(value: int) -> str:
    return str(value) if value < LAST_BIN else f"{LAST_BIN}_or_more"


class LoopTimes:
    """Which part was busy for which share of the time, and sums over the rollouts' reports.

    Args:
        num_env_runners: How many there are.
    """

    def __init__(self, num_env_runners: int) -> None:
        self._num_env_runners = num_env_runners
        self._learning_s = 0.0
        self._stages: Counter[Any] = Counter()  # of seconds
        self._env_restarts: Counter[str] = Counter(dict.fromkeys(CAUSES, 0))
        self._since = time.perf_counter()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Count a block as time in which the learner learned."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._learning_s += time.perf_counter() - started

    def note_rollout(self, report: RolloutReport) -> None:
        """Count a rollout's time, and the environments that were restarted in it."""
        self._stages.update(report.seconds)
        self._env_restarts.update(report.env_restarts)

    def take(self) -> dict[tuple[str, ...], float]:
        """Shares and seconds since the last call, restarts since the start.

        Rollouts count when they come back, so that one iteration's share may exceed 1.
        """
        now = time.perf_counter()
        wall_s = now - self._since
        measured: dict[tuple[str, ...], float] = {
            ("busy_fraction", "learner"): self._learning_s / wall_s,
            ("busy_fraction", "env_runners"): (
                self._stages[SAMPLING] / wall_s / self._num_env_runners
            ),
        }
        measured |= {
            (ENV_RUNNER_RESULTS, "seconds", stage): seconds
            for stage, seconds in self._stages.items()
        }
        measured |= {
            (RESTARTS, f"env_{cause}"): count for cause, count in self._env_restarts.items()
        }
        self._since, self._learning_s = now, 0.0
        self._stages = Counter(dict.fromkeys(self._stages, 0.0))
        return measured


# what a process is doing within an iteration, for whoever watches the run from another process
# An iteration may take minutes, and reports nothing to Tune until it ends. Meanwhile each process
# keeps an entry in the key-value store of Ray's control service (GCS): the algorithm under the name
# of its trial's folder, env runners and learners of their own under their actors' ids. The
# algorithm says in which stage it is, and for which actors it waits; whoever does the work says in
# detail how far that is. `activity_of` puts the two together.
#
# It works as logging does: `stage` and `detail` cost nothing where nobody asked (`publish_as`).

NAMESPACE = "rllib_minestudio_activity"

SECONDS_BETWEEN_DETAILS = 0.5
"""Writing takes a fraction of a millisecond, and so may a step of the environments."""

_key: str | None = None
_entry: dict[str, Any] = {}
_written_at = 0.0


def publish_as(key: str | None) -> None:
    """Let this process tell what it is doing.

    Args:
        key: Of a trial (`key_of_trial`), or an actor's id; None tells nothing from now on.
    """
    global _key
    _key = key
    _entry.clear()


def publish_as_trial(storage: Any) -> None:
    """Let this process, which runs a trial of Tune's, tell what it is doing.

    The folder stands for the trial: RLlib drops the trial's id on its way to the algorithm
    (`AlgorithmConfig.update_from_dict`).

    Args:
        storage: Tune's `StorageContext`; None outside of Tune, where nobody watches.
    """
    publish_as(None if storage is None else storage.trial_dir_name)


def key_of_trial(trial: Any) -> str:
    """Return the key under which a trial's process tells what it is doing.

    Args:
        trial: Tune's.
    """
    return str(trial.storage.trial_dir_name)


def publish_as_actor() -> None:
    """Let this process tell what it is doing if it is an actor, and does not tell already."""
    if _key is None and ray.is_initialized():
        publish_as(ray.get_runtime_context().get_actor_id())


def stage(name: str, done: int | None = None, total: int = 0, actors: Sequence[Any] = ()) -> None:
    """Tell of a stage of the iteration, at once.

    Args:
        name: Such as "learning", or "collecting: fragment" if there is something to count.
        done: How much of it is done.
        total: How much there is to do.
        actors: Handles of those that this process waits for, who tell the details.
    """
    if _key is not None:
        _entry.clear()
        _entry["actors"] = [actor._actor_id.hex() for actor in actors]
        _write("stage", name, done, total)


def detail(name: str, done: int | None = None, total: int = 0) -> None:
    """Tell how far the work in this process is; not more than twice a second.

    Args:
        name: As in `stage`, such as "step".
        done: As in `stage`.
        total: As in `stage`.
    """
    if _key is not None and time.monotonic() - _written_at >= SECONDS_BETWEEN_DETAILS:
        _write("detail", name, done, total)


class Count:
    """Tells how many of a number of things are done.

    Args:
        name: As in `detail`.
        total: How many there are to do.
    """

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total, self._done = name, total, 0

    def add(self, number: int = 1) -> None:
        """Note that so many more are done, or under way."""
        self._done += number
        detail(self._name, min(self._done, self._total), self._total)


def _write(kind: str, name: str, done: int | None, total: int) -> None:
    global _written_at
    if not ray.is_initialized():
        return
    _written_at = time.monotonic()
    _entry[kind] = name if done is None else f"{name} {done:,} of {total:,}"
    internal_kv._internal_kv_put(_key, json.dumps(_entry), overwrite=True, namespace=NAMESPACE)


def activity_of(key: str) -> str:
    """Return what a trial is doing, with the details of where it is done; "" if it told nothing.

    Args:
        key: As given to `publish_as`.
    """
    entry = _read(key)
    details = [entry, *map(_read, entry.get("actors", ()))]
    inner = next((one["detail"] for one in details if "detail" in one), "")
    return f"{entry.get('stage', '')} ({inner})".strip() if inner else entry.get("stage", "")


def _read(key: str) -> dict[str, Any]:
    value = internal_kv._internal_kv_get(key, namespace=NAMESPACE)
    entry: dict[str, Any] = {} if value is None else json.loads(value)
    return entry


# --------------------- statistics of the episodes that ended last, whatever iteration they ended in
# RLlib's own means hold only what ended since the last report; an iteration shorter than an episode
# would report NaN most of the time.

EPISODE_DISCOUNTED_RETURN_MEAN = "episode_discounted_return_mean"
EPISODE_SUCCESS_RATE = "episode_success_rate"
EPISODE_COUNT = "episode_count"
EPISODES_CUT_SHORT = "episodes_cut_short"
EPISODES_NOT_FINITE = "episodes_not_finite"
TASKS = "tasks"


class EpisodeStatistics:
    """The last `window` episodes of each task, and how many there were.

    Episodes that the environment's failure cut short, or with a reward that was NaN or infinite,
    say nothing of the agent: they are counted, and left out of everything else.

    Args:
        window: How many episodes the means are over.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._episodes: deque[Episode] = deque(maxlen=window)
        self._by_task: dict[str, deque[Episode]] = {}
        self._counts: Counter[str] = Counter()
        self._counts_by_task: Counter[str] = Counter()

    def add(self, episodes: Iterable[Episode]) -> None:
        """Take in episodes in the order they ended."""
        for episode in episodes:
            if episode.env_error is not None:
                self._counts[EPISODES_CUT_SHORT] += 1
            elif not math.isfinite(episode.undiscounted_return):
                self._counts[EPISODES_NOT_FINITE] += 1
            else:
                self._counts[EPISODE_COUNT] += 1
                self._counts_by_task[episode.task] += 1
                self._remember(episode._replace(info={}))

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Of all tasks together under RLlib's names; of each under ("tasks", task, name).

        The counts are since the start; everything else is over the last episodes, and missing
        before the first has ended.
        """
        measured: dict[tuple[str, ...], float] = {
            (name,): self._counts[name]
            for name in (EPISODE_COUNT, EPISODES_CUT_SHORT, EPISODES_NOT_FINITE)
        }
        summary = _summary(self._episodes)
        measured |= {(name,): value for name, value in summary.items()}
        if summary:
            # RLlib also names the one agent and the one module.
            mean = summary[EPISODE_RETURN_MEAN]
            measured["agent_episode_return_mean", DEFAULT_AGENT_ID] = mean
            measured["module_episode_return_mean", DEFAULT_MODULE_ID] = mean
        for task, episodes in self._by_task.items():
            summary = {EPISODE_COUNT: self._counts_by_task[task], **_summary(episodes)}
            # A slash would cut the name in two where results are flattened.
            name = task.replace("/", "_")
            measured |= {(TASKS, name, key): value for key, value in summary.items()}
        return measured

    def get_state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        episodes = [episode for last in self._by_task.values() for episode in last]
        return {
            "episodes": [tuple(episode) for episode in self._episodes],
            "by_task": [tuple(episode) for episode in episodes],
            "counts": dict(self._counts),
            "counts_by_task": dict(self._counts_by_task),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Replace the episodes by those of a checkpoint."""
        self._by_task.clear()
        for numbers in state["by_task"]:
            self._remember(Episode(*numbers))
        self._episodes.clear()
        self._episodes.extend(Episode(*numbers) for numbers in state["episodes"])
        self._counts = Counter(state["counts"])
        self._counts_by_task = Counter(state["counts_by_task"])

    def _remember(self, episode: Episode) -> None:
        self._episodes.append(episode)
        last = self._by_task.setdefault(episode.task, deque(maxlen=self._window))
        last.append(episode)


def _summary(episodes: Sequence[Episode] | deque[Episode]) -> dict[str, float]:
    """Means and extremes over some episodes; empty if there are none."""
    if not episodes:
        return {}
    count = len(episodes)
    returns = [episode.undiscounted_return for episode in episodes]
    lengths = [episode.length for episode in episodes]
    judged = [episode.success for episode in episodes if episode.success is not None]
    summary = {
        EPISODE_RETURN_MEAN: sum(returns) / count,
        EPISODE_RETURN_MIN: min(returns),
        EPISODE_RETURN_MAX: max(returns),
        EPISODE_DISCOUNTED_RETURN_MEAN: sum(e.discounted_return for e in episodes) / count,
        EPISODE_LEN_MEAN: sum(lengths) / count,
        EPISODE_LEN_MIN: min(lengths),
        EPISODE_LEN_MAX: max(lengths),
        EPISODE_DURATION_SEC_MEAN: sum(episode.seconds for episode in episodes) / count,
    }
    if judged:
        summary[EPISODE_SUCCESS_RATE] = sum(judged) / len(judged)
    return summary
