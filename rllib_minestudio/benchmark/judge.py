"""The judge: the callback that decides a task, and reports success and progress in every info."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.benchmark.task import (
    ANY_TIME,
    AT_END,
    BenchmarkTask,
    find_structures,
    known_structures,
    matching_blocks,
)
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.env.callbacks.tasks import TASK_TEXT
from rllib_minestudio.errors import EngineError, InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.filters import (
    WORLD_FACTS,
    WorldFact,
    parse_filter,
    parse_quantity,
)
from rllib_minestudio.evaluation.filters.conditions import (
    BLOCK,
    CHEST,
    INSIDE,
    MOBS,
    NEAR,
    PLACED,
    STRUCTURE,
    Box,
    matches,
)
from rllib_minestudio.foundation.names import SUCCESS, TASK
from rllib_minestudio.foundation.options import Problems

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.game.survey import Corner, Survey

PROGRESS = "progress"
"""Info key of the episode's progress, from 0 to 1."""

JUDGE = f"{__name__}.JudgeTaskCallback"
"""The judge's name in `env_config.callbacks`."""


class JudgeTaskCallback(MinecraftCallback):
    """The callback that decides a task after every step.

    Every info contains `success`, a bool; `progress`, a float that never decreases within an
    episode; and the task's name and text. The judge must be the last callback, because the others
    prepare the world, and may truncate the episode by a time limit, before it is judged.
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
        """Parse the condition.

        Args:
            success: The condition, in the filter language.
            name: The task's name.
            text: The instruction to the agent.
            judged: `any_time`: success terminates the episode; `at_end`: the last step decides.
            progress: `of`, a quantity, and `goal`, the amount at which the progress is 1; with None
                the progress is 1 at success.
            pays: Reward added at the step that succeeds.

        Raises:
            InvalidOptionsError: `judged`, the condition or the quantity is invalid.
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
        """Return the entry of `env_config.callbacks` that builds the judge of a task."""
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
        """Return the observers of the condition's world facts for a new episode, by fact key."""
        if not self._facts:
            return {}
        ask = getattr(sim.env, "survey", None)
        if ask is None:
            names = ", ".join(sorted(fact.key for fact in self._facts))
            raise InvalidOptionsError(f"JudgeTask: this engine does not report {names}.")
        survey, place = ask(), info["player_pos"]
        x, y, z = (int(place[axis] // 1) for axis in "xyz")
        start = (x, y, z)
        return {fact.key: make_observer(fact, survey, start) for fact in self._facts}

    def _with_facts(self, info: Info) -> Info:
        """Return the info with the world facts that the condition needs."""
        if not self._observers:
            return info
        return {**info, WORLD_FACTS: {key: observe() for key, observe in self._observers.items()}}

    def _progress_now(self, episode: EvaluatedEpisode, success: bool = False) -> float:
        """Return the highest progress in the episode so far."""
        if self._quantity is None:
            now = float(success)
        else:
            now = (self._quantity.measured(episode) or 0.0) / self._goal
        self._progress = max(self._progress, min(max(now, 0.0), 1.0))
        return self._progress

    def _episode(
        self, info: Info, terminated: bool = False, truncated: bool = False
    ) -> EvaluatedEpisode:
        """Return the episode so far, as filters take it."""
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
        return f"JudgeTaskCallback({str(self._condition)!r})"


# ----------------------------------------------------------- world facts, observed after every step
# Blocks of a box are read again only when any block in the world has changed, and counted again
# only when one in the box has. While part of a box is unloaded, nothing in it can change, and the
# last count remains valid.

Observer = Callable[[], float]
"""Returns the present value of a fact."""

CHEST_REACH = 16
"""Largest distance of a counted chest from the starting point along each axis, in blocks."""
MOB_REACH = 24
"""The same for a mob."""


def make_observer(fact: WorldFact, survey: Survey, start: Corner) -> Observer:
    """Return the observer of a fact for an episode that begins now.

    Args:
        fact: The fact.
        survey: The interface for queries of the game.
        start: The block at the player's feet.
    """
    if fact.kind == INSIDE:
        fits = matching_blocks(fact.pattern)
        return lambda: float(any(fits[block] for block in survey.body_blocks()))
    if fact.kind == CHEST:
        return lambda: _in_chests(survey, start, fact.pattern)
    if fact.kind == MOBS:
        return lambda: float(
            sum(matches(name, fact.pattern) for name in survey.mobs_near(start, MOB_REACH))
        )
    return _IN_BOX[fact.kind](fact, survey, start)


def _in_chests(survey: Survey, start: Corner, pattern: str) -> float:
    """Return the number of items in nearby chests whose names match a pattern."""
    found = survey.chest_items(start, CHEST_REACH)
    return sum(quantity for name, quantity in found.items() if matches(name, pattern))


class _BoxObserver(ABC):
    """An observer of a number that depends on the blocks of a box."""

    def __init__(self, fact: WorldFact, survey: Survey, start: Corner) -> None:
        self._survey = survey
        self._box = survey.box(*_corners(fact.box or NEAR, start))
        blocks = self._box.block_ids()
        if blocks is None:  # a box within the allowed distance is always loaded
            raise EngineError(f"The land around the player, {fact.key}, is not loaded.")
        self._before = blocks
        self._begin(fact.pattern)
        self._seen, self._last = survey.changes, blocks.tobytes()
        self._told = self._count(blocks)

    def __call__(self) -> float:
        """Return the number; the box is read again if any block in the world has changed."""
        changes = self._survey.changes
        if self._seen != changes:
            blocks = self._box.block_ids()
            if blocks is not None:
                self._seen = changes
                now = blocks.tobytes()  # faster to compare than arrays of few blocks
                if now != self._last:
                    self._last = now
                    self._told = self._count(blocks)
        return self._told

    @abstractmethod
    def _begin(self, pattern: str) -> None:
        """Evaluate the box at the start, `_before`, as far as later counts need it."""

    @abstractmethod
    def _count(self, blocks: NDArray[np.uint16]) -> float:
        """Return the number for the box's block ids, [x, y, z]."""


class _Matching(_BoxObserver):
    """The number of matching blocks."""

    def _begin(self, pattern: str) -> None:
        self._fits = matching_blocks(pattern)

    def _count(self, blocks: NDArray[np.uint16]) -> float:
        return float(np.count_nonzero(self._fits[blocks]))


class _Placed(_BoxObserver):
    """The number of blocks that match now but did not at the start of the episode."""

    def _begin(self, pattern: str) -> None:
        self._fits = matching_blocks(pattern)
        self._did_not = ~self._fits[self._before]

    def _count(self, blocks: NDArray[np.uint16]) -> float:
        return float(np.count_nonzero(self._fits[blocks] & self._did_not))


class _Structures(_BoxObserver):
    """The number of places with a structure that did not have it at the start of the episode."""

    def _begin(self, pattern: str) -> None:
        self._structure = known_structures()[pattern]
        self._stood = find_structures(self._structure, self._before, self._before)

    def _count(self, blocks: NDArray[np.uint16]) -> float:
        stand = find_structures(self._structure, blocks, self._before)
        return float(
            sum(
                np.count_nonzero(now & ~before)
                for now, before in zip(stand, self._stood, strict=True)
            )
        )


_IN_BOX: dict[str, type[_BoxObserver]] = {
    BLOCK: _Matching,
    PLACED: _Placed,
    STRUCTURE: _Structures,
}


def _corners(box: Box, start: Corner) -> tuple[Corner, Corner]:
    """Return the lowest and highest corner of a box relative to a block."""
    (x0, x1), (y0, y1), (z0, z1) = box
    x, y, z = start
    return (x + x0, y + y0, z + z0), (x + x1, y + y1, z + z1)
