"""The families of solutions by name, and how a task file's `solution` becomes one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.benchmark.solutions.building import Gate, Pillar
from rllib_minestudio.benchmark.solutions.crafting import Chest, CraftItems, SmeltItems
from rllib_minestudio.benchmark.solutions.family import Family, OmniscientBody
from rllib_minestudio.benchmark.solutions.gathering import (
    Back,
    Clear,
    DigAndFill,
    FindBiome,
    Hunt,
    Mine,
    Tunnel,
    Walk,
)
from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.human_limits import WITHOUT_LIMITS
from rllib_minestudio.env.agents.toolmaker.agent import embedded_game, press
from rllib_minestudio.env.agents.toolmaker.body import Skill, close_screen
from rllib_minestudio.env.agents.toolmaker.gathering import stroll
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.options import (
    broken_rule,
    default_of,
    group_problems,
    is_list,
    option,
    sentence_of,
    unknown_name,
)

_TRIES = 3
_ONE = "must be one family and its parameters, such as {mine: {blocks: [dirt], count: 3}}"


def _check_steps(name: str, value: Any) -> list[str]:
    if not is_list(value) or not value:
        return [broken_rule(name, value, "must be a list of solutions")]
    return [
        problem
        for index, step in enumerate(value)
        for problem in solution_problems(step, f"{name}[{index}]")
    ]


@dataclass(frozen=True)
class InTurn(Family):
    """Several solutions, one after the other."""

    steps: Sequence[Mapping[str, Any]] = option(None, "Solutions.", check=_check_steps)

    def play(self, player: OmniscientBody) -> Skill:
        """Play each; one that fails is tried again from another place."""
        for step in self.steps:
            family = make_solution(step)
            for _ in range(_TRIES):
                if (yield from family.play(player)):
                    break
                yield from close_screen(player)
                yield from stroll(player)
            else:
                return False
        return True


FAMILIES: dict[str, type[Family]] = {
    "mine": Mine,
    "clear": Clear,
    "dig_and_fill": DigAndFill,
    "pillar": Pillar,
    "gate": Gate,
    "craft": CraftItems,
    "smelt": SmeltItems,
    "chest": Chest,
    "walk": Walk,
    "back": Back,
    "find_biome": FindBiome,
    "tunnel": Tunnel,
    "hunt": Hunt,
    "in_turn": InTurn,
}
"""Families by the name that task files give them."""


def solution_problems(given: Any, where: str = "solution") -> list[str]:
    """Say what is wrong with a task's solution.

    Args:
        given: A mapping of one family to its parameters.
        where: What messages call it.
    """
    if not isinstance(given, Mapping) or len(given) != 1:
        return [broken_rule(where, given, _ONE)]
    ((name, parameters),) = given.items()
    if name not in FAMILIES:
        return [unknown_name("family of solutions", name, FAMILIES, where)]
    if not isinstance(parameters, Mapping):
        return [broken_rule(f"{where}.{name}", parameters, "must be a mapping of parameters")]
    missing = [
        f"{where}.{name}.{option.name} is missing: {sentence_of(option)}"
        for option in fields(FAMILIES[name])
        if default_of(option) is None and option.name not in parameters
    ]
    return missing + group_problems(FAMILIES[name], parameters, f"{where}.{name}")


def make_solution(given: Any) -> Family:
    """Make the solution that a task file describes.

    Args:
        given: A mapping of one family to its parameters.

    Raises:
        InvalidOptionsError: It describes none; lists all problems.
    """
    if problems := solution_problems(given):
        raise InvalidOptionsError(problems)
    ((name, parameters),) = given.items()
    return FAMILIES[name](**parameters)


# -------------------------------------------------- the agent that plays a task's scripted solution


class SolutionAgent:
    """Plays a scripted solution: it looks at the engine's state, and acts by MineStudio's actions.

    It shows that a task can be solved, and is no yardstick for players who see frames. A solution
    that fails is begun anew; after one that is done it stands still.
    """

    def __init__(self, solution: Any, seed: int | None = None) -> None:
        """Choose what to play.

        Args:
            solution: A family and its parameters, as in a task file.
            seed: Of where in a slot one clicks, and the like; None draws one.

        Raises:
            InvalidOptionsError: There is no such solution; lists all problems.
        """
        self.family = make_solution(solution)
        self._random = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Forget the episode before."""
        self._player: OmniscientBody | None = None
        self._skill: Skill | None = None

    def act(self, env: gym.Env[Any, Any]) -> dict[str, Any]:
        """Return the next action for a `MineStudioEnv` or a wrapped one, of the type that it takes.

        Raises:
            TypeError: If it is no `MineStudioEnv`.
            InvalidOptionsError: If the game is not the embedded engine.
        """
        base, backend = embedded_game(env, "a scripted solution")
        if self._player is None or self._skill is None:
            self._player = OmniscientBody(WITHOUT_LIMITS, self._random, backend.engine)
            self._skill = self._pursue(self._player)
        self._player.feel(base.sim.info)
        action: EnvAction = dict(next(self._skill))
        action["camera"] = self._player.move_mouse(action.get("camera", (0.0, 0.0)))
        return press(base, self._player, action)

    def _pursue(self, player: OmniscientBody) -> Skill:
        while not (yield from self.family.play(player)):
            yield from close_screen(player)
            yield {}  # time passes, whatever failed
        while True:
            yield {}
