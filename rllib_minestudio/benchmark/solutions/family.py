"""What a family of solutions is, and the checks of its parameters."""

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


# ------------------------------------------------------------------------- the player of a solution
# The toolmaker's body without its limits, which knows where all is.

_NEAR = 24
"""Blocks, along each axis, within which blocks are looked for."""
_DROPS = 12.0
"""Blocks within which dropped items are known of."""


class WorldMemory(Memory):
    """The blocks as they are: what a `Memory` would hold after having seen all of them."""

    def __init__(self, survey: Survey) -> None:
        super().__init__()
        self._survey = survey

    def note(self, seen: VisibleBlocks) -> None:
        """Learn nothing: all is known."""

    def note_air(self, cell: Cell) -> None:
        """Learn nothing: all is known."""

    def name_of(self, cell: Cell) -> str:
        """The block at `cell`, or `AIR`."""
        return self._survey.block_name(*cell)

    def is_solid(self, cell: Cell) -> bool:
        """Whether there is a block at `cell`."""
        return self.name_of(cell) != AIR

    def is_air(self, cell: Cell) -> bool:
        """Whether `cell` is empty."""
        return self.name_of(cell) == AIR

    def find(self, names: Iterable[str]) -> list[Cell]:
        """The places of all blocks of these names around the player, in a fixed order."""
        return self._survey.places_of(tuple(names), _NEAR)


@dataclass
class OmniscientBody(AgentBody):
    """A body that knows the world.

    Attributes:
        engine: The game.
        survey: Answers questions about it.
        info: What the environment told last.
        start: The cell that the feet were in when the episode began.
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
        """Take over what `info` says of the player, and what lies around it."""
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
        """The cell that is (x, y, z) blocks from where the episode began."""
        x, y, z = self.start or self.cell
        return x + offset[0], y + offset[1], z + offset[2]

    def count_of(self, names: Iterable[str]) -> int:
        """How many of these items the inventory holds."""
        counts = self.counts()
        return sum(counts[name] for name in names)

    def sees(self, cell: Cell) -> bool:
        """Whether a block is within reach, with nothing in front of it."""
        if self.distance_to(cell) > REACH - 0.5:
            return False
        before = self.memory.obstacles(self.eye, self.visible_point(cell))
        return before[:1] == [cell]

    def far_from(self, cell: Cell) -> float:
        """Blocks from the feet to a cell's middle on the map."""
        x, _, z = self.position
        return math.hypot(cell[0] + 0.5 - x, cell[2] + 0.5 - z)
