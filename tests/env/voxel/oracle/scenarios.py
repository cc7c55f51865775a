"""Courses of blocks and keys that both simulations of the player's motion play.

A box is [x0, y0, z0, x1, y1, z1, block], ends included; later ones replace earlier ones. A block in
a state is written as in commands, with the properties that follow from its neighbours.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.env.voxel.arena import FLOOR

REACH = 30
"""A scenario's floor extends this far from the origin; nobody leaves it in 100 ticks."""
DEPTH = 5
"""Below the floor there is another, on which one stands at FLOOR - DEPTH."""
RANDOM_TICKS = 100

Box = list[Any]

Action = dict[str, Any]
"""MineStudio's env action with only the keys that are held."""

_KEYS = {
    "f": "forward",
    "b": "back",
    "l": "left",
    "r": "right",
    "j": "jump",
    "S": "sprint",
    "N": "sneak",
}


@dataclass(frozen=True)
class Scenario:
    """What one player meets and does.

    Attributes:
        name: What it is about; scenarios with the same first word belong together.
        boxes: What stands on `GROUND` and in place of it.
        actions: What is done in each tick.
        start: Feet at the beginning.
        yaw: Degrees, at the beginning.
    """

    name: str
    boxes: list[Box]
    actions: list[Action]
    start: tuple[float, float, float] = (0.5, FLOOR, 0.5)
    yaw: float = 0.0


def held(keys: str, ticks: int, turn: float = 0.0) -> list[Action]:
    """Actions that hold keys (letters of `_KEYS`) and turn by `turn` degrees a tick."""
    action: Action = {_KEYS[key]: 1 for key in keys}
    if turn:
        action["camera"] = [0.0, turn]
    return [action] * ticks


def _layer(y: int, block: str = "stone") -> Box:
    return [-REACH, y, -REACH, REACH, y, REACH, block]


GROUND = [_layer(FLOOR - DEPTH - 1), _layer(FLOOR - 1)]
"""Boxes of every scenario, below its own."""


def _trench(z: int, width: int) -> Box:
    return [-REACH, FLOOR - 1, z, REACH, FLOOR - 1, z + width - 1, "air"]


def named() -> list[Scenario]:
    """The scenarios that are each about one rule."""
    return [
        *_gaits(),
        *_taps(),
        *_walls(),
        *_trenches(),
        *_edges(),
        *_heights(),
        *_climbs(),
        *_surfaces(),
    ]


_GAITS = ("f", "b", "l", "r", "fl", "br", "fb", "lr", "flrj", "j", "fj", "bj")
_GAITS += ("fS", "flS", "bS", "lS", "fbS", "fjS", "N", "fN", "flN", "bN", "fjN", "fNS", "fjNS")


def _gaits() -> list[Scenario]:
    made = [
        Scenario(f"gait {keys} {yaw}", [], held(keys, 60) + held("", 30), yaw=yaw)
        for keys in _GAITS
        for yaw in (0.0, 37.0)
    ]
    courses = {
        "turning": held("f", 40, 3.0) + held("f", 40, -7.5),
        "turning sprint jumps": held("fjS", 40, 3.0) + held("fjS", 40, -7.5),
        "sneak while sprinting": held("fS", 20) + held("fSN", 20) + held("fS", 20),
        "sneak while sprinting, key released": held("fS", 20) + held("fN", 20) + held("f", 20),
        "sprint while sneaking": held("fN", 20) + held("fNS", 20) + held("fS", 20),
        "sneak in the air": held("fj", 4) + held("fN", 20) + held("f", 20),
        "sprint in the air": held("fj", 4) + held("fS", 20) + held("f", 20),
        "back in the air": held("fjS", 4) + held("b", 20) + held("f", 20),
        "sprint key for one tick": held("fS", 1) + held("f", 40),
    }
    return made + [Scenario(f"gait {name}", [], course) for name, course in courses.items()]


def _taps() -> list[Scenario]:
    courses = {
        f"pause of {pause}": held("f", 5) + held("", pause) + held("f", 20)
        for pause in (1, 5, 6, 7)
    }
    courses |= {
        f"first for {first}": held("f", first) + held("", 1) + held("f", 20)
        for first in (1, 4, 5, 6)
    }
    courses |= {
        "with sneak between": held("f", 1) + held("N", 1) + held("f", 20),
        "with sneak in the first": held("fN", 1) + held("", 1) + held("f", 20),
        "end of sneaking as the first": held("fN", 9) + held("f", 2) + held("", 1) + held("f", 20),
        "end of sneaking as the second": held("f", 1) + held("fN", 2) + held("f", 20),
        "in the air": held("j", 2) + held("f", 1) + held("", 1) + held("f", 20),
        "against the other way": held("f", 1) + held("fb", 1) + held("f", 20),
    }
    return [Scenario(f"tap {name}", [], held("", 3) + course) for name, course in courses.items()]


def _walls() -> list[Scenario]:
    wall = [-9, FLOOR, 4, 9, FLOOR + 3, 4, "stone"]
    side = [4, FLOOR, -9, 4, FLOOR + 3, 9, "stone"]
    pillar = [1, FLOOR, 3, 1, FLOOR + 3, 3, "stone"]
    made = [
        Scenario(f"wall {keys} {yaw}", [wall], held(keys, 80), yaw=yaw)
        for yaw in (0.0, 20.0, 45.0, 70.0)
        for keys in ("f", "fS", "fjS", "fN", "fNS")
    ]
    away = held("fS", 30) + held("fS", 1, 180.0) + held("f", 40)
    made.append(Scenario("wall turned from, sprint released", [wall], away))
    made += [
        Scenario(f"corner {yaw}", [wall, side], held("fS", 80), yaw=yaw)
        for yaw in (-30.0, -45.0, -60.0)
    ]
    return made + [
        Scenario(f"pillar {yaw}", [pillar], held("fS", 60), yaw=yaw)
        for yaw in (-10.0, -20.0, -30.0, -40.0)
    ]


def _trenches() -> list[Scenario]:
    """A one-block trench in the way, at several phases of the stride."""
    return [
        Scenario(
            f"trench {keys} {phase:.2f}",
            [_trench(4, 1)],
            held("", 3) + held(keys, 50),
            start=(0.5, FLOOR, 0.5 + phase),
        )
        for keys in ("f", "fS", "fN", "fj", "fl")
        for phase in (i * 0.028 for i in range(10))
    ]


def _edges() -> list[Scenario]:
    made = []
    for width in (1, 2, 3, 4):
        boxes = [_trench(6, width)]
        courses = {
            "sneak": held("fN", 100),
            "sneak jump": held("fN", 80) + held("fjN", 30),
            "sprint into sneak": held("fS", 14) + held("fN", 60),
            "sprint into sneaking jump": held("fS", 18) + held("fjN", 40),
            "sprint jump into sneak": held("fS", 8) + held("fjS", 9) + held("fN", 40),
            "walk off": held("f", 60),
            "walk jump": held("f", 22) + held("fj", 40),
            "sprint jump": held("fS", 12) + held("fjS", 50),
            "sneak, then let go": held("fN", 90) + held("f", 20),
        }
        made += [Scenario(f"edge {width} {name}", boxes, way) for name, way in courses.items()]
        made.append(Scenario(f"edge {width} slanted", boxes, held("fN", 100), yaw=30.0))
    low = [_trench(4, 3), _layer(FLOOR + 2)]
    for keys in ("fjN", "fljN", "fjNS"):
        made.append(Scenario(f"edge below a ceiling {keys}", low, held(keys, 100), yaw=5.0))
    island = [_layer(FLOOR - 1, "air"), [-1, FLOOR - 1, -1, 1, FLOOR - 1, 1, "stone"]]
    for keys in ("fN", "flN", "bN", "rbN", "fjN", "fljN"):
        made.append(Scenario(f"edge island {keys}", island, held(keys, 80), yaw=10.0))
    return made


def _heights() -> list[Scenario]:
    up = [[-3, FLOOR, 3 + i, 3, FLOOR + i, 3 + i, "stone"] for i in range(8)]
    down = [[-3, FLOOR, i, 3, FLOOR + 7 - i, i, "stone"] for i in range(8)]
    top = (0.5, FLOOR + 8, 0.5)
    made = [
        Scenario("stairs up", up, held("fj", 100)),
        Scenario("stairs up sprinting", up, held("fjS", 100)),
        Scenario("stairs up slanted", up, held("fjS", 100), yaw=25.0),
        Scenario("stairs down", down, held("f", 100), start=top),
        Scenario("stairs down sprinting", down, held("fjS", 100), start=top),
        Scenario("stairs down sneaking", down, held("fN", 100), start=top),
    ]
    made += [
        Scenario(f"ceiling {room} {keys}", [_layer(FLOOR + room)], held(keys, 70))
        for room in (2, 3)
        for keys in ("fj", "fjS", "j", "fjN", "fjNS")
    ]
    rise = held("jN", 4) + held("jf", 30)
    return [*made, Scenario("ceiling 2 no room to stand up", [_layer(FLOOR + 2)], rise)]


def random_ones(courses: int, players: int, seed: int) -> list[Scenario]:
    """Random keys and turns on random courses, each of which `players` come to."""
    dice = random.Random(seed)
    return [
        _random_player(f"random {course} {player}", boxes, dice)
        for course, boxes in enumerate(_random_course(dice) for _ in range(courses))
        for player in range(players)
    ]


def _random_course(dice: random.Random) -> list[Box]:
    """Scattered blocks up to three high, low ceilings and holes around the start."""
    boxes: list[Box] = []
    y = FLOOR
    density = dice.choice((0.05, 0.15, 0.3))
    for x in range(-10, 11):
        for z in range(-10, 11):
            chance = dice.random()
            if (x, z) == (0, 0):
                continue
            if chance < density:
                boxes.append([x, y, z, x, y + dice.choice((0, 0, 0, 1, 2)), z, "stone"])
            elif chance < density + 0.08:
                boxes.append([x, y + 2, z, x, y + 2, z, "stone"])
            elif chance < density + 0.13:
                boxes.append([x, y - 1, z, x, y - 1, z, "air"])
    return boxes


def _random_player(name: str, boxes: list[Box], dice: random.Random) -> Scenario:
    used = dice.choice(("fblrjSN", "ffjS", "fblrj", "fN", "flrjS", "fSN"))
    actions: list[Action] = []
    keys = ""
    for _ in range(RANDOM_TICKS):
        if dice.random() < 0.2:
            keys = "".join(key for key in used if dice.random() < (0.8 if key == "f" else 0.3))
        turn = dice.uniform(-20.0, 20.0) if dice.random() < 0.3 else 0.0
        actions += held(keys, 1, turn)
    return Scenario(name, boxes, actions, yaw=dice.uniform(-180.0, 180.0))


# ------------------------------------------------------------------------- blocks that are no cubes

_ALONE = "north=false,east=false,south=false,west=false"
_SIDES = ("north", "east", "south", "west")
SHAPES = (
    *(f"oak_slab[type={half},waterlogged=false]" for half in ("bottom", "top")),
    *(
        f"oak_stairs[facing={side},half={half},shape=straight,waterlogged=false]"
        for side in _SIDES
        for half in ("bottom", "top")
    ),
    *(f"snow[layers={layers}]" for layers in (1, 2, 4, 6, 8)),
    *(f"chest[facing={side},type=single,waterlogged=false]" for side in _SIDES[:1]),
    *(f"oak_fence_gate[facing={side},in_wall=false,open=false,powered=false]" for side in _SIDES),
    "oak_fence_gate[facing=north,in_wall=false,open=true,powered=false]",
    *(
        f"oak_trapdoor[facing={side},half={half},open={way},powered=false,waterlogged=false]"
        for side in _SIDES
        for half in ("bottom", "top")
        for way in ("false", "true")
    ),
    *(
        f"oak_door[facing={side},half=lower,hinge={hinge},open={way},powered=false]"
        for side in _SIDES
        for hinge in ("left", "right")
        for way in ("false", "true")
    ),
    *(f"anvil[facing={side}]" for side in _SIDES[:2]),
    *(f"white_bed[facing={side},occupied=false,part=head]" for side in _SIDES),
    *(f"hopper[enabled=true,facing={side}]" for side in ("down", *_SIDES)),
    *(f"cake[bites={bites}]" for bites in (0, 3, 6)),
    f"oak_fence[{_ALONE},waterlogged=false]",
    f"glass_pane[{_ALONE},waterlogged=false]",
    "cobblestone_wall[east=none,north=none,south=none,up=true,waterlogged=false,west=none]",
    "lantern[hanging=false,waterlogged=false]",
    *("white_carpet", "farmland", "grass_path", "enchanting_table", "cauldron", "composter"),
    *("brewing_stand", "lectern[facing=north,has_book=false,powered=false]", "lily_pad"),
    *(
        "stonecutter[facing=north]",
        "flower_pot",
        "dragon_egg",
        "daylight_detector",
        "torch",
        "poppy",
    ),
)
"""Blocks that stand alone; all properties are given."""
SURFACES = ("ice", "packed_ice", "blue_ice", "slime_block", "cobweb")


def random_shapes(courses: int, players: int, seed: int) -> list[Scenario]:
    """As `random_ones`, among blocks of all shapes and slippery, sticky and bouncy ground."""
    dice = random.Random(seed)
    return [
        _random_player(f"shapes {course} {player}", boxes, dice)
        for course, boxes in enumerate(_course_of_shapes(dice) for _ in range(courses))
        for player in range(players)
    ]


def _course_of_shapes(dice: random.Random) -> list[Box]:
    """Shapes in every other cell, so that none has an arm to another, and cubes between them."""
    boxes: list[Box] = []
    for x in range(-10, 11):
        for z in range(-10, 11):
            if (x, z) == (0, 0) or dice.random() < 0.4:
                continue
            if x % 2 == z % 2 == 0:
                block = dice.choice(SHAPES)
                boxes.append([x, FLOOR, z, x, FLOOR, z, block])
            elif x % 2 and z % 2 and dice.random() < 0.4:
                y = FLOOR + dice.choice((-1, -1, 0, 2))
                boxes.append([x, y, z, x, y, z, dice.choice(("stone", *SURFACES))])
    return boxes


def _climbs() -> list[Scenario]:
    """Ladders against a wall, and rows of fences, panes and walls that have arms."""
    wall = [-9, FLOOR, 4, 9, FLOOR + 6, 4, "stone"]
    ladder = [0, FLOOR, 3, 0, FLOOR + 6, 3, "ladder[facing=north,waterlogged=false]"]
    made = [
        Scenario(f"ladder {keys}, then {end}", [wall, ladder], held(keys, 70) + held(end, 40))
        for keys in ("f", "fS", "fj", "fN")
        for end in ("", "b", "N", "r")
    ]
    along = "east=true,north=false,south=false,waterlogged=false,west=true"
    rows = {
        "fence": f"oak_fence[{along}]",
        "pane": f"glass_pane[{along}]",
        "bars": f"iron_bars[{along}]",
        "nether fence": f"nether_brick_fence[{along}]",
        "wall": "cobblestone_wall[east=low,north=none,south=none,up=false,"
        "waterlogged=false,west=low]",
    }
    for name, block in rows.items():
        row = [-REACH, FLOOR, 3, REACH, FLOOR, 3, block]
        made += [
            Scenario(f"row of {name} {keys} {yaw}", [row], held(keys, 60), yaw=yaw)
            for keys in ("f", "fjS")
            for yaw in (0.0, 40.0)
        ]
    return made


def _surfaces() -> list[Scenario]:
    """Ground that changes the motion of those on it, and blocks that hold those in them."""
    made = []
    for block in SURFACES[:4]:
        ground = [-REACH, FLOOR - 1, 2, REACH, FLOOR - 1, REACH, block]
        made += [
            Scenario(f"surface {block} {keys}", [ground], held(keys, 40) + held("", 40))
            for keys in ("f", "fS", "fN", "fjS")
        ]
    cobwebs = [-2, FLOOR, 3, 2, FLOOR + 1, 5, "cobweb"]
    return made + [
        Scenario(f"surface cobweb {keys}", [cobwebs], held(keys, 100)) for keys in ("f", "fjS")
    ]
