"""The toolmaker's body: what it feels and sees in a tick, and its hand on the mouse.

A skill is a generator that yields the keys of one tick after another, reads the body in between,
and returns whether it has succeeded.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.hunter import EYE_HEIGHT, HumanHand, HumanLimits
from rllib_minestudio.env.voxel.screens import screen
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS, SLOT_SIZE
from rllib_minestudio.env.voxel.screens.screen import PIXELS_PER_DEGREE

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.game.survey import VisibleBlocks


# ---------------------------------------------------------------------- what the toolmaker has seen
# What the toolmaker has seen: a map of the blocks that its eyes have met, and of the air between.
# It knows nothing else of the world. A block that it has not seen is unknown, which is neither
# solid nor air, and one that has changed since is remembered as it was.

Cell = tuple[int, int, int]
"""A block's coordinates."""
Point = tuple[float, float, float]

AIR = "air"
COLUMNS, ROWS = 49, 27
"""Rays per glance, 2 to 3 degrees apart; odd, so that one goes through the crosshair."""

_AIR_REACH = 6.0
"""Blocks up to which the air along a ray is noted: where the player walks and builds next."""
_AIR_STEP = 0.35
_AIR_RAYS = (slice(1, None, 2), slice(0, None, 2))
"""Every other row and column of a glance, which is dense enough near by."""
_BEFORE_HIT = 0.02
_OFFSET = 1 << 20
"""Added to coordinates so that three of them can be packed into one integer."""
_STEP_OF_LINE = 0.05


class Memory:
    """The blocks seen so far."""

    def __init__(self) -> None:
        self._blocks: dict[Cell, str] = {}
        self._cells: dict[str, set[Cell]] = defaultdict(set)

    def note(self, seen: VisibleBlocks) -> None:
        """Remember the blocks and the air that a glance shows."""
        for cell in _air_cells(seen):
            self._put(cell, AIR)
        hit = seen.kind > 0
        packed, first = np.unique(_pack(seen.cell[hit]), return_index=True)
        kinds = seen.kind[hit][first].tolist()
        for cell, kind in zip(_unpack(packed), kinds, strict=True):
            self._put(cell, seen.names[kind])

    def note_air(self, cell: Cell) -> None:
        """Remember that a cell is empty."""
        self._put(cell, AIR)

    def _put(self, cell: Cell, name: str) -> None:
        before = self._blocks.get(cell)
        if before == name:
            return
        if before is not None and before != AIR:
            self._cells[before].discard(cell)
        self._blocks[cell] = name
        if name != AIR:
            self._cells[name].add(cell)

    def name_of(self, cell: Cell) -> str | None:
        """The block at `cell`, `AIR`, or None if it has not been seen."""
        return self._blocks.get(cell)

    def is_solid(self, cell: Cell) -> bool:
        """Whether a block has been seen at `cell`."""
        return self._blocks.get(cell, AIR) != AIR

    def is_air(self, cell: Cell) -> bool:
        """Whether `cell` has been seen to be empty."""
        return self._blocks.get(cell) == AIR

    def find(self, names: Iterable[str]) -> list[Cell]:
        """The places of all blocks of these names, in a fixed order."""
        return sorted(cell for name in names for cell in self._cells.get(name, ()))

    def names(self) -> list[str]:
        """The names of the blocks seen, in a fixed order."""
        return sorted(name for name, cells in self._cells.items() if cells)

    def obstacles(self, eye: Point, aim: Point) -> list[Cell]:
        """The known blocks on the line from `eye` to `aim`, the nearest first."""
        return [cell for cell in cells_on_line(eye, aim) if self.is_solid(cell)]


def middle(cell: Cell) -> Point:
    """The middle of a block."""
    return cell[0] + 0.5, cell[1] + 0.5, cell[2] + 0.5


def cells_on_line(start: Point, end: Point) -> Iterator[Cell]:
    """The cells that a line passes through; may miss one whose corner it only cuts."""
    length = math.dist(start, end)
    count = max(int(length / _STEP_OF_LINE), 1)
    last = None
    for step in range(count + 1):
        share = step / count
        x, y, z = (a + (b - a) * share for a, b in zip(start, end, strict=True))
        cell = math.floor(x), math.floor(y), math.floor(z)
        if cell != last:
            yield cell
        last = cell


def _pack(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number per cell: [n, 3] -> [n]."""
    x, y, z = (cells + _OFFSET).T
    packed: NDArray[np.int64] = x << 42 | y << 21 | z
    return packed


def _unpack(packed: NDArray[np.int64]) -> Iterable[Cell]:
    mask = (1 << 21) - 1
    columns = (packed >> 42, packed >> 21 & mask, packed & mask)
    return zip(*((column - _OFFSET).tolist() for column in columns), strict=True)


def _air_cells(seen: VisibleBlocks) -> Iterable[Cell]:
    """The cells near the eye that rays went through."""
    steps = np.arange(0.0, _AIR_REACH, _AIR_STEP)
    direction = seen.direction[_AIR_RAYS].reshape(-1, 3)
    inside = steps < seen.distance[_AIR_RAYS].reshape(-1, 1) - _BEFORE_HIT  # [rays, steps]
    ray, step = np.nonzero(inside)
    points = seen.eye + direction[ray] * steps[step, None]
    return _unpack(np.unique(_pack(np.floor(points).astype(np.int64))))


# ---------------- the toolmaker's body: what it feels and sees in a tick, and its hand on the mouse

Skill = Generator[EnvAction, None, bool]
"""Keys tick by tick; returns whether it succeeded."""

_SMALLEST_TURN = 0.6  # degrees; the bins of VPT's camera are 0 and 0.615
REACH = 4.5
"""The player's reach for blocks, from its eyes, in blocks."""
_TO_SIDE = 0.4  # blocks from a block's middle


class SeenStack(NamedTuple):
    """The contents of a slot; `("none", 0)` if it is empty."""

    name: str
    quantity: int


class SeenItem(NamedTuple):
    """A dropped item in view."""

    name: str
    place: Point


class Glance(NamedTuple):
    """What is seen in one tick."""

    tick: int
    blocks: VisibleBlocks
    drops: tuple[SeenItem, ...]


@dataclass
class AgentBody:
    """The player's body as the player feels it.

    Attributes:
        limits: Its imperfections.
        random: The generator of all its randomness.
        reaction: Ticks from seeing to knowing.
        memory: The blocks seen so far.
        drops: Dropped items in view.
        crosshair: The block that the crosshair was on when last seen, if it was on one.
        position: Position of the feet, in blocks.
        yaw: Degrees.
        pitch: Degrees, positive downwards.
        slots: Contents of the hotbar and the rest of the inventory, slots 0 to 35.
        screen_open: Whether a screen covers the view.
        selected: Slot in hand, 0 to 8.
        tick: Ticks played.
    """

    limits: HumanLimits
    random: np.random.Generator

    def __post_init__(self) -> None:
        """Begin an episode."""
        self.reaction = self.limits.draw_reaction(self.random)
        self.memory = Memory()
        self.hand = HumanHand(self.limits, self.random)
        self.cursor = TrackedCursor()
        self.drops: tuple[SeenItem, ...] = ()
        self.crosshair: Cell = (0, 0, 0)
        self.position: Point = (0.0, 0.0, 0.0)
        self.yaw = self.pitch = 0.0
        self.slots: tuple[SeenStack, ...] = ()
        self.screen_open = False
        self.selected = 0
        self.tick = 0
        self._glances: deque[Glance] = deque()

    def feel(self, info: Mapping[str, Any]) -> None:
        """Take in what `info` reports about the player."""
        place = info["player_pos"]
        self.position = place["x"], place["y"], place["z"]
        self.yaw, self.pitch = place["yaw"], place["pitch"]
        slots = info["inventory"]
        self.slots = tuple(
            SeenStack(slots[slot]["type"], slots[slot]["quantity"]) for slot in sorted(slots)
        )
        if info["isGuiOpen"] and not self.screen_open:
            self.cursor.centre()
        self.screen_open = info["isGuiOpen"]
        self.tick += 1

    def see(self, glance: Glance) -> None:
        """Look; what is seen is known after the reaction time."""
        self._glances.append(glance)

    def understand(self) -> None:
        """Learn what was seen a reaction time ago."""
        while self._glances and self._glances[0].tick + self.reaction <= self.tick:
            known = self._glances.popleft()
            self.memory.note(known.blocks)
            self.drops = known.drops
            rows, columns = known.blocks.kind.shape
            x, y, z = known.blocks.cell[rows // 2, columns // 2].tolist()
            self.crosshair = (x, y, z)
        x, y, z = self.cell
        self.memory.note_air(self.cell)
        self.memory.note_air((x, y + 1, z))

    def move_mouse(self, wanted: tuple[float, float]) -> tuple[float, float]:
        """Return this tick's turn towards what a skill wants to look at.

        Args:
            wanted: (pitch, yaw) degrees to turn in all.
        """
        error = np.asarray(wanted, np.float64)
        far = np.abs(error)
        # A share of a small angle would fall short of the smallest turn that a token expresses.
        speed = np.maximum(far * self.limits.turn_gain, np.minimum(far, _SMALLEST_TURN))
        return self.hand.turn(np.copysign(speed, error))

    @property
    def eye(self) -> Point:
        """Position of the eyes when standing."""
        x, y, z = self.position
        return x, y + EYE_HEIGHT, z

    @property
    def cell(self) -> Cell:
        """The cell that the feet are in."""
        x, y, z = self.position
        return math.floor(x), math.floor(y + 0.01), math.floor(z)

    def error_to(self, point: Point) -> tuple[float, float]:
        """Degrees (pitch, yaw) to turn so that the crosshair is on `point`."""
        dx, dy, dz = (to - at for to, at in zip(point, self.eye, strict=True))
        yaw = math.degrees(math.atan2(-dx, dz)) - self.yaw
        pitch = math.degrees(math.atan2(-dy, math.hypot(dx, dz))) - self.pitch
        return pitch, (yaw + 180.0) % 360.0 - 180.0

    def distance_to(self, cell: Cell) -> float:
        """Blocks from the eyes to the middle of a block."""
        return math.dist(self.eye, middle(cell))

    def counts(self) -> Counter[str]:
        """How many of each item the inventory holds."""
        held: Counter[str] = Counter()
        for stack in self.slots:
            if stack.quantity:
                held[stack.name] += stack.quantity
        return held

    def has_one_of(self, names: Collection[str]) -> bool:
        """Whether one of these items is in the hotbar."""
        return any(stack.name in names for stack in self.slots[:HOTBAR])

    def slot_of(self, name: str) -> int | None:
        """The first slot that holds an item, those of the hotbar first."""
        return next((i for i, stack in enumerate(self.slots) if stack.name == name), None)

    def visible_point(self, cell: Cell) -> Point:
        """A point of a block that no known block hides: its middle, or else one near a side."""
        x, y, z = middle(cell)
        points = [(x, y, z)]
        for shift in (-_TO_SIDE, _TO_SIDE):
            points += [(x, y + shift, z), (x + shift, y, z), (x, y, z + shift)]
        for point in points:
            if all(block == cell for block in self.memory.obstacles(self.eye, point)):
                return point
        return points[0]

    def wait(self, ticks: int) -> Skill:
        """Do nothing for a while."""
        for _ in range(ticks):
            yield {}
        return True

    def react(self) -> Skill:
        """Wait until what is in view now is known, and a moment longer."""
        return (yield from self.wait(self.reaction + 2 + int(self.random.integers(3))))

    def look_at(self, point: Point, tolerance: float = 1.5, patience: int = 60) -> Skill:
        """Turn until the crosshair is within `tolerance` degrees of `point`."""
        for _ in range(patience):
            error = self.error_to(point)
            if math.hypot(*error) < tolerance:
                return True
            yield {"camera": error}
        return False

    def brush_aside(self) -> Skill:
        """Touch what is under the crosshair: a plant breaks, which would be in a block's way."""
        yield {"attack": 1}
        yield {}
        return True


# ------------------------------------------------------------------- taking something into the hand

HOTBAR = 9
"""Number of slots, which the keys `hotbar.1` to `hotbar.9` select."""

TOOLS = {
    "pickaxe": ("diamond_pickaxe", "iron_pickaxe", "stone_pickaxe", "wooden_pickaxe"),
    "axe": ("diamond_axe", "iron_axe", "stone_axe", "wooden_axe"),
}
"""Tools by kind, the best first."""


def hold_slot(body: AgentBody, slot: int) -> Skill:
    """Take the hotbar's slot `slot` (0-8) into the hand."""
    if body.selected != slot:
        yield {f"hotbar.{slot + 1}": 1}
        body.selected = slot
        yield {}
    return True


def hold_one_of(body: AgentBody, names: Iterable[str]) -> Skill:
    """Take the first of these items that is in the hotbar into the hand."""
    for name in names:
        for slot in range(HOTBAR):
            if body.slots[slot].name == name:
                return (yield from hold_slot(body, slot))
    return False


# -------------------------------------------------- the cursor of a screen, as the player tracks it
# It sees how far its own hand has moved.


class TrackedCursor(screen.ScreenCursor):
    """The cursor's position, if every turn of the hand moves it as in the game."""

    def error_to(self, x: float, y: float) -> tuple[float, float]:
        """Degrees (pitch, yaw) that move the cursor to a pixel."""
        return (y - self.y) / PIXELS_PER_DEGREE, (x - self.x) / PIXELS_PER_DEGREE


# --------------------------------------------------------------------------------- working a screen
# Opening and closing it, moving the cursor to a slot, clicking.

_NEAR_ENOUGH = 4.0
"""Pixels between the cursor and its target at which to click; a slot is 18 wide."""
_SLIP_PIXELS = 16.0
"""Pixels between the cursor and its target when a click comes too soon."""
_LONGEST = 60
_DOUBLE_CLICK_TICKS = 6
"""Ticks after which two left clicks on the same slot are not a double click."""


def toggle_inventory(body: AgentBody) -> Skill:
    """Press the inventory key, which opens the inventory or closes whatever screen is open."""
    was_open = body.screen_open
    yield {"inventory": 1}
    yield from body.react()
    return body.screen_open is not was_open


def close_screen(body: AgentBody) -> Skill:
    """Close the screen that is open, if there is one."""
    while body.screen_open:
        yield from toggle_inventory(body)
    return True


class OpenScreen:
    """The open screen, whose layout the player knows.

    Clicks return whether they hit the slot that they were meant for.

    Attributes:
        kind: "inventory", "crafting_table", "furnace", "chest" or "enchanting_table".
    """

    def __init__(self, body: AgentBody, kind: str) -> None:
        self.kind = kind
        self._body = body
        self._layout = LAYOUTS[kind]
        self._last_left = (-1, -math.inf)  # slot, tick

    def own(self, group: str, index: int = 0) -> int:
        """The screen's slot number `index` of a group, such as "craft" or "result"."""
        return self._layout.group(group)[index]

    def of_inventory(self, slot: int) -> int:
        """The screen's slot that shows the player's slot 0 to 35."""
        if slot < HOTBAR:
            return self._layout.group("hotbar")[slot]
        return self._layout.group("main")[slot - HOTBAR]

    def left_click(self, slot: int) -> Skill:
        """Pick up or put down a stack."""
        hit = yield from self._move_to(slot)
        last, tick = self._last_left
        if slot == last and self._body.tick - tick < _DOUBLE_CLICK_TICKS:
            yield from self._body.wait(_DOUBLE_CLICK_TICKS)
        self._last_left = (slot, self._body.tick)
        yield from self._press({"attack": 1})
        return hit

    def right_click(self, slot: int) -> Skill:
        """Put down one item of a stack."""
        hit = yield from self._move_to(slot)
        yield from self._press({"use": 1})
        return hit

    def put(self, slot: int, count: int, carried: int) -> Skill:
        """Put `count` of the `carried` items on the cursor into a slot."""
        if count == carried:
            return (yield from self.left_click(slot))
        for _ in range(count):
            if not (yield from self.right_click(slot)):
                return False
        return True

    def shift_click(self, slot: int) -> Skill:
        """Move a stack across the screen, or craft as many of a grid's result as possible."""
        hit = yield from self._move_to(slot)
        yield {"sneak": 1}
        yield {"sneak": 1, "attack": 1}
        yield {"sneak": 1}
        yield {}
        return hit

    def swap(self, slot: int, hotbar_slot: int) -> Skill:
        """Exchange the contents of a slot and of a hotbar slot."""
        hit = yield from self._move_to(slot)
        yield from self._press({f"hotbar.{hotbar_slot + 1}": 1})
        return hit

    def _press(self, keys: dict[str, int]) -> Skill:
        yield dict(keys)
        yield {}
        least, most = self._body.limits.click_gap
        return (yield from self._body.wait(int(self._body.random.integers(least, most + 1))))

    def click_at(self, x: float, y: float) -> Skill:
        """Click on a place of the screen's panel, and return whether the cursor got there."""
        reached = yield from self._move_cursor(x, y, _NEAR_ENOUGH)
        yield from self._press({"attack": 1})
        return reached

    def _move_to(self, slot: int) -> Skill:
        """Move the cursor into a slot, and return whether it got there.

        Now and then the move ends too soon, which is noticed too late.
        """
        body, cursor = self._body, self._body.cursor
        place = self._layout.slots[slot]
        spread = body.limits.aim_pixels
        shift = body.random.normal(0.0, spread, 2).clip(-2 * spread, 2 * spread)
        x, y = (float(v) for v in shift + SLOT_SIZE / 2 + (place.x, place.y))
        slips = body.random.random() < body.limits.slip_rate
        near = _SLIP_PIXELS if slips else _NEAR_ENOUGH
        reached = yield from self._move_cursor(x, y, near)
        return reached and self._layout.slot_at(cursor.x, cursor.y) == slot

    def _move_cursor(self, x: float, y: float, near: float) -> Skill:
        """Move the cursor to within `near` pixels of a place, and return whether it got there."""
        cursor = self._body.cursor
        for _ in range(_LONGEST):
            if not self._body.screen_open:
                return False
            if math.hypot(x - cursor.x, y - cursor.y) <= near:
                yield {}  # the hand comes to rest
                return True
            yield {"camera": cursor.error_to(x, y)}
        return False
