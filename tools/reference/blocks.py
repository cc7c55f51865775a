"""Every block and item, and how this engine's differ from Minecraft's."""

from __future__ import annotations

from rllib_minestudio.env.voxel.game.loot import TABLES, LootEntry
from rllib_minestudio.env.voxel.game.use_and_drop import USES
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    UNBREAKABLE,
    Block,
    Shape,
)
from tools.reference import block_states
from tools.reference.tables import table

_INTRODUCTION = """\
# Blocks and items

The embedded engine (`engine: voxel`) knows all {blocks} blocks and {items} items of Minecraft Java
1.16.5 by name. The facts are tables in `rllib_minestudio/env/voxel/data`.

The column *Shape* says what bodies run into, what the crosshair aims at, and what is seen:

- *cube*: the whole cell ({cubes} blocks); *see-through* if one sees what is behind it.
- *boxes*: one or several, as the rows of `block_shapes.csv` say; in several states, several shapes.
  *No body* means that everything passes.
- *flat pictures*: a plant. Everything passes it; what is under the crosshair is a box around it.
- *refused* ({refused} blocks): a fluid, soul fire, a portal of the End or a technical block, which
  `/setblock` and `/fill` refuse.

*Light* is what a block gives, 0 to 15, and how it holds light back: it *stops* it, it *dims* the
light of the sky by one as it does all other light, or only its *full sides* stop it.

What a block does beyond this (plants that grow, redstone) is not simulated, unless another page
says so.

*Tool* is the kind that mines the block faster and, if bare hands yield nothing, the lowest material
with which the block drops anything. *Drops* follow Minecraft's loot tables for tools without
enchantments; with silk touch, most blocks drop themselves. A double slab drops two, snow and sea
pickles as many as are in the block. A bed, a door or a tall plant drops what both halves together
do. Boxes drop without their contents.

## What the use key does

The use key does the first of these that applies:

{uses}

## Every block
"""

_ITEMS = """
## Items with a use that is not simulated

All items can be given, carried, dropped and picked up. `/give` says what cannot be done with these:
"""

_TIERS = ("", "wood", "stone", "iron", "diamond")


def page() -> str:
    """Return the page."""
    counts = {shape: sum(block.shape is shape for block in BLOCKS) for shape in Shape}
    introduction = _INTRODUCTION.format(
        blocks=len(BLOCKS),
        items=len(ITEMS),
        cubes=counts[Shape.CUBE],
        refused=counts[Shape.REFUSED],
        uses="\n".join(f"1. With {use.stage.value}: {use.sentence}" for use in USES.rows),
    )
    rows = [_row(block) for block in BLOCKS if block.shape is not Shape.NONE]
    header = ("Block", "Shape", "Light", "Hardness", "Tool", "Drops")
    listed = table(rows, header) + block_states.section()
    return introduction + "\n" + listed + _ITEMS + "\n" + _without_use()


def _row(block: Block) -> tuple[str, ...]:
    kind = BLOCK_ID[block.name]
    hardness = "unbreakable" if block.hardness == UNBREAKABLE else f"{block.hardness:g}"
    tool = block.tool or ""
    if block.harvest_tier:
        tool += f", from {_TIERS[block.harvest_tier]}"
    looks = block_states.shape_of([kind]), block_states.light_of([kind])
    return block.name, *looks, hardness, tool, _drops(block)


def _drops(block: Block) -> str:
    if block.drop is not None:
        return "itself" if block.drop == block.name else _title(block.drop)
    return "; ".join(
        ", else ".join(map(_entry, pool.entries)) for pool in TABLES.get(block.name, ())
    )


def _entry(entry: LootEntry) -> str:
    low, high = (max(count, entry.at_least) for count in entry.quantity)
    high += entry.trials
    count = f"{low} " if low == high else f"{low} to {high} "
    chance = f" ({100 * entry.chance:g} %)" if entry.chance < 1.0 else ""
    with_tool = {"shears": " with shears", "not shears": " without shears", "": ""}[entry.tool]
    state = "".join(f" at {name} {value}" for name, value in entry.state.items())
    return f"{'' if count == '1 ' else count}{_title(entry.item)}{chance}{with_tool}{state}"


def _title(name: str) -> str:
    return name.replace("_", " ")


def _without_use() -> str:
    items: dict[str, list[str]] = {}
    for item in ITEMS.values():
        if item.use:
            items.setdefault(item.use, []).append(f"`{item.name}`")
    lines = ["| Cannot be | Items |", "| --- | --- |"]
    lines += [f"| {use} | {', '.join(names)} |" for use, names in sorted(items.items())]
    return "\n".join(lines) + "\n"
