"""The crosshair's ray against a plain search of all boxes, in a small world of random blocks."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.player.raycast import NEVER, TARGET_DTYPE, cast_block
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, shape_at
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, Shape, states_of
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, WINDOW, block_index

SIDE, LOW, REACH = 8, 60, 6.0


@pytest.fixture(scope="module")
def world():
    """Blocks of all kinds in all states in a third of the cells of a cube, and all their boxes."""
    dice = np.random.default_rng(3)
    kinds = [k for k, block in enumerate(BLOCKS) if block.shape in (Shape.CUBE, Shape.OTHER)]
    blocks = np.zeros(WINDOW * WINDOW * HEIGHT, np.uint16)
    cells = [c for c in np.ndindex(SIDE, SIDE, SIDE) if dice.random() < 0.35]
    for x, y, z in cells:
        states = list(states_of(int(dice.choice(kinds))))
        blocks[block_index(x, y + LOW, z)] = dice.choice(states)
    boxes = [
        (np.array(box) + np.array((x, y + LOW, z) * 2), (x, y + LOW, z))
        for x, y, z in cells
        for box in SHAPES[shape_at(blocks, x, y + LOW, z)].outline
    ]
    return blocks, np.array([box for box, _ in boxes]), np.array([cell for _, cell in boxes])


def nearest(boxes, origin, direction):
    """Where a ray first meets a box: its number, the distance, and how much farther the next is."""
    with np.errstate(divide="ignore"):
        ends = (boxes.reshape(-1, 2, 3) - origin) / direction
    near = np.maximum(ends.min(1).max(1), 0.0)
    far = ends.max(1).min(1)
    near[near > far] = np.inf
    best = int(near.argmin())
    first, second = np.partition(near, 1)[:2]
    return best, first, second - first if first < np.inf else 0.0


def check(world, rays, seed):
    blocks, boxes, cells = world
    dice = np.random.default_rng(seed)
    target = np.zeros(1, TARGET_DTYPE)[0]
    met = 0
    for _ in range(rays):
        origin = dice.uniform(-1.0, SIDE + 1.0, 3) + np.array((0, LOW, 0))
        direction = dice.normal(size=3)
        direction /= np.linalg.norm(direction)
        found = cast_block(blocks, tuple(origin), tuple(direction), REACH, True, target)
        best, distance, margin = nearest(boxes, origin, direction)
        if distance > REACH or found > REACH:
            assert (found > REACH) == (distance > REACH) or abs(distance - REACH) < 1e-9
            continue
        met += 1
        assert found == pytest.approx(distance, abs=1e-9)
        if margin > 1e-9:
            assert (target["x"], target["y"], target["z"]) == tuple(cells[best])
        at = origin + direction * distance - (target["x"], target["y"], target["z"])
        assert target["hit"] == pytest.approx(at, abs=1e-9)
        assert bool(target["face"].any()) == (distance > 0)
        assert (target["face"] * direction).sum() <= 0
    assert met > rays / 3


def test_rays_meet_what_a_search_of_all_boxes_finds(world):
    check(world, 3000, seed=1)


@pytest.mark.slow
def test_a_hundred_thousand_rays_meet_what_a_search_of_all_boxes_finds(world):
    check(world, 100_000, seed=2)


def test_a_ray_that_meets_nothing_never_ends(world):
    target = np.zeros(1, TARGET_DTYPE)[0]
    assert cast_block(world[0], (2.5, 20.0, 2.5), (1.0, 0.0, 0.0), REACH, True, target) == NEVER
