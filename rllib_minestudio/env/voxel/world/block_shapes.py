"""The shapes of blocks: what bodies run into, what the crosshair aims at, and what is drawn.

Each shape is three lists of boxes, in the block's cell, from 0 to 1 along each axis:

    body      what moves cannot enter it; fences and walls rise to 1.5
    outline   the crosshair's ray ends on it, and the black outline shows it
    model     what is drawn; none of thin plants, which `render.plants` draws as pictures

Rows of `data/block_shapes.csv` say which boxes a family or a kind has in which states. All rows
that fit add up, as the parts of Minecraft's multipart models do. A row may be *turned*: by the
block's facing, whose row is written for north, or once for each of four arms. Kinds without a row
are full cubes, or nothing.

Where a shape follows from the blocks around it (arms of fences, panes and walls, corners of
stairs), `shape_at` derives it as Minecraft 1.16 does. In all other states the shape is a table's.
Body boxes are those of the game, which a test compares; outlines and models are from memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import kernel, shared_with_kernels
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    FAMILY_OF,
    KIND_MASK,
    LARGEST_KIND,
    STATE_SHIFT,
    Column,
    Family,
    Properties,
    Shape,
    column_of,
    holds,
    kind_of,
    states_of,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, block_index

Box = tuple[float, float, float, float, float, float]
"""Low x, y, z, then high x, y, z."""

BODY, OUTLINE, MODEL = "body", "outline", "model"
_USES = (BODY, OUTLINE, MODEL)
_CUBE: Box = (0, 0, 0, 1, 1, 1)
_PIXELS = 16
"""Units of the table in a block."""
_CLOCKWISE = ("north", "east", "south", "west")
EAST, WEST, UP, DOWN, SOUTH, NORTH = range(6)
"""Sides, in the order of a block's faces in `render.textures`."""


class BlockShape(NamedTuple):
    """Boxes of a block in a state, by use."""

    body: tuple[Box, ...]
    outline: tuple[Box, ...]
    model: tuple[Box, ...]


# -------------------------------------------------------------------------------- rows of the table


@dataclass(frozen=True, eq=False)
class _Part:
    """A row: boxes that blocks with some properties have."""

    when: Properties
    turned: str
    uses: tuple[str, ...]
    boxes: tuple[Box, ...]

    def boxes_in(self, properties: Mapping[str, str]) -> Iterator[Box]:
        """Yield the boxes of a block with these properties."""
        for quarters, direction in enumerate(_CLOCKWISE):
            when = dict(self.when)
            if self.turned == "arms":
                when[direction] = when.pop("north")
            elif self.turned == "facing":
                when["facing"] = (direction,)
            elif quarters:
                return
            if all(properties[name] in values for name, values in when.items()):
                yield from (_turned(box, quarters) for box in self.boxes)


def _turned(box: Box, quarters: int) -> Box:
    """Turn a box clockwise about the middle of its cell, seen from above."""
    for _ in range(quarters):
        x0, y0, z0, x1, y1, z1 = box
        box = (1 - z1, y0, x0, 1 - z0, y1, x1)
    return box


def _part(row: Mapping[str, str]) -> _Part:
    pairs = (word.split("=") for word in row["when"].split())
    boxes = (tuple(float(n) / _PIXELS for n in box.split()) for box in row["boxes"].split(";"))
    return _Part(
        when={name: tuple(values.split("|")) for name, values in pairs},
        turned=row["turned"],
        uses=_USES if row["of"] == "all" else tuple(row["of"].split()),
        boxes=tuple((x0, y0, z0, x1, y1, z1) for x0, y0, z0, x1, y1, z1 in boxes),
    )


_ROWS = tuple(
    (row["family"], row["kinds"].split(), _part(row)) for row in read_csv("block_shapes.csv")
)


def _parts_of(kind: int) -> tuple[_Part, ...]:
    name, family = BLOCKS[kind].name, FAMILY_OF[kind].name
    return tuple(
        part
        for its_family, kinds, part in _ROWS
        if (its_family and its_family == family) or any(_is_called(name, kind) for kind in kinds)
    )


def _is_called(name: str, pattern: str) -> bool:
    """Whether a name is the pattern, or begins or ends with it but for the "*"."""
    if pattern.startswith("*"):
        return name.endswith(pattern[1:])
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


# ------------------------------------------------------- the kinds whose shape others have a say in

NO_LINKS, WOODEN_FENCE, BRICK_FENCE, PANE, WALL, STAIRS, CHORUS = range(7)
"""How a kind's shape follows from the blocks around it."""


def _links_of(kind: int) -> int:
    name, family = BLOCKS[kind].name, FAMILY_OF[kind].name
    if family == "fence":
        return BRICK_FENCE if name == "nether_brick_fence" else WOODEN_FENCE
    return {"pane": PANE, "wall": WALL, "stairs": STAIRS, "chorus plant": CHORUS}.get(
        family, NO_LINKS
    )


def _variants(kind: int, family: Family) -> Iterator[dict[str, str]]:
    """Yield the properties of a kind's variants: its states, for each of its derived properties."""
    links = _links_of(kind) != NO_LINKS
    derived = {name: its if links else its[:1] for name, its in family.derived.items()}
    for values in itertools.product(*reversed(derived.values())):
        for block in states_of(kind):
            yield {
                **family.properties(block >> STATE_SHIFT),
                **dict(zip(reversed(derived), values, strict=True)),
            }


def _shape(kind: int, parts: tuple[_Part, ...], properties: Mapping[str, str]) -> BlockShape:
    if not parts:
        boxes = (_CUBE,) if BLOCKS[kind].shape in (Shape.CUBE, Shape.OTHER) else ()
        return BlockShape(boxes, boxes, boxes)
    return BlockShape(
        *(
            tuple(box for part in parts if use in part.uses for box in part.boxes_in(properties))
            for use in _USES
        )
    )


class _Table(NamedTuple):
    """Shapes, and which of them a variant has.

    Attributes:
        shapes: The different shapes.
        first: Of each kind, where its variants begin in `of_variant`, int32 [1024].
        states: Number of states of each kind, int32 [1024].
        of_variant: The shape of each variant: those of a kind's states, then the same for the next
            of its derived properties; int32.
    """

    shapes: tuple[BlockShape, ...]
    first: NDArray[np.int32]
    states: NDArray[np.int32]
    of_variant: NDArray[np.int32]


def _build() -> _Table:
    numbers: dict[BlockShape, int] = {}
    known: dict[Any, int] = {}
    of_variant: list[int] = []
    first, states = np.zeros((2, LARGEST_KIND + 1), np.int32)
    states[:] = 1
    for kind, family in enumerate(FAMILY_OF):
        parts = _parts_of(kind)
        alike = parts, family, BLOCKS[kind].shape  # all stairs share theirs
        if alike not in known:
            known[alike] = len(of_variant)
            of_variant += (
                numbers.setdefault(_shape(kind, parts, properties), len(numbers))
                for properties in _variants(kind, family)
            )
        first[kind], states[kind] = known[alike], family.size
    return _Table(tuple(numbers), first, states, np.array(of_variant, np.int32))


_TABLE = _build()
SHAPES: tuple[BlockShape, ...] = _TABLE.shapes
"""All shapes, which differ from each other; `shape_at` returns their index here."""
_FIRST, _STATES, _OF_VARIANT = _TABLE.first, _TABLE.states, _TABLE.of_variant


def _flat(lists: Iterable[tuple[Box, ...]]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Lay lists of boxes behind one another: where each begins, int32 [n + 1], and all boxes."""
    lists = list(lists)
    first = np.cumsum([0, *map(len, lists)], dtype=np.int32)
    return first, np.array([box for boxes in lists for box in boxes], np.float64).reshape(-1, 6)


BODY_FIRST, BODY_BOXES = _flat(shape.body for shape in SHAPES)
"""Where the body boxes of each shape begin, int32 [shapes + 1]; and the boxes, float64 [n, 6]."""
OUTLINE_FIRST, OUTLINE_BOXES = _flat(shape.outline for shape in SHAPES)
"""The same of outlines."""
MODEL_FIRST = _flat(shape.model for shape in SHAPES)[0]
"""Where the boxes of each shape's model begin, int32 [shapes + 1]."""
MODEL_BOXES = _flat(shape.model for shape in SHAPES)[1].astype(np.float32)
"""Boxes of models, float32 [n, 6]."""
OUTLINE_BOUNDS = np.array(
    [
        [*np.min(boxes, 0)[:3], *np.max(boxes, 0)[3:]] if (boxes := shape.outline) else [0.0] * 6
        for shape in SHAPES
    ]
)
"""The least box around each outline, float64 [shapes, 6]."""


# ------------------------------------------------------------------------- the edges of outlines
# Boxes that touch make one body: an edge between two of their faces that lie in one plane, or
# inside another box, is none.


class _Edge(NamedTuple):
    """An edge: its ends, and a bit for each side (`EAST` to `NORTH`) whose face it bounds."""

    ends: Box
    faces: int


def _filled(boxes: tuple[Box, ...], planes: list[list[float]]) -> NDArray[np.bool_]:
    """Which cells between the planes through all faces are in a box, with empty ones around."""
    cells = np.zeros([len(along) + 1 for along in planes], np.bool_)
    for box in boxes:
        spans = [
            slice(along.index(box[axis]) + 1, along.index(box[axis + 3]) + 1)
            for axis, along in enumerate(planes)
        ]
        cells[tuple(spans)] = True
    return cells


@cache
def _faces_at(around: tuple[bool, bool, bool, bool], one: int, two: int) -> int:
    """The faces that meet at an edge, given the four cells around it; 0 if it is flat.

    The cells are those before and behind along axis `two`, first before, then behind along `one`.
    """
    a, b, c, d = around
    if sum(around) == 2 and a != d:
        return 0
    high_one, low_one = (a and not c) or (b and not d), (c and not a) or (d and not b)
    high_two, low_two = (a and not b) or (c and not d), (b and not a) or (d and not c)
    return (high_one << 2 * one | low_one << 2 * one + 1) | (
        high_two << 2 * two | low_two << 2 * two + 1
    )


@cache
def _edges(boxes: tuple[Box, ...]) -> tuple[_Edge, ...]:
    """Return the edges of the body that boxes make, each as long as it goes."""
    planes = [sorted({box[axis + end] for box in boxes for end in (0, 3)}) for axis in range(3)]
    cells = _filled(boxes, planes)
    found: list[_Edge] = []
    for axis in range(3):
        one, two = (axis + 1) % 3, (axis + 2) % 3
        along = np.moveaxis(cells, (axis, one, two), (0, 1, 2))[1:].tolist()
        for i, j in itertools.product(range(len(planes[one])), range(len(planes[two]))):
            bounded = [
                _faces_at((*part[i][j : j + 2], *part[i + 1][j : j + 2]), one, two)
                for part in along
            ]
            runs = itertools.groupby(range(len(bounded)), key=bounded.__getitem__)
            for faces, run in runs:
                parts = list(run)
                if faces:
                    low, high = [0.0] * 3, [0.0] * 3
                    low[one] = high[one] = planes[one][i]
                    low[two] = high[two] = planes[two][j]
                    low[axis], high[axis] = planes[axis][parts[0]], planes[axis][parts[-1] + 1]
                    ends = (low[0], low[1], low[2], high[0], high[1], high[2])
                    found.append(_Edge(ends, faces))
    return tuple(found)


def _edges_of(shape: BlockShape) -> list[_Edge]:
    """The edges of a shape's outline; where it is not what is drawn, all are seen from anywhere."""
    hides = shape.outline == shape.model
    return [_Edge(ends, faces if hides else 63) for ends, faces in _edges(shape.outline)]


_EDGES = [_edges_of(shape) for shape in SHAPES]
EDGE_FIRST = np.cumsum([0, *map(len, _EDGES)], dtype=np.int32)
"""Where the edges of each shape's outline begin, int32 [shapes + 1]."""
EDGES = np.array([edge.ends for edges in _EDGES for edge in edges], np.float32)
"""Their ends in the cell, float32 [n, 6]."""
EDGE_FACES = np.array([edge.faces for edges in _EDGES for edge in edges], np.uint8)
"""A bit for each side (`EAST` to `NORTH`) whose face an edge bounds, uint8 [n]."""


# ---------------------------------------------------------------- facts that follow from the shapes


def default_shape(block: int) -> int:
    """The shape of a block in its state that has nothing around it."""
    return int(_OF_VARIANT[_FIRST[kind_of(block)] + (block >> STATE_SHIFT)])


def _column(use: str, *wanted: tuple[Box, ...]) -> Column:
    """A column of the blocks one of whose lists of boxes is one of those wanted."""
    return column_of(lambda block: getattr(SHAPES[default_shape(block)], use) in wanted)


_IS_CUBE = _column(MODEL, (_CUBE,))
_STOPS_ALL = _column(BODY, (_CUBE,))
_STOPS_NOTHING = _column(BODY, ())
_HAS_NO_OUTLINE = _column(OUTLINE, ())
_FILLS_OUTLINE = _column(OUTLINE, (_CUBE,))
_RISES = column_of(lambda block: any(box[4] > 1 for box in SHAPES[default_shape(block)].body))


def _covers(box: Box, side: int) -> NDArray[np.bool_]:
    """Which 16 x 16 squares of a cell's side a box covers."""
    low, high = np.array(box[:3]), np.array(box[3:])
    axis = {EAST: 0, WEST: 0, UP: 1, DOWN: 1, SOUTH: 2, NORTH: 2}[side]
    grid = np.zeros((_PIXELS, _PIXELS), np.bool_)
    if (high[axis] >= 1) if side in (EAST, UP, SOUTH) else (low[axis] <= 0):
        one, two = (other for other in range(3) if other != axis)
        spans = (np.rint(np.clip((low, high), 0, 1) * _PIXELS)).astype(int)
        grid[spans[0, one] : spans[1, one], spans[0, two] : spans[1, two]] = True
    return grid


def _covered(shape: BlockShape, side: int) -> NDArray[np.bool_]:
    return np.logical_or.reduce([_covers(box, side) for box in (shape.body or ((0,) * 6,))])


_BEARS_BY_OUTLINE = {
    SHAPES[default_shape(block)]
    for name in ("snow", "soul_sand")
    for block in states_of(BLOCK_ID[name])
}
"""Shapes whose body is lower than what others can stand on."""


def _sides(shape: BlockShape, part: slice) -> int:
    """A bit for each side of which a shape covers a part, along both axes, wholly."""
    if shape in _BEARS_BY_OUTLINE:
        shape = shape._replace(body=shape.outline)
    return sum(bool(_covered(shape, side)[part, part].all()) << side for side in range(6))


_FULL_SIDES = np.array([_sides(shape, slice(None)) for shape in SHAPES], np.uint8)
_MIDDLES = np.array([_sides(shape, slice(7, 9)) for shape in SHAPES], np.uint8)


def _covers_below(shape: BlockShape) -> int:
    """Bits for what of a wall below is covered: its arms by side, and its post in bit `UP`."""
    under = _covered(shape, DOWN)
    middle = slice(7, 9)
    arms = {
        EAST: under[7:, middle],
        WEST: under[:9, middle],
        SOUTH: under[middle, 7:],
        NORTH: under[middle, :9],
        UP: under[middle, middle],
    }
    return sum(bool(part.all()) << side for side, part in arms.items())


_COVERS_BELOW = np.array([_covers_below(shape) for shape in SHAPES], np.uint8)

_AVOIDED = ("carved_pumpkin", "jack_o_lantern", "melon", "pumpkin")
"""Full cubes that fences, panes and walls do not reach out to; nor do they to leaves and boxes."""
_REPELS = column_of(
    lambda block: (
        BLOCKS[kind_of(block)].name in _AVOIDED
        or BLOCKS[kind_of(block)].material == "leaves"
        or BLOCKS[kind_of(block)].name.endswith("shulker_box")
    )
)
_LINKS = np.zeros(LARGEST_KIND + 1, np.uint8)
_LINKS[: len(BLOCKS)] = [_links_of(kind) for kind in range(len(BLOCKS))]
_GATES = np.zeros(LARGEST_KIND + 1, np.bool_)
_GATES[: len(BLOCKS)] = [family.name == "fence gate" for family in FAMILY_OF]
_POSTED = np.zeros(LARGEST_KIND + 1, np.bool_)
_POSTED[: len(BLOCKS)] = [
    family.name
    in ("torch", "redstone torch", "sign", "banner", "pressure plate", "weighted plate", "tripwire")
    for family in FAMILY_OF
]
"""Kinds below which a wall has its post: Minecraft's tag `wall_post_override`."""
_CHORUS_ENDS = np.zeros(LARGEST_KIND + 1, np.bool_)
_CHORUS_ENDS[: len(BLOCKS)] = [block.name in ("chorus_plant", "chorus_flower") for block in BLOCKS]
_END_STONE = next(kind for kind, block in enumerate(BLOCKS) if block.name == "end_stone")


@shared_with_kernels
def is_cube(block: int) -> bool:
    """Whether a block is drawn as a full cube, which may be see-through."""
    return holds(_IS_CUBE, block)


@shared_with_kernels
def stops_all(block: int) -> bool:
    """Whether a block's body is its whole cell."""
    return holds(_STOPS_ALL, block)


@shared_with_kernels
def stops_nothing(block: int) -> bool:
    """Whether bodies pass a block, whatever is around it."""
    return holds(_STOPS_NOTHING, block)


@shared_with_kernels
def has_outline(block: int) -> bool:
    """Whether the crosshair can aim at a block."""
    return not holds(_HAS_NO_OUTLINE, block)


@shared_with_kernels
def fills_outline(block: int) -> bool:
    """Whether a block's outline is its whole cell."""
    return holds(_FILLS_OUTLINE, block)


@shared_with_kernels
def rises(block: int) -> bool:
    """Whether a block's body reaches into the cell above it, as those of fences do."""
    return holds(_RISES, block)


# -------------------------------------------------------------------------- shapes among neighbours

Blocks = NDArray[np.uint16]
_STEP_X = np.array([1, -1, 0, 0, 0, 0], np.int64)
_STEP_Y = np.array([0, 0, 1, -1, 0, 0], np.int64)
_STEP_Z = np.array([0, 0, 0, 0, 1, -1], np.int64)
_OPPOSITE = np.array([WEST, EAST, DOWN, UP, NORTH, SOUTH], np.int64)
# The values of `facing` in states: north, south, west, east.
_SIDE_OF_FACING = np.array([NORTH, SOUTH, WEST, EAST], np.int64)
_LEFT_OF_FACING = np.array([2, 3, 1, 0], np.int64)  # a quarter turn against the clock
_OPPOSITE_FACING = np.array([1, 0, 3, 2], np.int64)
_STRAIGHT, _INNER_LEFT, _INNER_RIGHT, _OUTER_LEFT, _OUTER_RIGHT = range(5)
_NONE, _LOW, _TALL = range(3)
# The order of arms in the derived properties of fences, panes and walls.
_ARMS = np.array([NORTH, EAST, SOUTH, WEST], np.int64)
# That of a chorus plant: down, east, north, south, up, west.
_STALKS = np.array([DOWN, EAST, NORTH, SOUTH, UP, WEST], np.int64)


@kernel()
def _block_at(blocks: Blocks, x: int, y: int, z: int) -> int:
    """The block in a cell; air above and below the world."""
    return int64(blocks[block_index(x, y, z)]) if 0 <= y < HEIGHT else 0


@kernel()
def _beside(blocks: Blocks, x: int, y: int, z: int, side: int) -> int:
    return _block_at(blocks, x + _STEP_X[side], y + _STEP_Y[side], z + _STEP_Z[side])


@shared_with_kernels
def _plain_shape(block: int) -> int:
    """The shape of a block that has nothing around it."""
    return int(_OF_VARIANT[_FIRST[block & KIND_MASK] + (block >> STATE_SHIFT)])


@shared_with_kernels
def has_full_side(block: int, side: int) -> bool:
    """Whether a block covers one of its sides wholly, so that others can stand or hang there."""
    return (_FULL_SIDES[_plain_shape(block)] >> side) & 1 != 0


@shared_with_kernels
def has_middle(block: int, side: int) -> bool:
    """Whether a block covers the middle of one of its sides."""
    return (_MIDDLES[_plain_shape(block)] >> side) & 1 != 0


@kernel()
def _reaches(blocks: Blocks, links: int, x: int, y: int, z: int, side: int) -> bool:
    """Whether a fence, pane or wall has an arm to one side."""
    near = _beside(blocks, x, y, z, side)
    others = int64(_LINKS[near & KIND_MASK])
    if others == links or (links == PANE and others == WALL) or (links == WALL and others == PANE):
        return True
    if links != PANE and _GATES[near & KIND_MASK]:
        # A gate that faces north or south stands along x.
        along_x = ((near >> STATE_SHIFT) & 3) < 2
        return along_x == (side in (EAST, WEST))
    return not holds(_REPELS, near) and has_full_side(near, _OPPOSITE[side])


@kernel()
def _arms(blocks: Blocks, links: int, x: int, y: int, z: int) -> int:
    """Bits of a fence's, pane's or wall's arms, in the order of `_ARMS`."""
    arms = 0
    for number in range(4):
        if _reaches(blocks, links, x, y, z, _ARMS[number]):
            arms |= 1 << number
    return arms


@kernel()
def _cover_of_wall(blocks: Blocks, x: int, y: int, z: int, covered: int, has_post: bool) -> int:
    """Properties of a wall as a number, given what covers it and whether a post stands on it."""
    arms = _arms(blocks, WALL, x, y, z)
    number, weight, count = 0, 1, 0
    heights = np.zeros(4, np.int64)
    for arm in range(4):
        if (arms >> arm) & 1:
            heights[arm] = _TALL if (covered >> _ARMS[arm]) & 1 else _LOW
            count += 1
        number += heights[arm] * weight
        weight *= 3
    uneven = heights[0] != heights[2] or heights[1] != heights[3]
    straight = (heights[0] == _TALL and heights[2] == _TALL) or (
        heights[1] == _TALL and heights[3] == _TALL
    )
    post = has_post or count == 0 or uneven
    if not post and not straight:
        post = (covered >> UP) & 1 != 0
    return number + (0 if post else weight)


@kernel()
def _cover_by(blocks: Blocks, x: int, y: int, z: int) -> int:
    """What a block that is no wall covers of a wall below it, as `_covers_below`."""
    block = _block_at(blocks, x, y, z)
    links = int64(_LINKS[block & KIND_MASK])
    if links in (WOODEN_FENCE, BRICK_FENCE, PANE):
        arms = _arms(blocks, links, x, y, z)
        found = 1 << UP
        for number in range(4):
            found |= ((arms >> number) & 1) << _ARMS[number]
        return found
    return int64(_COVERS_BELOW[_plain_shape(block)])


@kernel()
def _wall(blocks: Blocks, x: int, y: int, z: int) -> int:
    """Derived properties of a wall, from the highest wall that stands on it down."""
    top = y
    while top + 1 < HEIGHT and _LINKS[_block_at(blocks, x, top + 1, z) & KIND_MASK] == WALL:
        top += 1
    above = _block_at(blocks, x, top + 1, z)
    covered, has_post = _cover_by(blocks, x, top + 1, z), False
    if _POSTED[above & KIND_MASK]:
        covered |= 1 << UP
    number = 0
    for layer in range(top, y - 1, -1):
        number = _cover_of_wall(blocks, x, layer, z, covered, has_post)
        has_post = number < 81
        arms = _arms(blocks, WALL, x, layer, z)
        covered = 0
        for arm in range(4):
            covered |= ((arms >> arm) & 1) << _ARMS[arm]
        passes = arms & 5 == 5 or arms & 10 == 10
        covered |= (1 if has_post or passes else 0) << UP
    return number


@kernel()
def _is_other_stair(blocks: Blocks, x: int, y: int, z: int, state: int, facing: int) -> bool:
    """Whether no equal stairs stand beside stairs on the side that a facing names."""
    near = _beside(blocks, x, y, z, _SIDE_OF_FACING[facing])
    return _LINKS[near & KIND_MASK] != STAIRS or (near >> STATE_SHIFT) != state


@kernel()
def _corner(blocks: Blocks, x: int, y: int, z: int, state: int) -> int:
    """The shape of stairs, as `StairBlock.getStairsShape`: outer by what is ahead, inner behind."""
    facing, half = state & 3, state >> 2
    for turn in range(2):
        towards = facing if turn == 0 else _OPPOSITE_FACING[facing]
        near = _beside(blocks, x, y, z, _SIDE_OF_FACING[towards])
        if _LINKS[near & KIND_MASK] != STAIRS or (near >> STATE_SHIFT) >> 2 != half:
            continue
        other = (near >> STATE_SHIFT) & 3
        if other >> 1 == facing >> 1:
            continue
        checked = _OPPOSITE_FACING[other] if turn == 0 else other
        if not _is_other_stair(blocks, x, y, z, state, checked):
            continue
        left = other == _LEFT_OF_FACING[facing]
        if turn == 0:
            return _OUTER_LEFT if left else _OUTER_RIGHT
        return _INNER_LEFT if left else _INNER_RIGHT
    return _STRAIGHT


@kernel()
def _stalks(blocks: Blocks, x: int, y: int, z: int) -> int:
    """The sides to which a chorus plant grows."""
    found = 0
    for number in range(6):
        near = _beside(blocks, x, y, z, _STALKS[number]) & KIND_MASK
        if _CHORUS_ENDS[near] or (number == 0 and near == _END_STONE):
            found |= 1 << number
    return found


@kernel()
def shape_at(blocks: Blocks, x: int, y: int, z: int) -> int:
    """The shape, an index in `SHAPES`, of the block in a cell of the world.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        x: The cell.
        y: Within the world's height.
        z: The cell.
    """
    block = int64(blocks[block_index(x, y, z)])
    kind = block & KIND_MASK
    links = int64(_LINKS[kind])
    state = block >> STATE_SHIFT
    derived = 0
    if links == STAIRS:
        derived = _corner(blocks, x, y, z, state)
    elif links == WALL:
        derived = _wall(blocks, x, y, z)
    elif links == CHORUS:
        derived = _stalks(blocks, x, y, z)
    elif links != NO_LINKS:
        derived = _arms(blocks, links, x, y, z)
    return int64(_OF_VARIANT[_FIRST[kind] + state + _STATES[kind] * derived])
