"""Handling of Ctrl-C and SIGTERM: all trials save checkpoints, then the run ends.

A second signal ends the run at once. A container's runtime sends SIGTERM to its main process some
time before it kills it. Sent to the whole process group, SIGTERM also ends Ray's processes, and
nothing can be saved.
"""

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

from rllib_minestudio.foundation.console import stdout

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}

SAVING = (
    "the run ends once the iteration under way is trained and its checkpoint saved; a second one "
    "ends it at once"
)

TUNES_HANDLER_OFF = "TUNE_DISABLE_SIGINT_HANDLER"
"""Environment variable that disables Tune's handler, which ends a run without a checkpoint."""


class SaveOnInterrupt(tune.Callback):
    """A callback that saves all trials after Ctrl-C or SIGTERM, and then has Tune end the run.

    Tune ends it as if killed (on `SIGUSR1`, which it handles for this purpose): its state marks no
    trial as terminated, so `--resume` continues all of them.

    Attributes:
        requested: The signal that requested the end, as named to users; empty if there was none.
    """

    def __init__(self) -> None:
        self.requested = ""
        self._unsaved: set[str] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals in the block instead of Tune; do nothing outside the main thread."""
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
                # A handler in C, such as Ray's, is None here and cannot be restored from Python.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            if tunes is None:
                del os.environ[TUNES_HANDLER_OFF]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = SIGNALS[signal.Signals(number)]

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Make trials save, or end the run; Tune calls this several times a second."""
        if not self.requested:
            return
        running = {trial.trial_id for trial in trials if trial.status == Trial.RUNNING}
        if self._unsaved is None:
            self._unsaved = running
            for trial in trials:  # save at the next result
                _save_every(trial, 1)
            stdout.print(f"{self.requested}: {SAVING}")
        self._unsaved &= running
        if not self._unsaved:
            signal.raise_signal(signal.SIGUSR1)

    def on_trial_save(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Note that a trial is saved; Tune calls this after it has recorded a checkpoint."""
        if self._unsaved is not None:
            self._unsaved.discard(trial.trial_id)
            _save_every(trial, 0)  # it trains on until the others are saved


def _save_every(trial: Any, iterations: int) -> None:
    manager = trial.run_metadata.checkpoint_manager
    config = copy.copy(manager.checkpoint_config)  # the trials share it
    config.checkpoint_frequency = iterations
    manager._checkpoint_config = config
