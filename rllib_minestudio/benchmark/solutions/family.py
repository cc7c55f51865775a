"""The base class of solutions, checks of their parameters, and the body they control."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rllib_minestudio.env.agents.hunter import BODIES
from rllib_minestudio.env.agents.toolmaker.body import REACH, AgentBody, Glance, SeenItem, Skill
from rllib_minestudio.env.agents.toolmaker.sight import AIR, Cell, Memory
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game.survey import Survey, VisibleBlocks
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.observed_boxes import voxels_box
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.foundation.options import broken_rule, is_integer, is_list, unknown_name

_MOST = 10_000
"""Largest count of any item."""


@dataclass(frozen=True)
class Family(ABC):
    """A way to solve tasks of one kind; its fields are the parameters in task files.

    A parameter whose default is None is required.
    """

    @abstractmethod
    def play(self, player: OmniscientBody) -> Skill:
        """Solve the task tick by tick, and return whether it succeeded."""


def _names_in(kind: str, known: Iterable[str], least: int) -> Callable[[str, Any], list[str]]:
    """Return a check for lists of at least `least` names of a `kind` of object."""
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
    """Return the problems of the name of an item."""
    return [] if value in ITEM_ID else [unknown_name("item", value, ITEM_ID, name)]


def check_block(name: str, value: Any) -> list[str]:
    """Return the problems of the name of a block."""
    return [] if value in BLOCK_ID else [unknown_name("block", value, BLOCK_ID, name)]


def check_amounts(name: str, value: Any) -> list[str]:
    """Return the problems of a mapping item -> count."""
    if not isinstance(value, dict) or not value:
        return [broken_rule(name, value, "must be a mapping of items to how many of each")]
    problems = [problem for item in value for problem in check_item(name, item)]
    return problems + [
        broken_rule(f"{name}.{item}", count, f"must be an integer from 1 to {_MOST}")
        for item, count in value.items()
        if not is_integer(count) or not 1 <= count <= _MOST
    ]


def check_box(name: str, value: Any) -> list[str]:
    """Return the problems of a box: x0, x1, y0, y1, z0, z1 relative to the starting point."""
    try:
        voxels_box(value)
    except ValueError as error:
        return [f"{name}: {error}."]
    return []


# ---------------------------------------------------------------- the body that a solution controls
# The toolmaker's body without its limits, with knowledge of the whole world.

_NEAR = 24
"""Search distance for blocks along each axis, in blocks."""
_DROPS = 12.0
"""Distance within which dropped items are known, in blocks."""


class WorldMemory(Memory):
    """A `Memory` that knows all blocks without having seen them."""

    def __init__(self, survey: Survey) -> None:
        super().__init__()
        self._survey = survey

    def note(self, seen: VisibleBlocks) -> None:
        """Do nothing, since everything is known."""

    def note_air(self, cell: Cell) -> None:
        """Do nothing, since everything is known."""

    def name_of(self, cell: Cell) -> str:
        """Return the name of the block at `cell`, or `AIR`, which plants in one's way are, too."""
        return self._survey.block_name(*cell, plants=False)

    def is_solid(self, cell: Cell) -> bool:
        """Return whether there is a block at `cell`."""
        return self.name_of(cell) != AIR

    def is_air(self, cell: Cell) -> bool:
        """Return whether `cell` is empty."""
        return self.name_of(cell) == AIR

    def find(self, names: Iterable[str]) -> list[Cell]:
        """Return the places of all blocks with these names around the player, in a fixed order."""
        return self._survey.places_of(tuple(names), _NEAR)


@dataclass
class OmniscientBody(AgentBody):
    """A body that knows the whole world.

    Attributes:
        engine: The game.
        survey: The interface for queries of the game.
        info: The environment's last info.
        start: The cell of the feet at the start of the episode.
    """

    engine: VoxelEngine

    def __post_init__(self) -> None:
        """Begin an episode."""
        super().__post_init__()
        self.survey = self.engine.survey
        self.memory = WorldMemory(self.survey)
        self.info: Mapping[str, Any] = {}
        self.start: Cell | None = None

    def feel(self, info: Mapping[str, Any]) -> None:
        """Update the body from `info`, and the surroundings from the game."""
        super().feel(info)
        self.info = info
        if self.start is None:
            self.start = self.cell
        drops = tuple(
            SeenItem(item["name"], (item["x"], item["y"], item["z"]))
            for item in self.survey.items_near(_DROPS)
        )
        if not self.screen_open:
            self.see(Glance(self.tick, self.engine.visible_blocks(1, 1, REACH), drops))
            self.understand()

    def relative(self, offset: Cell) -> Cell:
        """Return the cell that is (x, y, z) blocks from the starting point."""
        x, y, z = self.start or self.cell
        return x + offset[0], y + offset[1], z + offset[2]

    def count_of(self, names: Iterable[str]) -> int:
        """Return the number of these items in the inventory."""
        counts = self.counts()
        return sum(counts[name] for name in names)

    def sees(self, cell: Cell) -> bool:
        """Return whether a block is within reach, with nothing in front of it."""
        if self.distance_to(cell) > REACH - 0.5:
            return False
        before = self.memory.obstacles(self.eye, self.visible_point(cell))
        return before[:1] == [cell]

    def far_from(self, cell: Cell) -> float:
        """Return the horizontal distance from the feet to a cell's middle, in blocks."""
        x, _, z = self.position
        return math.hypot(cell[0] + 0.5 - x, cell[2] + 0.5 - z)
