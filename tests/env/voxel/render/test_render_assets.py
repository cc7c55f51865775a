"""Textures, sprites and models: complete, opaque where they must be, and reproducible."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from PIL import Image

from rllib_minestudio.env.voxel.entities.records import MOB_KINDS
from rllib_minestudio.env.voxel.items.items import FIRST_PLAIN_ITEM, ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.render.block_atlas import CLEAR_SHIFT, HOLE, build_block_atlas
from rllib_minestudio.env.voxel.render.mob_textures import BARE_LEG, OF_BLOCKS, PARTS
from rllib_minestudio.env.voxel.render.models import MOB_MODELS, SHORN_SHEEP, build_models
from rllib_minestudio.env.voxel.render.resource_pack import OUR_PACK, TEXTURES
from rllib_minestudio.env.voxel.render.sky import sky_at, sun_angle
from rllib_minestudio.env.voxel.render.textures import (
    MIP_OFFSET,
    TEXTURE_WORDS,
    TRANSPARENT,
    Textures,
    sprite_texture,
    texture,
    textures_of,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, BLOCKS
from tools.painting.__main__ import paint

_NAMES = """
    oak_log oak_planks birch_log birch_planks stick crafting_table cobblestone furnace chest
    torch coal charcoal iron_ore iron_ingot gold_ore gold_ingot diamond_ore diamond apple
    golden_apple bread wheat wheat_seeds beef cooked_beef porkchop cooked_porkchop mutton
    cooked_mutton chicken cooked_chicken string flint gravel bucket water_bucket lava_bucket
    milk_bucket bowl leather white_wool shears bow arrow shield feather bone dirt sand glass
    redstone
"""
TECH_TREE = set(_NAMES.split()) | {
    f"{material}_{tool}"
    for material in ("wooden", "stone", "iron", "golden", "diamond")
    for tool in ("sword", "pickaxe", "axe", "shovel", "hoe")
}


@pytest.fixture(scope="module")
def textures() -> Textures:
    return textures_of(None)


def test_the_files_are_what_the_painters_paint() -> None:
    folder = OUR_PACK / TEXTURES
    painted = dict(paint())
    files = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.png")}
    assert files == set(painted)
    for name, picture in painted.items():
        with Image.open(folder / f"{name}.png") as file:
            np.testing.assert_array_equal(np.array(file.convert("RGBA")), picture, err_msg=name)


def test_files_are_small() -> None:
    sizes = [path.stat().st_size for path in OUR_PACK.rglob("*.png")]
    assert sum(sizes) < 3_000_000 and max(sizes) < 20_000


def test_every_block_and_item_has_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, stand_ins = Textures(), []
    monkeypatch.setattr(
        "rllib_minestudio.env.voxel.render.textures._stand_in",
        lambda name: stand_ins.append(name) or np.zeros((16, 16, 4), np.uint8),
    )
    for block in BLOCKS:
        if "air" not in block.name.split("_"):
            assert [face.shape for face in fresh.block_faces(block.name)] == [(16, 16, 4)] * 6
    for item in ITEMS.values():
        icon = fresh.icon(item.name)
        assert icon.shape == (16, 16, 4), item.name
        assert (icon[..., 3] > 0).sum() >= 4, item.name
    assert not stand_ins


def test_what_the_tech_tree_needs_differs(textures: Textures) -> None:
    assert not TECH_TREE - set(ITEM_ID)
    counts = Counter(textures.icon(name).tobytes() for name in TECH_TREE)
    assert max(counts.values()) == 1


def test_every_part_of_a_mob_is_on_a_sheet() -> None:
    assert {kind.name for kind in MOB_KINDS} <= set(MOB_MODELS)
    parts = {(mob, box.part) for mob, boxes in MOB_MODELS.items() for box in boxes}
    parts |= {("sheep", box.part) for box in SHORN_SHEEP} | {("lead", "knot")}
    assert parts == set(PARTS) | set(OF_BLOCKS) | {BARE_LEG}


def test_models_keep_to_their_collision_boxes() -> None:
    for kind in MOB_KINDS:
        corners = np.array([(box.low, box.high) for box in MOB_MODELS[kind.name]]) / 16
        is_shrunk = kind.name == "snow_golem"  # by half a pixel on each side
        assert corners[..., 1].min() == (0.5 / 16 if is_shrunk else 0)
        # A chicken's head is above its box, in the game as well.
        assert kind.height * 0.85 < corners[..., 1].max() < kind.height * 1.35


def test_assets_are_the_same_every_time(textures: Textures) -> None:
    atlas, fresh = build_block_atlas(textures), build_block_atlas(Textures())
    np.testing.assert_array_equal(atlas.textures, fresh.textures)
    np.testing.assert_array_equal(atlas.faces, fresh.faces)
    items = {number: item.name for number, item in ITEMS.items()}
    mobs = [kind.name for kind in MOB_KINDS]
    one, other = (
        build_models(mobs, items, FIRST_PLAIN_ITEM, atlas, pictures)
        for pictures in (textures, Textures())
    )
    np.testing.assert_array_equal(one.atlas, other.atlas)


def clear_texels(textures: Textures, name: str, level: int = 0) -> np.ndarray:
    """How clear the texels of a block's first face are at a level of detail, and their words."""
    block = BLOCK_ID[name]
    atlas = build_block_atlas(textures, (block,))
    start, size = atlas.starts(block)[0] + MIP_OFFSET[level], 16 >> level
    words = atlas.textures[start : start + size * size]
    return np.stack([words >> CLEAR_SHIFT, words & 0xFFFFFF])


def test_leaves_have_holes_that_are_filled_for_afar(textures: Textures) -> None:
    clear, leaf = clear_texels(textures, "oak_leaves")
    assert set(clear.tolist()) == {0, HOLE}
    assert 0.15 < (clear == HOLE).mean() < 0.4
    assert leaf.all(), "holes have colours"
    red, green, blue = (float((leaf >> shift & 255).mean()) for shift in (0, 8, 16))
    assert green > 1.3 * red and green > 1.5 * blue, "the grey file is tinted"
    assert not clear_texels(textures, "oak_leaves", 4)[0].any(), "most of the whole is leaf"


def test_only_blocks_that_are_see_through_have_holes(textures: Textures) -> None:
    assert not clear_texels(textures, "stone")[0].any()
    assert set(clear_texels(textures, "glass")[0].tolist()) == {0, HOLE}
    for name in ("ice", "red_stained_glass", "slime_block"):
        clear = clear_texels(textures, name)[0]
        assert (clear < HOLE).all() and (clear > 0).any(), name


def test_windows_fade_with_distance(textures: Textures) -> None:
    clear = [clear_texels(textures, "glass", level)[0].mean() for level in range(5)]
    np.testing.assert_allclose(clear, clear[0], atol=1.0)


def test_unknown_names_still_get_something_visible(textures: Textures) -> None:
    assert all(face[..., 3].any() for face in textures.block_faces("not_a_block"))
    assert textures.icon("not_an_item")[..., 3].any()


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


def test_block_icons_are_cubes(textures: Textures) -> None:
    icon = textures.icon("oak_log")
    assert 0.5 < (icon[..., 3] > 0).mean() < 0.8
    assert (icon[[0, 15], 0, 3] == 0).all(), "corners are empty"


def test_shapes_show_in_icons(textures: Textures) -> None:
    cube, stairs, slab, carpet = (
        (textures.icon(name)[..., 3] > 0).sum()
        for name in ("oak_planks", "oak_stairs", "oak_slab", "white_carpet")
    )
    assert cube > stairs > slab > carpet


def test_the_sun_follows_the_clock() -> None:
    assert np.cos(sun_angle(6000)) == pytest.approx(1)
    assert np.cos(sun_angle(18000)) == pytest.approx(-1)
    assert sky_at(18000).stars > 0 == sky_at(6000).stars
