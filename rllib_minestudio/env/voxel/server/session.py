"""Missions of the wire protocol, played one after the other on the embedded engine."""

from __future__ import annotations

import json
import math
import random
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.parsers import expat

from rllib_minestudio.env.voxel.contract import Box, mobs_box, voxels_box
from rllib_minestudio.env.voxel.data import NAMESPACE, NO_ENTITY, NO_PLAYER
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.world.climate import BIOMES

# -------- parsing of steps (lines "KEY VALUE", as MineStudio writes an action), and socket messages

KEYS = frozenset(
    ["forward", "left", "back", "right", "jump", "inventory", "sneak", "sprint", "attack", "use"]
    + [f"hotbar.{slot}" for slot in range(1, 10)]
)
"""Keys that are passed to the engine; MineStudio's `pickItem` has none in survival mode."""

_IGNORED_KEYS = frozenset(["pickItem", "drop", "swapHands"])
_LONGEST_CHAT = 32500
"""Longest command in characters, as in Minecraft's command blocks."""


@dataclass
class StepRequest:
    """The contents of one step.

    Attributes:
        action: The engine's action: keys 0 or 1, and `camera`, (pitch, yaw) in degrees.
        chat: A command to execute before the tick; empty for none.
        voxels: The box whose blocks to report, or None.
        mobs: The box whose mobs to report, or None.
    """

    action: dict[str, Any] = field(default_factory=dict)
    chat: str = ""
    voxels: Box | None = None
    mobs: Box | None = None


def read_step(text: str) -> StepRequest:
    """Read the text of a step.

    Raises:
        ProtocolError: If a line is unknown or its value has the wrong form.
    """
    step = StepRequest()
    for line in text.split("\n"):
        key, _, value = line.partition(" ")
        if key in KEYS:
            step.action[key] = int(_number(key, value) != 0.0)
        elif key == "camera":
            angles = value.split()
            if len(angles) != 2:
                raise ProtocolError(f"camera needs pitch and yaw; got {value[:80]!r}")
            step.action["camera"] = (_number(key, angles[0]), _number(key, angles[1]))
        elif key == "chat":
            if len(value) > _LONGEST_CHAT:
                raise ProtocolError(f"a chat message may have at most {_LONGEST_CHAT} characters")
            if step.chat:
                raise ProtocolError("a step has more than one chat message")
            step.chat = value
        elif key == "voxels":
            step.voxels = _box(voxels_box, key, value)
        elif key == "mobs":
            step.mobs = _box(mobs_box, key, value)
        elif line.strip() and key not in _IGNORED_KEYS:
            raise ProtocolError(f"a step has the unknown line {line[:80]!r}")
    return step


def _number(key: str, word: str) -> float:
    # NumPy's booleans are written as "True" and "False".
    named = {"true": 1.0, "false": 0.0}.get(word.strip().lower())
    if named is not None:
        return named
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not abs(number) <= 1e6:
        raise ProtocolError(f"{key} needs a number; got {word[:80]!r}")
    return number


def _box(read: Callable[[list[float]], Box | None], key: str, value: str) -> Box | None:
    words = value.split(",")
    if len(words) != 6:
        raise ProtocolError(f"{key} needs six bounds; got {value[:80]!r}")
    try:
        return read([_number(key, word) for word in words])
    except ValueError as error:
        raise ProtocolError(str(error)) from error


# ----------------------------------------------------------------------------- messages on a socket
# A message is a big-endian uint32 length, followed by that many bytes, up to a limit.

_LENGTH = struct.Struct("!I")
_CHUNK = 65536


class ProtocolError(Exception):
    """The other side sent something that the protocol does not allow; the message says what."""


def receive(
    connection: socket.socket, limit: int, begin_within: float | None, seconds: float
) -> bytes | None:
    """Read one message.

    Memory is allocated for bytes that have arrived, not for the announced length.

    Args:
        connection: The socket.
        limit: Most bytes that the message may have.
        begin_within: Seconds to wait for its first byte; None for no limit.
        seconds: Most seconds from the message's first byte to its last.

    Returns:
        The message, or None if the connection was closed before it began.

    Raises:
        ProtocolError: If it is longer than `limit`, or shorter than announced.
        TimeoutError: If it does not begin or is not complete in time.
    """
    connection.settimeout(begin_within)
    first = connection.recv(1)
    if not first:
        return None
    deadline = time.monotonic() + seconds
    (length,) = _LENGTH.unpack(first + _receive_exactly(connection, _LENGTH.size - 1, deadline))
    if length > limit:
        raise ProtocolError(f"a message of {length} bytes; at most {limit} are allowed here")
    return _receive_exactly(connection, length, deadline)


def _receive_exactly(connection: socket.socket, count: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the message was not complete in time")
        connection.settimeout(left)
        chunk = connection.recv(min(count - len(received), _CHUNK))
        if not chunk:
            raise ProtocolError(f"the connection ended {count - len(received)} bytes too early")
        received += chunk
    return bytes(received)


def send(connection: socket.socket, *messages: bytes, seconds: float) -> None:
    """Write messages one after the other.

    Args:
        connection: The socket.
        *messages: Payloads; each is preceded by its length.
        seconds: Most seconds that the other side may take to accept them all.

    Raises:
        TimeoutError: If it takes longer.
    """
    connection.settimeout(seconds)
    connection.sendall(b"".join(_LENGTH.pack(len(m)) + m for m in messages))


# ----------------- missions of the wire protocol, played one after the other on the embedded engine

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
