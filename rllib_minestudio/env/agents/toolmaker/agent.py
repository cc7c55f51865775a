"""The toolmaker: from nothing to a pickaxe, through the game's screens, as a player would.

It knows what the frame shows (`sight`), what `info` reports about the player, and where its own
hand has moved the cursor; it acts through VPT's tokens. `plan` decides what it does next, and the
other modules how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.hunter import HumanLimits
from rllib_minestudio.env.agents.toolmaker.body import (
    COLUMNS,
    ROWS,
    AgentBody,
    Glance,
    SeenItem,
    Skill,
)
from rllib_minestudio.env.agents.toolmaker.gathering import Stations, collect, gather, stroll
from rllib_minestudio.env.agents.toolmaker.plan import (
    CRAFTING_TABLE,
    FURNACE,
    PlanStep,
    craft,
    knowledge,
    make_plan,
    most_sets,
    smelt,
)
from rllib_minestudio.env.backends.voxel import VoxelBackend
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.names import TASK
from rllib_minestudio.foundation.options import not_a_choice

DEFAULT_GOAL = "iron_pickaxe"
GOAL_OF_TASK = "make"
"""Key of a task that names what to make."""

_TICKS_PER_GLANCE = 2


class Toolmaker:
    """Gathers, crafts and smelts what a tool needs, and makes it.

    If the episode's task has a `make`, as in `{name: pickaxe, make: stone_pickaxe}` under `Task`,
    that is the goal. The same seed gives the same play in the same episodes.
    """

    def __init__(
        self, goal: str = DEFAULT_GOAL, seed: int | None = None, limits: HumanLimits | None = None
    ) -> None:
        """Choose what to make and how well to play.

        Args:
            goal: What to make in episodes whose task does not say: one of the crafts in
                `knowledge.json`.
            seed: The seed of all randomness; None draws one.
            limits: The imperfections.

        Raises:
            InvalidOptionsError: If it does not know how to make the goal.
        """
        self._own_goal = _checked_goal(goal, "goal")
        self._limits = limits or HumanLimits()
        self._random = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Forget the previous episode."""
        self.goal = self._own_goal
        self._body = AgentBody(self._limits, self._random)
        self._skill: Skill | None = None
        self._takes_over = False

    def take_over(self) -> None:
        """Go on in the middle of an episode that another agent began.

        It closes the open screen, which returns what is in a grid; picks up what is then on the
        ground; and pursues its goal with what there is. It knows nothing of what was seen before.
        """
        self.reset()
        self._body = AgentBody(replace(self._limits, late_start=0.0), self._random)
        self._takes_over = True

    def act(self, env: gym.Env[Any, Any]) -> dict[str, Any]:
        """Return the next action for a `MineStudioEnv` or a wrapped one, of the type that it takes.

        Raises:
            InvalidOptionsError: If the game is not the embedded engine, or the episode's task is to
                make something unknown.
        """
        base, backend = embedded_game(env, "Toolmaker")
        self._note_task(base.sim.obs)
        body = self._body
        body.feel(base.sim.info)
        if not body.screen_open and body.tick % _TICKS_PER_GLANCE == 0:
            body.see(_look(backend, body))
        body.understand()
        return press(base, body, self._keys())

    def _note_task(self, obs: Mapping[str, Any]) -> None:
        """Adopt the goal of the episode's task, which the episode's first observation holds."""
        task = obs.get(TASK)
        if isinstance(task, Mapping) and GOAL_OF_TASK in task:
            where = f"{GOAL_OF_TASK} of the task {task.get('name')!r}"
            self.goal = _checked_goal(task[GOAL_OF_TASK], where)

    def _keys(self) -> EnvAction:
        """Return the current skill's keys for this tick, within the hand's limits."""
        body = self._body
        if self._skill is None:
            career = Career(body, self.goal)
            self._skill = career.take_over() if self._takes_over else career.pursue()
        action: EnvAction = {} if body.hand.rests() else dict(next(self._skill))
        action["camera"] = body.move_mouse(action.get("camera", (0.0, 0.0)))
        return action


def embedded_game(env: gym.Env[Any, Any], who: str) -> tuple[MineStudioEnv, VoxelBackend]:
    """Return the environment below all wrappers, and its embedded engine.

    Args:
        env: A `MineStudioEnv` or a wrapped one.
        who: The agent that plays, for messages.

    Raises:
        TypeError: If it is not a `MineStudioEnv`.
        InvalidOptionsError: If the game is not the embedded engine.
    """
    base = env.unwrapped
    if not isinstance(base, MineStudioEnv):
        raise TypeError(f"{who} plays MineStudioEnv; got {type(base).__name__}.")
    backend = base.backend
    if not isinstance(backend, VoxelBackend):
        raise InvalidOptionsError(
            f"engine: {base.options.engine!r} does not show {who} its blocks; use engine: voxel."
        )
    return base, backend


def press(base: MineStudioEnv, body: AgentBody, keys: EnvAction) -> dict[str, Any]:
    """Return keys as an action of the environment's type, rounded to VPT's tokens.

    The cursor of an open screen is tracked to where the action moves it.
    """
    mapper = base.sim.mapper
    buttons, camera = mapper.from_env(keys)
    rounded = mapper.to_env(buttons, camera)
    if body.screen_open:
        body.cursor.turn(*rounded["camera"].tolist())
    if base.options.action_type == "agent":
        return {"buttons": buttons, "camera": camera}
    del rounded["drop"]  # environment actions have no such key
    return rounded


def _look(backend: VoxelBackend, body: AgentBody) -> Glance:
    sight = body.limits.sight
    drops = tuple(
        SeenItem(item["name"], (item["x"], item["y"], item["z"]))
        for item in backend.visible_items(sight)
    )
    return Glance(body.tick, backend.visible_blocks(COLUMNS, ROWS, sight), drops)


def _checked_goal(goal: Any, where: str) -> str:
    """Return a goal that the toolmaker can make.

    Raises:
        InvalidOptionsError: If it cannot.
    """
    crafts = knowledge().crafts
    if not isinstance(goal, str) or goal not in crafts:
        raise InvalidOptionsError(not_a_choice(where, goal, crafts))
    return goal


# ----------------------------------------------------------------------------- the toolmaker's work
# One step of the plan after the other, until the goal is made.

_STACK_SIZE = 64
"""How many items of a kind a slot holds."""
_THROWN_TICKS = 40
"""Ticks for which nobody can pick up what was thrown."""


class Career:
    """What the toolmaker does in an episode.

    Attributes:
        goal: What it wants to make.
    """

    def __init__(self, body: AgentBody, goal: str) -> None:
        self.goal = goal
        self._body = body
        self._order = int(body.random.integers(2**31))
        self._stations = Stations(body)
        self._failures = 0
        self._is_deep = False

    def pursue(self) -> Skill:
        """Make the goal again and again, with a new plan after every step."""
        body, stations = self._body, self._stations
        while True:
            at_hand = [
                name for name in (CRAFTING_TABLE, FURNACE) if stations.nearest(name) is not None
            ]
            had = body.counts()
            mined = knowledge().mined
            in_sight = [item for item in mined if body.memory.find(mined[item].blocks)]
            sets_out = not self._is_deep
            steps = make_plan(self.goal, had, at_hand, self._order, in_sight, sets_out)
            done = yield from self._do(steps[0])
            self._failures = 0 if done else self._failures + 1
            if not done:
                yield from stations.leave()
                yield from body.wait(1)  # lets time pass, whatever failed
                yield from self._pick_up_thrown(had)
            if self._failures >= 2:  # the place may be at fault
                yield from stroll(body)

    def take_over(self) -> Skill:
        """Pursue the goal where another agent left off: on any screen, with items on the ground."""
        body = self._body
        yield from self._stations.leave()
        yield {"hotbar.1": 1}  # the slot in the hand is unknown
        yield from body.react()
        dropped = {drop.name for drop in body.drops}
        if dropped:
            yield from body.wait(_THROWN_TICKS)
            yield from collect(body, dropped, body.cell)
        return (yield from self.pursue())

    def _do(self, step: PlanStep) -> Skill:
        body, stations, known = self._body, self._stations, knowledge()
        if step.verb == "gather":
            mined = known.mined[step.item]
            self._is_deep |= mined.layer is not None
            yield from stations.leave()
            if mined.tools and not (yield from stations.have_in_hotbar(mined.tools)):
                return False
            return (yield from gather(body, mined, known.members(step.item), step.quantity))
        if step.verb == "smelt":
            screen = yield from stations.open(FURNACE)
            if screen is None:
                return False
            return (yield from smelt(body, screen, known, step.item, step.quantity))
        made = known.crafts[step.item]
        screen = yield from stations.open(made.screen)
        counts_out = body.limits.counts_out or made.needs.total() > 1
        sets = most_sets(known, made, body.slots, step.quantity if counts_out else _STACK_SIZE)
        if screen is None or not sets:
            return False
        return (yield from craft(body, screen, known, step.item, sets))

    def _pick_up_thrown(self, had: Mapping[str, int]) -> Skill:
        """Pick up what was on the cursor when a screen closed: the game throws it away."""
        body = self._body
        yield from body.react()
        names = {drop.name for drop in body.drops}
        lost = [name for name in names if body.counts()[name] < had.get(name, 0)]
        if not lost:
            return False
        yield from body.wait(_THROWN_TICKS)
        return (yield from collect(body, lost, body.cell))
