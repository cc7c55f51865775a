"""SpeedTest: how fast the game and the callbacks are."""

from __future__ import annotations

import time

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.option_checks import Problems, is_integer

_LONGEST = 10**9


class SpeedTestCallback(MinecraftCallback):
    """Prints steps per second, of all steps so far, every `interval` steps.

    The time is that of the game's tick and of the callbacks that come after this one before the
    tick and before this one after it; resets and the policy are not in it. It is printed, not
    logged: a user who asks for it wants to see it, and Ray shows what its workers print.

    Attributes:
        num_steps: Steps so far, over all episodes.
        total_times: Seconds that they took.
    """

    def __init__(self, interval: int = 100) -> None:
        """Check and keep the interval.

        Args:
            interval: Steps from one line to the next.

        Raises:
            InvalidOptionsError: If it is not an integer of at least 1.
        """
        problems = Problems()
        if not is_integer(interval) or not 1 <= interval <= _LONGEST:
            problems.add("interval", interval, f"must be an integer from 1 to {_LONGEST} (steps)")
        problems.raise_if_any()
        self.interval = interval
        self.num_steps = 0
        self.total_times = 0.0
        self._begun = 0.0

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Start the clock."""
        self._begun = time.perf_counter()
        return action

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Stop the clock, and print a line when it is time to."""
        self.total_times += time.perf_counter() - self._begun
        self.num_steps += 1
        if self.num_steps % self.interval == 0:
            print(
                f"SpeedTest: {self.num_steps / self.total_times:.1f} steps/s, "
                f"{1000 * self.total_times / self.num_steps:.3f} ms/step over "
                f"{self.num_steps} steps",
                flush=True,
            )
        return obs, reward, terminated, truncated, info

    def __repr__(self) -> str:
        """Show the interval."""
        return f"SpeedTestCallback(interval={self.interval})"
