"""Blocks in their states: what the 16 bits of a block in the world mean.

     15       10 9                0
    +-----------+------------------+
    |   state   |       kind       |
    +-----------+------------------+

The kind is the block's index in `BLOCKS`. The state is a mixed-radix number: a digit for each
property that the kind's *family* stores, such as the facing and the half of stairs. Families are
rows of `data/block_families.csv`. The first value of a property is its default, so that state 0 is
the default state, and the id of a kind is also the block of that kind in its default state.

What follows from the blocks around it (the arms of a fence, the corner of stairs) is not stored:
the family names such properties as *derived*. Those which nothing in this engine changes, such as
water in a slab, are *refused*: only their default exists.

The second half of the file says what a block stops, hides and bears, by kind and state. These
predicates, `block_shapes` for bodies and aim, and `optics` for light, are the only places that ask
whether a block is "solid":

    stops_rays      rays that draw the terrain end in it         world/box_field.py
    is_thin         it is drawn as flat pictures, see `plants`   world/cell_bits.py
    covers          counts as the highest block of its column    world/edits.py
    bears           sand and gravel rest on it                   world/edits.py, game/supports.py
    lands           a block that falls ends on top of it         game/supports.py
    needs_others    it breaks without a block beside it          world/edits.py
    is_replaceable  another block may be put in its place        game/use_and_drop.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import shared_with_kernels
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    LARGEST_KIND,
    SCREENS,
    Block,
    Shape,
)
from rllib_minestudio.env.voxel.world.plants import THIN_KINDS

STATE_SHIFT = 10
KIND_MASK = LARGEST_KIND
MOST_STATES = 1 << (16 - STATE_SHIFT)

Properties = Mapping[str, tuple[str, ...]]
"""Values by the name of the property, the default first."""


@shared_with_kernels
def kind_of(block: int) -> int:
    """The kind of a block of the world: an index in `BLOCKS`."""
    return block & KIND_MASK


@dataclass(frozen=True, eq=False)
class Family:
    """Kinds of blocks that have the same properties.

    Attributes:
        name: For readers; empty for the family of all kinds without properties.
        kinds: Names of kinds, or "*" and what their names end with; a name goes before an end, and
            a long end before a short one.
        stored: Properties that are part of a block's state.
        derived: Properties that follow from the blocks around it.
        refused: Properties that nothing changes here, so that only their default exists.
        turned: How its pictures follow its state, see `render.textures.turned_faces`.
        placed: The rule of `game.placement` by which its state is chosen; empty for the default.
        support: The rule of `game.placement` about what it must be put on; empty for none.
    """

    name: str
    kinds: tuple[str, ...]
    stored: Properties
    derived: Properties
    refused: Properties
    turned: str
    placed: str
    support: str

    @property
    def size(self) -> int:
        """Number of states."""
        return prod(map(len, self.stored.values()))

    def state(self, properties: Mapping[str, str]) -> int:
        """Return the number of a state.

        Args:
            properties: Values of stored properties; what is missing has its default.

        Raises:
            KeyError: If the family does not store one of them.
            ValueError: If it does not have that value.
        """
        number, weight = 0, 1
        left = dict(properties)
        for name, values in self.stored.items():
            number += values.index(left.pop(name, values[0])) * weight
            weight *= len(values)
        if left:
            raise KeyError(f"{self.name} does not store {', '.join(left)}")
        return number

    def properties(self, state: int) -> dict[str, str]:
        """Return the stored properties of a state: the inverse of `state`."""
        found = {}
        for name, values in self.stored.items():
            state, digit = divmod(state, len(values))
            found[name] = values[digit]
        return found


def _properties(cell: str) -> Properties:
    """Read "facing=north|south half=bottom|top"."""
    pairs = (word.split("=") for word in cell.split())
    return {name: tuple(values.split("|")) for name, values in pairs}


def _family(row: Mapping[str, str]) -> Family:
    return Family(
        name=row["family"],
        kinds=tuple(row["kinds"].split()),
        stored=_properties(row["stored"]),
        derived=_properties(row["derived"]),
        refused=_properties(row["refused"]),
        turned=row["turned"],
        placed=row["placed"],
        support=row["support"],
    )


FAMILIES: tuple[Family, ...] = tuple(map(_family, read_csv("block_families.csv")))
_PLAIN = Family("", (), {}, {}, {}, "", "", "")


def _find_families() -> tuple[Family, ...]:
    exact = {kind: family for family in FAMILIES for kind in family.kinds}
    ends = sorted(
        ((kind[1:], family) for kind, family in exact.items() if kind.startswith("*")),
        key=lambda pair: -len(pair[0]),
    )
    return tuple(
        exact.get(block.name)
        or next((family for end, family in ends if block.name.endswith(end)), _PLAIN)
        for block in BLOCKS
    )


FAMILY_OF: tuple[Family, ...] = _find_families()
"""The family of each kind."""


def block_of(kind: int, properties: Mapping[str, str]) -> int:
    """Return the block of a kind with these stored properties; see `Family.state`."""
    return kind | FAMILY_OF[kind].state(properties) << STATE_SHIFT


def properties_of(block: int) -> dict[str, str]:
    """Return the stored properties of a block by name."""
    return FAMILY_OF[kind_of(block)].properties(block >> STATE_SHIFT)


def turned_to(block: int, **properties: str) -> int:
    """Return a block in another state: with these properties, and all others as they are."""
    return block_of(kind_of(block), {**properties_of(block), **properties})


def states_of(kind: int) -> Iterator[int]:
    """Yield the blocks of a kind, in all its states."""
    return (kind | state << STATE_SHIFT for state in range(FAMILY_OF[kind].size))


@dataclass(frozen=True)
class BlockFilter:
    """Blocks of one kind, in all states or some.

    Attributes:
        kind: The kind; -1 for all kinds, in all states.
        states: A bit for each state that fits, from the lowest one up.
    """

    kind: int
    states: int = (1 << MOST_STATES) - 1

    @classmethod
    def of(cls, kind: int, properties: Mapping[str, str]) -> BlockFilter:
        """Return a filter for a kind in all states that have these stored properties."""
        family, wanted = FAMILY_OF[kind], properties.items()
        fits = (wanted <= family.properties(state).items() for state in range(family.size))
        return cls(kind, sum(fit << state for state, fit in enumerate(fits)))


ANY_BLOCK = BlockFilter(-1)


# --------------------------------------------------------- columns of the table of kinds and states
# A column holds a fact about each block: a word per kind, with a bit for each of its states, from
# the lowest one up. So one word is read wherever a block is asked about, whatever its state.

Column = NDArray[np.uint64]


@shared_with_kernels
def holds(column: Column, block: Any) -> Any:
    """Whether a fact holds for a block, or for each block of an array."""
    return (column[block & KIND_MASK] >> np.uint64(block >> STATE_SHIFT)) & np.uint64(
        1
    ) != np.uint64(0)


def column_of(fact: Callable[[int], bool]) -> Column:
    """A column of a fact about each block of the world: a kind in a state."""
    column = np.zeros(LARGEST_KIND + 1, np.uint64)
    for kind in range(len(BLOCKS)):
        column[kind] = sum(fact(block) << state for state, block in enumerate(states_of(kind)))
    return column


def _column(fact: Callable[[Block], bool]) -> Column:
    """A column of a fact that is the same in all states of a kind."""
    return column_of(lambda block: fact(BLOCKS[kind_of(block)]))


def _set(column: Column, fact: bool, family: str, **properties: str) -> None:
    """Say of a family's blocks with some properties whether the fact holds for them."""
    for kind, its in enumerate(FAMILY_OF):
        if its.name == family:
            states = np.uint64(BlockFilter.of(kind, properties).states)
            column[kind] = column[kind] | states if fact else column[kind] & ~states


def _is_something(block: Block) -> bool:
    return block.shape is not Shape.NONE


_REPLACEABLE = frozenset(
    (
        *("air", "grass", "fern", "dead_bush", "tall_grass", "large_fern", "vine", "seagrass"),
        *("tall_seagrass", "snow", "crimson_roots", "warped_roots", "nether_sprouts", "lava"),
    )
)
"""Kinds in whose place others are put; of snow, only a single layer."""


def _is_thin(block: Block) -> bool:
    return BLOCK_ID[block.name] in THIN_KINDS


def _has_body(block: Block) -> bool:
    return _is_something(block) and not _is_thin(block)


def _needs_others(block: Block) -> bool:
    family = FAMILY_OF[BLOCK_ID[block.name]]
    return (
        bool(family.support) or "part" in family.stored or "lower" in family.stored.get("half", ())
    )


_IS_THIN = _column(_is_thin)
_STOPS_RAYS = _column(_has_body)
# A single layer of snow is painted on what is below it, see `render.light`: as a box two pixels
# high it would stop nearly all rays over snowy land many times.
_set(_STOPS_RAYS, False, "snow", layers="1")
# Of thin blocks only the cobweb dims the light of the sky, which falls to a column's highest block.
_COVERS = _column(lambda block: _has_body(block) or block.name == "cobweb")
_BEARS = _column(lambda block: block.name not in _REPLACEABLE)
_LANDS = _column(lambda block: block.name not in _REPLACEABLE and not _is_thin(block))
_NEEDS_OTHERS = _column(_needs_others)
_IS_REPLACEABLE = _column(lambda block: block.name in _REPLACEABLE)
_set(_IS_REPLACEABLE, False, "snow")
_set(_IS_REPLACEABLE, True, "snow", layers="1")


@shared_with_kernels
def stops_rays(block: Any) -> Any:
    """Whether the rays that draw the terrain end in a block; one block, or each of an array."""
    return holds(_STOPS_RAYS, block)


@shared_with_kernels
def is_thin(block: Any) -> Any:
    """Whether a block is drawn as flat pictures; one block, or each of an array."""
    return holds(_IS_THIN, block)


@shared_with_kernels
def covers(block: Any) -> Any:
    """Whether a block counts as its column's highest: above that, the sky is open.

    Whatever stops the rays that draw the terrain does. Thin blocks do not: who is put on a column
    stands in its grass, not on it. The block may be an array, and the answer is one, then.
    """
    return holds(_COVERS, block)


@shared_with_kernels
def bears(block: int) -> bool:
    """Whether sand and gravel rest on a block."""
    return holds(_BEARS, block)


@shared_with_kernels
def lands(block: int) -> bool:
    """Whether sand and gravel that fall end on top of a block; they fall into a flower."""
    return holds(_LANDS, block)


@shared_with_kernels
def needs_others(block: int) -> bool:
    """Whether a block breaks if another one is missing: its support, or its other half."""
    return holds(_NEEDS_OTHERS, block)


@shared_with_kernels
def is_replaceable(block: int) -> bool:
    """Whether another block may be put in a block's place, as in that of air."""
    return holds(_IS_REPLACEABLE, block)


ACTS_WHEN_USED = np.array(
    [
        block.name in SCREENS
        or family.name in ("lever", "bed")
        or (family.name in ("door", "trapdoor", "fence gate") and not block.name.startswith("iron"))
        for block, family in zip(BLOCKS, FAMILY_OF, strict=True)
    ]
)
"""Whether a block does something by itself when used, so that food in hand is not eaten; by kind,
bool."""
