"""Shows how far a benchmark is: a line per task, and how long the rest is going to take."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import TracebackType

from rllib_minestudio.benchmark.plan import BenchmarkPlan, PlannedTask
from rllib_minestudio.benchmark.task_result import FAILED, TaskResult
from rllib_minestudio.console import clock, counted, phase, stderr, stdout
from rllib_minestudio.evaluation.episode import EvaluatedEpisode


class BenchmarkProgress:
    """Shows the progress between entering and leaving it.

    Args:
        plan: What is played.
        done: Names of the tasks that were played before.

    Attributes:
        left: Tasks that are still to be played.
    """

    def __init__(self, plan: BenchmarkPlan, done: set[str]) -> None:
        """Count what there is to do."""
        playable = [planned for planned in plan.tasks if planned.mark is None]
        self.left = [planned for planned in playable if planned.task.name not in done]
        self._plan, self._num_done = plan, len(playable) - len(self.left)
        self._num_playable, self._number = len(playable), self._num_done
        self._steps_left = sum(planned.task.time_limit for planned in self.left)
        self._steps_done = 0

    def __enter__(self) -> None:
        """Begin."""
        if self._num_done:
            stdout.print(f"{self._num_done} of {counted(self._num_playable, 'task')} are done")
        title = f"benchmark {self._plan.suite}, {counted(len(self.left), 'task')}"
        self._phase = phase(title)
        self._show = self._phase.__enter__()
        self._started = monotonic()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End; say how to go on if it was interrupted."""
        if kind is not None:
            stderr.print(
                f"{self._num_done} of {counted(self._num_playable, 'task')} are done and kept in "
                f"{str(self._plan.folder)!r}; the same command goes on."
            )
        self._phase.__exit__(kind, error, trace)

    def begin(self, planned: PlannedTask) -> None:
        """Begin a task."""
        self._task, self._episodes, self._successes = planned.task, 0, 0
        self._number += 1
        self._tell()

    def note(self, episode: EvaluatedEpisode) -> None:
        """Note an episode of the task."""
        self._episodes += 1
        self._successes += episode.counts_as_success
        self._tell()

    def end(self, result: TaskResult) -> None:
        """End the task, with a line about it."""
        self._steps_done += self._task.time_limit
        self._num_done += result.status != FAILED
        if result.status == FAILED:
            stderr.print(f"{result.name}: failed: {result.reason}", style="red")
            return
        rate = result.rate
        stdout.print(
            f"{result.name}: {rate.num_yes} of {counted(rate.num_episodes, 'episode')}, "
            f"progress {result.progress:.2f}, {result.seconds:.1f} s"
        )

    def warn(self, message: str) -> None:
        """Say what went wrong without costing a result."""
        stderr.print(f"warning: {message}", style="yellow")

    def _tell(self) -> None:
        self._show(
            f"task {self._number} of {self._num_playable}, {self._task.name}: "
            f"episode {self._episodes} of {self._plan.request.episodes}, "
            f"{counted(self._successes, 'success')}{self._rest()}"
        )

    def _rest(self) -> str:
        """Say how long the rest takes, if it goes on as it went."""
        share = self._episodes / self._plan.request.episodes
        done = self._steps_done + share * self._task.time_limit
        if not done:
            return ""
        seconds = (monotonic() - self._started) * (self._steps_left - done) / done
        return f", about {clock(seconds)} left"


@contextmanager
def each_warning_once(source: str) -> Iterator[None]:
    """Show each warning of a logger once: every environment of a task has the same ones.

    Args:
        source: The logger's name.
    """
    said: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        known = message in said
        said.add(message)
        return not known

    logger = logging.getLogger(source)
    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)
