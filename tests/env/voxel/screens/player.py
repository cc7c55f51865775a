"""Works screens through the engine by actions alone: the camera, attack, use and other keys."""

from __future__ import annotations

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.screen import PIXELS_PER_DEGREE
from tests.env.voxel.arena import state
from tests.env.voxel.screens.table import text

_FASTEST = 10.0
"""Degrees that an agent's camera turns in a tick."""


class Hands:
    """Plays an engine."""

    def __init__(self, engine: VoxelEngine) -> None:
        self.engine = engine

    @property
    def screen(self):
        return state(self.engine).screen

    def tick(self, camera=(0.0, 0.0), **keys) -> None:
        """One tick; the key hotbar.1 is written hotbar_1."""
        held = {key.replace("_", "."): down for key, down in keys.items()}
        self.engine.tick({**held, "camera": camera})

    def press(self, **keys) -> None:
        """Keys down for one tick, then up."""
        self.tick(**keys)
        self.tick()

    def look(self, yaw: float, pitch: float) -> None:
        player = self.engine.player
        self.tick((pitch - player.pitch, (yaw - player.yaw + 180.0) % 360.0 - 180.0))

    def index(self, slot: str) -> int:
        group, number = slot.split()
        return LAYOUTS[self.screen.kind].group(group)[int(number)]

    def go(self, slot: str) -> None:
        """Moves the cursor to a slot, as fast as an agent's camera can."""
        place, cursor = LAYOUTS[self.screen.kind].slots[self.index(slot)], self.screen.cursor
        while True:
            way = place.y + 8 - cursor.y, place.x + 8 - cursor.x
            if max(map(abs, way)) < 1.0:
                return
            degrees = (pixels / PIXELS_PER_DEGREE for pixels in way)
            self.tick(tuple(min(max(turn, -_FASTEST), _FASTEST) for turn in degrees))

    def click(self, slot: str, button: str = "attack", **keys) -> None:
        self.go(slot)
        self.tick(**{button: 1}, **keys)
        self.tick(**keys)

    def right(self, slot: str) -> None:
        self.click(slot, "use")

    def across(self, slot: str) -> None:
        self.click(slot, sneak=1)

    def shown(self, slot: str) -> str:
        return text(self.screen.view().stacks[self.index(slot)])

    def find(self, item: str) -> str:
        """A slot of the player's own that holds an item."""
        for place in ("hotbar", "main"):
            for number in range(len(LAYOUTS[self.screen.kind].group(place))):
                if self.shown(f"{place} {number}").split()[:1] == [item]:
                    return f"{place} {number}"
        raise LookupError(f"there is no {item}")

    def put(self, item: str, cells: str) -> None:
        """Puts one of an item into each cell of the grid, and the rest back."""
        source = self.find(item)
        self.click(source)
        for cell in cells.split():
            self.right(f"craft {cell}")
        if self.screen.view().carried.item:
            self.click(source)
