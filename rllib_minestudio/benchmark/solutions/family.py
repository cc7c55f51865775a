"""What a family of solutions is, and the checks of its parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rllib_minestudio.benchmark.solutions.player import OmniscientBody
from rllib_minestudio.env.agents.hunter import BODIES
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.observed_boxes import voxels_box
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.option_checks import broken_rule, is_integer, is_list, unknown_name

_MOST = 10_000
"""Of anything that is counted."""


@dataclass(frozen=True)
class Family(ABC):
    """A way to solve tasks of one kind; its fields are the parameters that a task file gives.

    A parameter whose default is None has to be given.
    """

    @abstractmethod
    def play(self, player: OmniscientBody) -> Skill:
        """Solve the task, tick by tick; returns whether all is done that it is for."""


def _names_in(kind: str, known: Iterable[str], least: int) -> Callable[[str, Any], list[str]]:
    """A check of lists of names of a `kind` of thing, at least `least` of them."""
    valid = tuple(known)

    def check(name: str, value: Any) -> list[str]:
        if not is_list(value) or len(value) < least:
            return [broken_rule(name, value, f"must be a list of {least} or more names")]
        return [unknown_name(kind, word, valid, name) for word in value if word not in valid]

    return check


SOME_BLOCKS = _names_in("block", BLOCK_ID, 1)
SOME_PREY = _names_in("animal", BODIES, 1)
ANY_ITEMS = _names_in("item", ITEM_ID, 0)


def check_item(name: str, value: Any) -> list[str]:
    """Judge the name of an item."""
    return [] if value in ITEM_ID else [unknown_name("item", value, ITEM_ID, name)]


def check_amounts(name: str, value: Any) -> list[str]:
    """Judge a mapping of items to how many of each."""
    if not isinstance(value, dict) or not value:
        return [broken_rule(name, value, "must be a mapping of items to how many of each")]
    problems = [problem for item in value for problem in check_item(name, item)]
    return problems + [
        broken_rule(f"{name}.{item}", count, f"must be an integer from 1 to {_MOST}")
        for item, count in value.items()
        if not is_integer(count) or not 1 <= count <= _MOST
    ]


def check_box(name: str, value: Any) -> list[str]:
    """Judge a box: x0, x1, y0, y1, z0, z1 relative to where the player began."""
    try:
        voxels_box(value)
    except ValueError as error:
        return [f"{name}: {error}."]
    return []
