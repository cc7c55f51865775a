"""The families of solutions by name, and how a task file's `solution` becomes one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rllib_minestudio.benchmark.solutions.building import Pillar
from rllib_minestudio.benchmark.solutions.digging import Clear, DigAndFill, Mine
from rllib_minestudio.benchmark.solutions.family import Family
from rllib_minestudio.benchmark.solutions.gate import Gate
from rllib_minestudio.benchmark.solutions.hunting import Hunt
from rllib_minestudio.benchmark.solutions.making import Chest, CraftItems, SmeltItems
from rllib_minestudio.benchmark.solutions.moving import Back, FindBiome, Tunnel, Walk
from rllib_minestudio.benchmark.solutions.player import OmniscientBody
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.gathering import stroll
from rllib_minestudio.env.agents.toolmaker.screens import close_screen
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import broken_rule, is_list, unknown_name
from rllib_minestudio.option_fields import default_of, group_problems, option, sentence_of

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
