"""The families of solutions by name, and the agent that plays a task file's `solution`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.benchmark.solutions.building import (
    Gate,
    OmniscientBody,
    Pillar,
    Portal,
    SolutionFamily,
)
from rllib_minestudio.benchmark.solutions.gathering import (
    Back,
    Chest,
    Clear,
    CraftItems,
    DigAndFill,
    FindBiome,
    Hunt,
    Mine,
    SmeltItems,
    Tunnel,
    Walk,
)
from rllib_minestudio.benchmark.solutions.using import (
    Consume,
    Enchant,
    PutDown,
    RaiseGolem,
    SetFire,
    Shoot,
    Sleep,
    UseOnAnimal,
    UseOnBlock,
)
from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.hunter import WITHOUT_LIMITS
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
class InTurn(SolutionFamily):
    """Several solutions, one after the other."""

    steps: Sequence[Mapping[str, Any]] = option(None, "Solutions.", check=_check_steps)

    def play(self, player: OmniscientBody) -> Skill:
        """Play each solution, repeating a failed one from another place."""
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


FAMILIES: dict[str, type[SolutionFamily]] = {
    "mine": Mine,
    "clear": Clear,
    "dig_and_fill": DigAndFill,
    "pillar": Pillar,
    "gate": Gate,
    "portal": Portal,
    "craft": CraftItems,
    "smelt": SmeltItems,
    "chest": Chest,
    "walk": Walk,
    "back": Back,
    "find_biome": FindBiome,
    "tunnel": Tunnel,
    "hunt": Hunt,
    "put_down": PutDown,
    "consume": Consume,
    "enchant": Enchant,
    "golem": RaiseGolem,
    "set_fire": SetFire,
    "shoot": Shoot,
    "sleep": Sleep,
    "use_on_block": UseOnBlock,
    "use_on_animal": UseOnAnimal,
    "in_turn": InTurn,
}
"""Families by their names in task files."""


def solution_problems(given: Any, where: str = "solution") -> list[str]:
    """Return the problems of a task's solution.

    Args:
        given: A mapping of one family to its parameters.
        where: Name of the solution in messages.
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


def make_solution(given: Any) -> SolutionFamily:
    """Build the solution that a task file describes.

    Args:
        given: A mapping of one family to its parameters.

    Raises:
        InvalidOptionsError: It is not a solution; lists all problems.
    """
    if problems := solution_problems(given):
        raise InvalidOptionsError(problems)
    ((name, parameters),) = given.items()
    return FAMILIES[name](**parameters)


# -------------------------------------------------- the agent that plays a task's scripted solution


class SolutionAgent:
    """An agent that plays a scripted solution by the engine's state, through MineStudio's actions.

    It shows that a task can be solved, but is no baseline for players who see frames. A solution
    that fails is restarted; after a solution has succeeded, the agent stands still.
    """

    def __init__(self, solution: Any, seed: int | None = None) -> None:
        """Build the solution.

        Args:
            solution: A family and its parameters, as in a task file.
            seed: Seed of random details, such as where in a slot to click; None draws one.

        Raises:
            InvalidOptionsError: There is no such solution; lists all problems.
        """
        self.family = make_solution(solution)
        self._random = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Forget the previous episode."""
        self._player: OmniscientBody | None = None
        self._skill: Skill | None = None

    def act(self, env: gym.Env[Any, Any]) -> dict[str, Any]:
        """Return the next action for a `MineStudioEnv`, possibly wrapped, in its action type.

        Raises:
            TypeError: `env` is not a `MineStudioEnv`.
            InvalidOptionsError: The game is not the embedded engine.
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
            yield {}  # let a tick pass before the next attempt
        while True:
            yield {}
