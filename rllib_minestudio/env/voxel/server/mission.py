"""What a mission asks for: the parts of MineStudio's MissionInit XML that mean something here."""

from __future__ import annotations

from typing import NamedTuple
from xml.parsers import expat

from rllib_minestudio.env.voxel.server.wire import ProtocolError

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
        inventory: (slot, item name, quantity) of each stack that the player holds.
    """

    frame_size: tuple[int, int]
    biome: str | None
    inventory: tuple[tuple[int, str, int], ...]


class _Reader:
    """Picks what counts out of the document as the parser passes it; builds no tree."""

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
            raise ProtocolError(f"the mission is no XML: {error}") from error

    def _refuse(self, *_: object) -> None:
        # Entities can only be declared there, and are how small documents become huge ones.
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
        document: The XML, without document type and so without entities of its own.

    Raises:
        ProtocolError: If it is no XML or lacks what a game needs.
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
        ProtocolError: If the token has another form or names any role but the first.
    """
    words = token.decode("utf-8", "replace").split(":")
    if not 5 <= len(words) <= 6:
        raise ProtocolError(f"the token {words!r} has not the form uid:role:0:agents:true[:seed]")
    if words[1] != "0" or words[3] != "1":
        raise ProtocolError("the embedded engine plays with one agent")
    if len(words) == 5:
        return None
    seed = _integer("seed", words[5])
    if not -_LARGEST_SEED <= seed < _LARGEST_SEED:
        raise ProtocolError(f"the seed {seed} is no 64-bit number")
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
