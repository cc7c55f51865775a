"""Statistics of the episodes that ended last, whatever iteration they ended in.

RLlib's own means hold only what ended since the last report; an iteration shorter than an episode
would report NaN most of the time.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any

from ray.rllib.core import DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import (
    EPISODE_DURATION_SEC_MEAN,
    EPISODE_LEN_MAX,
    EPISODE_LEN_MEAN,
    EPISODE_LEN_MIN,
    EPISODE_RETURN_MAX,
    EPISODE_RETURN_MEAN,
    EPISODE_RETURN_MIN,
)

from rllib_minestudio.algorithms.env_pool import Episode

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
        """Start without episodes."""
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
