"""The judge: the callback that decides a task, and says so in every info."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_minestudio.benchmark.facts import Observer, make_observer
from rllib_minestudio.benchmark.task import ANY_TIME, AT_END, BenchmarkTask
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.env.callbacks.task import TASK_TEXT
from rllib_minestudio.episode_info import SUCCESS, TASK
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.filters import (
    WORLD_FACTS,
    WorldFact,
    parse_filter,
    parse_quantity,
)
from rllib_minestudio.option_checks import Problems

PROGRESS = "progress"
"""Info key: how far the episode has got, 0 to 1."""

JUDGE = f"{__name__}.JudgeTaskCallback"
"""Its name in `env_config.callbacks`."""


class JudgeTaskCallback(MinecraftCallback):
    """Decides a task after every step.

    Every info has `success`, a bool; `progress`, a float that never falls within an episode; and
    the task's name and text. It has to be the last of the callbacks: an episode is judged as they
    have left it, when they have prepared its world, and when a time limit has cut it off.
    """

    def __init__(
        self,
        success: str,
        name: str = "task",
        text: str = "",
        judged: str = ANY_TIME,
        progress: Mapping[str, Any] | None = None,
        pays: float = 1.0,
    ) -> None:
        """Read the condition.

        Args:
            success: The condition, in the filter language.
            name: The task's name.
            text: What the agent is told.
            judged: `any_time`: success terminates the episode; `at_end`: the last step decides.
            progress: `of`, a quantity, and `goal`, the amount that counts as all of it; None
                makes the progress 1 at success.
            pays: What is added to the reward of the step that succeeds.

        Raises:
            InvalidOptionsError: The condition or the quantity is none.
        """
        problems = Problems()
        problems.choice("judged", judged, (ANY_TIME, AT_END))
        problems.raise_if_any()
        self._condition = parse_filter(success)
        self._at_end = judged == AT_END
        self._goal = 1.0 if progress is None else float(progress["goal"])
        self._quantity = None if progress is None else parse_quantity(progress["of"])
        self._pays = pays
        self._facts: frozenset[WorldFact] = self._condition.needed_facts()
        if self._quantity is not None:
            self._facts |= self._quantity.needed_facts()
        self._told = {TASK: name, TASK_TEXT: text}
        self._observers: dict[str, Observer] = {}
        self._first_info: Info = {}
        self._length, self._return, self._progress = 0, 0.0, 0.0

    @classmethod
    def spec_of(cls, task: BenchmarkTask) -> dict[str, Any]:
        """Return what builds the judge of a task: an entry of `env_config.callbacks`."""
        progress = task.progress
        return {
            JUDGE: {
                "success": task.success,
                "name": task.name,
                "text": task.text,
                "judged": task.judged,
                "progress": None
                if progress is None
                else {"of": progress.of, "goal": progress.goal},
                "pays": 1.0 if task.rewards is None else 0.0,
            }
        }

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Begin an episode."""
        self._length, self._return, self._progress = 0, 0.0, 0.0
        self._observers = self._new_observers(sim, info)
        info = self._with_facts(info)
        self._first_info = info
        judged = {SUCCESS: False, PROGRESS: self._progress_now(self._episode(info))}
        return obs, {**info, **self._told, **judged}

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Judge the step."""
        self._length += 1
        self._return += reward
        info = self._with_facts(info)
        episode = self._episode(info, terminated, truncated)
        ended = terminated or truncated
        success = (ended or not self._at_end) and self._condition.accepts(episode)
        if success and not ended:
            terminated = True
        progress = self._progress_now(episode, success)
        info = {**info, **self._told, SUCCESS: success, PROGRESS: progress}
        return obs, reward + self._pays * success, terminated, truncated, info

    def _new_observers(self, sim: Sim, info: Info) -> dict[str, Observer]:
        """Return what tells the condition's facts in the episode that begins."""
        if not self._facts:
            return {}
        ask = getattr(sim.env, "survey", None)
        if ask is None:
            names = ", ".join(sorted(fact.key for fact in self._facts))
            raise InvalidOptionsError(f"JudgeTask: this engine does not tell {names}.")
        survey, place = ask(), info["player_pos"]
        x, y, z = (int(place[axis] // 1) for axis in "xyz")
        start = (x, y, z)
        return {fact.key: make_observer(fact, survey, start) for fact in self._facts}

    def _with_facts(self, info: Info) -> Info:
        """Return an info with the facts that the condition asks for."""
        if not self._observers:
            return info
        return {**info, WORLD_FACTS: {key: observe() for key, observe in self._observers.items()}}

    def _progress_now(self, episode: EvaluatedEpisode, success: bool = False) -> float:
        """Return the greatest progress of the episode's steps so far."""
        if self._quantity is None:
            now = float(success)
        else:
            now = (self._quantity.measured(episode) or 0.0) / self._goal
        self._progress = max(self._progress, min(max(now, 0.0), 1.0))
        return self._progress

    def _episode(
        self, info: Info, terminated: bool = False, truncated: bool = False
    ) -> EvaluatedEpisode:
        """Return the episode as it is after a step, or after the reset."""
        return EvaluatedEpisode(
            index=0,
            seed=0,
            task=self._told[TASK],
            length=self._length,
            undiscounted_return=self._return,
            terminated=terminated,
            truncated=truncated,
            first_info=self._first_info,
            info=info,
        )

    def __repr__(self) -> str:
        """Show the condition."""
        return f"JudgeTaskCallback({str(self._condition)!r})"
