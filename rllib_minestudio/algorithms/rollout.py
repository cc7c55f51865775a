"""What an env runner brings home from one call."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.algorithms.env_pool import Episode
from rllib_minestudio.algorithms.fragment import Fragment, FragmentMetadata
from rllib_minestudio.errors import InvalidOptionsError

INFERENCE = "inference"
WAITING = "waiting_for_envs"
PRIOR = "prior"
SAMPLING = "sampling"


class RolloutReport(NamedTuple):
    """All that is small: the driver reads it without touching a fragment.

    Attributes:
        fragments: What there is to know of each fragment, in their order.
        episodes: Those that ended since the last report.
        env_restarts: How often environments were replaced since then, by cause.
        metrics: RLlib's counters and timers.
        seconds: Wall time in the policy (`inference`), in waiting for environments or playing
            them (`waiting_for_envs`), in the prior (`prior`), and altogether (`sampling`).
        weights_number: Of the publication that the runner acted with last; 0 if it never pulled.
        weights_reachable: Whether the actor that has the newest ones answered; if it did not, the
            runner may have played on with older ones.
        incarnation: Differs between the environments that a runner had and those that it has
            instead, after its process was lost.
    """

    fragments: list[FragmentMetadata]
    episodes: list[Episode]
    env_restarts: dict[str, int]
    metrics: dict[str, Any]
    seconds: dict[str, float]
    weights_number: int
    weights_reachable: bool
    incarnation: str


class Rollout(NamedTuple):
    """A report and the fragments it is about."""

    report: RolloutReport
    fragments: list[Fragment]


class Observed(NamedTuple):
    """What k environments see that wait for an action.

    Attributes:
        rows: (k,) int64, which environments.
        obs: (k, H, W, 3) uint8.
        first: (k,) bool, whether it begins an episode.
    """

    rows: NDArray[np.int64]
    obs: NDArray[np.uint8]
    first: NDArray[np.bool_]

    def select(self, which: NDArray[np.bool_]) -> Observed:
        """A copy of those where `which` (k,) is true."""
        return Observed(self.rows[which], self.obs[which], self.first[which])

    @staticmethod
    def join(parts: list[Observed]) -> Observed:
        """All of several, by environment."""
        rows, obs, first = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(rows)
        return Observed(rows[order], obs[order], first[order])


class StageTimes:
    """A stopwatch with several hands."""

    def __init__(self) -> None:
        """Start at zero."""
        self._seconds = dict.fromkeys((INFERENCE, WAITING, PRIOR, SAMPLING), 0.0)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] += time.perf_counter() - started

    def take(self) -> dict[str, float]:
        """Hand out the times and go back to zero."""
        seconds = self._seconds
        self._seconds = dict.fromkeys(seconds, 0.0)
        return seconds


def refuse_arguments(others: Mapping[str, Any]) -> None:
    """Refuse what RLlib's own runner takes in `sample` and ours does not, if there is any.

    Raises:
        InvalidOptionsError: There is.
    """
    if others:
        raise InvalidOptionsError(
            f"sample({', '.join(others)}): a rollout has num_envs_per_env_runner fragments of "
            "rollout_fragment_length steps; algorithm.evaluate() plays whole episodes."
        )
