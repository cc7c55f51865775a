"""The states that blocks have, by families."""

from __future__ import annotations

from rllib_minestudio.env.voxel.game.use_and_drop import USES, Stage
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, default_shape, is_cube
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCKS,
    FAMILIES,
    FAMILY_OF,
    SIDES,
    Family,
    Properties,
    Shape,
    closes,
    dims_sky,
    emission,
    is_opaque,
    is_thin,
    optics_of,
    states_of,
)
from tools.reference.tables import table

_INTRODUCTION = """
## States

`/setblock` and `/fill` take Minecraft's block states, `furnace[facing=east]`, and name blocks of
one state to replace, `oak_log[axis=x]`. The families below are the rows of `block_families.csv`;
blocks that are in none have no states. The first value of a property is its default.

- *Stored* properties are part of a block, and are set when a player places it as Minecraft sets
  them. *Turns* says which of its pictures turn with them: its *front* or *top* to its facing, or
  the ends of a log along its *axis*.
- *Derived* properties follow from the blocks around: commands accept them, and do not keep them.
- *Refused* properties have only their default here; commands refuse other values.

*Shape* and *Light* are those of the family's blocks in all their states, *Use* is what the use key
does to them by itself.

"""


def section() -> str:
    """Return the section of the page of blocks."""
    header = ("Family", "Blocks", "Stored", "Turns", "Derived", "Refused", "Shape", "Light", "Use")
    return _INTRODUCTION + table(map(_row, FAMILIES), header)


def _row(family: Family) -> tuple[str, ...]:
    kinds = " ".join(f"`{kind}`" for kind in family.kinds)
    stored, derived, refused = map(_values, (family.stored, family.derived, family.refused))
    members = [kind for kind, its in enumerate(FAMILY_OF) if its is family]
    facts = shape_of(members), light_of(members), _use_of(members)
    return family.name, kinds, stored, family.turned, derived, refused, *facts


def shape_of(kinds: list[int]) -> str:
    """Say what shape blocks of some kinds have, in all their states."""
    if all(BLOCKS[kind].shape is Shape.REFUSED for kind in kinds):
        return "refused"
    if any(is_thin(kind) for kind in kinds):
        return "flat pictures"
    shapes = {SHAPES[default_shape(block)] for kind in kinds for block in states_of(kind)}
    if all(is_cube(block) for kind in kinds for block in states_of(kind)):
        shape = "cube"
        if any(BLOCKS[kind].see_through for kind in kinds):
            shape += ", see-through"
        return shape if all(its.body == its.model for its in shapes) else f"{shape}; a lower body"
    bodies = [bool(its.body) for its in shapes]
    without = "" if all(bodies) else ", no body" if not any(bodies) else ", no body in some states"
    return f"boxes{without}"


def light_of(kinds: list[int]) -> str:
    """Say what blocks of some kinds do to light, in all their states."""
    words = [int(optics_of(block)) for kind in kinds for block in states_of(kind)]
    given = sorted({int(emission(word)) for word in words})
    found = [f"gives {' or '.join(map(str, given))}"] if given[-1] else []
    if all(is_opaque(word) for word in words):
        found.append("stops")
    elif any(closes(word, side) for word in words for side in range(len(SIDES))):
        found.append("full sides stop")
    elif all(dims_sky(word) for word in words):
        found.append("dims")
    return ", ".join(found)


def _use_of(kinds: list[int]) -> str:
    """Say what the use key does to blocks of some kinds by themselves."""
    used = (row for row in USES.rows if row.stage is Stage.BLOCK and {*row.of} & {*kinds})
    return " ".join(row.sentence.split("; ")[0].rstrip(".") + "." for row in used)


def _values(properties: Properties) -> str:
    return "; ".join(f"`{name}`: {_range(values)}" for name, values in properties.items())


def _range(values: tuple[str, ...]) -> str:
    """Return the values: numbers in ascending order from the default on as a range."""
    first = int(values[0]) if values[0].isdigit() else None
    is_run = first is not None and values == tuple(map(str, range(first, first + len(values))))
    return f"{values[0]} to {values[-1]}" if is_run and len(values) > 2 else ", ".join(values)
