"""Kinds of blocks and their states: arrays by kind and by state, for the kernels.

The facts are in `data/blocks.csv`. A block of the world has a state as well, see below,
and a shape, see `block_shapes`; the arrays here are for what is the same in all states of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

import numpy as np
from numba import int32, int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import kernel, shared_with_kernels

UNBREAKABLE = -1.0
"""Hardness of a block that no tool can mine."""

PICKAXE, SHOVEL, AXE, SWORD, HOE, SHEARS = "pickaxe", "shovel", "axe", "sword", "hoe", "shears"

LARGEST_KIND = 1023
"""A block of the world has 16 bits: ten for its kind, and six for its state."""


class Shape(Enum):
    """What shape a block has."""

    NONE = "none"
    """Air."""
    CUBE = "cube"
    """A full cube."""
    OTHER = "other"
    """What `block_shapes` says."""
    REFUSED = "refused"
    """Water, fire, a portal or technical block: a cube would be wrong, so it cannot be put."""


@dataclass(frozen=True)
class Block:
    """One block type.

    Attributes:
        name: Minecraft's identifier without the namespace.
        material: What it is made of, such as "stone", "wood" or "plant".
        hardness: Minecraft's hardness; `UNBREAKABLE` for bedrock and the like.
        tool: Class of tools that mine it faster, or None.
        harvest_tier: Lowest tier of that tool that yields drops (0 = bare hands do, 1 wood,
            2 stone, 3 iron, 4 diamond).
        drop: Name of the one item that mining yields; None for nothing, or where `loot` has a
            table for it.
        falls: Whether it falls when nothing is below it.
        shape: What shape it has.
        see_through: Whether one can see through it, although it is a full cube.
    """

    name: str
    material: str
    hardness: float
    tool: str | None
    harvest_tier: int
    drop: str | None
    falls: bool
    shape: Shape
    see_through: bool


BY_TABLE = "table"
"""The drop in `blocks.csv` of a block that has a table in `block_loot.json`."""


def _block(row: dict[str, str]) -> Block:
    return Block(
        name=row["block"],
        material=row["material"],
        hardness=float(row["hardness"]),
        tool=row["tool"] or None,
        harvest_tier=int(row["tier"]),
        drop=None if row["drop"] in ("", BY_TABLE) else row["drop"],
        falls=row["falls"] == "yes",
        shape=Shape(row["shape"]),
        see_through=row["see_through"] == "yes",
    )


BLOCKS: tuple[Block, ...] = tuple(map(_block, read_csv("blocks.csv")))
"""All kinds of blocks of Minecraft Java 1.16.5; a kind's id is its index here, and air is 0."""

BLOCK_ID: dict[str, int] = {block.name: index for index, block in enumerate(BLOCKS)}
"""Kind by name; also the block of that kind in its default state."""

AIR = BLOCK_ID["air"]
STONE = BLOCK_ID["stone"]
GRASS_BLOCK = BLOCK_ID["grass_block"]
DIRT = BLOCK_ID["dirt"]
BEDROCK = BLOCK_ID["bedrock"]
LAVA = BLOCK_ID["lava"]
SAND = BLOCK_ID["sand"]
GRAVEL = BLOCK_ID["gravel"]
OAK_LOG = BLOCK_ID["oak_log"]
OAK_LEAVES = BLOCK_ID["oak_leaves"]
BIRCH_LOG = BLOCK_ID["birch_log"]
BIRCH_LEAVES = BLOCK_ID["birch_leaves"]
SANDSTONE = BLOCK_ID["sandstone"]
CACTUS = BLOCK_ID["cactus"]
SNOW = BLOCK_ID["snow"]
SNOW_BLOCK = BLOCK_ID["snow_block"]

HARDNESS = np.array([block.hardness for block in BLOCKS], np.float32)
"""Hardness by kind, float32 as in Minecraft."""
SCREENS = ("crafting_table", "furnace", "chest", "enchanting_table")
"""Blocks that open a screen of the same name when used."""
FALLS = np.array([block.falls for block in BLOCKS])
"""Whether a block falls when nothing is below it, by kind, bool."""


# ------------ plants: which blocks are thin, where in its cell a plant stands, and what it grows on
# The facts are in `data/plants.csv`, from memory of Minecraft Java 1.16.5's classes of blocks. A
# *thin* block is one that the game draws as flat pictures: plants, and cobwebs. Light, bodies and
# the rays that draw the terrain pass through it; `cell_bits` knows where the thin blocks are, and
# `render.plants` draws them. Cactus and bamboo grow on certain soils as well, but have a body.
#
# What plants need besides their soil is left out: there is no water beside which sugar cane and in
# which seagrass would grow, and mushrooms stand in any light.

CROSS, ROWS = "cross", "rows"
"""Planes of a thin block: two that cross along the diagonals, or two along either axis."""

NO_SHIFT, SHIFT_XZ, SHIFT_XYZ = range(3)
"""Along which axes a kind of plant stands off the middle of its cell, see `shift_of`."""

_SHIFTS = {"": NO_SHIFT, "xz": SHIFT_XZ, "xyz": SHIFT_XYZ}
_FULL = "full"
_SOILS = {
    "earth": ("grass_block", "dirt", "coarse_dirt", "podzol", "farmland"),
    "clays": tuple(
        block.name
        for block in BLOCKS
        if block.name.endswith("terracotta") and "glazed" not in block.name
    ),
}
"""Words of the column `soil` that stand for several kinds."""


@dataclass(frozen=True)
class Plant:
    """What is the same for all states of a kind of plant.

    Attributes:
        planes: `CROSS` or `ROWS`; empty for a plant with a body.
        shift: How it is shifted.
        soils: Kinds of blocks that it grows on.
        on_full_sides: Whether it grows on every block with a full upper side.
    """

    planes: str
    shift: int
    soils: frozenset[int]
    on_full_sides: bool


def _plants() -> dict[int, Plant]:
    found = {}
    for row in read_csv("plants.csv"):
        words = [name for word in row["soil"].split() for name in _SOILS.get(word, (word,))]
        plant = Plant(
            planes=row["planes"],
            shift=_SHIFTS[row["shift"]],
            soils=frozenset(BLOCK_ID[word] for word in words if word != _FULL),
            on_full_sides=_FULL in words,
        )
        found.update({BLOCK_ID[name]: plant for name in row["plants"].split()})
    return found


PLANTS: dict[int, Plant] = _plants()
"""All plants by kind."""

THIN_KINDS = frozenset(kind for kind, plant in PLANTS.items() if plant.planes)
"""The kinds of thin blocks."""

# ------------------------------------------------------------- where in its cell a plant stands
# Minecraft shifts plants by a hash of their column, so that meadows do not look like grids: up to
# a quarter of a block sideways, and grass up to a fifth down (`Block.getOffset`, from memory).

_LARGEST_SHIFT, _LARGEST_SINK = 0.25, 0.2
_STEPS = 15


@kernel()
def shift_of(x: int, z: int, shift: int) -> tuple[float, float, float]:
    """How far a plant in column (x, z) of the world stands off the middle of its cell.

    Args:
        x: The column.
        z: The column.
        shift: `NO_SHIFT`, `SHIFT_XZ` or `SHIFT_XYZ`.

    Returns:
        Blocks along x, y and z; the second is never positive.
    """
    if shift == NO_SHIFT:
        return 0.0, 0.0, 0.0
    seed = int64(int32(int64(x) * 3129871)) ^ (int64(z) * 116129781)
    seed = (seed * seed * 42317861 + seed * 11) >> 16
    along_x = ((seed & 15) / _STEPS * 2.0 - 1.0) * _LARGEST_SHIFT
    along_z = ((seed >> 8 & 15) / _STEPS * 2.0 - 1.0) * _LARGEST_SHIFT
    down = ((seed >> 4 & 15) / _STEPS - 1.0) * _LARGEST_SINK
    return along_x, down if shift == SHIFT_XYZ else 0.0, along_z


# ---------------------------- blocks in their states: what the 16 bits of a block in the world mean
#      15       10 9                0
#     +-----------+------------------+
#     |   state   |       kind       |
#     +-----------+------------------+
#
# The kind is the block's index in `BLOCKS`. The state is a mixed-radix number: a digit for each
# property that the kind's *family* stores, such as the facing and the half of stairs. Families are
# rows of `data/block_families.csv`. The first value of a property is its default: state 0 is the
# default state, and the id of a kind is also the block of that kind in its default state.
#
# What follows from the blocks around it (the arms of a fence, the corner of stairs) is not stored:
# the family names such properties as *derived*. Those which nothing in this engine changes, such as
# water in a slab, are *refused*: only their default exists.
#
# What follows says what a block stops, hides and bears, by kind and state. These predicates,
# `block_shapes` for bodies and aim, and what blocks do to light, below, are the only places that
# ask whether a block is "solid":
#
#     stops_rays      rays that draw the terrain end in it         world/box_field.py
#     is_thin         it is drawn as flat pictures, see `plants`   world/cell_bits.py
#     covers          counts as the highest block of its column    world/land.py
#     bears           sand and gravel rest on it                   world/land.py, game/
#     lands           a block that falls ends on top of it         game/game.py
#     needs_others    it breaks without a block beside it          world/land.py
#     is_replaceable  another block may be put in its place        game/use_and_drop.py

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


# ---------------------- what blocks do to light: how much of it they give, let through and shut out
# A block of Minecraft has three facts about light, which depend on its state:
#
# - its *emission*, 0 to 15, is the light of its own; - its *opacity* is 0 if the light of the sky
# falls through it undimmed, 1 if it only passes on like any other light, dimmer by one with each
# step, and 15 if none enters; - its *full sides* are closed: nothing passes from one cell to the
# next through a full side of either. So a slab or stairs shut light out on some sides and let it
# in on the others.
#
# A full cube that one cannot see through is opaque, everything else has opacity 0; the exceptions,
# and all that emits light, are rows of `data/block_light.csv`. A block that emits light gives it
# on all sides, even if it is opaque. (Minecraft also stops light between two half sides that make
# a full one, as of a slab beside another that is turned over; here it passes. Stairs count as
# straight.)

OPAQUE = 15
"""Opacity of what light does not enter."""

SIDES = ("east", "west", "up", "down", "south", "north")
"""Sides in the order of their numbers: `number ^ 1` is the opposite side, `number >> 1` the axis
(x, y, z), and even numbers look along it."""
UP, DOWN = SIDES.index("up"), SIDES.index("down")

# A word for each block and state:
#
#      11       6 5    4 3        0
#     +----------+------+----------+
#     |  sides   | opac.| emission |     opacity: 0, 1, or 3 for 15
#     +----------+------+----------+
_EMISSION = np.uint16(15)
_DIMS, _STOPS = np.uint16(1 << 4), np.uint16(1 << 5)
_FIRST_SIDE = 6
_OPACITY_BITS = {0: 0, 1: int(_DIMS), OPAQUE: int(_DIMS | _STOPS)}

Optics = NDArray[np.uint16]


def _kinds_of(cell: str) -> Iterator[int]:
    """Kinds by "glass *_stained_glass", where * stands for any beginning."""
    for word in cell.split():
        for kind, block in enumerate(BLOCKS):
            if block.name == word or (word[0] == "*" and block.name.endswith(word[1:])):
                yield kind


def _usual(block: Block) -> int:
    stops = block.shape is Shape.CUBE and not block.see_through
    return _OPACITY_BITS[OPAQUE if stops else 0]


def _changed(word: int, row: Mapping[str, str]) -> int:
    """A block's word after what a row of the table says of it."""
    if row["light"]:
        word = word & ~int(_EMISSION) | int(row["light"])
    if row["opacity"]:
        word = word & ~int(_DIMS | _STOPS) | _OPACITY_BITS[int(row["opacity"])]
    for side in row["sides"].split():
        word |= 1 << _FIRST_SIDE + SIDES.index(side)
    return word


def _read_table() -> Optics:
    """The words of all kinds and states, uint16 [kinds, MOST_STATES]."""
    words = np.zeros((LARGEST_KIND + 1, MOST_STATES), np.uint16)
    words[: len(BLOCKS)] = np.array([_usual(block) for block in BLOCKS])[:, None]
    for row in read_csv("block_light.csv"):
        properties = dict(pair.split("=") for pair in row["state"].split())
        for kind in _kinds_of(row["kinds"]):
            states = BlockFilter.of(kind, properties).states
            for state in range(FAMILY_OF[kind].size):
                if states >> state & 1:
                    words[kind, state] = _changed(int(words[kind, state]), row)
    return words


_LIKE, _ROW_OF_KIND = np.unique(_read_table(), axis=0, return_inverse=True)
# Kinds that are alike in all states share a row, so that the table stays in the processor's cache.
_ROWS: Optics = np.ascontiguousarray(_LIKE.reshape(-1))
_FIRST_OF_KIND = (_ROW_OF_KIND.reshape(-1) * MOST_STATES).astype(np.int32)


@shared_with_kernels
def optics_of(block: Any) -> Any:
    """The word of a block, or of each block of an array."""
    return _ROWS[_FIRST_OF_KIND[block & KIND_MASK] + (block >> STATE_SHIFT)]


@shared_with_kernels
def emission(optics: Any) -> Any:
    """Light that a block gives, 0 to 15, by its word."""
    return optics & _EMISSION


@shared_with_kernels
def is_opaque(optics: Any) -> Any:
    """Whether no light enters a block from another, by its word."""
    return (optics & _STOPS) != 0


@shared_with_kernels
def dims_sky(optics: Any) -> Any:
    """Whether the light of the sky does not fall through a block undimmed, by its word."""
    return (optics & _DIMS) != 0


@shared_with_kernels
def closes(optics: Any, side: int) -> Any:
    """Whether one of a block's sides is full, by its word and the side's number."""
    return (optics & np.uint16(1 << (_FIRST_SIDE + side))) != 0
