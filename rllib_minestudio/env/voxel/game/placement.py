"""How blocks are placed: what an item becomes, where, and in which state.

`placed_blocks` is the only place that knows. It is a pure function of the item, of where the player
clicks and looks (`Click`), and of the blocks there. A family names its rule in the column `placed`
of `block_families.csv`, and what it must be put on in the column `support`; `_RULES` and
`_SUPPORTS` have them by these names. All follow Minecraft Java 1.16.5, by the shapes that blocks
have there.

Directions are named as in the game: north is -z, east +x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rllib_minestudio.env.voxel.world.block_shapes import (
    DOWN,
    EAST,
    NORTH,
    SOUTH,
    UP,
    WEST,
    has_full_side,
    has_middle,
    stops_all,
    stops_nothing,
)
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    FAMILY_OF,
    PLANTS,
    block_of,
    is_replaceable,
    kind_of,
    properties_of,
    turned_to,
)
from rllib_minestudio.env.voxel.world.surfaces import FLAMMABLE

Cell = tuple[int, int, int]
BlockAt = Callable[[int, int, int], int]
"""The block at x, y, z."""

_STEP: dict[str, Cell] = {
    "down": (0, -1, 0),
    "up": (0, 1, 0),
    "north": (0, 0, -1),
    "south": (0, 0, 1),
    "west": (-1, 0, 0),
    "east": (1, 0, 0),
}
DIRECTIONS = tuple(_STEP)
"""All six."""
_NAME = {step: name for name, step in _STEP.items()}
_OPPOSITE = {name: _NAME[-x, -y, -z] for name, (x, y, z) in _STEP.items()}
_CLOCKWISE = ("south", "west", "north", "east")
"""Horizontal directions by quarter turns of the yaw."""


class Click(NamedTuple):
    """Where the player clicks, and how the player looks.

    Attributes:
        cell: The block under the crosshair.
        face: Outward normal of the face that is hit.
        hit: Where it is hit, from the cell's lowest corner, 0 to 1 along each axis.
        yaw: Degrees; 0 looks south, 90 west.
        pitch: Degrees; positive looks down.
    """

    cell: Cell
    face: Cell
    hit: tuple[float, float, float]
    yaw: float
    pitch: float


class _Spot(NamedTuple):
    """A block about to be placed.

    Attributes:
        kind: What is placed.
        cell: Where.
        side: The side of a block that was clicked.
        hit: The point that was clicked, from the lowest corner of `cell`.
        yaw: Degrees.
        ahead: The horizontal direction in which the player looks.
        looks: All six directions, the one the player looks at most first.
        replaces: Whether the block that was clicked is replaced.
        tries: The order in which a block that hangs on others tries them: `looks`, but first of all
            the block that was clicked, unless that is replaced.
        block_at: The blocks around.
    """

    kind: int
    cell: Cell
    side: str
    hit: tuple[float, float, float]
    yaw: float
    ahead: str
    looks: tuple[str, ...]
    replaces: bool
    tries: tuple[str, ...]
    block_at: BlockAt

    def put(self, **properties: str) -> Placed:
        """The block in a state."""
        return {self.cell: block_of(self.kind, properties)}

    @property
    def old(self) -> int:
        """The block that is replaced."""
        return self.block_at(*self.cell)


Placed = dict[Cell, int]
"""Blocks to put, by place; empty if the block cannot be placed."""

_NOTHING: Placed = {}


def placed_blocks(kind: int, click: Click, block_at: BlockAt) -> Placed:
    """Return the blocks that placing an item puts into the world.

    Whether bodies are in the way, or the places are outside the world, is left to the caller.

    Args:
        kind: The kind of block that the item places.
        click: Where the player clicks.
        block_at: Returns the block at x, y, z.

    Returns:
        Blocks by place: two for doors, beds and tall plants. Empty if it cannot be placed there.
    """
    side = _NAME[click.face]
    looks = _look_order(click.yaw, click.pitch)
    cell, hit, tries = click.cell, click.hit, looks
    replaces = _gives_way(block_at(*cell), kind, side, hit[1], clicked=True)
    if not replaces:
        cell, step = beside(cell, side), click.face
        hit = hit[0] - step[0], hit[1] - step[1], hit[2] - step[2]
        first = _OPPOSITE[side]
        tries = (first, *(direction for direction in looks if direction != first))
        if not _gives_way(block_at(*cell), kind, side, hit[1], clicked=False):
            return _NOTHING
    ahead = ahead_of(click.yaw)
    spot = _Spot(kind, cell, side, hit, click.yaw, ahead, looks, replaces, tries, block_at)
    rule = _RULES[FAMILY_OF[kind].placed]
    placed = rule(spot)
    for place, block in placed.items():
        if place != cell and not is_replaceable(block_at(*place)):
            return _NOTHING
        if place == cell and not is_supported(block, place, block_at):
            return _NOTHING
    return placed


def beside(cell: Cell, direction: str) -> Cell:
    """Return the cell next to another."""
    step = _STEP[direction]
    return cell[0] + step[0], cell[1] + step[1], cell[2] + step[2]


def ahead_of(yaw: float) -> str:
    """Return the horizontal direction that is nearest to a yaw in degrees."""
    return _CLOCKWISE[math.floor(yaw / 90 + 0.5) & 3]


def direction_of(step: Cell) -> str:
    """Return the direction of a step to a cell beside another."""
    return _NAME[step]


def opposite(direction: str) -> str:
    """Return the opposite of a direction."""
    return _OPPOSITE[direction]


def other_half(cell: Cell, block: int) -> tuple[Cell, int] | None:
    """Return place and block of the second half of a door, bed or tall plant; None for others."""
    properties = properties_of(block)
    if "part" in properties:
        foot = properties["part"] == "foot"
        facing = properties["facing"]
        place = beside(cell, facing if foot else _OPPOSITE[facing])
        return place, turned_to(block, part="head" if foot else "foot")
    if properties.get("half") in ("lower", "upper"):
        lower = properties["half"] == "lower"
        place = beside(cell, "up" if lower else "down")
        return place, turned_to(block, half="upper" if lower else "lower")
    return None


def _look_order(yaw: float, pitch: float) -> tuple[str, ...]:
    """The six directions, from the one that is closest to the line of sight to its opposite."""
    yaw, pitch = math.radians(yaw), math.radians(pitch)
    x, y, z = -math.sin(yaw) * math.cos(pitch), -math.sin(pitch), math.cos(yaw) * math.cos(pitch)
    closest = sorted(
        (
            (abs(x), "east" if x > 0 else "west"),
            (abs(y), "up" if y > 0 else "down"),
            (abs(z), "south" if z > 0 else "north"),
        ),
        key=lambda pair: -pair[0],
    )
    ahead = [direction for _, direction in closest]
    return (*ahead, *(_OPPOSITE[direction] for direction in reversed(ahead)))


_HEAPS = {"snow": ("layers", 8), "turtle_egg": ("eggs", 4), "sea_pickle": ("pickles", 4)}
"""Blocks that are placed into others of their kind: the property that grows, and its limit."""


def _gives_way(old: int, kind: int, side: str, height: float, clicked: bool) -> bool:
    """Whether a block makes room for one of a kind, or takes it in.

    Args:
        old: The block.
        kind: What is placed.
        side: The side that was clicked.
        height: How high in the block's cell, 0 to 1.
        clicked: Whether it was this block that was clicked, not the one behind it.
    """
    if kind_of(old) != kind:
        return is_replaceable(old)
    name, properties = BLOCKS[kind].name, properties_of(old)
    if "type" in properties and FAMILY_OF[kind].placed == "slab":
        half = properties["type"]
        if half == "double" or not clicked:
            return half != "double"
        away, upper = ("up", height > 0.5) if half == "bottom" else ("down", height <= 0.5)
        return side == away or (upper and side in _CLOCKWISE)
    if name in _HEAPS:
        grows, most = _HEAPS[name]
        room = int(properties[grows]) < most
        return room and (not clicked or name != "snow" or side == "up")
    return name == "vine" and "false" in properties.values()


# ------------------------------------------------------------------------------- what bears a block
# By Minecraft's shapes, see `block_shapes`.

_SIDE = {"east": EAST, "west": WEST, "up": UP, "down": DOWN, "south": SOUTH, "north": NORTH}


def _has_full_side(block: int, side: str) -> bool:
    """Whether a block's side is a full square on which others can hang; that of leaves is not."""
    return has_full_side(block, _SIDE[side]) and BLOCKS[kind_of(block)].material != "leaves"


def _has_centre(block: int, side: str) -> bool:
    """Whether the middle of a block's side bears what needs no more, such as a torch."""
    return has_middle(block, _SIDE[side]) and BLOCKS[kind_of(block)].material != "leaves"


def _on_full_side(block: int, cell: Cell, block_at: BlockAt) -> bool:
    return _has_full_side(block_at(*beside(cell, "down")), "up")


def _on_centre(block: int, cell: Cell, block_at: BlockAt) -> bool:
    return _has_centre(block_at(*beside(cell, "down")), "up")


def _on_anything(block: int, cell: Cell, block_at: BlockAt) -> bool:
    return not is_replaceable(block_at(*beside(cell, "down")))


def _on_wall(block: int, cell: Cell, block_at: BlockAt) -> bool:
    facing = properties_of(block)["facing"]
    return _has_full_side(block_at(*beside(cell, _OPPOSITE[facing])), facing)


def _before_anything(block: int, cell: Cell, block_at: BlockAt) -> bool:
    facing = properties_of(block)["facing"]
    return not is_replaceable(block_at(*beside(cell, _OPPOSITE[facing])))


def _attached(block: int, cell: Cell, block_at: BlockAt) -> bool:
    """Levers and buttons, by their face; bells, by their attachment."""
    properties = properties_of(block)
    where = properties.get("face") or properties["attachment"]
    if where == "floor":
        return _on_full_side(block, cell, block_at)
    if where == "ceiling":
        has = _has_full_side if "face" in properties else _has_centre
        return has(block_at(*beside(cell, "up")), "down")
    facing = properties["facing"]
    # A lever faces away from its wall, a bell towards it.
    wall = _OPPOSITE[facing] if "face" in properties else facing
    return _has_full_side(block_at(*beside(cell, wall)), _OPPOSITE[wall])


def _hanging(block: int, cell: Cell, block_at: BlockAt) -> bool:
    hangs = properties_of(block)["hanging"] == "true"
    towards, side = ("up", "down") if hangs else ("down", "up")
    return _has_centre(block_at(*beside(cell, towards)), side)


def _on_soil(block: int, cell: Cell, block_at: BlockAt) -> bool:
    """Plants, on what they grow on."""
    plant, ground = PLANTS[kind_of(block)], block_at(*beside(cell, "down"))
    return kind_of(ground) in plant.soils or (plant.on_full_sides and _has_full_side(ground, "up"))


def _on_soil_with_room(block: int, cell: Cell, block_at: BlockAt) -> bool:
    """Cactus, which nothing with a body may touch from the side."""
    sides = (block_at(*beside(cell, direction)) for direction in _CLOCKWISE)
    return _on_soil(block, cell, block_at) and all(map(stops_nothing, sides))


def can_burn_at(cell: Cell, block_at: BlockAt) -> bool:
    """Whether a fire in a cell has something to burn beside it."""
    return any(kind_of(block_at(*beside(cell, side))) in FLAMMABLE for side in DIRECTIONS)


def _has_ground_or_food(block: int, cell: Cell, block_at: BlockAt) -> bool:
    """Fire stands on a full side, or hangs on what burns."""
    on_ground = has_full_side(block_at(*beside(cell, "down")), UP)
    return on_ground or can_burn_at(cell, block_at)


def _in_frame(block: int, cell: Cell, block_at: BlockAt) -> bool:
    """A portal needs obsidian or itself on all four sides of its plane."""
    sides = ("west", "east") if properties_of(block)["axis"] == "x" else ("north", "south")
    return all(kind_of(block_at(*beside(cell, side))) in _FRAME for side in ("up", "down", *sides))


_FRAME = frozenset((BLOCK_ID["obsidian"], BLOCK_ID["nether_portal"]))
_SUPPORTS: dict[str, Callable[[int, Cell, BlockAt], bool]] = {
    "": lambda block, cell, block_at: True,
    "below": _on_full_side,
    "below centre": _on_centre,
    "anything below": _on_anything,
    "behind": _on_wall,
    "anything behind": _before_anything,
    "attached": _attached,
    "hanging": _hanging,
    "soil": _on_soil,
    "soil and room": _on_soil_with_room,
    "fire": _has_ground_or_food,
    "portal": _in_frame,
}


def is_supported(block: int, cell: Cell, block_at: BlockAt) -> bool:
    """Whether a block has at its place what its family must be put on."""
    return _SUPPORTS[FAMILY_OF[kind_of(block)].support](block, cell, block_at)


def lacks_half(block: int, cell: Cell, block_at: BlockAt) -> bool:
    """Whether a block is one half of a door, bed or tall plant, and the other half is not there."""
    if (rest := other_half(cell, block)) is None:
        return False
    place, half = rest
    found = block_at(*place)
    # Not the same block: what a click changes may differ.
    which = "part" if "part" in properties_of(half) else "half"
    return (
        kind_of(found) != kind_of(half) or properties_of(found)[which] != properties_of(half)[which]
    )


def stands(block: int, cell: Cell, block_at: BlockAt) -> bool:
    """Whether a block of the world has all that it needs: its support, and its other half."""
    if lacks_half(block, cell, block_at):
        return False
    return properties_of(block).get("half") == "upper" or is_supported(block, cell, block_at)


def _first_supported(spot: _Spot, blocks: Iterator[int]) -> Placed:
    """The first of some blocks that has a support."""
    for block in blocks:
        if is_supported(block, spot.cell, spot.block_at):
            return {spot.cell: block}
    return _NOTHING


# --------------------------------------------------------------------------------------- the rules


def _half(spot: _Spot) -> str:
    """Upper half if hung from a ceiling or hit above the middle, else the lower half."""
    if spot.side in ("up", "down"):
        return "top" if spot.side == "down" else "bottom"
    return "top" if spot.hit[1] > 0.5 else "bottom"


def _slab(spot: _Spot) -> Placed:
    if kind_of(spot.old) == spot.kind:
        return spot.put(type="double")
    return spot.put(type=_half(spot))


def _trapdoor(spot: _Spot) -> Placed:
    if spot.side in _CLOCKWISE and not spot.replaces:
        return spot.put(facing=spot.side, half=_half(spot))
    return spot.put(facing=_OPPOSITE[spot.ahead], half="bottom" if spot.side == "up" else "top")


def _pillar(spot: _Spot) -> Placed:
    return spot.put(axis="xyz"[next(i for i, step in enumerate(_STEP[spot.side]) if step)])


def _door(spot: _Spot) -> Placed:
    lower = turned_to(block_of(spot.kind, {}), facing=spot.ahead, hinge=_hinge(spot))
    return {spot.cell: lower, beside(spot.cell, "up"): turned_to(lower, half="upper")}


def _hinge(spot: _Spot) -> str:
    """Away from a door beside, on the side of more full cubes, or where the player clicked."""
    turn = _CLOCKWISE.index(spot.ahead)
    left, right = _CLOCKWISE[turn - 1], _CLOCKWISE[(turn + 1) % 4]
    weight, doors = 0, 0  # positive if there is more on the right
    for direction, sign in ((left, -1), (right, 1)):
        place = beside(spot.cell, direction)
        near = spot.block_at(*place)
        is_door = kind_of(near) == spot.kind and properties_of(near)["half"] == "lower"
        doors += sign * is_door
        for cell in (place, beside(place, "up")):
            weight += sign * stops_all(spot.block_at(*cell))
    if doors < 0 or weight > 0:
        return "right"
    if doors > 0 or weight < 0:
        return "left"
    x, _, z = spot.hit
    from_left = {"south": 1 - x, "north": x, "east": z, "west": 1 - z}[spot.ahead]
    return "right" if from_left > 0.5 else "left"


def _bed(spot: _Spot) -> Placed:
    foot = block_of(spot.kind, {"facing": spot.ahead})
    return {spot.cell: foot, beside(spot.cell, spot.ahead): turned_to(foot, part="head")}


def _tall_plant(spot: _Spot) -> Placed:
    lower = block_of(spot.kind, {})
    return {spot.cell: lower, beside(spot.cell, "up"): turned_to(lower, half="upper")}


def _anvil(spot: _Spot) -> Placed:
    turn = _CLOCKWISE.index(spot.ahead)
    return spot.put(facing=_CLOCKWISE[(turn + 1) % 4])


def _clicked(spot: _Spot) -> Placed:
    """Away from the block that was clicked; an end rod against an equal one, towards it."""
    behind = spot.block_at(*beside(spot.cell, _OPPOSITE[spot.side]))
    is_rod = BLOCKS[spot.kind].name == "end_rod" and kind_of(behind) == spot.kind
    if is_rod and properties_of(behind)["facing"] == spot.side:
        return spot.put(facing=_OPPOSITE[spot.side])
    return spot.put(facing=spot.side)


def _hopper(spot: _Spot) -> Placed:
    return spot.put(facing=_OPPOSITE[spot.side] if spot.side in _CLOCKWISE else "down")


def _rotation(spot: _Spot) -> str:
    """The nearest of 16 directions: of signs and banners towards the player, of heads away."""
    turn = 0 if FAMILY_OF[spot.kind].name == "head" else 180
    return str(math.floor((spot.yaw + turn) * 16 / 360 + 0.5) & 15)


def _standing_or_wall(spot: _Spot) -> Placed:
    """A torch, sign, banner, head or fan: on the floor, or as its own kind of block on a wall."""
    rotates = "rotation" in FAMILY_OF[spot.kind].stored
    standing = block_of(spot.kind, {"rotation": _rotation(spot)} if rotates else {})
    first, _, last = BLOCKS[spot.kind].name.rpartition("_")
    wall = BLOCK_ID[f"{first}_wall_{last}".removeprefix("_")]
    on_wall = _on_first_wall(spot, wall)
    for towards in spot.tries:
        placed = _first_supported(spot, iter((standing,))) if towards == "down" else on_wall
        if placed and towards != "up":
            return placed
    return _NOTHING


def _on_first_wall(spot: _Spot, kind: int) -> Placed:
    """A kind of block that faces away from the first wall that bears it."""
    walls = (towards for towards in spot.tries if towards in _CLOCKWISE)
    return _first_supported(spot, (block_of(kind, {"facing": _OPPOSITE[wall]}) for wall in walls))


def _against_wall(spot: _Spot) -> Placed:
    clicked = spot.block_at(*beside(spot.cell, _OPPOSITE[spot.side]))
    is_ladder = BLOCKS[spot.kind].name == "ladder" and kind_of(clicked) == spot.kind
    if is_ladder and not spot.replaces and properties_of(clicked)["facing"] == spot.side:
        return _NOTHING
    return _on_first_wall(spot, spot.kind)


def _on_any_side(spot: _Spot) -> Placed:
    """Levers, buttons and grindstones: on floor and ceiling along the line of sight."""
    vertical = {"down": "floor", "up": "ceiling"}
    return _first_supported(
        spot,
        (
            block_of(spot.kind, {"face": vertical[towards], "facing": spot.ahead})
            if towards in vertical
            else block_of(spot.kind, {"face": "wall", "facing": _OPPOSITE[towards]})
            for towards in spot.tries
        ),
    )


def _bell(spot: _Spot) -> Placed:
    """On the side that was clicked, else on the floor or the ceiling."""

    def candidates() -> Iterator[int]:
        if spot.side in _CLOCKWISE:
            wall = _OPPOSITE[spot.side]
            single = block_of(spot.kind, {"attachment": "single_wall", "facing": wall})
            opposite = turned_to(single, facing=spot.side)
            both = is_supported(opposite, spot.cell, spot.block_at)
            yield turned_to(single, attachment="double_wall") if both else single
            floor = _has_full_side(spot.block_at(*beside(spot.cell, "down")), "up")
            yield turned_to(single, attachment="floor" if floor else "ceiling")
        else:
            where = "ceiling" if spot.side == "down" else "floor"
            yield block_of(spot.kind, {"attachment": where, "facing": spot.ahead})

    return _first_supported(spot, candidates())


def _lantern(spot: _Spot) -> Placed:
    return _first_supported(
        spot,
        (
            block_of(spot.kind, {"hanging": "true" if towards == "up" else "false"})
            for towards in spot.tries
            if towards in ("up", "down")
        ),
    )


def _rail(spot: _Spot) -> Placed:
    along_x = spot.ahead in ("east", "west")
    return spot.put(shape="east_west" if along_x else "north_south")


def _heap(spot: _Spot) -> Placed:
    grows, most = _HEAPS[BLOCKS[spot.kind].name]
    if kind_of(spot.old) != spot.kind:
        return spot.put()
    number = min(int(properties_of(spot.old)[grows]) + 1, most)
    return {spot.cell: turned_to(spot.old, **{grows: str(number)})}


def _vine(spot: _Spot) -> Placed:
    old = spot.old if kind_of(spot.old) == spot.kind else block_of(spot.kind, {})
    for towards in spot.tries:
        if towards == "down" or properties_of(old)[towards] == "true":
            continue
        near = spot.block_at(*beside(spot.cell, towards))
        leaves = BLOCKS[kind_of(near)].material == "leaves"
        if leaves or _has_full_side(near, _OPPOSITE[towards]):
            return {spot.cell: turned_to(old, **{towards: "true"})}
    return _NOTHING


_RULES: dict[str, Callable[[_Spot], Placed]] = {
    "": lambda spot: spot.put(),
    "stairs": lambda spot: spot.put(facing=spot.ahead, half=_half(spot)),
    "slab": _slab,
    "pillar": _pillar,
    "door": _door,
    "trapdoor": _trapdoor,
    "bed": _bed,
    "tall_plant": _tall_plant,
    "ahead": lambda spot: spot.put(facing=spot.ahead),
    "towards": lambda spot: spot.put(facing=_OPPOSITE[spot.ahead]),
    "towards_eye": lambda spot: spot.put(facing=_OPPOSITE[spot.looks[0]]),
    "along_sight": lambda spot: spot.put(facing=spot.looks[0]),
    "anvil": _anvil,
    "clicked": _clicked,
    "hopper": _hopper,
    "standing_or_wall": _standing_or_wall,
    "against_wall": _against_wall,
    "attached": _on_any_side,
    "bell": _bell,
    "lantern": _lantern,
    "rail": _rail,
    "heap": _heap,
    "leaves": lambda spot: spot.put(persistent="true"),
    "vine": _vine,
}
