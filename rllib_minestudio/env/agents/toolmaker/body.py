"""The toolmaker's body: what it feels and sees in a tick, and its hand on the mouse.

A skill is a generator: it yields the keys of one tick after the other, looks at the body in
between, and returns whether it has done what it is for.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.human_limits import HumanHand, HumanLimits
from rllib_minestudio.env.agents.hunter import EYE_HEIGHT
from rllib_minestudio.env.agents.toolmaker.cursor import TrackedCursor
from rllib_minestudio.env.agents.toolmaker.sight import Cell, Memory, Point, middle

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.game.sight import VisibleBlocks

Skill = Generator[EnvAction, None, bool]
"""Keys tick by tick; returns whether it succeeded."""

_SMALLEST_TURN = 0.6  # degrees; the bins of VPT's camera are 0 and 0.615
REACH = 4.5
"""How far the player reaches blocks from its eyes, in blocks."""
_TO_SIDE = 0.4  # blocks from a block's middle


class SeenStack(NamedTuple):
    """What a slot holds; nothing is `("none", 0)`."""

    name: str
    quantity: int


class SeenItem(NamedTuple):
    """A dropped item in view."""

    name: str
    place: Point


class Glance(NamedTuple):
    """What was seen in one tick."""

    tick: int
    blocks: VisibleBlocks
    drops: tuple[SeenItem, ...]


@dataclass
class AgentBody:
    """The player from inside.

    Attributes:
        limits: Its imperfections.
        random: Where everything random comes from.
        reaction: Ticks from seeing to knowing.
        memory: The blocks seen so far.
        drops: Dropped items in view.
        crosshair: The block that the crosshair was on when last seen, if it was on one.
        position: Feet, in blocks.
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
        """Take over what `info` says of the player."""
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
        """Take in what was seen a reaction time ago."""
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
        """Turn towards where a skill wants to look, by (pitch, yaw) degrees, as far as one can."""
        error = np.asarray(wanted, np.float64)
        far = np.abs(error)
        # A share of a small angle would fall short of the smallest turn that a token expresses.
        speed = np.maximum(far * self.limits.turn_gain, np.minimum(far, _SMALLEST_TURN))
        return self.hand.turn(np.copysign(speed, error))

    @property
    def eye(self) -> Point:
        """Place of the eyes, standing."""
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

    def slot_of(self, name: str) -> int | None:
        """The first slot that holds an item, the hotbar's before the others."""
        return next((i for i, stack in enumerate(self.slots) if stack.name == name), None)

    def visible_point(self, cell: Cell) -> Point:
        """A point of a block that nothing known hides: its middle, or else that of a side."""
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
        """Wait until what is seen now is known, and a moment longer."""
        return (yield from self.wait(self.reaction + 2 + int(self.random.integers(3))))

    def look_at(self, point: Point, tolerance: float = 1.5, patience: int = 60) -> Skill:
        """Turn until the crosshair is within `tolerance` degrees of `point`."""
        for _ in range(patience):
            error = self.error_to(point)
            if math.hypot(*error) < tolerance:
                return True
            yield {"camera": error}
        return False
