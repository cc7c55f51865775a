"""Recorded episodes as an offline dataset: RLlib's `OfflineData`, read by Ray Data.

Reading is streamed: a task decodes one stretch of an episode at a time into windows, so that
neither the dataset nor an episode has to fit in memory. Every epoch is shuffled differently.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ray.data
from numpy.typing import NDArray
from ray.data._internal.execution.execution_callback import ExecutionCallback
from ray.rllib.offline.offline_data import OfflineData

from rllib_minestudio.algorithms import policy_config
from rllib_minestudio.algorithms.options import CloningOptions
from rllib_minestudio.algorithms.policy_config import recorded_parts_problems
from rllib_minestudio.demonstrations import (
    Stretch,
    Window,
    WindowOptions,
    contents,
    open_episode,
    shuffled,
    side_by_side,
    stack,
    stretches,
    survey,
    whole_episodes,
    windows,
)
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.foundation.console import counted
from rllib_minestudio.recordings.episodes import FolderSurvey, RecordedEpisode

_logger = logging.getLogger(__name__)

Batch = dict[str, NDArray]
"""The fields of `demonstrations.Window`, each with a leading axis of windows."""

_PLACE = "<place>"
"""Column with a window's episode, its number in the episode, and whether it is the last."""
_MOST_OPEN = 32
"""Episodes whose actions a reader keeps: half a megabyte for five minutes of play."""
_READ_AHEAD = 2
"""Windows that Ray Data prefetches from the object store."""
_SCHEDULING_PAUSE_S = 0.02
"""Seconds between rounds of Ray Data's scheduler; a learner needs no new window in that time."""


class DemonstrationData(OfflineData):
    """Windows of recorded episodes, split into training and validation episodes.

    Attributes:
        num_training: Number of episodes to learn from.
        num_validation: Number of held-out episodes.
    """

    def __init__(self, config: CloningOptions) -> None:
        """Find the recordings; they are read later, when batches are requested.

        Args:
            config: A validated `MineStudioBCConfig`.

        Raises:
            RecordingError: If there are no recordings, or too few to hold some out, or one lacks an
                observation part that the policy reads.
        """
        training, validation, found = split(
            config.input_, config.validation_fraction, config.seed or 0
        )
        if found.broken:
            _logger.warning("input_: %s.", found)
        self.num_training, self.num_validation = len(training), len(validation)
        options = window_options(config)
        for problem in recorded_parts_problems(config, [*training, *validation]):
            raise RecordingError(f"input_: {problem}")
        # RLlib reads `input_` with a method of ray.data; our items are stretches of episodes.
        pieces = [Stretch(path) for path in training]  # carried memory needs whole ones
        if not config.carry_memory:
            pieces = stretches(training, config.windows_per_read * config.window_length)
        listed = config.copy(copy_frozen=False)
        listed.input_, listed.input_read_method = _items(pieces), "from_items"
        listed.input_read_method_kwargs = {"override_num_blocks": len(pieces)}
        listed.materialize_data = False
        _quieten()
        super().__init__(listed)
        self._options, self._readers = options, config.num_readers
        self._validation = _items(Stretch(path) for path in validation)
        self._seed = config.seed or 0
        self._random = np.random.default_rng((self._seed, 0))
        self._among = config.shuffle_among
        self._carries = config.carry_memory
        self._batches: Generator[Batch] | None = None

    def begin_anew(self, iteration: int) -> None:
        """Shuffle differently from now on, in the order of a run resumed at `iteration`."""
        self.close()
        self._random = np.random.default_rng((self._seed, iteration))

    def close(self) -> None:
        """Stop reading: while Ray runs, as what is left open would start it again when freed."""
        if self._batches is not None:
            self._batches.close()
            self._batches = None

    def sample(self, num_samples: int, **_: Any) -> Iterator[Batch]:
        """Return an endless iterator over batches of `num_samples` windows; always the same one."""
        if self._batches is None:
            self._batches = self._batches_of(num_samples)
        return self._batches

    def validation(self, num_samples: int) -> Iterator[Batch]:
        """Yield all held-out windows once, in batches of at most `num_samples`."""
        if not self._validation:
            return
        items = ray.data.from_items(self._validation, override_num_blocks=len(self._validation))
        held_out = _read(items, self._options, self._readers)
        # Reading ahead also because Ray 2.60 otherwise leaves a thread behind after each pass.
        size = 1 if self._carries else num_samples
        rows = held_out.iter_batches(batch_size=size, prefetch_batches=_READ_AHEAD)
        yield from _in_lanes(rows, num_samples) if self._carries else map(_without_place, rows)

    def _batches_of(self, size: int) -> Generator[Batch]:
        if self._carries:
            yield from _in_lanes(chain.from_iterable(self._epochs()), size, self._random)
        batch: list[Batch] = []  # carried across epochs, which may be smaller than a batch
        for epoch in self._epochs():
            for window in shuffled(epoch, self._among, self._random):
                batch.append(_without_place(window))
                if len(batch) == size:
                    yield _joined(batch)
                    batch = []

    def _epochs(self) -> Iterator[Iterator[Batch]]:
        """Yield epochs without end, each an iterator over all windows."""
        while True:
            # Each block holds one stretch.
            order = self.data.randomize_block_order(seed=int(self._random.integers(2**31)))
            epoch = _read(order, self._options, self._readers)
            yield _at_least_one(epoch.iter_batches(batch_size=1, prefetch_batches=_READ_AHEAD))


def _at_least_one(rows: Iterable[Batch]) -> Iterator[Batch]:
    """Yield all rows.

    Raises:
        RecordingError: If there are none, since an endless stream could then never yield.
    """
    empty = True
    for row in rows:
        empty = False
        yield row
    if empty:
        raise RecordingError(
            "input_: no recording has a step to learn from: all their actions are null, and "
            "max_null_run=0 leaves those out."
        )


def _in_lanes(
    rows: Iterable[Batch], lanes: int, random: np.random.Generator | None = None
) -> Iterator[Batch]:
    """Yield batches whose windows continue those of the previous batch; see `side_by_side`."""
    placed = ((*row[_PLACE][0].tolist(), _without_place(row)) for row in rows)
    episodes: Iterator[list[Batch]] = whole_episodes(placed)
    for batch in side_by_side(episodes, lanes, random):
        present = [window for window in batch if window is not None]
        # For lanes that have ended: no step of it is imitated, as its weights are 0.
        nothing = {name: np.zeros_like(array) for name, array in present[0].items()}
        yield _joined([nothing if window is None else window for window in batch])


def _joined(rows: list[Batch]) -> Batch:
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


def _without_place(row: Batch) -> Batch:
    return {name: array for name, array in row.items() if name != _PLACE}


class Split(NamedTuple):
    """Episodes to learn from, and those held out: path -> number of steps; and all that was found.

    Attributes:
        training: Episodes to learn from.
        validation: Held-out episodes.
        found: What the folders hold.
    """

    training: dict[Path, int]
    validation: dict[Path, int]
    found: FolderSurvey


def split(folder: str | list[str], fraction: float, seed: int) -> Split:
    """Split the recordings below some folders into those to learn from and those held out.

    Their names decide, relative to the folder: the same ones are held out wherever it is, and if
    others are added, nearly the same.

    Args:
        folder: One folder, or several.
        fraction: Share to hold out; if above 0, at least one episode.
        seed: Determines which ones.

    Raises:
        RecordingError: If nothing is left to learn from.
    """
    folders = [folder] if isinstance(folder, str) else folder
    found = survey(folders)
    roots = [os.path.abspath(root) for root in folders]
    lengths = {Path(os.path.abspath(path)): length for path, length in found.lengths.items()}
    if not lengths:
        broken = f" {found}." if found.broken else ""
        raise RecordingError(
            f"{' and '.join(map(contents, folders))}.{broken} What can be read are the episodes of "
            "`rllib record`, of MineStudio's MineGenerator and datasets, and OpenAI's contractor "
            "recordings (NAME.mp4 with NAME.jsonl)."
        )
    held_out = max(1, round(fraction * len(lengths))) if fraction else 0
    if len(lengths) <= held_out:
        raise RecordingError(
            f"{', '.join(map(repr, folders))}: {counted(len(lengths), 'recording')}, of which "
            f"{held_out} would be held out (validation_fraction={fraction}); that leaves none to "
            "learn from. Record more with `rllib record`, or set validation_fraction to 0."
        )

    def rank(path: Path) -> int:
        root = next(root for root in roots if path.is_relative_to(root))
        below = path.relative_to(root)
        # A folder may itself be the episode.
        name = below.with_suffix("") if below.name else Path(path.name)
        return _number(f"{seed} {name}")

    chosen = set(sorted(lengths, key=rank)[:held_out])
    training, validation = (
        {path: length for path, length in lengths.items() if (path in chosen) is held}
        for held in (False, True)
    )
    return Split(training, validation, found)


def window_options(config: CloningOptions) -> WindowOptions:
    """Return how the config's episodes are cut into windows."""
    spaces = {
        "observation_space": config.observation_space,
        "action_space": config.action_space,
    }
    policy = config.policy_class.blank(config.model_config, spaces)
    assert policy is not None  # as the spaces are known
    burn_in = policy.memory_length if config.burn_in is None else config.burn_in
    if config.carry_memory:
        burn_in = 0
    return policy_config.window_options(
        policy.observation_parts, config.window_length, burn_in, config.max_null_run
    )


def _items(pieces: Iterable[Stretch]) -> list[dict[str, Any]]:
    """Return stretches as rows of a dataset; -1 stands for the episode's end."""
    return [
        {"path": str(path), "start": start, "stop": -1 if stop is None else stop}
        for path, start, stop in pieces
    ]


def _read(items: Any, options: WindowOptions, readers: int) -> Any:
    """Turn a dataset of stretches into one of windows.

    The tasks request no CPU: a Tune trial may already have reserved all of the machine's, and tasks
    that need one would wait forever. `readers` limits their number instead.
    """

    def decode(rows: dict[str, Any]) -> Iterator[Batch]:
        for path, start, stop in zip(rows["path"], rows["start"], rows["stop"], strict=True):
            episode = _opened(str(path))
            number = _number(str(path))
            cut = windows(episode, options, int(start), None if stop < 0 else int(stop))
            for i, (window, last) in enumerate(_telling_the_last(cut)):
                yield {**stack([window]), _PLACE: np.array([[number, i, last]])}

    return items.map_batches(
        decode, batch_size=1, num_cpus=0, compute=ray.data.TaskPoolStrategy(readers)
    )


@lru_cache(maxsize=_MOST_OPEN)
def _opened(path: str) -> RecordedEpisode:
    return open_episode(path)


def _telling_the_last(cut: Iterable[Window]) -> Iterator[tuple[Window, bool]]:
    """Yield each window, and whether it is the last."""
    waiting: Window | None = None
    for window in cut:
        if waiting is not None:
            yield waiting, False
        waiting = window
    if waiting is not None:
        yield waiting, True


def _number(name: str) -> int:
    """Return a number for an episode: 56 bits of a hash, in practice unique."""
    digest = hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=7).digest()
    return int.from_bytes(digest, "big")


def _quieten() -> None:
    """Keep Ray Data from drawing progress bars over the command's own, and from busy waiting."""
    context = ray.data.DataContext.get_current()
    if _Unhurried not in context.custom_execution_callback_classes:
        context.custom_execution_callback_classes.append(_Unhurried)
    context.enable_progress_bars = False
    context.print_on_execution_start = False


class _Unhurried(ExecutionCallback):
    """Keeps Ray Data's scheduler from busy waiting.

    While windows are ready that have not been requested yet, its loop polls without a pause
    (Ray 2.60), in a thread that competes with the learner for the interpreter lock.
    """

    def on_execution_step(self, executor: Any) -> None:
        """Pause."""
        time.sleep(_SCHEDULING_PAUSE_S)
