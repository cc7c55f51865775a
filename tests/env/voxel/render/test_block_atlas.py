"""Pictures of blocks in their states: fronts, axes, and one texture for what looks alike."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.render.block_atlas import (
    FACE_BITS,
    build_block_atlas,
    turned_faces,
)
from rllib_minestudio.env.voxel.render.textures import (
    FACE_BOTTOM,
    FACE_EAST,
    FACE_NORTH,
    FACE_SHADE,
    FACE_SOUTH,
    FACE_TOP,
    FACE_WEST,
    FACES,
    MIP_OFFSET,
    TEXTURE_WORDS,
    colour,
    mip_mapped,
    textures_of,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, BLOCKS, block_of, states_of
from rllib_minestudio.env.voxel.world.worldgen import SNOWY

SIDES = {
    **{"east": FACE_EAST, "west": FACE_WEST, "up": FACE_TOP, "down": FACE_BOTTOM},
    **{"south": FACE_SOUTH, "north": FACE_NORTH},
}
KINDS = ("furnace", "chest", "carved_pumpkin", "oak_log", "oak_planks", "oak_stairs", "barrel")


@pytest.fixture(scope="module")
def atlas():
    return build_block_atlas(textures_of(None), [BLOCK_ID[name] for name in KINDS])


def numbers(atlas, name, **properties):
    """The number of the texture on each face of a block."""
    starts = atlas.starts(block_of(BLOCK_ID[name], properties))
    return [start // TEXTURE_WORDS for start in starts]


def marked():
    """Six pictures with their number in a corner, and a different mark to the right of it."""
    faces = [np.zeros((16, 16, 4), np.uint8) for _ in range(FACES)]
    for number, face in enumerate(faces):
        face[0, 0] = number + 1
        face[0, 15] = 100 + number
    return faces


@pytest.mark.parametrize("name", ["furnace", "chest", "carved_pumpkin"])
@pytest.mark.parametrize("facing", ["north", "south", "west", "east"])
def test_only_the_front_shows_to_the_facing(atlas, name, facing):
    front = textures_of(None).block_faces(name)[FACE_SOUTH]
    found = numbers(atlas, name, facing=facing)
    for side, face in SIDES.items():
        if side in ("up", "down"):
            continue
        laid = front[:, ::-1] if side in ("east", "north") else front
        expected = mip_mapped(laid[None, ..., :3].astype(float), np.array([FACE_SHADE[face]]))[0]
        words = atlas.textures.reshape(-1, TEXTURE_WORDS)[found[face]]
        is_opaque = (front[..., 3] == 255).ravel()
        shows = np.array_equal(words[:256][is_opaque], expected[:256][is_opaque])
        assert shows == (side == facing), side


def test_a_lit_furnace_differs_in_its_front(atlas):
    cold, lit = (numbers(atlas, "furnace", facing="west", lit=lit) for lit in ("false", "true"))
    assert [side for side, face in SIDES.items() if cold[face] != lit[face]] == ["west"]


def test_logs_show_their_rings_at_both_ends_of_their_axis(atlas):
    ends = {"x": ("east", "west"), "y": ("up", "down"), "z": ("south", "north")}
    words = atlas.textures.reshape(-1, TEXTURE_WORDS)

    def looks(axis):
        """Mean colours of the faces, without their shading."""
        means = {}
        for side, face in SIDES.items():
            texels = words[numbers(atlas, "oak_log", axis=axis)[face]][:256]
            rgb = np.stack([texels >> shift & 255 for shift in (0, 8, 16)])
            means[side] = rgb.mean(1) / FACE_SHADE[face]
        return means

    rings, bark = looks("y")["up"], looks("y")["north"]
    assert np.abs(rings - bark).max() > 10
    for axis, sides in ends.items():
        for side, mean in looks(axis).items():
            np.testing.assert_allclose(mean, rings if side in sides else bark, atol=2.0)


@pytest.mark.parametrize(
    ("turned", "properties", "where"),
    [  # where pictures 1 to 6 (east, west, top, bottom, south, north) end up, by side
        ("front", {"facing": "south"}, (1, 2, 3, 4, 5, 6)),
        ("front", {"facing": "west"}, (6, 5, 3, 4, 1, 2)),
        ("front", {"facing": "north"}, (2, 1, 3, 4, 6, 5)),
        ("front", {"facing": "east"}, (5, 6, 3, 4, 2, 1)),
        ("front", {"facing": "up"}, (1, 2, 5, 6, 4, 3)),
        ("front", {"facing": "down"}, (1, 2, 6, 5, 3, 4)),
        ("top", {"facing": "up"}, (1, 2, 3, 4, 5, 6)),
        ("top", {"facing": "down"}, (1, 2, 4, 3, 6, 5)),
        ("top", {"facing": "north"}, (1, 2, 5, 6, 4, 3)),
        ("axis", {"axis": "z"}, (1, 2, 5, 6, 4, 3)),
        ("", {}, (1, 2, 3, 4, 5, 6)),
    ],
)
def test_pictures_move_to_the_sides_that_they_are_turned_to(turned, properties, where):
    faces = turned_faces(marked(), turned, properties)
    # The mark has four possible corners, by how the picture is turned in its plane.
    corners = [
        {int(face[i, k, 0]) for i in (0, 15) for k in (0, 15)} & set(range(1, 7)) for face in faces
    ]
    assert corners == [{number} for number in where]


def test_upright_pictures_stay_upright_when_a_block_turns_about_its_axis():
    for facing in ("south", "west", "north", "east"):
        faces = turned_faces(marked(), "front", {"facing": facing})
        for side in ("east", "west", "south", "north"):
            assert faces[SIDES[side]][0, 0, 0] in range(1, 7)
            assert faces[SIDES[side]][0, 15, 0] >= 100
    # Seen from above, the picture of the top turns clockwise: its first corner, at the north-west,
    # goes to the north-east.
    top = turned_faces(marked(), "front", {"facing": "west"})[FACE_TOP]
    assert top[0, 15, 0] == 3 and top[15, 15, 0] == 102


def test_what_looks_alike_shares_a_texture(atlas):
    assert numbers(atlas, "oak_stairs") == numbers(atlas, "oak_planks")
    stairs = BLOCK_ID["oak_stairs"]
    faces = {tuple(atlas.faces[b << 3 : (b << 3) + FACES].tolist()) for b in states_of(stairs)}
    assert len(faces) == 1
    whole = build_block_atlas(textures_of(None))
    assert len(whole.textures) < 0.85 * len(BLOCKS) * FACES * TEXTURE_WORDS
    assert not whole.faces[:FACES].any() and not whole.textures[:TEXTURE_WORDS].any(), "air"


def test_grass_and_leaves_have_the_colours_of_each_biome():
    names = ("grass_block", "oak_leaves", "spruce_leaves")
    atlas = build_block_atlas(textures_of(None), [BLOCK_ID[name] for name in names])
    last = MIP_OFFSET[-1]

    def mean(name, face, tint):
        start = atlas.starts(BLOCK_ID[name])[face] + tint * TEXTURE_WORDS
        return np.array([atlas.textures[start + last] >> shift & 255 for shift in (0, 8, 16)])

    for name, column in (("grass_block", "grass"), ("oak_leaves", "foliage")):
        colours = [colour(row[column]) for row in read_csv("biomes.csv")]
        for tint, its in enumerate(colours):
            wanted = mean(name, FACE_TOP, 0) * its / colours[0]
            assert np.abs(mean(name, FACE_TOP, tint) - wanted).max() < 2.5
    is_tinted = [
        bool(atlas.tinted[BLOCK_ID[name] << FACE_BITS | face])
        for name in names
        for face in (FACE_TOP, FACE_SOUTH, FACE_BOTTOM)
    ]
    assert is_tinted == [True, True, False, True, True, True, False, False, False]
    side, below_snow = (mean("grass_block", FACE_SOUTH, tint) for tint in (0, SNOWY))
    assert below_snow.mean() > side.mean() and np.ptp(below_snow) < 60, "white, not green"
