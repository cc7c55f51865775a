"""Solutions of tasks: what they all share, and those that build."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from rllib_minestudio.env.agents.hunter import BODIES
from rllib_minestudio.env.agents.toolmaker.body import (
    AIR,
    REACH,
    AgentBody,
    Cell,
    Glance,
    Memory,
    Point,
    SeenItem,
    Skill,
    hold_one_of,
    middle,
)
from rllib_minestudio.env.agents.toolmaker.gathering import Stations
from rllib_minestudio.env.agents.toolmaker.walking import SIDES, mine, walk
from rllib_minestudio.env.voxel.contract import voxels_box
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game.survey import Survey, VisibleBlocks
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, SCREENS
from rllib_minestudio.foundation.options import (
    broken_rule,
    is_integer,
    is_list,
    option,
    unknown_name,
)

# --------------- the base class of solutions, checks of their parameters, and the body they control

_MOST = 10_000
"""Largest count of any item."""


@dataclass(frozen=True)
class SolutionFamily(ABC):
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


# ------------------------ solutions that place blocks: a pillar below the player's feet, and a gate

_CENTRED = 0.15
"""Distance from a column's middle within which a body, 0.6 wide, is above that column only."""
_CENTRE_TICKS, _JUMP_TICKS, _TRIES = 60, 16, 5


def stand_in_middle(player: OmniscientBody) -> Skill:
    """Sneak to the middle of the player's column."""
    x, _, z = middle(player.cell)
    for _ in range(_CENTRE_TICKS):
        if player.far_from(player.cell) < _CENTRED:
            return True
        yaw = player.error_to((x, player.position[1], z))[1]
        yield {"camera": (45.0 - player.pitch, yaw), "sneak": 1, "forward": int(abs(yaw) < 20.0)}
    return False


def rise(player: OmniscientBody, item: str, blocks: int) -> Skill:
    """Jump and place a block below the feet, `blocks` times; break blocks overhead."""
    for _ in range(blocks):
        if not (yield from Stations(player).have_in_hotbar((item,))):
            return False
        x, y, z = player.cell
        for cell in ((x, y + 1, z), (x, y, z), (x, y + 2, z)):
            if player.memory.is_solid(cell) and not (yield from mine(player, cell)):
                return False
        yield from hold_one_of(player, (item,))
        if not (yield from _jump_and_place(player)):
            return False
    return True


def _jump_and_place(player: OmniscientBody) -> Skill:
    base = player.cell[1]
    for _ in range(_TRIES):
        while player.pitch < 85.0:
            yield {"camera": (90.0 - player.pitch, 0.0)}
        yield {"jump": 1}
        for _ in range(_JUMP_TICKS):
            yield {"use": int(player.position[1] > base + 1.0)}
            if player.position[1] <= base + 0.01 or _rests(player):
                break
        if player.cell[1] > base:
            return True
    return False


def _rests(player: OmniscientBody) -> bool:
    """Return whether the feet are on top of a block."""
    x, y, z = player.cell
    return player.memory.is_solid((x, y - 1, z)) and player.position[1] - y < 0.01


@dataclass(frozen=True)
class Pillar(SolutionFamily):
    """Raises a pillar below the player's feet."""

    item: str = option(None, "What it is made of.", check=check_item)
    height: int = option(4, "Blocks.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Go to the middle of a block and build upwards."""
        x, y, z = player.cell
        for cell in ((x, y + 1, z), (x, y, z)):  # the player may start inside blocks
            if player.memory.is_solid(cell) and not (yield from mine(player, cell)):
                return False
        yield from stand_in_middle(player)
        return (yield from rise(player, self.item, self.height))


# --------------------------------------------------------------------- a gate: two posts and a beam

_AHEAD = 2
"""Distance from the player to the gate, in blocks."""
_POST = 2
"""Height of a post below the beam, in blocks."""
_SEARCH = 6
_NORMALS = ((0, 1, 0), (1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1), (0, -1, 0))
_SIDE, _ACROSS = 0.47, (-0.3, 0.0, 0.3)
"""Offsets of aiming points from a block's middle: to just below a side, and along it."""
_POINTS = 100
_TOLERANCE = 0.6
"""Degrees; the smallest possible turn."""
_GATE_TRIES = 4


def put_at(player: OmniscientBody, cell: Cell, item: str) -> Skill:
    """Place a block in a cell within reach, without moving."""
    for _ in range(_GATE_TRIES):
        if player.memory.name_of(cell) == item:
            return True
        aim = _aim(player, cell)
        if aim is None or not (yield from Stations(player).have_in_hotbar((item,))):
            return False
        yield from hold_one_of(player, (item,))
        yield from player.look_at(aim, _TOLERANCE)
        yield from player.brush_aside()
        yield {"use": 1}
        yield from player.react()
    return player.memory.name_of(cell) == item


def _aim(player: OmniscientBody, cell: Cell) -> Point | None:
    """Return the point on a neighbouring block's side whose line of sight is longest in `cell`.

    Blocks that open a screen are not used.
    """
    best, longest = None, 0
    for normal in _NORMALS:
        support = cell[0] - normal[0], cell[1] - normal[1], cell[2] - normal[2]
        if player.memory.name_of(support) in SCREENS:
            continue
        for aim in _points_of_side(support, normal):
            if player.memory.obstacles(player.eye, aim) == [support]:
                length = _length_in(player.eye, aim, cell)
                if length > longest:
                    best, longest = aim, length
    return best


def _points_of_side(block: Cell, normal: Cell) -> Iterator[Point]:
    """Yield points just below one of a block's sides, spread over it."""
    along = ((_SIDE * step,) if step else _ACROSS for step in normal)
    for shifts in product(*along):
        x, y, z = (a + b for a, b in zip(middle(block), shifts, strict=True))
        yield x, y, z


def _length_in(start: Point, end: Point, cell: Cell) -> int:
    """Return how many of the points along a line are in a cell."""
    points = (
        [a + step / _POINTS * (b - a) for a, b in zip(start, end, strict=True)]
        for step in range(_POINTS)
    )
    return sum(all(c <= v < c + 1 for c, v in zip(cell, point, strict=True)) for point in points)


class _Site(NamedTuple):
    """A place for a gate.

    Attributes:
        stand: The cell to build it from.
        posts: The cells of the posts, from the ground up.
        beam: The cells of the beam, first those on the posts.
    """

    stand: Cell
    posts: tuple[Cell, ...]
    beam: tuple[Cell, ...]


def _sites(player: OmniscientBody) -> Iterator[_Site]:
    """Yield level places for a gate, the nearest first."""
    for stand, (left, centre, right) in _level_rows(player, (-1, 0, 1)):
        posts = tuple(_above(foot, h) for h in range(_POST) for foot in (left, right))
        beam = tuple(_above(foot, _POST) for foot in (left, right, centre))
        yield _Site(stand, posts, beam)


def _level_rows(player: OmniscientBody, at: Sequence[int]) -> Iterator[tuple[Cell, list[Cell]]]:
    """Yield level places to stand, the nearest first, and the row of cells to build on before each.

    Args:
        player: The player.
        at: Where the cells are: blocks to the side of the middle.
    """
    x, y, z = player.cell
    around = range(-_SEARCH, _SEARCH + 1)
    stands = [(x + i, y + j, z + k) for i in around for j in (0, -1, 1) for k in around]
    for stand in sorted(stands, key=lambda cell: (player.far_from(cell), abs(cell[1] - y))):
        if not _is_level(player, stand):
            continue
        for dx, dz in SIDES:
            row = [
                (stand[0] + _AHEAD * dx + side * dz, stand[1], stand[2] + _AHEAD * dz + side * dx)
                for side in at
            ]
            if all(_is_level(player, cell) for cell in row):
                yield stand, row


def _above(cell: Cell, height: int) -> Cell:
    return cell[0], cell[1] + height, cell[2]


def _is_level(player: OmniscientBody, cell: Cell) -> bool:
    """Return whether there is ground below a cell, and room above it without any plant."""
    return player.memory.is_solid(_above(cell, -1)) and all(
        player.survey.block_name(*_above(cell, height)) == AIR for height in range(_POST + 2)
    )


@dataclass(frozen=True)
class Gate(SolutionFamily):
    """Builds two posts and a beam on level ground nearby."""

    item: str = option(None, "What it is made of; eight blocks.", check=check_item)

    def play(self, player: OmniscientBody) -> Skill:
        """Build the posts, go up by a block, and build the beam."""
        site = next(_sites(player), None)
        if site is None:
            return False
        yield from walk(player, site.stand, lambda cell: cell == site.stand)
        yield from stand_in_middle(player)
        for cell in site.posts:
            if not (yield from put_at(player, cell, self.item)):
                return False
        if not (yield from rise(player, self.item, 1)):
            return False
        for cell in site.beam:
            if not (yield from put_at(player, cell, self.item)):
                return False
        return True


# --------------------------------------------------------------------------- a portal to the Nether

_OBSIDIAN, _INSIDE_HEIGHT = "obsidian", 3


@dataclass(frozen=True)
class Portal(SolutionFamily):
    """Builds a frame of obsidian on level ground nearby, and lights it with flint and steel."""

    def play(self, player: OmniscientBody) -> Skill:
        """Sink its foot, build posts from the ground, the rest from two blocks up, and light it."""
        site = next(_portal_sites(player), None)
        if site is None:
            return False
        stand, foot, posts, corners, beam, inside = site
        yield from walk(player, stand, lambda cell: cell == stand)
        yield from stand_in_middle(player)
        for cell in foot:
            if player.memory.name_of(cell) != _OBSIDIAN and not (yield from mine(player, cell)):
                return False
        for part, higher in ((foot + posts[:4], 0), (posts[4:], 1), (corners + beam, 1)):
            if higher and not (yield from rise(player, _OBSIDIAN, higher)):
                return False
            for cell in part:
                if not (yield from put_at(player, cell, _OBSIDIAN)):
                    return False
        return (yield from _light(player, inside))


def _light(player: OmniscientBody, inside: tuple[Cell, ...]) -> Skill:
    """Strike fire in one of the cells of a frame that can be aimed at."""
    if not (yield from Stations(player).have_in_hotbar(("flint_and_steel",))):
        return False
    yield from hold_one_of(player, ("flint_and_steel",))
    for cell in inside:
        if (aim := _aim(player, cell)) is not None:
            yield from player.look_at(aim, _TOLERANCE)
            yield {"use": 1}
            yield from player.react()
            if player.survey.block_name(*cell) == "nether_portal":
                return True
    return False


class _PortalSite(NamedTuple):
    """A place for a frame.

    Attributes:
        stand: The cell to build it from.
        foot: The cells of its lowest row, in the ground.
        posts: The cells of the posts, from the ground up.
        corners: The cells on top of the posts.
        beam: The cells of the beam between these.
        inside: The cells that are to be the portal.
    """

    stand: Cell
    foot: tuple[Cell, ...]
    posts: tuple[Cell, ...]
    corners: tuple[Cell, ...]
    beam: tuple[Cell, ...]
    inside: tuple[Cell, ...]


def _portal_sites(player: OmniscientBody) -> Iterator[_PortalSite]:
    """Yield level places for a frame of four by five, the nearest first."""
    heights = range(_INSIDE_HEIGHT)
    for stand, (left, *middles, right) in _level_rows(player, (-1, 0, 1, 2)):
        yield _PortalSite(
            stand,
            tuple(_above(column, -1) for column in middles),
            tuple(_above(post, h) for h in heights for post in (left, right)),
            tuple(_above(post, _INSIDE_HEIGHT) for post in (left, right)),
            tuple(_above(column, _INSIDE_HEIGHT) for column in middles),
            tuple(_above(column, h) for h in heights for column in middles),
        )
