"""Recorded episodes as an offline dataset: RLlib's `OfflineData`, read by Ray Data.

Reading is streamed: a task decodes one episode at a time into windows, so that neither the
dataset nor an episode has to fit in memory. Every epoch has an order of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import ray.data
from numpy.typing import NDArray
from ray.data._internal.execution.execution_callback import ExecutionCallback
from ray.rllib.offline.offline_data import OfflineData

from rllib_minestudio.algorithms import policy_windows
from rllib_minestudio.algorithms.part_checks import recorded_parts_problems
from rllib_minestudio.demonstrations import (
    WindowOptions,
    find_episodes,
    open_episode,
    shuffled,
    stack,
    windows,
)
from rllib_minestudio.errors import RecordingError

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.cloning.config import MineStudioBCConfig

Batch = dict[str, NDArray]
"""The fields of `demonstrations.Window`, each with a leading axis of windows."""

_READ_AHEAD = 2
"""Windows that Ray Data fetches from the object store before they are asked for."""
_SCHEDULING_PAUSE_S = 0.02
"""Seconds between two rounds of Ray Data's scheduler, in which a learner needs no new window."""


class DemonstrationData(OfflineData):
    """Windows of recorded episodes, in training and validation parts.

    Attributes:
        num_training: Episodes to learn from.
        num_validation: Episodes held out.
    """

    def __init__(self, config: MineStudioBCConfig) -> None:
        """Find the recordings; they are read later, when batches are asked for.

        Args:
            config: A validated `MineStudioBCConfig`.

        Raises:
            RecordingError: There are no recordings, or too few to hold some out, or one lacks what
                the policy reads.
        """
        training, validation = split(config.input_, config.validation_fraction, config.seed or 0)
        self.num_training, self.num_validation = len(training), len(validation)
        options = window_options(config)
        for problem in recorded_parts_problems(config, [*training, *validation]):
            raise RecordingError(f"input_: {problem}")
        # RLlib reads `input_` with a method of ray.data; ours are the folders of the recordings.
        listed = config.copy(copy_frozen=False)
        listed.input_, listed.input_read_method = training, "from_items"
        listed.input_read_method_kwargs = {"override_num_blocks": len(training)}
        listed.materialize_data = False
        _quieten()
        super().__init__(listed)
        self._options, self._readers = options, config.num_readers
        self._validation = validation
        self._random = np.random.default_rng(config.seed or 0)
        self._among = config.shuffle_among
        self._batches: Iterator[Batch] | None = None

    def sample(self, num_samples: int, **_: Any) -> Iterator[Batch]:
        """Return batches of `num_samples` windows, without end; always the same iterator."""
        if self._batches is None:
            self._batches = self._batches_of(num_samples)
        return self._batches

    def validation(self, num_samples: int) -> Iterator[Batch]:
        """Yield all held-out windows once, in batches of at most `num_samples`."""
        if self._validation:
            items = ray.data.from_items(self._validation, override_num_blocks=len(self._validation))
            held_out = _read(items, self._options, self._readers)
            yield from held_out.iter_batches(batch_size=num_samples, prefetch_batches=0)

    def _batches_of(self, size: int) -> Iterator[Batch]:
        batch: list[Batch] = []  # goes on from epoch to epoch: one may hold less than a batch
        while True:
            # One block holds one recording's folder; the windows themselves are shuffled below.
            order = self.data.randomize_block_order(seed=int(self._random.integers(2**31)))
            epoch = _read(order, self._options, self._readers)
            read = epoch.iter_batches(batch_size=1, prefetch_batches=_READ_AHEAD)
            for window in shuffled(read, self._among, self._random):
                batch.append(window)
                if len(batch) == size:
                    yield {name: np.concatenate([w[name] for w in batch]) for name in window}
                    batch = []


def split(folder: str | list[str], fraction: float, seed: int) -> tuple[list[str], list[str]]:
    """Divide the recordings below some folders into those to learn from and those held out.

    Args:
        folder: One or several.
        fraction: Share to hold out; above 0, at least one episode.
        seed: Decides which.

    Raises:
        RecordingError: Nothing is left to learn from.
    """
    folders = [folder] if isinstance(folder, str) else folder
    found = [str(path.resolve()) for folder in folders for path in find_episodes(folder)]
    held_out = max(1, round(fraction * len(found))) if fraction else 0
    if len(found) <= held_out:
        raise RecordingError(
            f"{', '.join(map(repr, folders))}: {len(found)} recordings, of which {held_out} are to "
            f"be held out (validation_fraction={fraction}); that leaves none to learn from. "
            "Record some with `rllib record`."
        )
    order = np.random.default_rng(seed).permutation(len(found))
    return [found[i] for i in order[held_out:]], [found[i] for i in sorted(order[:held_out])]


def window_options(config: MineStudioBCConfig) -> WindowOptions:
    """How a `MineStudioBCConfig` wants episodes cut."""
    spaces = {
        "observation_space": config.observation_space,
        "action_space": config.action_space,
    }
    policy = config.policy_class.blank(config.model_config, spaces)
    assert policy is not None  # as the spaces are known
    burn_in = policy.memory_length if config.burn_in is None else config.burn_in
    return policy_windows.window_options(policy.observation_parts, config.window_length, burn_in)


def _read(items: Any, options: WindowOptions, readers: int) -> Any:
    """Turn a dataset of folders into one of windows.

    The tasks ask for no CPU: a trial of Tune has reserved the machine's already, and tasks that
    wait for one would wait for ever. `readers` bounds them instead.
    """

    def decode(folders: dict[str, Any]) -> Iterator[Batch]:
        for folder in folders["item"]:
            for window in windows(open_episode(folder), options):
                yield stack([window])

    return items.map_batches(
        decode, batch_size=1, num_cpus=0, compute=ray.data.TaskPoolStrategy(readers)
    )


def _quieten() -> None:
    """Keep Ray Data from drawing progress bars over the command's own, and from being busy."""
    context = ray.data.DataContext.get_current()
    if _Unhurried not in context.custom_execution_callback_classes:
        context.custom_execution_callback_classes.append(_Unhurried)
    context.enable_progress_bars = False
    context.print_on_execution_start = False


class _Unhurried(ExecutionCallback):
    """Keeps Ray Data's scheduler from running without a pause.

    While windows lie ready that nobody has asked for yet, its loop asks for news again at once
    (Ray 2.60): a thread that takes the interpreter from the learner.
    """

    def on_execution_step(self, executor: Any) -> None:
        """Wait a moment."""
        time.sleep(_SCHEDULING_PAUSE_S)
