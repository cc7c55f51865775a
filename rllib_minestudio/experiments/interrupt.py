"""Ctrl-C and SIGTERM: every trial saves a checkpoint, and the run ends; a second ends it at once.

SIGTERM is what a container's runtime sends to its process some time before it kills. Sent to the
whole process group, it also ends Ray's processes, and nothing can be saved.
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
"""Environment variable; Tune's own handler ends a run without a checkpoint."""


class SaveOnInterrupt(tune.Callback):
    """Has the trials save after Ctrl-C or SIGTERM, and then Tune end the run.

    Tune ends it as after a kill (`SIGUSR1`, which it handles for this purpose): its notes say of no
    trial that it is at its end, so that `--resume` goes on with them all.

    Attributes:
        requested: What the end was requested by, in a user's words; empty if by nothing.
    """

    def __init__(self) -> None:
        self.requested = ""
        self._unsaved: set[str] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take note of the signals in the block, in place of Tune; not outside the main thread."""
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
                # A handler in C, such as Ray's, is None here, and cannot be put back from Python.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            if tunes is None:
                del os.environ[TUNES_HANDLER_OFF]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = SIGNALS[signal.Signals(number)]

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Tune calls this several times a second: have trials save, or end the run."""
        if not self.requested:
            return
        running = {trial.trial_id for trial in trials if trial.status == Trial.RUNNING}
        if self._unsaved is None:
            self._unsaved = running
            for trial in trials:  # the next result's iteration is saved, whatever its number
                _save_every(trial, 1)
            stdout.print(f"{self.requested}: {SAVING}")
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
