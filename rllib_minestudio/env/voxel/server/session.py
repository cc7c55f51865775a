"""Missions of the wire protocol, played one after the other on the embedded engine."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple
from xml.parsers import expat

from rllib_minestudio.env.voxel.data import NAMESPACE, NO_ENTITY, NO_PLAYER
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.observed_boxes import Box
from rllib_minestudio.env.voxel.server.step_text import ProtocolError, StepRequest
from rllib_minestudio.env.voxel.world.climate import BIOMES

_INVENTORY_SLOTS = 41
_LARGEST_STACK = 64
_MOST_COMPLAINTS = 200
_LONGEST_SHOWN = 200


class Observation(NamedTuple):
    """The engine's output after a tick.

    Attributes:
        frame: RGB bytes of the frame, bottom row first.
        info: The info that MineStudio reads, as JSON in UTF-8.
        done: Whether the player has died.
    """

    frame: bytes
    info: bytes
    done: bool


class MissionServer:
    """A session: the engine, and the mission that is played on it.

    Attributes:
        is_playing: Whether a mission has begun and not been quit.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        """Create the engine, compiling it if necessary.

        Args:
            log: Receives lines of output; MineStudio copies those with WARN or ERROR to its own
                log.
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
            mission: Frame size, biome and inventory; unknown biomes and items are ignored with a
                warning, as by Minecraft.
            seed: The world's seed; None for the next one of a sequence that the last given seed
                determines.
        """
        if seed is None:
            seed = self._seeds.getrandbits(31)
        else:
            self._seeds = random.Random(seed)
        biome = (mission.biome or "").removeprefix(NAMESPACE) or None
        if biome is not None and biome not in BIOMES:
            known = ", ".join(BIOMES)
            self._complain(f"the embedded engine has no biome {biome!r}, only {known}; ignoring it")
            biome = None
        if mission.frame_size != self._frame_size:
            self._frame_size = mission.frame_size
            self._engine = VoxelEngine(frame_size=mission.frame_size)
        self._engine.reset(seed, biome, natural_animals=True)
        for slot, name, quantity in mission.inventory:
            self._give(slot, name.removeprefix(NAMESPACE), quantity)
        self._done = False
        self.is_playing = True

    def step(self, step: StepRequest) -> Observation:
        """Execute the step's command, and play one tick unless the player is dead."""
        engine = self._engine
        if not self._done:
            if step.chat:
                self._execute(step.chat)
            engine.tick(step.action)
            self._done = engine.player_dead
        return self.observe(step.voxels, step.mobs)

    def observe(self, voxels: Box | None = None, mobs: Box | None = None) -> Observation:
        """Return the current observation, with the blocks and mobs of the given boxes."""
        info = _for_minestudio(self._engine.info(voxels, mobs))
        frame = self._engine.render()[::-1].tobytes()
        return Observation(frame, json.dumps(info).encode(), self._done)

    def quit(self) -> None:
        """End the mission, if there is one."""
        self.is_playing = False

    def _execute(self, command: str) -> None:
        result = self._engine.execute(command)
        shown = command[:_LONGEST_SHOWN]
        # MineStudio's fast reset kills mobs whether there are any or not.
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
        """Log a warning, each text once, and at most `_MOST_COMPLAINTS` of them."""
        if message not in self._complaints and len(self._complaints) < _MOST_COMPLAINTS:
            self._complaints.add(message)
            self._log(f"WARN {message}")


def _for_minestudio(info: dict[str, Any]) -> dict[str, Any]:
    """Convert the engine's info to the form that MineStudio parses."""
    del info["player_pos"], info["is_gui_open"]  # MineStudio derives both from the rest
    location = info.pop("location_stats")
    inventory, equipped = info["inventory"], info["equipped_items"]
    return {
        **info,
        **location,
        "inventory": [{"slot_id": slot, **stack} for slot, stack in inventory.items()],
        "equipped_items": {place: json.dumps(item) for place, item in equipped.items()},
    }


# ----------------------------------------------------------------------------------------- missions
# The parts of MineStudio's MissionInit XML that this engine uses.

MIN_SIDE, MAX_SIDE = 16, 4096
"""Bounds of a frame's width and height in pixels."""
_LARGEST_SEED = 2**63
_MOST_STACKS = 1000
_TEXTS = ("Width", "Height", "PreferredSpawnBiome")


class Mission(NamedTuple):
    """How a game begins.

    Attributes:
        frame_size: (width, height) of the frames in pixels.
        biome: Name of the biome to begin in, or None for any.
        inventory: (slot, item name, quantity) of each of the player's stacks.
    """

    frame_size: tuple[int, int]
    biome: str | None
    inventory: tuple[tuple[int, str, int], ...]


class _Reader:
    """Event-driven reader that keeps the used parts of a document, without building a tree."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.stacks: list[dict[str, str]] = []
        self._open: str | None = None

    def read(self, document: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        try:
            parser.Parse(document, True)
        except (expat.ExpatError, ValueError) as error:  # ValueError: an unknown encoding
            raise ProtocolError(f"the mission is not XML: {error}") from error

    def _refuse(self, *_: object) -> None:
        # Only there can entities be declared, with which small documents expand to huge ones.
        raise ProtocolError("the mission has a document type declaration; none is allowed")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        self._open = tag if tag in _TEXTS and tag not in self.texts else None
        if tag == "InventoryObject":
            self.stacks.append(attributes)
            if len(self.stacks) > _MOST_STACKS:
                raise ProtocolError(f"the mission has more than {_MOST_STACKS} stacks of items")

    def _text(self, text: str) -> None:
        if self._open is not None:
            self.texts[self._open] = self.texts.get(self._open, "") + text

    def _end(self, name: str) -> None:
        self._open = None


def read_mission(document: bytes) -> Mission:
    """Read a MissionInit document.

    Args:
        document: The XML, without a document type declaration.

    Raises:
        ProtocolError: If it is not XML, or lacks what a game needs.
    """
    reader = _Reader()
    reader.read(document)
    width, height = (_side(reader.texts, name) for name in ("Width", "Height"))
    biome = reader.texts.get("PreferredSpawnBiome", "").strip() or None
    stacks = tuple(
        (
            _integer("slot", stack.get("slot", "")),
            stack.get("type", ""),
            _integer("quantity", stack.get("quantity", "1")),
        )
        for stack in reader.stacks
    )
    return Mission((width, height), biome, stacks)


def read_seed(token: bytes) -> int | None:
    """Return the seed of a mission's token, `uid:role:0:agents:true[:seed]`, or None.

    Raises:
        ProtocolError: If the token has another form, or is not for one agent in role 0.
    """
    words = token.decode("utf-8", "replace").split(":")
    if not 5 <= len(words) <= 6:
        raise ProtocolError(f"the token {words!r} is not of the form uid:role:0:agents:true[:seed]")
    if words[1] != "0" or words[3] != "1":
        raise ProtocolError("the embedded engine supports one agent only")
    if len(words) == 5:
        return None
    seed = _integer("seed", words[5])
    if not -_LARGEST_SEED <= seed < _LARGEST_SEED:
        raise ProtocolError(f"the seed {seed} is not a 64-bit number")
    return seed


def _side(texts: dict[str, str], name: str) -> int:
    side = _integer(name, texts.get(name, ""))
    if not MIN_SIDE <= side <= MAX_SIDE:
        raise ProtocolError(f"{name} must be from {MIN_SIDE} to {MAX_SIDE} pixels; got {side}")
    return side


def _integer(name: str, text: str) -> int:
    word = text.strip()
    if not word.removeprefix("-").isdecimal() or len(word) > 20:
        raise ProtocolError(f"{name} must be a whole number; got {word[:40]!r}")
    return int(word)
