"""The states that blocks have, by families."""

from __future__ import annotations

from rllib_minestudio.env.voxel.world.block_states import FAMILIES, Family, Properties
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

"""


def section() -> str:
    """Return the section of the page of blocks."""
    header = ("Family", "Blocks", "Stored", "Turns", "Derived", "Refused")
    return _INTRODUCTION + table(map(_row, FAMILIES), header)


def _row(family: Family) -> tuple[str, ...]:
    kinds = " ".join(f"`{kind}`" for kind in family.kinds)
    stored, derived, refused = map(_values, (family.stored, family.derived, family.refused))
    return family.name, kinds, stored, family.turned, derived, refused


def _values(properties: Properties) -> str:
    return "; ".join(f"`{name}`: {_range(values)}" for name, values in properties.items())


def _range(values: tuple[str, ...]) -> str:
    """Return the values: numbers in ascending order from the default on as a range."""
    first = int(values[0]) if values[0].isdigit() else None
    is_run = first is not None and values == tuple(map(str, range(first, first + len(values))))
    return f"{values[0]} to {values[-1]}" if is_run and len(values) > 2 else ", ".join(values)
