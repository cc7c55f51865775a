"""Mobs and dropped items as textured boxes, in the arrays that the kernels in `boxes` read.

Lengths are in pixels of 1/16 block, with +z ahead, +y up and the origin between the feet, and
follow the proportions of Minecraft's models. `build_models` converts them to blocks.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.goals import GRAZE, body_height
from rllib_minestudio.env.voxel.entities.records import (
    COATS,
    INVISIBILITY,
    MOB_KINDS,
    SHORN,
    TIED,
    UNTIED,
)
from rllib_minestudio.env.voxel.render.block_atlas import BlockAtlas
from rllib_minestudio.env.voxel.render.camera import (
    FORWARD,
    RIGHT,
    UP,
    VIEW,
    Bytes,
    Floats,
    Ints,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.mob_textures import WOOLLY, mob_face
from rllib_minestudio.env.voxel.render.textures import (
    FACE_NORTH,
    FACE_SHADE,
    FACE_SOUTH,
    FACES,
    TEXTURE_SIZE,
    TEXTURE_WORDS,
    TRANSPARENT,
    Texture,
    Textures,
    sprite_texture,
    texture,
)
from rllib_minestudio.env.voxel.world.light_field import light_at

PIXEL = 1 / 16
# Columns of a box in `Models.boxes`.
BOX_LOW, BOX_HIGH, BOX_SWING, BOX_PIVOT_Y, BOX_PIVOT_Z = 0, 3, 6, 7, 8
BOX_SIZE = 9


@dataclass(frozen=True)
class Box:
    """One box of a model.

    Attributes:
        part: Name of the body part, by which its texture is found.
        low: Lowest corner (x, y, z) in pixels.
        high: Highest corner.
        swing: +1 or -1 for legs, which swing about their upper end in opposite phases.
        hangs: Pixels below the pivot of its swing, for a foot at the end of a leg.
    """

    part: str
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    swing: int = 0
    hangs: float = 0


def _legs(
    apart: float, front: float, back: float, height: float, width: float = 4, part: str = "leg"
) -> list[Box]:
    legs = []
    for side in (-1, 1):
        for middle in (front, back):
            x, half = side * apart, width / 2
            low, high = (x - half, 0, middle - half), (x + half, height, middle + half)
            legs.append(Box(part, low, high, swing=side if middle == front else -side))
    return legs


def _bird_legs(apart: float, middle: float, height: float) -> list[Box]:
    """Two thin legs, each with a flat foot."""
    legs = []
    for side in (-1, 1):
        x = side * apart
        low, high = (x - 0.5, 0.25, middle - 0.5), (x + 0.5, height, middle + 0.5)
        legs.append(Box("leg", low, high, swing=side))
        low, high = (x - 1.5, 0, middle - 1.5), (x + 1.5, 0.25, middle + 1.5)
        legs.append(Box("foot", low, high, swing=side, hangs=height - 0.25))
    return legs


MOB_MODELS: dict[str, list[Box]] = {
    "cow": [
        Box("body", (-6, 12, -8), (6, 22, 10)),
        Box("head", (-4, 16, 8.5), (4, 24, 14.5)),
        Box("muzzle", (-3, 16, 14.5), (3, 19, 15.2)),
        Box("horn", (-5, 22, 11), (-4, 25, 12)),
        Box("horn", (4, 22, 11), (5, 25, 12)),
        Box("udder", (-2, 11, -7), (2, 12, -1)),
        *_legs(apart=4, front=6, back=-6, height=12),
    ],
    "sheep": [
        Box("body", (-5.75, 10.5, -9), (5.75, 20, 9.5)),
        Box("face", (-3, 15.5, 8.5), (3, 21.5, 15)),
        Box("hood", (-3.6, 15.4, 7), (3.6, 22.4, 12.8)),
        *_legs(apart=3, front=5, back=-6, height=12),
    ],
    "pig": [
        Box("body", (-5, 6, -8), (5, 14, 8)),
        Box("head", (-4, 8, 6.5), (4, 16, 14.5)),
        Box("snout", (-2, 9, 14.5), (2, 12, 15.5)),
        *_legs(apart=3, front=5, back=-6, height=6),
    ],
    "chicken": [
        Box("body", (-3, 5, -4), (3, 11, 4)),
        Box("head", (-2, 9, 3), (2, 15, 6)),
        Box("beak", (-2, 11, 6), (2, 13, 8)),
        Box("wattle", (-1, 9, 5), (1, 11, 7)),
        Box("wing", (-4, 7, -3), (-3, 11, 3)),
        Box("wing", (3, 7, -3), (4, 11, 3)),
        *_bird_legs(apart=1.5, middle=0.5, height=5),
    ],
    "snow_golem": [
        Box("lower body", (-5.5, 0.5, -5.5), (5.5, 11.5, 5.5)),
        Box("upper body", (-4.5, 11.5, -4.5), (4.5, 20.5, 4.5)),
        Box("arm", (-14, 17, -1), (-4, 19, 1)),
        Box("arm", (4, 17, -1), (14, 19, 1)),
        Box("head", (-5, 20, -5), (5, 30, 5)),
    ],
    "iron_golem": [
        Box("chest", (-9, 21, -5), (9, 33, 6)),
        Box("waist", (-5, 15.5, -3.5), (5, 21.5, 3.5)),
        Box("head", (-4, 33, -0.5), (4, 43, 7.5)),
        Box("nose", (-1, 32, 7.5), (1, 36, 9.5)),
        Box("right arm", (-13, 3.5, -3), (-9, 33.5, 3), swing=1),
        Box("left arm", (9, 3.5, -3), (13, 33.5, 3), swing=-1),
        Box("right leg", (-7.5, 0, -2), (-1.5, 16, 3), swing=-1),
        Box("left leg", (1.5, 0, -2), (7.5, 16, 3), swing=1),
    ],
}
"""Boxes of each kind of mob."""
SHORN_SHEEP = [
    Box("shorn body", (-4, 12, -8), (4, 18, 8)),
    Box("face", (-3, 15.5, 8.5), (3, 21.5, 15)),
    *_legs(apart=3, front=5, back=-6, height=12, part="bare leg"),
]
_HEADS = frozenset(
    ("head", "muzzle", "horn", "face", "hood", "snout", "beak", "wattle"),
)
_HEAD_DOWN: dict[str, tuple[float, float]] = {
    "cow": (-10, -4),
    "sheep": (-8, -4),
    "pig": (-4, -4),
    "chicken": (-5, -2),
}
"""How far the head of a young animal lies below and behind that of a grown-up, in pixels: it is as
large, on a body of half the size (`AgeableListModel`)."""
_GRAZING_DOWN = 9
"""Pixels by which a grazing sheep lowers its head."""
# Stands in for a mob that has no model yet.
UNKNOWN_MOB = [Box("body", (-5, 0, -5), (5, 16, 5))]
# A dropped block is a quarter of a block in size; other items, being flat, a little more.
BLOCK_ITEM = Box("block", (-2, 0, -2), (2, 4, 2))
FULL_BLOCK = Box("block", (-8, 0, -8), (8, 16, 8))
FLAT_ITEM = Box("sprite", (-3.5, 0, -0.25), (3.5, 7, 0.25))
# A lead is a rope of 24 straight pieces, dark and light ones in turn, and a knot about a fence
# (`MobRenderer.renderLeash`, `LeashKnotModel`).
ROPE_PIECES = 24
ROPE_LENGTHS = 32
"""How many lengths a piece may have: multiples of a 32nd of a block."""
_ROPE_COLOUR, _ROPE_SHADES = (127.5, 102.0, 76.5), (0.7, 1.0)
_ROPE_HALF = 0.4
KNOT = len(_ROPE_SHADES) * ROPE_LENGTHS
"""The knot's model. Those of leads come first: pieces of dark rope by length, of light rope, knot.
"""
_KNOT = Box("knot", (-3, -2, -3), (3, 6, 3))


@dataclass
class Models:
    """All models, flattened for the kernels.

    Attributes:
        boxes: float32 (boxes, BOX_SIZE), in blocks.
        textures: int32 (boxes, 6), where each face's texture starts in `atlas`.
        first_box: int32 (models + 1); model m has the boxes `first_box[m]:first_box[m + 1]`.
        atlas: uint32, flat.
        mob: int32 (kinds, `MOB_LOOKS`), the model of each kind of mob by its look, see `look_of`.
        item: int32, the model of the dropped item, by item id.
        block: int32, the model of the falling block, by block.
    """

    boxes: NDArray[np.float32]
    textures: NDArray[np.int32]
    first_box: NDArray[np.int32]
    atlas: Texture
    mob: NDArray[np.int32]
    item: NDArray[np.int32]
    block: NDArray[np.int32]


class _Builder:
    """A collector of models, whose atlas begins with that of the blocks."""

    def __init__(self, block_atlas: BlockAtlas) -> None:
        self.boxes: list[list[float]] = []
        self.textures: list[Sequence[int]] = []
        self.first_box = [0]
        self.pages = [block_atlas.textures]
        self._words = len(block_atlas.textures)

    def add_page(self, page: Texture) -> int:
        """Add a texture and return where it starts."""
        self.pages.append(page)
        self._words += len(page)
        return self._words - len(page)

    def add_box(self, box: Box, faces: Sequence[int]) -> None:
        """Add a box whose six textures start at `faces`."""
        pivot_y, pivot_z = box.high[1] + box.hangs, (box.low[2] + box.high[2]) / 2
        lengths = [value * PIXEL for value in (*box.low, *box.high)]
        self.boxes.append([*lengths, box.swing, pivot_y * PIXEL, pivot_z * PIXEL])
        self.textures.append(faces)

    def end_model(self) -> int:
        self.first_box.append(len(self.boxes))
        return len(self.first_box) - 2


MOB_LOOKS = 4 * COATS
"""How many looks a kind of mob may have: coats, young or grown up, grazing or not."""


@render_kernel
def look_of(mob: np.void) -> int:
    """Which look a mob has: its coat, and whether it is young, or grazes."""
    young, grazes = int64(mob.age < 0), int64(mob.goal == GRAZE)
    return int64(mob.coat) + COATS * young + 2 * COATS * grazes


def _boxes_of(name: str, coat: int, is_young: bool, grazes: bool) -> list[Box]:
    """The boxes of a mob in one of its looks."""
    boxes = MOB_MODELS.get(name, UNKNOWN_MOB)
    if name == "sheep" and coat >= SHORN:
        boxes = SHORN_SHEEP
    if grazes:
        boxes = [_moved(box, -_GRAZING_DOWN, 0) if box.part in _HEADS else box for box in boxes]
    if is_young:
        down, back = _HEAD_DOWN.get(name, (0, 0))
        boxes = [_moved(box, down, back) if box.part in _HEADS else _halved(box) for box in boxes]
    return boxes


def _moved(box: Box, up: float, ahead: float) -> Box:
    (x0, y0, z0), (x1, y1, z1) = box.low, box.high
    return replace(box, low=(x0, y0 + up, z0 + ahead), high=(x1, y1 + up, z1 + ahead))


def _halved(box: Box) -> Box:
    (x0, y0, z0), (x1, y1, z1) = box.low, box.high
    low, high = (x0 / 2, y0 / 2, z0 / 2), (x1 / 2, y1 / 2, z1 / 2)
    return replace(box, low=low, high=high, hangs=box.hangs / 2)


def _add_mobs(builder: _Builder, mobs: Sequence[str], textures: Textures) -> NDArray[np.int32]:
    """Add the models of mobs in all their looks; return `Models.mob`.

    Looks that are the same share a model, and faces that are the same a texture.
    """
    found = np.zeros((len(mobs), MOB_LOOKS), np.int32)
    pages: dict[tuple[str, str, int], list[int]] = {}
    for kind, name in enumerate(mobs):
        is_sheep = name == "sheep"
        for look in range(MOB_LOOKS):
            coat, is_young, grazes = look % COATS, bool(look // COATS % 2), look >= 2 * COATS
            if (coat or grazes) and not is_sheep:
                found[kind, look] = found[kind, look % (2 * COATS) - coat]
                continue
            for box in _boxes_of(name, coat, is_young, grazes):
                worn = coat % SHORN if is_sheep and (name, box.part) in WOOLLY else 0
                key = name, box.part, worn
                if key not in pages:
                    pages[key] = [
                        builder.add_page(
                            texture(
                                mob_face(textures, name, box.part, face, worn), _mob_shade(face)
                            )
                        )
                        for face in range(FACES)
                    ]
                builder.add_box(box, pages[key])
            found[kind, look] = builder.end_model()
    return found


def _mob_shade(face: int) -> float:
    # Minecraft lights entities more softly than blocks.
    return 0.45 + 0.55 * FACE_SHADE[face]


def _add_leads(builder: _Builder, textures: Textures) -> None:
    """Add the models of leads, the first of all."""
    for shade in _ROPE_SHADES:
        colour = np.full((TEXTURE_SIZE, TEXTURE_SIZE, 3), _ROPE_COLOUR) * shade
        page = builder.add_page(texture(colour, 1.0))
        for length in range(1, ROPE_LENGTHS + 1):
            end = (length / ROPE_LENGTHS / PIXEL, _ROPE_HALF, _ROPE_HALF)
            builder.add_box(Box("rope", (0, -_ROPE_HALF, -_ROPE_HALF), end), [page] * FACES)
            builder.end_model()
    faces = [
        builder.add_page(texture(mob_face(textures, "lead", "knot", face), _mob_shade(face)))
        for face in range(FACES)
    ]
    builder.add_box(_KNOT, faces)
    builder.end_model()


def build_models(
    mobs: Sequence[str],
    items: Mapping[int, str],
    block_items: int,
    block_atlas: BlockAtlas,
    textures: Textures,
    falling: Collection[int] = (),
) -> Models:
    """Build every model the renderer may need.

    Args:
        mobs: Names of mobs in the order of their kinds.
        items: Name of each item by id.
        block_items: Items with ids below this are blocks and are shown as small cubes.
        block_atlas: Textures of all blocks.
        textures: Pictures of mobs and items.
        falling: Blocks that fall, in each of their states.
    """
    builder = _Builder(block_atlas)
    _add_leads(builder, textures)
    mob = _add_mobs(builder, mobs, textures)
    item = np.zeros(max(items, default=0) + 1, np.int32)
    hidden = builder.add_page(np.full(TEXTURE_WORDS, TRANSPARENT, np.uint32))
    for identity, name in items.items():
        if identity < block_items and not textures.is_flat(name):
            builder.add_box(BLOCK_ITEM, block_atlas.starts(identity))
        else:
            faces = [hidden] * FACES
            sprite = builder.add_page(sprite_texture(textures.icon(name)))
            faces[FACE_SOUTH] = faces[FACE_NORTH] = sprite
            builder.add_box(FLAT_ITEM, faces)
        item[identity] = builder.end_model()
    block = np.zeros(max(falling, default=0) + 1, np.int32)
    for identity in falling:
        builder.add_box(FULL_BLOCK, block_atlas.starts(identity))
        block[identity] = builder.end_model()
    return Models(
        boxes=np.array(builder.boxes, np.float32),
        textures=np.array(builder.textures, np.int32),
        first_box=np.array(builder.first_box, np.int32),
        atlas=np.concatenate(builder.pages),
        mob=mob,
        item=item,
        block=block,
    )


# ------------------------------------ from mobs, dropped and thrown items, blocks to *instances*
# Which model the camera sees where.
#
# Positions are taken relative to the eye in double precision, then rounded to float32, so that
# nothing jitters far from the origin. They are those of a tick ago, as the eye's is (see
# `player.locomotion`). What is out of view is left out.

# Columns of an instance, float32.
OFFSET = 0  # x, y, z of the feet relative to the eye, blocks
AHEAD_X, AHEAD_Z = 3, 4  # where it looks, unit vector
SWING_SIN, SWING_COS = 5, 6  # legs
ROLL_SIN, ROLL_COS = 7, 8  # 0, 1 upright; 1, 0 fallen over
LIGHT_BYTE = 9  # the byte of its light
RED = 10  # share of the hurt flash in the colour
INSTANCE_SIZE = 11

# No model reaches further from its feet than this, in blocks.
REACH = 3.0
# Legs of a running mob swing this far (1.4 rad in Minecraft's models).
LEG_SWING = 1.4
HURT_RED = 0.5
DEATH_FALL_TICKS = 20.0
# A dropped item turns once in about 6 s and bobs by a tenth of a block.
ITEM_TURN = 1 / 20
ITEM_BOB = 0.1
ITEM_HOVER = 0.1
# Ticks in flight from which a thrown thing is drawn.
FIRST_SEEN = 2
# Where the light on something is read, in blocks.
ABOVE_FEET = 0.2
# Where a lead ends: on an animal at its eyes, as a share of its height, and ahead of its middle, as
# one of its width; on a fence above the knot's middle; in the player's hand right of, above and
# ahead of the eye, in blocks (`Entity.getLeashOffset`, `LocalPlayer.getRopeHoldPosition`).
_AT_EYES, _AHEAD_OF_MIDDLE = 0.93, 0.4
_BODY_WIDTH = np.array([kind.width for kind in MOB_KINDS])
_ABOVE_KNOT = 0.2
_HAND_RIGHT, _HAND_UP, _HAND_AHEAD = 0.39, -0.6, 0.3
LEADS_SHOWN = 16
"""Most leads that are drawn in a frame."""


@render_kernel
def _in_view(
    camera: Floats, half_width: float, half_height: float, x: float, y: float, z: float
) -> bool:
    """Whether a ball of radius REACH around a point (relative to the eye) may be visible."""
    view = camera[VIEW]
    if x * x + y * y + z * z > view * view:
        return False
    ahead = x * camera[FORWARD] + y * camera[FORWARD + 1] + z * camera[FORWARD + 2]
    if ahead < -REACH:
        return False
    side = abs(x * camera[RIGHT] + y * camera[RIGHT + 1] + z * camera[RIGHT + 2])
    rise = abs(x * camera[UP] + y * camera[UP + 1] + z * camera[UP + 2])
    if side > ahead * half_width + REACH * (1 + half_width):
        return False
    return rise <= ahead * half_height + REACH * (1 + half_height)


@render_kernel
def _light_near(light: Bytes, x: float, y: float, z: float) -> int:
    """Light a little above the feet, clear of the ground even if something sinks into it."""
    layer = int64(math.floor(y + ABOVE_FEET))
    return light_at(light, int64(math.floor(x)), layer, int64(math.floor(z)))


@render_kernel
def _stand_upright(
    row: Floats, x: float, y: float, z: float, ahead_x: float, ahead_z: float, light: int
) -> None:
    """Write the instance of something that neither walks, nor falls over, nor is hurt."""
    row[OFFSET], row[OFFSET + 1], row[OFFSET + 2] = x, y, z
    row[AHEAD_X], row[AHEAD_Z] = ahead_x, ahead_z
    row[SWING_SIN] = row[ROLL_SIN] = row[RED] = 0.0
    row[SWING_COS] = row[ROLL_COS] = 1.0
    row[LIGHT_BYTE] = light


@render_kernel
def _hung(rise: float, share: float) -> float:
    """How far up a rope is that sags on its way to an end this much higher, after a share of it."""
    if rise > 0.0:
        return rise * share * share
    return rise * (1.0 - (1.0 - share) * (1.0 - share))


@render_kernel
def _place_lead(
    mob: np.void,
    light: Bytes,
    camera: Floats,
    eye: NDArray[np.float64],
    half_width: float,
    half_height: float,
    instances: Floats,
    models: Ints,
    found: int,
) -> int:
    """Append the visible pieces of an animal's lead, and its knot; see `place_mobs`."""
    ahead = _BODY_WIDTH[mob.kind] * _AHEAD_OF_MIDDLE
    x = mob.position[0] - mob.moved[0] - eye[0] - math.sin(mob.yaw) * ahead
    y = mob.position[1] - mob.moved[1] - eye[1] + body_height(mob) * _AT_EYES
    z = mob.position[2] - mob.moved[2] - eye[2] + math.cos(mob.yaw) * ahead
    if mob.leash == TIED:
        to_x, to_z = mob.knot[0] + 0.5 - eye[0], mob.knot[2] + 0.5 - eye[2]
        to_y = mob.knot[1] + 0.5 - eye[1]
        if found < len(models) and _in_view(camera, half_width, half_height, to_x, to_y, to_z):
            byte = _light_near(light, mob.knot[0] + 0.5, mob.knot[1] + 0.5, mob.knot[2] + 0.5)
            _stand_upright(instances[found], to_x, to_y, to_z, 0.0, 1.0, byte)
            models[found] = KNOT
            found += 1
        to_y += _ABOVE_KNOT
    else:
        to_x, to_y, to_z = 0.0, 0.0, 0.0
        for axis, by in ((RIGHT, _HAND_RIGHT), (UP, _HAND_UP), (FORWARD, _HAND_AHEAD)):
            to_x += camera[axis] * by
            to_y += camera[axis + 1] * by
            to_z += camera[axis + 2] * by
    long_x, rise, long_z = to_x - x, to_y - y, to_z - z
    flat = math.sqrt(long_x * long_x + long_z * long_z) / ROPE_PIECES
    across_x, across_z = 1.0, 0.0
    if flat > 0.0:
        across_x, across_z = long_x / (flat * ROPE_PIECES), long_z / (flat * ROPE_PIECES)
    for piece in range(ROPE_PIECES):
        share = piece / ROPE_PIECES
        at_x, at_z = x + long_x * share, z + long_z * share
        at_y = y + _hung(rise, share)
        up = _hung(rise, (piece + 1) / ROPE_PIECES) - _hung(rise, share)
        length = math.sqrt(flat * flat + up * up)
        if (
            length < 1e-6
            or found == len(models)
            or not _in_view(camera, half_width, half_height, at_x, at_y, at_z)
        ):
            continue
        byte = _light_near(light, at_x + eye[0], at_y + eye[1], at_z + eye[2])
        row = instances[found]
        # The piece lies along the model's x axis, which is right of where it looks.
        _stand_upright(row, at_x, at_y, at_z, -across_z, across_x, byte)
        row[ROLL_SIN], row[ROLL_COS] = up / length, flat / length
        steps = min(int64(math.ceil(length * ROPE_LENGTHS)), ROPE_LENGTHS)
        models[found] = piece % 2 * ROPE_LENGTHS + steps - 1
        found += 1
    return found


@render_kernel
def place_mobs(
    mobs: NDArray[np.void],
    count: int,
    model_of: NDArray[np.int32],
    light: Bytes,
    camera: Floats,
    eye: NDArray[np.float64],
    half_width: float,
    half_height: float,
    instances: Floats,
    models: Ints,
    found: int,
) -> int:
    """Append the visible mobs, and the leads of the first `LEADS_SHOWN` that are on one.

    Args:
        mobs: Records of `entities.records.MOB_DTYPE`.
        count: Number of records in use.
        model_of: int32 (kinds, MOB_LOOKS), the model of each kind of mob by its look.
        light: uint8 (2**23,), see `light_field`.
        camera: float32 (CAMERA_SIZE,).
        eye: float64 (3,), world position of the eye.
        half_width: Half the view's width one block ahead.
        half_height: Half its height.
        instances: float32 (n, INSTANCE_SIZE), written from row `found`.
        models: int32 (n,), written from index `found`.
        found: Number of instances so far.

    Returns:
        Number of instances now.
    """
    leads = 0
    for i in range(count):
        mob = mobs[i]
        if mob.leash != UNTIED and leads < LEADS_SHOWN:
            leads += 1
            found = _place_lead(
                mob, light, camera, eye, half_width, half_height, instances, models, found
            )
        if mob.effect_ticks[INVISIBILITY] > 0:
            continue
        position, moved = mob.position, mob.moved
        x = position[0] - moved[0] - eye[0]
        y = position[1] - moved[1] - eye[1]
        z = position[2] - moved[2] - eye[2]
        if found == len(models) or not _in_view(camera, half_width, half_height, x, y, z):
            continue
        row = instances[found]
        row[OFFSET], row[OFFSET + 1], row[OFFSET + 2] = x, y, z
        row[AHEAD_X], row[AHEAD_Z] = -math.sin(mob.yaw), math.cos(mob.yaw)
        angle = LEG_SWING * mob.limb_amplitude * math.cos(mob.limb_swing)
        row[SWING_SIN], row[SWING_COS] = math.sin(angle), math.cos(angle)
        # Minecraft's fall: quick at first, flat on the side when 5/8 of the time is over.
        fallen = min(math.sqrt(mob.death_ticks / DEATH_FALL_TICKS * 1.6), 1.0) * math.pi / 2
        row[ROLL_SIN], row[ROLL_COS] = math.sin(fallen), math.cos(fallen)
        row[LIGHT_BYTE] = _light_near(light, position[0], position[1], position[2])
        row[RED] = HURT_RED if mob.hurt_ticks > 0 or mob.death_ticks > 0 else 0.0
        models[found] = model_of[mob.kind, look_of(mob)]
        found += 1
    return found


@render_kernel
def place_items(
    items: NDArray[np.void],
    count: int,
    model_of: Ints,
    light: Bytes,
    camera: Floats,
    eye: NDArray[np.float64],
    half_width: float,
    half_height: float,
    instances: Floats,
    models: Ints,
    found: int,
) -> int:
    """Append the visible dropped items; arguments and result as in `place_mobs`."""
    for i in range(count):
        item = items[i]
        position, moved = item.position, item.moved
        x = position[0] - moved[0] - eye[0]
        y = position[1] - moved[1] - eye[1]
        z = position[2] - moved[2] - eye[2]
        if found == len(models) or not _in_view(camera, half_width, half_height, x, y, z):
            continue
        # The row number keeps heaps of items from turning in step.
        turn = item.age * ITEM_TURN + i
        y += ITEM_HOVER + ITEM_BOB * math.sin(item.age / 10 + i)
        byte = _light_near(light, position[0], position[1], position[2])
        _stand_upright(instances[found], x, y, z, math.sin(turn), math.cos(turn), byte)
        models[found] = model_of[item.item]
        found += 1
    return found


@render_kernel
def place_thrown(
    thrown: NDArray[np.void],
    count: int,
    model_of: Ints,
    light: Bytes,
    camera: Floats,
    eye: NDArray[np.float64],
    half_width: float,
    half_height: float,
    instances: Floats,
    models: Ints,
    found: int,
) -> int:
    """Append the visible things in flight, their pictures turned towards the eye.

    Arguments and result as in `place_mobs`. What is in its first ticks would fill the view, and is
    left out.
    """
    for i in range(count):
        item = thrown[i]
        position, moved = item.position, item.moved
        x = position[0] - moved[0] - eye[0]
        y = position[1] - moved[1] - eye[1]
        z = position[2] - moved[2] - eye[2]
        if (
            item.ticks < FIRST_SEEN
            or found == len(models)
            or not _in_view(camera, half_width, half_height, x, y, z)
        ):
            continue
        flat = max(math.sqrt(x * x + z * z), 1e-6)
        byte = _light_near(light, position[0], position[1], position[2])
        _stand_upright(instances[found], x, y, z, x / flat, z / flat, byte)
        models[found] = model_of[item.item]
        found += 1
    return found


@render_kernel
def place_falling(
    falling: NDArray[np.void],
    count: int,
    model_of: Ints,
    light: Bytes,
    camera: Floats,
    eye: NDArray[np.float64],
    half_width: float,
    half_height: float,
    instances: Floats,
    models: Ints,
    found: int,
) -> int:
    """Append the visible falling blocks; arguments and result as in `place_mobs`."""
    for i in range(count):
        block = falling[i]
        position, moved = block.position, block.moved
        x = position[0] - moved[0] - eye[0]
        y = position[1] - moved[1] - eye[1]
        z = position[2] - moved[2] - eye[2]
        if found == len(models) or not _in_view(camera, half_width, half_height, x, y, z):
            continue
        byte = _light_near(light, position[0], position[1], position[2])
        _stand_upright(instances[found], x, y, z, 0.0, 1.0, byte)
        models[found] = model_of[block.block]
        found += 1
    return found
