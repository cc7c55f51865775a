"""MineStudio's own callbacks, with what they must not do taken from them."""

from __future__ import annotations

import contextlib
import io
import logging
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rllib_minestudio.env.callbacks.base import HOOKS, Info, Obs, Sim, StepResult

_PACKAGE = "minestudio."
_TIME_LIMIT = "JudgeResetCallback"
_RESET_HOOKS = ("before_reset", "after_reset")

_logger = logging.getLogger(__name__)


def adapt(callback: Any) -> Any:
    """Wrap a callback that comes with MineStudio's package; return any other as it is."""
    return ForeignCallback(callback) if _is_foreign(type(callback)) else callback


class ForeignCallback:
    """A callback of MineStudio's in our simulator.

    Resets draw from the simulator's generator instead of Python's and NumPy's global ones, so
    that seeds reproduce episodes; what they print goes to the log; and the time limit of its
    JudgeReset is a truncation, which it reports as the end of the task.

    Attributes:
        callback: The callback itself.
    """

    def __init__(self, callback: Any) -> None:
        """Take over the hooks that the callback really has."""
        self.callback = callback
        for name in HOOKS:
            hook = getattr(callback, name)
            if not _defines(type(callback), name):
                continue
            if name in _RESET_HOOKS:
                hook = _contained(hook)
            elif name == "after_step" and type(callback).__name__ == _TIME_LIMIT:
                hook = _truncating(hook)
            setattr(self, name, hook)

    def __repr__(self) -> str:
        """Show the callback."""
        return f"ForeignCallback({self.callback!r})"


def _is_foreign(kind: type) -> bool:
    return kind.__module__.startswith(_PACKAGE)


def _defines(kind: type, hook: str) -> bool:
    """Return whether a class, or one it inherits from, but not MineStudio's base, has a hook."""
    return any(hook in vars(each) for each in kind.__mro__ if each.__name__ != "MinecraftCallback")


def _contained(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reset hook without effects on the rest of the process."""

    def contained(sim: Sim, *arguments: Any) -> Any:
        printed = io.StringIO()
        with _seeded(sim.np_random), contextlib.redirect_stdout(printed):
            result = hook(sim, *arguments)
        if text := printed.getvalue().strip():
            _logger.debug("%s", text)
        return result

    return contained


def _truncating(hook: Callable[..., StepResult]) -> Callable[..., StepResult]:
    """Return the hook of a time limit that truncates."""

    def truncating(
        sim: Sim, obs: Obs, reward: float, terminated: bool, truncated: bool, info: Info
    ) -> StepResult:
        with contextlib.redirect_stdout(io.StringIO()):
            obs, reward, ended, truncated, info = hook(
                sim, obs, reward, terminated, truncated, info
            )
        return obs, reward, terminated, truncated or (ended and not terminated), info

    return truncating


@contextlib.contextmanager
def _seeded(generator: np.random.Generator) -> Iterator[None]:
    """Seed the global generators for a while."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    seed = int(generator.integers(2**32))
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
