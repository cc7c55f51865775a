"""From fragments to tensors: a batch of sequences, and its minibatches.

Axes: `b` sequence, `j` fragment of a sequence, `t` step. The network is unrolled over a sequence: a
fragment, or several contiguous fragments of one environment, with memory and advantages carried
across the boundaries. Large arrays stay in the fragments (in Ray's object store); only minibatches
of them are stacked, and moved to the learner's device.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
import ray
import torch
from numpy.typing import NDArray
from ray.exceptions import ObjectLostError
from ray.rllib.core.learner.training_data import TrainingData
from torch import Tensor
from typing_extensions import Self

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.fragment import CompressedFragment, Fragment, decompress
from rllib_minestudio.errors import FragmentsLostError

Tensors = dict[str, Tensor]

Pieces = tuple[NDArray, ...]
"""An array of a sequence, in one piece per fragment."""

ObservationPieces = dict[str, Pieces]
"""The pieces of each observation part of a sequence."""


@dataclass(frozen=True, eq=False)
class SequenceBatch:
    """B sequences of J fragments and T steps; the fields mean the same as in `Fragment`.

    Attributes:
        obs: `ObservationPieces` of B sequences.
        final_obs: `ObservationPieces` of B sequences.
        prior_latent: `Pieces` of B sequences, empty without a prior.
        state_in: The network's memory before the first step, of B sequences.
        last_obs: The observation after the last step, of B sequences.
        last_first: (B,), for that observation.
        last_value: (B,), for that observation.
        action: {"buttons": (B, T), "camera": (B, T)}.
        first: (B, T).
        reward: (B, T).
        terminated: (B, T).
        truncated: (B, T).
        logp: (B, T).
        value: (B, T).
        bootstrap_value: (B, T).
        weights_version_min: (B, J).
        weights_version_max: (B, J).
        prior_version: (B, J).
        episode: (B, J).
        env_id: The environments of B sequences.
    """

    obs: list[ObservationPieces]
    final_obs: list[ObservationPieces]
    prior_latent: list[Pieces]
    state_in: list[dict[str, NDArray]]
    last_obs: list[dict[str, NDArray]]
    last_first: NDArray[np.bool_]
    last_value: NDArray[np.float32]
    action: dict[str, NDArray[np.int64]]
    first: NDArray[np.bool_]
    reward: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    logp: NDArray[np.float32]
    value: NDArray[np.float32]
    bootstrap_value: NDArray[np.float32]
    weights_version_min: NDArray[np.int64]
    weights_version_max: NDArray[np.int64]
    prior_version: NDArray[np.int64]
    episode: NDArray[np.int64]
    env_id: list[str]

    def __len__(self) -> int:
        return len(self.obs)

    @property
    def num_steps(self) -> int:
        """Steps per sequence, T."""
        return self.reward.shape[1]

    @property
    def bootstraps(self) -> NDArray[np.bool_]:
        """(B, T) whether a step bootstraps from `final_obs`: truncated, and not terminated."""
        return self.truncated & ~self.terminated

    @property
    def prior_version_of_steps(self) -> NDArray[np.int64]:
        """(B, T) the version of the prior's weights that computed each step's latent."""
        return self.prior_version.repeat(self.num_steps // self.prior_version.shape[1], axis=1)

    def episode_of(self, sequence: int, step: int) -> int:
        """Return the number, in its environment, of the episode that a step belongs to."""
        length = self.num_steps // self.episode.shape[1]
        fragment, begin = step // length, step - step % length
        begun = int(self.first[sequence, begin + 1 : step + 1].sum())
        return int(self.episode[sequence, fragment]) + begun

    def select(self, which: Sequence[int]) -> SequenceBatch:
        """Return some of the sequences, in the given order."""
        chosen: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):
                chosen[field.name] = [value[i] for i in which]
            elif isinstance(value, dict):
                chosen[field.name] = {name: array[list(which)] for name, array in value.items()}
            else:
                chosen[field.name] = value[list(which)]
        return SequenceBatch(**chosen)

    def staleness(self, version: int) -> NDArray[np.int64]:
        """Return (B, J) how many versions each fragment lags behind `version`."""
        return version - self.weights_version_min

    def were_played_by(self, version: int | None) -> NDArray[np.bool_]:
        """Return (B,) whether the weights of this version chose every action of a sequence."""
        if version is None:
            return np.zeros(len(self), np.bool_)
        versions = (self.weights_version_min, self.weights_version_max)
        return np.logical_and(*((seen == version).all(axis=1) for seen in versions))

    def are_finite(self) -> NDArray[np.bool_]:
        """Return (B,) whether all inputs of the network and `logp` are finite."""
        # A sum is finite only if all terms are, and needs one pass and no copy.
        with np.errstate(invalid="ignore", over="ignore"):
            finite = np.isfinite(self.logp.sum(axis=1, dtype=np.float64))
            for i in range(len(self)):
                arrays = [*self.state_in[i].values(), *self.prior_latent[i]]
                arrays += [self.last_obs[i][name] for name in self.last_obs[i]]
                arrays += [a for part in self.obs[i].values() for a in part]
                arrays += [a for part in self.final_obs[i].values() for a in part]
                finite[i] &= all(
                    np.isfinite(array.sum(dtype=np.float64))
                    for array in arrays
                    if array.dtype.kind == "f"
                )
        return finite


def sequences_of(fragments: Sequence[Fragment], join: int) -> SequenceBatch:
    """Join every `join` consecutive fragments, all of equal length, into a sequence."""
    groups = [fragments[i : i + join] for i in range(0, len(fragments), join)]

    def per_step(name: str) -> NDArray:
        return np.stack([np.concatenate([getattr(f, name) for f in group]) for group in groups])

    def per_fragment(name: str) -> NDArray:
        return np.array([[getattr(f, name) for f in group] for group in groups])

    return SequenceBatch(
        obs=[_pieces([f.obs for f in group]) for group in groups],
        final_obs=[_pieces([f.final_obs for f in group]) for group in groups],
        prior_latent=[
            tuple(f.prior_latent for f in group if f.prior_latent is not None) for group in groups
        ],
        state_in=[group[0].state_in for group in groups],
        last_obs=[group[-1].last_obs for group in groups],
        last_first=np.array([group[-1].last_first for group in groups]),
        last_value=np.array([group[-1].last_value for group in groups], np.float32),
        action={
            name: np.stack([np.concatenate([f.action[name] for f in group]) for group in groups])
            for name in fragments[0].action
        },
        first=per_step("first"),
        reward=per_step("reward"),
        terminated=per_step("terminated"),
        truncated=per_step("truncated"),
        logp=per_step("logp"),
        value=per_step("value"),
        bootstrap_value=per_step("bootstrap_value"),
        weights_version_min=per_fragment("weights_version_min"),
        weights_version_max=per_fragment("weights_version_max"),
        prior_version=per_fragment("prior_version"),
        episode=per_fragment("episode"),
        env_id=[group[0].env_id for group in groups],
    )


def _pieces(observations: Sequence[dict[str, NDArray]]) -> ObservationPieces:
    return {name: tuple(obs[name] for obs in observations) for name in observations[0]}


def end_to_end(pieces: Pieces) -> NDArray:
    """Concatenate pieces along the first axis: time, or the own axis of `final_obs`."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


@dataclass(frozen=True, eq=False)
class Minibatch:
    """B sequences of T steps, as tensors.

    Attributes:
        obs: (B, T, ...) each part that the policy reads, such as {"image": (B, T, H, W, 3) uint8}.
        action: (B, T) int64 each head, such as {"buttons", "camera"}.
        first: (B, T) bool.
        state_in: The network's memory before the first step, leading axis B.
    """

    obs: Tensors
    action: Tensors
    first: Tensor
    state_in: Tensors

    def __len__(self) -> int:
        return self.first.shape[0]

    @property
    def num_steps(self) -> int:
        """Steps per sequence, T."""
        return self.first.shape[1]

    def chunks(self, length: int) -> Iterator[Self]:
        """Cut along time into chunks of `length` steps (the last may be shorter).

        Every chunk has the `state_in` of the whole; the caller replaces it with the memory after
        the previous chunk.
        """
        for start in range(0, self.num_steps, length):
            chunk = self.map(operator.itemgetter((slice(None), slice(start, start + length))))
            yield replace(chunk, state_in=self.state_in)

    def tensors(self) -> Iterator[Tensor]:
        """Yield all tensors."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, dict):
                yield from value.values()
            elif value is not None:
                yield value

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function to every tensor."""
        mapped: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, dict):
                mapped[field.name] = {name: function(tensor) for name, tensor in value.items()}
            else:
                mapped[field.name] = None if value is None else function(value)
        return type(self)(**mapped)


@dataclass(frozen=True, eq=False)
class TrainingBatch(Minibatch):
    """A minibatch with its training targets (`value_targets.py`).

    Attributes:
        share: (B, T) float32, the weight of each step in the mean over its optimizer step: the same
            number for all steps that count, 0 for the others. The sum of a term times its share
            over all minibatches, averaged over the learners, is the mean over the steps that count.
        proximal_logp: (B, T) float32, log-probability under the proximal policy.
        weight: (B, T) float32, truncated importance weights.
        advantage: (B, T) float32, normalised over the whole iteration.
        value_target: (B, T) float32, in units of return.
        prior_latent: (B, T, E) float32, the prior's latents; None without a prior.
        prior_version: (B, T) int64, version of the weights that computed them; None without a
            prior.
        kl_share: `share` where the prior's version is still known, else 0; None without a prior.
    """

    share: Tensor
    proximal_logp: Tensor
    weight: Tensor
    advantage: Tensor
    value_target: Tensor
    prior_latent: Tensor | None = None
    prior_version: Tensor | None = None
    kl_share: Tensor | None = None


def stacked(arrays: Sequence[NDArray]) -> Tensor:
    """Stack arrays of one shape into a tensor with a new leading axis; a copy."""
    return torch.from_numpy(np.stack(arrays))


def stacked_states(sequences: SequenceBatch) -> Tensors:
    """Stack the memories that sequences begin with, leading axis B; a copy."""
    states = sequences.state_in
    return {name: stacked([state[name] for state in states]) for name in states[0]}


# ----------------------------------------------------------- minibatches on their way to the device
# An iteration's fragments stay in host memory. While one minibatch is trained on, the next is
# prepared, so the device holds at most two, whatever the size of the iteration.

Key = TypeVar("Key")
Batch = TypeVar("Batch", bound=Minibatch)


class _Prepared(NamedTuple):
    """A minibatch on the device; `ready` is recorded once a GPU has received it."""

    minibatch: Minibatch
    ready: torch.cuda.Event | None


class MinibatchStream:
    """Stacks minibatches in a thread and sends them to a device, one ahead."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="minibatches")

    def stream(self, prepare: Callable[[Key], Batch], keys: Iterable[Key]) -> Iterator[Batch]:
        """Yield minibatches in the order of their keys.

        The next minibatch is started when one is yielded. The caller must drop its references to
        one before requesting the next, so that no more than two exist.

        Args:
            prepare: Creates a minibatch in host memory; called in the thread.
            keys: The arguments of `prepare`.
        """
        rest = iter(keys)
        coming: deque[Future[_Prepared]] = deque()

        def begin_next() -> None:
            coming.extend(
                self._executor.submit(self._prepare, prepare, key) for key in islice(rest, 1)
            )

        begin_next()
        while coming:
            prepared = coming.popleft().result()
            begin_next()
            if prepared.ready is not None:
                here = torch.cuda.current_stream(self._device)
                here.wait_event(prepared.ready)
                for tensor in prepared.minibatch.tensors():
                    tensor.record_stream(here)  # not to be overwritten by the next minibatch
            yield prepared.minibatch  # type: ignore[misc]
            del prepared

    def close(self) -> None:
        """End the thread."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _prepare(self, prepare: Callable[[Key], Minibatch], key: Key) -> _Prepared:
        minibatch = prepare(key)
        if self._stream is None:
            return _Prepared(minibatch.map(lambda tensor: tensor.to(self._device)), None)
        pinned = minibatch.map(torch.Tensor.pin_memory)
        with torch.cuda.stream(self._stream):
            sent = pinned.map(lambda tensor: tensor.to(self._device, non_blocking=True))
            return _Prepared(sent, self._stream.record_event())


# -------------------- fetching the learner's fragments from Ray's object store, one iteration ahead
# While the learner trains on one iteration, a thread can fetch the fragments of the next from the
# nodes where they were played (`prefetch`). They stay in host memory; `MinibatchStream` moves
# minibatches of them to the device one by one.


@dataclass(frozen=True, eq=False)
class LoadedFragments:
    """An iteration's fragments, in this process.

    Attributes:
        sequences: The fragments, joined into sequences.
        lost: For each sequence, whether Ray lost one of its fragments. A lost sequence is replaced
            by a copy of another, so that every learner has equally many, and must not be trained
            on.
        prefetched: Whether the fragments were fetched ahead, in the thread.
    """

    sequences: SequenceBatch
    lost: list[bool]
    prefetched: bool = False


class FragmentLoader:
    """Fetches fragments, those of the next iteration in a thread.

    Args:
        join: Contiguous fragments per sequence.
    """

    def __init__(self, *, join: int) -> None:
        self._join = join
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        self._announced: deque[tuple[list[Any], Future[LoadedFragments]]] = deque(maxlen=2)

    def prefetch(self, training_data: TrainingData) -> None:
        """Start fetching an iteration's fragments, and return immediately.

        An iteration may be announced before the previous one is loaded, so up to two are kept; a
        third replaces the older one.
        """
        payloads = _payloads(training_data)
        self._announced.append((payloads, self._executor.submit(self._load, payloads)))

    def load(self, training_data: TrainingData) -> LoadedFragments:
        """Return the fragments: wait for the thread if they were announced, else fetch them now.

        Raises:
            FragmentsLostError: If Ray lost all of them.
            Exception: Any error of the thread.
        """
        reporting.detail("fetching fragments")
        payloads = _payloads(training_data)
        return self._take_announced(payloads) or self._load(payloads)

    def close(self) -> None:
        """End the thread."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _take_announced(self, payloads: list[Any]) -> LoadedFragments | None:
        """Return the fragments if they were announced, and drop those announced before them."""
        for place, (announced, future) in enumerate(self._announced):
            if _same(announced, payloads):
                for _ in range(place + 1):
                    self._announced.popleft()
                return replace(future.result(), prefetched=True)
        return None

    def _load(self, payloads: list[Any]) -> LoadedFragments:
        fragments = [
            None if payload is None else decompress(payload) for payload in _fetch(payloads)
        ]
        groups = [fragments[i : i + self._join] for i in range(0, len(fragments), self._join)]
        found = [[f for f in group if f is not None] for group in groups]
        lost = [len(group) < self._join for group in found]
        if all(lost):
            raise FragmentsLostError(
                f"Ray lost all {len(payloads)} fragments of a batch: the machines that held them "
                "died. Give the object store more memory, or use machines that stay up."
            )
        stand_in = found[lost.index(False)]
        complete = [
            fragment
            for group, is_lost in zip(found, lost, strict=True)
            for fragment in (stand_in if is_lost else group)
        ]
        return LoadedFragments(sequences_of(complete, self._join), lost)


def _payloads(training_data: TrainingData) -> list[Any]:
    references = training_data.episodes_refs
    return list(training_data.episodes if references is None else references)


def _same(announced: Sequence[Any], payloads: Sequence[Any]) -> bool:
    """Whether two lists hold the same fragments or references."""
    return len(announced) == len(payloads) and all(
        a is b or a == b for a, b in zip(announced, payloads, strict=True)
    )


def _fetch(payloads: list[Any]) -> list[Fragment | CompressedFragment | None]:
    """Fetch fragments; None stands for those that Ray has lost."""
    if isinstance(payloads[0], Fragment):
        return payloads
    try:
        return ray.get(payloads)  # all at once, so that Ray fetches them in parallel
    except ObjectLostError:
        return [_fetch_one(reference) for reference in payloads]


def _fetch_one(reference: ray.ObjectRef) -> Fragment | CompressedFragment | None:
    try:
        return ray.get(reference)
    except ObjectLostError:
        return None
