"""What a condition may ask of the world beside the info: blocks, containers, structures.

An info does not tell such facts. The judge of a benchmark's task asks the game for those that the
task's condition names, and writes them into the info, under `WORLD_FACTS` and the fact's key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.filters.base import EpisodeFilter
from rllib_minestudio.evaluation.filters.quantities import Quantity

WORLD_FACTS = "world_facts"
"""Info key: a mapping from `WorldFact.key` to a number."""

PLACED, BLOCK, CHEST, STRUCTURE, INSIDE = "placed", "block", "chest", "structure", "inside"

Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""Lowest and highest x, y and z relative to where the player began, in blocks, both included."""

NEAR_NAME = "near"
NEAR: Box = ((-8, 8), (-8, 8), (-8, 8))

FARTHEST = 48
"""Blocks from where the player began: farther ones are not always loaded when it walks about."""
MOST_BLOCKS = 32768
"""Blocks of a box, as many as `/fill` may change."""

_SPAN = re.compile(r"([-+]?\d{1,4})(?:\.\.([-+]?\d{1,4}))?")
_RULE = (
    f"must be @{NEAR_NAME}, or @x0..x1,y0..y1,z0..z1 in whole blocks from where the player began, "
    f"lowest first, at most {FARTHEST} away and {MOST_BLOCKS} blocks in all"
)


@dataclass(frozen=True)
class WorldFact:
    """A number that only the game can tell.

    Attributes:
        kind: `placed`: blocks of the box that match and did not at the reset; `block`: those that
            match; `chest`: items in the chests around; `structure`: named structures that stand
            and did not at the reset; `inside`: 1 if the block at the player's feet or head matches.
        pattern: Shell pattern of the names, or the structure's name.
        box: Where; None for the kinds that need none.
    """

    kind: str
    pattern: str
    box: Box | None = None

    @cached_property
    def key(self) -> str:
        """Its name in the info, and its text form."""
        place = "" if self.box is None else f"@{_box_text(self.box)}"
        return f"{self.kind}:{self.pattern}{place}"


class WorldQuantity(Quantity):
    """A number that the game told the judge: `placed:oak_planks@near`."""

    def __init__(self, fact: WorldFact) -> None:
        """Keep what is asked for."""
        self.fact = fact

    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the number; None if nobody asked the game for it."""
        told = episode.info.get(WORLD_FACTS, {}).get(self.fact.key)
        return None if told is None else float(told)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the fact."""
        return frozenset({self.fact})

    def __str__(self) -> str:
        """Return the text form."""
        return self.fact.key


class Inside(EpisodeFilter):
    """Asks whether the player stands in a block: `inside:water`."""

    def __init__(self, pattern: str) -> None:
        """Accept blocks whose names fit the shell pattern, at the player's feet or head."""
        self._told = WorldQuantity(WorldFact(INSIDE, pattern))

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return what the game told."""
        return bool(self._told.measured(episode))

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the fact."""
        return self._told.needed_facts()

    def __str__(self) -> str:
        """Return the text form."""
        return str(self._told)


def located_fact(kind: str, text: str) -> WorldFact:
    """Read a fact of a box, such as `oak_planks@-3..3,0..4,2` of the kind `placed`.

    Raises:
        InvalidOptionsError: There is no box, or it is too large.
    """
    pattern, _, box = text.partition("@")
    if not pattern:
        raise InvalidOptionsError(f"expected a name or a pattern after '{kind}:'")
    return WorldFact(kind, pattern, _read_box(box))


def _read_box(text: str) -> Box:
    """Read `near`, or three spans.

    Raises:
        InvalidOptionsError: It is neither, or too large.
    """
    if text == NEAR_NAME:
        return NEAR
    found = [_SPAN.fullmatch(part) for part in text.split(",")]
    if len(found) != 3 or not all(found):
        raise InvalidOptionsError(f"the box {'@' + text!r} {_RULE}")
    spans = [(int(m[1]), int(m[1] if m[2] is None else m[2])) for m in found if m]
    volume = 1
    for low, high in spans:
        if not -FARTHEST <= low <= high <= FARTHEST:
            raise InvalidOptionsError(f"the box {'@' + text!r} {_RULE}")
        volume *= high - low + 1
    if volume > MOST_BLOCKS:
        raise InvalidOptionsError(f"the box {'@' + text!r} {_RULE}")
    x, y, z = spans
    return x, y, z


def _box_text(box: Box) -> str:
    """Write a box as `_read_box` reads it."""
    if box == NEAR:
        return NEAR_NAME
    return ",".join(str(low) if low == high else f"{low}..{high}" for low, high in box)
