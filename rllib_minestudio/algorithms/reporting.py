"""What the training loop reports: staleness and reuse, busy fractions, progress, episodes."""

from __future__ import annotations

import json
import logging
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
from rllib_minestudio.algorithms.env_pool.process_envs import CAUSES
from rllib_minestudio.algorithms.fragment import SAMPLING, RolloutReport
from rllib_minestudio.algorithms.options import ReplayBufferOptions
from rllib_minestudio.algorithms.training_loop.learners import RESTARTS
from rllib_minestudio.algorithms.training_loop.replay_buffer import SampledFragment

REPLAY_BUFFER_RESULTS = "replay_buffer"
LAST_BIN = 8
"""Histograms have one bin for each value below this, and one for all others."""


COUNTS_OF_ROLLOUTS = (
    (NUM_ENV_STEPS_SAMPLED,),
    (NUM_AGENT_STEPS_SAMPLED, DEFAULT_AGENT_ID),
    (NUM_MODULE_STEPS_SAMPLED, DEFAULT_MODULE_ID),
    (NUM_EPISODES,),
)
"""RLlib's sums over the rollouts of an iteration."""


def report_of_no_rollout() -> dict[str, Any]:
    """Return the metrics of an env runner that played nothing, to be aggregated with the others.

    An iteration may train entirely on fragments that were in the buffer. RLlib's sums would then be
    NaN, and so would every sum over iterations.
    """
    metrics = MetricsLogger()
    for count in COUNTS_OF_ROLLOUTS:
        metrics.log_value(count, 0, reduce="sum")
    return metrics.reduce()


def sample_metrics(
    samples: Sequence[SampledFragment[Any]], limits: ReplayBufferOptions
) -> dict[tuple[str, ...], float]:
    """Return staleness and reuse of one iteration's samples: means, and shares by value.

    The limits of the replay buffer determine the histograms' bins.
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
    """Return the share of each value, with all possible bins, so that columns stay the same."""
    bins = dict.fromkeys(map(_bin, possible), 0.0)
    for name, count in Counter(map(_bin, values)).items():
        bins[name] = count / len(values)
    return bins


def _bin(value: int) -> str:
    return str(value) if value < LAST_BIN else f"{LAST_BIN}_or_more"


class LoopTimes:
    """Busy fractions of the learner and the env runners, and sums over the rollouts' reports."""

    def __init__(self, num_env_runners: int) -> None:
        self._num_env_runners = num_env_runners
        self._learning_s = 0.0
        self._stages: Counter[Any] = Counter()  # seconds
        self._env_restarts: Counter[str] = Counter(dict.fromkeys(CAUSES, 0))
        self._since = time.perf_counter()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Count the duration of a block as the learner's busy time."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._learning_s += time.perf_counter() - started

    def note_rollout(self, report: RolloutReport) -> None:
        """Add a rollout's times and environment restarts."""
        self._stages.update(report.seconds)
        self._env_restarts.update(report.env_restarts)

    def take(self) -> dict[tuple[str, ...], float]:
        """Return fractions and seconds since the last call, and restarts since the start.

        Rollouts are counted when they arrive, so the fraction of a single iteration may exceed 1.
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


# ----------------------------- progress within an iteration, for other processes that watch the run
# An iteration may take minutes, and reports nothing to Tune until it ends. Meanwhile each process
# keeps an entry in the key-value store of Ray's control service (GCS): the algorithm under the name
# of its trial's folder, remote env runners and learners under their actor ids. The algorithm
# reports its stage, and the actors it waits for; the processes that do the work report details.
# `activity_of` combines both. Each also publishes its warnings, which `warnings_of` returns.
#
# As in logging, `stage` and `detail` cost nothing until `publish_as` was called.

NAMESPACE = "rllib_minestudio_activity"
WARNINGS = "warnings"

_PACKAGE = "rllib_minestudio.algorithms"
"""Logger whose warnings are published: what concerns a run. Those of an environment reach the pool
as a part of its infos."""

SECONDS_BETWEEN_DETAILS = 0.5
"""Writing takes a fraction of a millisecond, which may be as long as a step of an environment."""

MOST_WARNINGS = 8
"""How many of a process's last warnings are kept in its entry."""
MOST_ALIKE = 3
"""How many warnings of one kind a process publishes; metrics count all of them."""

_key: str | None = None
_entry: dict[str, Any] = {}
_written_at = 0.0


def publish_as(key: str | None) -> None:
    """Publish progress and warnings under a key. None stops publishing.

    Args:
        key: `key_of_trial`, or an actor's id.
    """
    global _key
    _key = key
    _entry.clear()
    package = logging.getLogger(_PACKAGE)
    for handler in [h for h in package.handlers if isinstance(h, _PublishedWarnings)]:
        package.removeHandler(handler)
    if key is not None:
        package.addHandler(_PublishedWarnings())


def publish_as_trial(storage: Any) -> None:
    """Publish the progress of this process, which runs a Tune trial.

    The key is the name of the trial's folder, because RLlib drops the trial's id before it reaches
    the algorithm (`AlgorithmConfig.update_from_dict`).

    Args:
        storage: Tune's `StorageContext`; None outside of Tune, where nothing is published.
    """
    publish_as(None if storage is None else storage.trial_dir_name)


def key_of_trial(trial: Any) -> str:
    """Return the key under which the process of a Tune trial publishes its progress."""
    return str(trial.storage.trial_dir_name)


def publish_as_actor() -> None:
    """Publish this process's progress if it is an actor and does not publish already."""
    if _key is None and ray.is_initialized():
        publish_as(ray.get_runtime_context().get_actor_id())


class _PublishedWarnings(logging.Handler):
    """Publishes the first line of what is logged as a warning or worse, a few times of each kind.

    The log of a process that is not the user's is a file that nobody reads.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kinds: Counter[str] = Counter()
        self._number = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Publish a warning; if Ray cannot be reached, that must not end what logged it."""
        try:
            self._publish(record)
        except Exception:
            self.handleError(record)

    def _publish(self, record: logging.LogRecord) -> None:
        kind = str(record.msg)
        self._kinds[kind] += 1
        if self._kinds[kind] > MOST_ALIKE:
            return
        text = record.getMessage().partition("\n")[0]
        if self._kinds[kind] == MOST_ALIKE:
            text += " Further ones are only counted and logged."
        self._number += 1
        before = _entry.get(WARNINGS, [])
        _entry[WARNINGS] = [*before, [self._number, text]][-MOST_WARNINGS:]
        _put()


def stage(name: str, done: int | None = None, total: int = 0, actors: Sequence[Any] = ()) -> None:
    """Publish the stage of the iteration, immediately.

    Args:
        name: Such as "learning", or "collecting: fragment" if there is something to count.
        done: How much is done.
        total: How much there is to do.
        actors: Handles of the actors that this process waits for, which publish the details.
    """
    if _key is not None:
        _entry.pop("detail", None)
        _entry["actors"] = [actor._actor_id.hex() for actor in actors]
        _write("stage", name, done, total)


def detail(name: str, done: int | None = None, total: int = 0) -> None:
    """Publish how far the work in this process is, at most twice a second; arguments as `stage`."""
    if _key is not None and time.monotonic() - _written_at >= SECONDS_BETWEEN_DETAILS:
        _write("detail", name, done, total)


class Count:
    """A counter up to `total` that publishes its progress with `detail`."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total, self._done = name, total, 0

    def add(self, number: int = 1) -> None:
        """Count `number` more as done or under way."""
        self._done += number
        detail(self._name, min(self._done, self._total), self._total)


def _write(kind: str, name: str, done: int | None, total: int) -> None:
    _entry[kind] = name if done is None else f"{name} {done:,} of {total:,}"
    _put()


def _put() -> None:
    global _written_at
    if ray.is_initialized():
        _written_at = time.monotonic()
        internal_kv._internal_kv_put(_key, json.dumps(_entry), overwrite=True, namespace=NAMESPACE)


def activity_of(key: str) -> str:
    """Return what was published under a trial's key, such as "stage (detail)", or ""."""
    entry = _read(key)
    details = [entry, *map(_read, entry.get("actors", ()))]
    inner = next((one["detail"] for one in details if "detail" in one), "")
    return f"{entry.get('stage', '')} ({inner})".strip() if inner else entry.get("stage", "")


def warnings_of(key: str) -> list[tuple[str, int, str]]:
    """Return the last warnings under a trial's key, and of the actors that it waits for.

    Returns:
        For each the key of the process that published it, its number there, and its text.
    """
    entry = _read(key)
    keys = [key, *entry.get("actors", ())]
    entries = [entry, *map(_read, keys[1:])]
    return [
        (each, number, text)
        for each, published in zip(keys, entries, strict=True)
        for number, text in published.get(WARNINGS, ())
    ]


def _read(key: str) -> dict[str, Any]:
    value = internal_kv._internal_kv_get(key, namespace=NAMESPACE)
    entry: dict[str, Any] = {} if value is None else json.loads(value)
    return entry


# ----------------------------------------------- statistics of the last episodes, across iterations
# RLlib's own means cover only the episodes that ended since the last report, so iterations shorter
# than an episode would mostly report NaN.

EPISODE_DISCOUNTED_RETURN_MEAN = "episode_discounted_return_mean"
EPISODE_SUCCESS_RATE = "episode_success_rate"
EPISODE_COUNT = "episode_count"
EPISODES_CUT_SHORT = "episodes_cut_short"
EPISODES_NOT_FINITE = "episodes_not_finite"
TASKS = "tasks"


class EpisodeStatistics:
    """Statistics of the last `window` episodes, overall and per task, and counts since the start.

    Episodes that were truncated by a failure of the environment, or had a NaN or infinite reward,
    say nothing about the agent: they are counted, and left out of everything else.

    Args:
        window: How many episodes the means cover.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._episodes: deque[Episode] = deque(maxlen=window)
        self._by_task: dict[str, deque[Episode]] = {}
        self._counts: Counter[str] = Counter()
        self._counts_by_task: Counter[str] = Counter()

    def add(self, episodes: Iterable[Episode]) -> None:
        """Add episodes in the order in which they ended."""
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
        """Return metrics of all tasks under RLlib's names, and of each under ("tasks", task, name).

        Counts are since the start. Everything else covers the last episodes, and is missing until
        the first has ended.
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
        """Return plain data for a checkpoint."""
        episodes = [episode for last in self._by_task.values() for episode in last]
        return {
            "episodes": [tuple(episode) for episode in self._episodes],
            "by_task": [tuple(episode) for episode in episodes],
            "counts": dict(self._counts),
            "counts_by_task": dict(self._counts_by_task),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the episodes and counts of a checkpoint."""
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
    """Return means and extremes of some episodes; empty if there are none."""
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
