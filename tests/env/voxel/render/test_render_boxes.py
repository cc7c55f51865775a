"""Boxes drawn tile by tile, against rays cut with them one by one in double precision."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.render import boxes
from rllib_minestudio.env.voxel.render.hand import PixelRays
from rllib_minestudio.env.voxel.render.models import BOX_SIZE
from rllib_minestudio.env.voxel.render.textures import TEXTURE_WORDS

FACES = 6
STILL = np.float32(0), np.float32(1)
LIGHT = tuple(np.float32(value) for value in (1, 1, 1, 0, 0, 0, 0, 0))


def turned(rng, nearest):
    """Three orthogonal axes, and a place from which the box is in view."""
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return axes, -axes[0] * rng.uniform(nearest, 6) + rng.normal(size=3) * 0.3


def rays(axes, width, height, step):
    across = (np.arange(width) + 0.5 - width / 2) * step
    up = (height / 2 - np.arange(height) - 0.5) * step
    return axes[0] + across[None, :, None] * axes[1] + up[:, None, None] * axes[2]


def cut(low, high, eye, directions):
    """Depth at which each ray enters the box, and the side: 0, 2, 4 low x, y, z; 1, 3, 5 high."""
    with np.errstate(divide="ignore"):
        first, second = (low - eye) / directions, (high - eye) / directions
    enter, leave = np.minimum(first, second), np.maximum(first, second)
    depth = np.where(enter.max(-1) <= leave.min(-1), enter.max(-1), np.inf)
    axis = enter.argmax(-1)
    from_below = np.take_along_axis(directions, axis[..., None], -1)[..., 0] > 0
    return depth, 2 * axis + from_below


@pytest.mark.parametrize("nearest", [1.5, -1.0], ids=["ahead", "in part beside and behind"])
@pytest.mark.parametrize("size", [(8, 8), (13, 9), (50, 27), (64, 64)])
def test_a_box_covers_the_pixels_whose_rays_meet_it(size, nearest):
    rng = np.random.default_rng(sum(size))
    width, height = size
    step = 1.6 / width
    textures = np.arange(FACES, dtype=np.int32) * TEXTURE_WORDS
    atlas = np.repeat(np.arange(1, FACES + 1, dtype=np.uint32), TEXTURE_WORDS)
    lanes = np.empty(boxes.BOX_SCRATCH, np.float32)
    of_pixels = PixelRays(
        across=((np.arange(width + 7) + 0.5 - width / 2) * step).astype(np.float32),
        upward=((height / 2 - np.arange(height + 7) - 0.5) * step).astype(np.float32),
        columns_before=np.arange(width + 1, dtype=np.int32),
        rows_before=np.arange(height + 1, dtype=np.int32),
    )
    covered, wrong_sides = 0, 0
    for _ in range(60):
        axes, eye = turned(rng, nearest)
        low, high = -rng.uniform(0.1, 0.8, 3), rng.uniform(0.1, 0.8, 3)
        box = np.zeros(BOX_SIZE, np.float32)
        box[:6] = [*low, *high]
        frame = np.concatenate([eye, *axes]).astype(np.float32)
        there = rng.choice([3.0, 9.0], (height, width)).astype(np.float32)
        depth, image = there.copy().reshape(-1), np.zeros(height * width * 3, np.uint8)
        step_f, scratch = np.float32(step), np.empty(boxes.LANES, np.int32)
        boxes.draw_boxes(
            *(box[None], textures[None], 0, 1, atlas, frame, STILL, LIGHT),
            *(step_f, step_f, np.float32(1), of_pixels, image, depth, lanes, scratch),
        )
        expected, side = cut(low, high, eye, rays(axes, width, height, step))
        hit = (expected < there) & (expected > boxes.NEAR)
        drawn = image.reshape(height, width, 3)[..., 0]
        assert ((drawn > 0) != hit).mean() < 0.01  # rays that graze an edge
        both = hit & (drawn > 0)
        depth = depth.reshape(height, width)
        np.testing.assert_allclose(depth[both], expected[both], rtol=1e-4)
        np.testing.assert_array_equal(depth[drawn == 0], there[drawn == 0])
        covered += both.sum()
        wrong_sides += (drawn[both] != side[both] + 1).sum()
    assert covered > 100 and wrong_sides < 0.01 * covered
