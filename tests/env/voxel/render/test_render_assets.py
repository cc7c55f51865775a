"""Textures, sprites and models: complete, opaque where they must be, and reproducible."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import MOB_KINDS
from rllib_minestudio.env.voxel.items.items import FIRST_PLAIN_ITEM, ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.render import item_pictures
from rllib_minestudio.env.voxel.render.block_textures import PAINTERS, build_block_atlas
from rllib_minestudio.env.voxel.render.item_sprites import (
    MATERIALS,
    PLAIN,
    TOOLS,
    block_icon,
    item_sprite,
)
from rllib_minestudio.env.voxel.render.mob_textures import PAINTERS as PART_PAINTERS
from rllib_minestudio.env.voxel.render.models import MOB_MODELS, build_models
from rllib_minestudio.env.voxel.render.sky import sky_at, sun_angle
from rllib_minestudio.env.voxel.render.texels import (
    MIP_OFFSET,
    TEXTURE_WORDS,
    TRANSPARENT,
    sprite_texture,
    texture,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCKS


def test_every_picture_is_of_a_block_or_item_and_differs() -> None:
    assert set(PAINTERS) <= {block.name for block in BLOCKS}
    tools = {f"{material}_{tool}" for material in MATERIALS for tool in TOOLS}
    assert tools | set(PLAIN) <= set(ITEM_ID)
    pictures = {name: item_sprite(name).tobytes() for name in tools | set(PLAIN)}
    assert len(set(pictures.values())) == len(pictures)


def test_every_mob_has_a_painted_model() -> None:
    assert {kind.name for kind in MOB_KINDS} <= set(MOB_MODELS)
    parts = {(mob, box.part) for mob, boxes in MOB_MODELS.items() for box in boxes}
    assert parts == set(PART_PAINTERS)


def test_models_keep_to_their_collision_boxes() -> None:
    for kind in MOB_KINDS:
        corners = np.array([(box.low, box.high) for box in MOB_MODELS[kind.name]]) / 16
        assert corners[..., 1].min() == 0
        assert kind.height * 0.85 < corners[..., 1].max() < kind.height * 1.2


def test_pictures_are_16_by_16() -> None:
    shapes = {name: value for name, value in vars(item_pictures).items() if name.isupper()}
    assert len(shapes) >= 14
    for name, shape in shapes.items():
        lines = shape.strip("\n").splitlines()
        assert [len(line) for line in lines] == [16] * 16, name


def test_assets_are_the_same_every_time() -> None:
    names = [block.name for block in BLOCKS]
    atlas = build_block_atlas(names)
    np.testing.assert_array_equal(atlas, build_block_atlas(names))
    items = {number: item.name for number, item in ITEMS.items()}
    mobs = [kind.name for kind in MOB_KINDS]
    one, other = (build_models(mobs, items, FIRST_PLAIN_ITEM, atlas) for _ in range(2))
    np.testing.assert_array_equal(one.atlas, other.atlas)


@pytest.mark.parametrize("name", ["not_a_block", "dragon_egg"])
def test_unknown_names_still_get_something_visible(name: str) -> None:
    assert build_block_atlas(["air", name]).reshape(2, 6, -1)[1].max() > 0
    assert item_sprite(name)[..., 3].any()


def test_mip_levels_average_the_picture() -> None:
    picture = np.random.RandomState(0).uniform(0, 255, (16, 16, 3))
    words = texture(picture)
    assert len(words) == TEXTURE_WORDS
    last = int(words[MIP_OFFSET[-1]])
    mean = [last & 255, last >> 8 & 255, last >> 16 & 255]
    np.testing.assert_allclose(mean, picture.mean((0, 1)), atol=0.51)


def test_sprites_keep_their_colour_at_the_edges() -> None:
    sprite = np.zeros((16, 16, 4), np.uint8)
    sprite[:, :8] = (200, 100, 50, 255)
    words = sprite_texture(sprite)
    levels = words[: MIP_OFFSET[-1] + 1]
    opaque = levels[levels != TRANSPARENT]
    assert set(opaque.tolist()) <= {200 | 100 << 8 | 50 << 16, 0}


def test_block_icons_are_cubes() -> None:
    icon = block_icon("oak_log")
    assert 0.6 < (icon[..., 3] > 0).mean() < 0.8
    assert (icon[[0, 15], 0, 3] == 0).all(), "corners are empty"


def test_the_sun_follows_the_clock() -> None:
    assert np.cos(sun_angle(6000)) == pytest.approx(1)
    assert np.cos(sun_angle(18000)) == pytest.approx(-1)
    assert sky_at(6000).light == (1.0, 1.0, 1.0)
    assert sky_at(18000).stars > 0 == sky_at(6000).stars
