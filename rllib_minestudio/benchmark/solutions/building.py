"""Solutions that place blocks: a pillar below the player's feet, and a gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from rllib_minestudio.benchmark.solutions.family import Family, OmniscientBody, check_item
from rllib_minestudio.env.agents.toolmaker.body import Skill, hold_one_of
from rllib_minestudio.env.agents.toolmaker.gathering import Stations
from rllib_minestudio.env.agents.toolmaker.sight import AIR, Cell, Point, middle
from rllib_minestudio.env.agents.toolmaker.walking import SIDES, mine, walk
from rllib_minestudio.env.voxel.world.blocks import SCREENS
from rllib_minestudio.foundation.options import option

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
class Pillar(Family):
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
class Gate(Family):
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
class Portal(Family):
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
