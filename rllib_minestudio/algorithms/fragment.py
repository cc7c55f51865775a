"""Fragments: the unit in which experience is collected, stored, transported and trained on.

A fragment is T consecutive steps of one environment. Episodes may begin and end inside it; the
`first` flags mark where the network's memory is reset. Entry t of every array belongs to step t:
the observation (`obs`), the action chosen for it (`action`), and the outcome (`reward`,
`terminated`, `truncated`).

Observations are flat here: the parts that the policy reads, by name (`observations.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import lz4.block
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.algorithms.env_pool import Episode
from rllib_minestudio.algorithms.env_pool.base import Observations
from rllib_minestudio.foundation.observations import ObservationPart

Arrays = dict[str, NDArray]

_FLOATS = ("reward", "logp", "value", "bootstrap_value")
_FLAGS = ("first", "terminated", "truncated")


@dataclass(frozen=True, eq=False)
class Fragment:
    """T steps of one environment, with everything needed to train on them later.

    Deliberately not a dict, list or tuple: RLlib flattens those when it resolves references.

    Attributes:
        obs: (T, ...) each part, such as {"image": (T, H, W, 3) uint8}.
        action: (T,) int64 tokens per head, such as {"buttons", "camera"}.
        reward: (T,) float32.
        first: (T,) bool, whether the step begins an episode.
        terminated: (T,) bool.
        truncated: (T,) bool.
        logp: (T,) float32, log-probability of the action under the behaviour policy.
        value: (T,) float32, the behaviour policy's value of `obs`, in units of return.
        bootstrap_value: (T,) float32, the behaviour policy's value of the final observation after a
            truncated step (`obs` of the next step already belongs to the next episode); NaN
            elsewhere.
        final_obs: Those final observations, (N, ...) each part, for the N steps that were truncated
            and not terminated, in order.
        state_in: The network's memory before the first step, arrays without a batch axis.
        last_obs: The observation after the last step, each part without a time axis.
        last_first: Whether `last_obs` begins an episode.
        last_value: The behaviour policy's value of `last_obs`.
        weights_version_min: Oldest version of the weights that acted in this fragment.
        weights_version_max: Newest version of the weights that acted in this fragment.
        env_id: Name of the environment, unique in a run.
        index: Number of the fragment in its environment, from 0; consecutive ones are contiguous.
        prior_latent: The frozen prior's latents of `obs`, (T, E) float32, computed with the prior's
            own memory; None without a prior.
        prior_version: Version of the prior's weights that computed them.
        episode: Number, in this environment, of the episode that the first step belongs to
            (`episode_seeds.py`).
    """

    obs: Arrays
    action: Arrays
    reward: NDArray[np.float32]
    first: NDArray[np.bool_]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    logp: NDArray[np.float32]
    value: NDArray[np.float32]
    bootstrap_value: NDArray[np.float32]
    final_obs: Arrays
    state_in: Arrays
    last_obs: Arrays
    last_first: bool
    last_value: float
    weights_version_min: int
    weights_version_max: int
    env_id: str
    index: int
    prior_latent: NDArray[np.float32] | None = None
    prior_version: int = 0
    episode: int = 0

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def key(self) -> tuple[str, int]:
        """The fragment's identity in a run: environment and index."""
        return self.env_id, self.index

    @property
    def metadata(self) -> FragmentMetadata:
        """What the replay buffer needs to know."""
        return FragmentMetadata(self.key, self.weights_version_min)


class FragmentMetadata(NamedTuple):
    """What a replay buffer needs to know about a fragment that is stored elsewhere.

    Attributes:
        key: As `Fragment.key`.
        weights_version: Oldest version of the weights that acted in it.
    """

    key: tuple[str, int]
    weights_version: int


class FragmentBuilder:
    """Builds n fragments in parallel, one per environment, each at its own step.

    Floats are initialised to NaN, so that steps that were never written are noticed.

    Args:
        num_envs: n.
        length: T.
        parts: The observation parts to record.
        heads: Names of the action heads.
    """

    def __init__(
        self, num_envs: int, length: int, parts: Mapping[str, ObservationPart], heads: Sequence[str]
    ) -> None:
        shape = (num_envs, length)
        self._length = length
        self._parts = parts
        self._next = np.zeros(num_envs, np.int64)
        self._obs = [self._new_obs() for _ in range(num_envs)]
        self._action = {name: np.full(shape, -1, np.int64) for name in heads}
        self._floats = {name: np.full(shape, np.nan, np.float32) for name in _FLOATS}
        self._flags = {name: np.zeros(shape, np.bool_) for name in _FLAGS}
        self._final_obs: list[list[Arrays]] = [[] for _ in range(num_envs)]
        self._version = np.zeros((2, num_envs), np.int64)  # oldest and newest
        self._episode = np.zeros(num_envs, np.int64)

    def write_decision(
        self,
        rows: NDArray[np.int64],
        *,
        obs: Mapping[str, NDArray],
        first: NDArray,
        action: Mapping[str, NDArray],
        logp: NDArray,
        value: NDArray,
        weights_version: int,
        episode: NDArray[np.int64],
    ) -> None:
        """Write the observations and decisions of one step in k environments.

        Args:
            rows: (k,) the environments' indices; the other arrays have a leading axis of k.
            obs: Observation parts; parts that the builder does not record are ignored.
            first: Whether each observation begins an episode.
            action: Tokens.
            logp: Log-probability of the action.
            value: Value of `obs`.
            weights_version: Version of the weights that chose the actions.
            episode: Number of the episode that each environment is in.
        """
        t = self._next[rows]
        places = list(zip(rows.tolist(), t.tolist(), strict=True))
        for name in self._parts:
            part = obs[name]
            for k, (row, step) in enumerate(places):
                self._obs[row][name][step] = part[k]
        for name, tokens in self._action.items():
            tokens[rows, t] = action[name]
        self._flags["first"][rows, t] = first
        self._floats["logp"][rows, t] = logp
        self._floats["value"][rows, t] = value
        self._episode[rows] = np.where(t == 0, episode, self._episode[rows])
        oldest, newest = self._version
        oldest[rows] = np.where(t == 0, weights_version, np.minimum(oldest[rows], weights_version))
        newest[rows] = np.where(t == 0, weights_version, np.maximum(newest[rows], weights_version))

    def write_outcome(
        self,
        rows: NDArray[np.int64],
        *,
        reward: NDArray,
        terminated: NDArray,
        truncated: NDArray,
        final_obs: Mapping[int, Arrays],
        bootstrap_value: Mapping[int, float],
    ) -> NDArray[np.bool_]:
        """Write the outcome of the last decisions in k environments.

        Args:
            rows: (k,) the environments' indices; the other arrays have a leading axis of k.
            reward: Reward of the step.
            terminated: Whether the step terminated the episode.
            truncated: Whether the step truncated the episode.
            final_obs: The final observation of each environment whose episode was truncated and not
                terminated; kept without a copy.
            bootstrap_value: The values of these observations.

        Returns:
            (k,) whether the environment's fragment is complete; `take` it before the next write.
        """
        t = self._next[rows]
        self._floats["reward"][rows, t] = reward
        self._flags["terminated"][rows, t] = terminated
        self._flags["truncated"][rows, t] = truncated
        for row, value in bootstrap_value.items():
            self._floats["bootstrap_value"][row, self._next[row]] = value
            self._final_obs[row].append(final_obs[row])
        self._next[rows] = t + 1
        return t + 1 == self._length

    def take(
        self,
        row: int,
        *,
        state_in: Arrays,
        last_obs: Mapping[str, NDArray],
        last_first: bool,
        last_value: float,
        env_id: str,
        index: int,
    ) -> Fragment:
        """Return a complete fragment, and start the environment's next one.

        Args:
            row: The environment's index.
            state_in: The network's memory before the fragment, without a batch axis.
            last_obs: The observation after the fragment; copied.
            last_first: Whether `last_obs` begins an episode.
            last_value: Value of `last_obs`.
            env_id: Name of the environment.
            index: Number of the fragment in its environment.
        """
        oldest, newest = self._version[:, row].tolist()
        fragment = Fragment(
            obs=self._obs[row],
            action={name: tokens[row].copy() for name, tokens in self._action.items()},
            **{name: numbers[row].copy() for name, numbers in self._floats.items()},
            **{name: flags[row].copy() for name, flags in self._flags.items()},
            final_obs={
                name: np.array([obs[name] for obs in self._final_obs[row]], part.dtype).reshape(
                    -1, *part.shape
                )
                for name, part in self._parts.items()
            },
            state_in=state_in,
            last_obs={name: last_obs[name].copy() for name in self._parts},
            last_first=last_first,
            last_value=last_value,
            weights_version_min=oldest,
            weights_version_max=newest,
            env_id=env_id,
            index=index,
            episode=int(self._episode[row]),
        )
        self._next[row] = 0
        self._obs[row] = self._new_obs()
        self._final_obs[row] = []
        for numbers in self._floats.values():
            numbers[row] = np.nan
        return fragment

    def _new_obs(self) -> Arrays:
        return {
            name: np.empty((self._length, *part.shape), part.dtype)
            for name, part in self._parts.items()
        }


# ---------------------------------------- fragments whose observations are compressed for transport


class CompressedArray(NamedTuple):
    """An array that LZ4 has compressed, without loss.

    Attributes:
        data: (bytes,) uint8; an array, since Ray shares the memory of arrays and copies bytes.
        dtype: The array's dtype.
        shape: Its shape.
    """

    data: NDArray[np.uint8]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CompressedFragment:
    """A fragment whose observations are compressed, see `compress`.

    Attributes:
        rest: The fragment without `obs` and `final_obs`.
        obs: Its `obs`; parts that LZ4 makes no smaller are as they were.
        final_obs: Its `final_obs`, likewise.
    """

    rest: Fragment
    obs: dict[str, NDArray | CompressedArray]
    final_obs: dict[str, NDArray | CompressedArray]


def compress(fragment: Fragment) -> CompressedFragment:
    """Compress a fragment's observations, without loss, for its way to the learner."""
    return CompressedFragment(
        replace(fragment, obs={}, final_obs={}),
        {name: _compressed(part) for name, part in fragment.obs.items()},
        {name: _compressed(part) for name, part in fragment.final_obs.items()},
    )


def decompress(payload: Fragment | CompressedFragment) -> Fragment:
    """Return the fragment that was compressed; one that was not is returned as it is.

    Arrays that were compressed are read-only, as are those that come out of Ray's object store.
    """
    if isinstance(payload, Fragment):
        return payload
    return replace(
        payload.rest,
        obs={name: _decompressed(part) for name, part in payload.obs.items()},
        final_obs={name: _decompressed(part) for name, part in payload.final_obs.items()},
    )


def _compressed(part: NDArray) -> NDArray | CompressedArray:
    if part.nbytes == 0:
        return part
    contents = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
    data = lz4.block.compress(contents, store_size=False)
    if len(data) >= part.nbytes:
        return part
    return CompressedArray(np.frombuffer(data, np.uint8), part.dtype, part.shape)


def _decompressed(part: NDArray | CompressedArray) -> NDArray:
    if not isinstance(part, CompressedArray):
        return part
    size = math.prod(part.shape) * part.dtype.itemsize
    data = lz4.block.decompress(part.data, uncompressed_size=size)
    return np.frombuffer(data, part.dtype).reshape(part.shape)


# --------------------------------------------- observations of environments that wait for an action


class Observed(NamedTuple):
    """The observations of k environments that wait for an action.

    Attributes:
        rows: (k,) int64, the environments' indices.
        obs: (k, ...) each part.
        first: (k,) bool, whether the observation begins an episode.
    """

    rows: NDArray[np.int64]
    obs: Observations
    first: NDArray[np.bool_]

    def select(self, which: NDArray[np.bool_]) -> Observed:
        """Return a copy of the rows where `which`, (k,), is true."""
        obs = {name: part[which] for name, part in self.obs.items()}
        return Observed(self.rows[which], obs, self.first[which])

    @staticmethod
    def join(parts: list[Observed]) -> Observed:
        """Concatenate several, sorted by environment."""
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)
        obs = {
            name: np.concatenate([part.obs[name] for part in parts])[order] for name in parts[0].obs
        }
        return Observed(rows[order], obs, np.concatenate([part.first for part in parts])[order])


# --------------------------------------------------------- what an env runner returns from one call

INFERENCE = "inference"
WAITING = "waiting_for_envs"
PRIOR = "prior"
SAMPLING = "sampling"


class RunnerProgress(NamedTuple):
    """How far an env runner has got.

    Attributes:
        rollouts: How many it has played; the number also seeds the next rollout's actions.
        unplayed: As in `EpisodeCounts`.
    """

    rollouts: int = 0
    unplayed: tuple[int, ...] = ()


class RolloutStart(NamedTuple):
    """Where an env runner begins that has not played since the start or the last restore.

    Attributes:
        restores: How often training was restored; an env runner that began before the last restore
            begins again.
        seed: The seed of its episodes and actions, together with its index.
        progress: The progress to continue from.
    """

    restores: int
    seed: int
    progress: RunnerProgress


class RolloutReport(NamedTuple):
    """The small part of a rollout, which the driver reads without fetching fragments.

    Attributes:
        fragments: Metadata of the fragments, in order.
        episodes: The episodes that ended since the last report.
        env_restarts: How often environments were replaced since then, by cause.
        metrics: RLlib's counters and timers.
        seconds: Wall time in the policy (`inference`), waiting for environments or playing them
            (`waiting_for_envs`), in the prior (`prior`), and in total (`sampling`).
        weights_number: Number of the publication that the runner acted with last; 0 if it never
            pulled.
        weights_reachable: Whether the actor with the newest weights answered; if not, the runner
            may have continued with older ones.
        instance_id: Distinguishes the runner's environments from those it had before its process
            was lost.
        worker_index: Index of the runner.
        restores: As in the `RolloutStart` that it began with.
        progress: The runner's progress after this rollout.
    """

    fragments: list[FragmentMetadata]
    episodes: list[Episode]
    env_restarts: dict[str, int]
    metrics: dict[str, Any]
    seconds: dict[str, float]
    weights_number: int
    weights_reachable: bool
    instance_id: str
    worker_index: int
    restores: int
    progress: RunnerProgress


class Rollout(NamedTuple):
    """A report and its fragments."""

    report: RolloutReport
    fragments: list[Fragment]


class StageTimes:
    """Wall time per stage."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys((INFERENCE, WAITING, PRIOR, SAMPLING), 0.0)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Add the duration of a block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] += time.perf_counter() - started

    def take(self) -> dict[str, float]:
        """Return the times, and reset them to zero."""
        seconds = self._seconds
        self._seconds = dict.fromkeys(seconds, 0.0)
        return seconds
