"""Ctrl-C: every trial saves a checkpoint, and the run ends; a second Ctrl-C ends it at once."""

from __future__ import annotations

import copy
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ray import tune
from ray.tune.experiment import Trial

from rllib_minestudio.console import stdout

SAVING = (
    "Ctrl-C: the run ends once the iteration under way is trained and its checkpoint saved; "
    "a second Ctrl-C ends it at once"
)

TUNES_HANDLER_OFF = "TUNE_DISABLE_SIGINT_HANDLER"
"""Environment variable; Tune's own handler ends a run without a checkpoint."""


class SaveOnInterrupt(tune.Callback):
    """Has the trials save after Ctrl-C, and then Tune end the run.

    Tune ends it as after a kill (`SIGUSR1`, which it handles for this purpose): its notes say of no
    trial that it is at its end, so that `--resume` goes on with them all.

    Attributes:
        requested: Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self.requested = False
        self._unsaved: set[str] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take note of Ctrl-C in the block, in place of Tune; not outside the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before, tunes = signal.getsignal(signal.SIGINT), os.environ.get(TUNES_HANDLER_OFF)
        signal.signal(signal.SIGINT, self._note)
        os.environ[TUNES_HANDLER_OFF] = "1"
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            if tunes is None:
                del os.environ[TUNES_HANDLER_OFF]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Tune calls this several times a second: have trials save, or end the run."""
        if not self.requested:
            return
        running = {trial.trial_id for trial in trials if trial.status == Trial.RUNNING}
        if self._unsaved is None:
            self._unsaved = running
            for trial in trials:  # the next result's iteration is saved, whatever its number
                _save_every(trial, 1)
            stdout.print(SAVING)
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
