"""One game after the other on the embedded engine, as the wire protocol sees them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from rllib_minestudio.env.voxel.data.vocabulary import NAMESPACE, NO_ENTITY, NO_PLAYER
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.observed_boxes import Box
from rllib_minestudio.env.voxel.server.mission import Mission
from rllib_minestudio.env.voxel.server.step_text import StepRequest
from rllib_minestudio.env.voxel.world.worldgen import BIOMES

_INVENTORY_SLOTS = 41
_LARGEST_STACK = 64
"""Failures that are no mistake: a fast reset clears the place of mobs whether there are any."""
_MOST_COMPLAINTS = 200
_LONGEST_SHOWN = 200


class Observation(NamedTuple):
    """What the engine shows after a tick.

    Attributes:
        frame: RGB bytes of the frame, bottom row first.
        info: UTF-8 JSON with what MineStudio reads.
        done: Whether the player has died.
    """

    frame: bytes
    info: bytes
    done: bool


class MissionServer:
    """Plays missions.

    Attributes:
        is_playing: Whether a mission has begun and not been quit.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        """Build the engine, compiling it where that has not been done.

        Args:
            log: Takes lines for whoever reads the engine's output; MineStudio passes those with
                WARN or ERROR on to its own log.
        """
        self.is_playing = False
        self._log = log
        self._complaints: set[str] = set()
        self._engine = VoxelEngine()
        self._frame_size = (0, 0)
        self._seeds = random.Random(0)
        self._done = False

    def begin(self, mission: Mission, seed: int | None) -> None:
        """Start a new world.

        Args:
            mission: Frame size, biome and inventory; what this engine does not know of the latter
                two is left out with a warning, as Minecraft does.
            seed: Of the world. None goes on in a sequence that the last seed given decides.
        """
        if seed is None:
            seed = self._seeds.getrandbits(31)
        else:
            self._seeds = random.Random(seed)
        biome = (mission.biome or "").removeprefix(NAMESPACE) or None
        if biome is not None and biome not in BIOMES:
            known = ", ".join(BIOMES)
            self._complain(f"the embedded engine has no biome {biome!r}, only {known}; any will do")
            biome = None
        if mission.frame_size != self._frame_size:
            self._frame_size = mission.frame_size
            self._engine = VoxelEngine(frame_size=mission.frame_size)
        self._engine.reset(seed, biome)
        for slot, name, quantity in mission.inventory:
            self._give(slot, name.removeprefix(NAMESPACE), quantity)
        self._done = False
        self.is_playing = True

    def step(self, step: StepRequest) -> Observation:
        """Execute the step's command and play one tick; a dead player stays as it is."""
        engine = self._engine
        if not self._done:
            if step.chat:
                self._execute(step.chat)
            engine.tick(step.action)
            self._done = engine.player_dead
        return self.observe(step.voxels, step.mobs)

    def observe(self, voxels: Box | None = None, mobs: Box | None = None) -> Observation:
        """Show the game as it is, with the blocks and mobs of the given boxes."""
        info = _for_minestudio(self._engine.info(voxels, mobs))
        frame = self._engine.render()[::-1].tobytes()
        return Observation(frame, json.dumps(info).encode(), self._done)

    def quit(self) -> None:
        """End the mission, if there is one."""
        self.is_playing = False

    def _execute(self, command: str) -> None:
        result = self._engine.execute(command)
        shown = command[:_LONGEST_SHOWN]
        if not result.ok and result.message not in (NO_ENTITY, NO_PLAYER):
            self._complain(f"the command {shown!r} failed: {result.message}")
        if result.lacking:
            self._complain(f"the command {shown!r} was executed, but {result.lacking}")

    def _give(self, slot: int, name: str, quantity: int) -> None:
        if name not in ITEM_ID:
            self._complain(f"the embedded engine has no item {name!r}; it is left out")
        elif not 0 <= slot < _INVENTORY_SLOTS or not 0 <= quantity <= _LARGEST_STACK:
            self._complain(f"slot {slot} cannot hold {quantity} {name}; it is left out")
        else:
            self._engine.player.inventory.set(slot, ITEM_ID[name], quantity)
            if lacking := ITEMS[ITEM_ID[name]].lacking:
                self._complain(f"in slot {slot}, {lacking}")

    def _complain(self, message: str) -> None:
        """Log a warning, once; and no more of them than anybody would read."""
        if message not in self._complaints and len(self._complaints) < _MOST_COMPLAINTS:
            self._complaints.add(message)
            self._log(f"WARN {message}")


def _for_minestudio(info: dict[str, Any]) -> dict[str, Any]:
    """Rearrange the engine's info into what MineStudio takes apart again."""
    del info["player_pos"], info["is_gui_open"]  # MineStudio makes both from the rest
    location = info.pop("location_stats")
    inventory, equipped = info["inventory"], info["equipped_items"]
    return {
        **info,
        **location,
        "inventory": [{"slot_id": slot, **stack} for slot, stack in inventory.items()],
        "equipped_items": {place: json.dumps(item) for place, item in equipped.items()},
    }
