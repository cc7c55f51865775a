"""Plants in pictures, against a naive program: a ray for each pixel, a linear system per plane."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOG_RGB,
    FORWARD,
    LEVELS,
    LIGHT,
    MIP_DEPTH,
    RIGHT,
    SKY_DEPTH,
    TILE,
    UP,
    VIEW,
    Camera,
)
from rllib_minestudio.env.voxel.render.hand import pixel_rays
from rllib_minestudio.env.voxel.render.plants import (
    FARTHEST,
    Plants,
    _are_near,
    build_sprites,
)
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.textures import MIP_OFFSET, TRANSPARENT, textures_of
from rllib_minestudio.env.voxel.render.window import sampling_of
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    PLANTS,
    ROWS,
    STONE,
    THIN_KINDS,
    block_of,
    kind_of,
    shift_of,
    states_of,
)
from rllib_minestudio.env.voxel.world.box_field import block_index, column_index
from rllib_minestudio.env.voxel.world.column_bits import COLUMN_WORDS, WORD_LAYERS
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.render.render_stage import FLOOR, Stage

SIZE = 64, 48
SPRITES = build_sprites(textures_of(None))
WHEAT = block_of(BLOCK_ID["wheat"], {"age": "7"})
GARDEN = {
    (0, 0, 3): BLOCK_ID["poppy"],
    (1, 0, 2): BLOCK_ID["grass"],
    (-2, 0, 3): WHEAT,
    (-1, 0, 2): block_of(BLOCK_ID["lilac"], {"half": "lower"}),
    (-1, 1, 2): block_of(BLOCK_ID["lilac"], {"half": "upper"}),
    (2, 0, 6): BLOCK_ID["fern"],
    (-4, 0, 9): BLOCK_ID["cobweb"],
    (5, 0, 12): WHEAT,
    (0, 0, 15): BLOCK_ID["dead_bush"],
    (0, 0, 0): BLOCK_ID["grass"],
    (0, 1, -1): BLOCK_ID["sugar_cane"],
    (0, 0, FARTHEST + 2): BLOCK_ID["poppy"],
}
"""Blocks by place, relative to the floor's middle."""


def planted(x: int, z: int) -> World:
    """A stone floor with a garden, part of which is in the dark under a roof."""
    stage = Stage(x, z)
    for (dx, dy, dz), block in GARDEN.items():
        assert stage.world.set_block(x + dx, FLOOR + dy, z + dz, block)
    stage.fill((-12, 13), (3, 4), (1, 8), "stone")
    return stage.world


def test_a_glance_around_sees_whether_there_are_plants() -> None:
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(3000):
        eye_x, eye_z = rng.integers(-600, 600, 2)
        height, reach = rng.uniform(0, 127), rng.uniform(4, FARTHEST)
        dx, dz = rng.integers(-FARTHEST - 3, FARTHEST + 4, 2)
        layer = int(np.clip(height + rng.uniform(-24, 24), 1, 127))
        thin = np.zeros(2**17, np.uint64)
        part, bit = divmod(layer, WORD_LAYERS)
        thin[COLUMN_WORDS * column_index(eye_x + dx, eye_z + dz) + part] = 1 << bit
        found = _are_near(thin, np.float32(height), np.float32(reach), eye_x, eye_z)
        is_near = np.hypot(np.hypot(dx, dz), layer + 0.5 - height) < reach
        is_around = max(abs(dx), abs(dz)) <= FARTHEST and abs(layer + 0.5 - height) < reach + 3
        assert is_near <= found <= is_around
        seen.append(found)
    assert 0.2 < np.mean(seen) < 0.8


class Naive:
    """A picture, drawn by testing every pixel against every plane of every plant."""

    def __init__(self, world: World, camera: Camera, rays, depth: np.ndarray) -> None:
        vector = camera.vector.astype(np.float64)
        self.f, self.r, self.u = (vector[axis : axis + 3] for axis in (FORWARD, RIGHT, UP))
        self.sx, self.sy = np.meshgrid(rays.across[: 1 - TILE], rays.upward[: 1 - TILE])
        self.rays = self.f + self.sx[..., None] * self.r + self.sy[..., None] * self.u
        self.vector, self.depth = vector, depth.copy()
        self.image = np.zeros((*depth.shape, 3))
        eye = np.array([vector[EYE_X], vector[EYE_Y], vector[EYE_Z]])
        for (dx, dy, dz), block in GARDEN.items():
            x, y, z = self.place(world, dx, dy, dz)
            kind = kind_of(block)
            shift = shift_of(x, z, PLANTS[kind].shift)
            corner = np.array([x - camera.column_x, y, z - camera.column_z]) - eye + shift
            unshifted = corner - shift + 0.5
            if np.linalg.norm(unshifted) >= FARTHEST:
                continue
            light = LIGHT + 3 * int(world.light[block_index(x, y, z)])
            ahead = (corner + 0.5) @ self.f
            level = sum(ahead > vector[MIP_DEPTH] * 2**step for step in range(4))
            start, size = SPRITES.starts[block] + MIP_OFFSET[level], 16 >> level
            texels = SPRITES.textures[start : start + size * size].reshape(size, size)
            self.shine = vector[light : light + 3]
            if ahead > vector[MIP_DEPTH]:
                self.draw_card(corner + 0.5, ahead, texels)
                continue
            for begin, along in planes_of(corner, PLANTS[kind].planes == ROWS):
                self.draw_plane(begin, along, texels)

    @staticmethod
    def place(world: World, dx: int, dy: int, dz: int) -> tuple[int, int, int]:
        middle = world.centre
        assert middle is not None
        return middle[0] * 16 + dx, FLOOR + dy, middle[1] * 16 + dz

    def draw_plane(self, begin: np.ndarray, along: np.ndarray, texels: np.ndarray) -> None:
        """Solve `begin + u * along + v * up = t * ray`, with v downwards from the upper edge."""
        if begin[0] * along[2] - begin[2] * along[0] < 0:  # begins at the viewer's right
            begin, along = begin + along, -along
        top = begin + np.array([0, 1, 0])
        columns = np.broadcast_arrays(self.rays, -along, np.array([0.0, 1.0, 0.0]))
        t, u, v = np.moveaxis(np.linalg.solve(np.stack(columns, -1), top[:, None])[..., 0], -1, 0)
        self.paint(t, u, v, texels)

    def draw_card(self, middle: np.ndarray, ahead: float, texels: np.ndarray) -> None:
        width = 0.9 * max(abs(self.r[0] + self.r[2]), abs(self.r[0] - self.r[2]))
        height = abs(self.u[1])
        u = (self.sx * ahead - middle @ self.r) / width + 0.5
        v = 0.5 - (self.sy * ahead - middle @ self.u) / height
        self.paint(np.full(u.shape, ahead), u, v, texels)

    def paint(self, t: np.ndarray, u: np.ndarray, v: np.ndarray, texels: np.ndarray) -> None:
        size = len(texels)
        seen = (t > 0.05) & (t < self.depth) & (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
        words = texels[
            (np.where(seen, v, 0) * size).astype(int), (np.where(seen, u, 0) * size).astype(int)
        ]
        seen &= words & TRANSPARENT == 0
        colours = np.stack([words >> shift & 255 for shift in (0, 8, 16)], -1) * self.shine
        self.image[seen] = colours[seen]
        self.depth[seen] = t[seen]


def planes_of(corner: np.ndarray, rows: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    if rows:
        sunk = corner - np.array([0, 1 / 16, 0])
        return [
            *((sunk + np.array([place, 0, 0]), np.array([0.0, 0, 1])) for place in (0.25, 0.75)),
            *((sunk + np.array([0, 0, place]), np.array([1.0, 0, 0])) for place in (0.25, 0.75)),
        ]
    return [
        (corner + np.array([0.05, 0, 0.05]), np.array([0.9, 0, 0.9])),
        (corner + np.array([0.05, 0, 0.95]), np.array([0.9, 0, -0.9])),
    ]


def drawn(world: World, camera: Camera, rays, depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Image and depth after the plants of a world have been drawn over a black picture."""
    image, after = np.zeros((*depth.shape, 3), np.uint8), depth.copy()
    Plants(camera, rays, None).draw(world, image.reshape(-1), after.reshape(-1))
    return image, after


def view(size: tuple[int, int] = SIZE, sampling: str = "average"):
    """Camera and rays of a frame in a light of many colours, without fog."""
    sampled = sampling_of(sampling, size, 16 / 9)
    camera = Camera(*sampled.window, 70.0, 16 / 9, 64.0)
    colours = np.random.default_rng(1).uniform(0.4, 1, 3 * LEVELS)
    camera.vector[LIGHT : LIGHT + 3 * LEVELS] = colours
    return camera, pixel_rays(sampled, camera), sampled.drawn


@pytest.fixture(scope="module", params=[(0, 0), (-1_600_000, 29_999_680)])
def garden(request) -> tuple[World, int, int]:
    return planted(*request.param), *request.param


@pytest.mark.parametrize(
    ("dx", "dy", "dz", "yaw", "pitch"),
    [
        *((0.5, 1.62, 0.5, yaw, 10) for yaw in (0, 33, -71)),
        (1.4, 0.6, 2.3, 0, 20),  # inside grass
        (-1.5, 1.62, 5.2, 170, 15),  # from the other side
        (0.5, 4.5, 3.5, 20, 80),  # from above
        (0.3, 1.62, -0.4, 60, 75),
    ],
)
def test_pixels_are_those_of_a_naive_program(garden, dx, dy, dz, yaw, pitch):
    world, x, z = garden
    camera, rays, (width, height) = view()
    camera.place(x + dx, FLOOR + dy, z + dz, yaw, pitch)
    # Something else hides parts of the plants.
    depth = np.full((height, width), SKY_DEPTH, np.float32)
    depth[:, ::7] = 2.5
    image, after = drawn(world, camera, rays, depth)
    naive = Naive(world, camera, rays, depth)
    assert (naive.depth != depth).mean() > 0.01
    wrong = (abs(image - naive.image) > 1.01).any(-1) | (abs(after / naive.depth - 1) > 1e-3)
    assert wrong.mean() < 0.004  # rays along the edges of texels


def test_frames_of_all_sizes_and_samplings_show_the_same():
    world, shares = planted(0, 0), []
    for size, sampling in (((64, 64), "average"), ((128, 128), "samples"), ((640, 360), "average")):
        camera, rays, (width, height) = view(size, sampling)
        camera.place(0.5, FLOOR + 1.62, 0.5, 0, 10)
        depth = np.full((height, width), SKY_DEPTH, np.float32)
        shares.append((drawn(world, camera, rays, depth)[1] != depth).mean())
    assert max(shares) < 1.25 * min(shares)


def test_fog_covers_plants():
    world, seen = Stage().world, []
    camera, rays, (width, height) = view()
    camera.vector[FOG_RGB : FOG_RGB + 3] = 0, 255, 0
    camera.vector[VIEW] = 12.0  # fog begins at 9 blocks
    for ahead in (3, 9, 10, 13):
        assert world.set_block(0, FLOOR, ahead, BLOCK_ID["red_tulip"])
        camera.place(0.5, FLOOR + 0.5, 0.5, 0, 0)
        depth = np.full((height, width), SKY_DEPTH, np.float32)
        image, after = drawn(world, camera, rays, depth)
        seen.append(image[after < SKY_DEPTH][:, 0])
        world.set_block(0, FLOOR, ahead, AIR)
    near, far, farther, beyond = seen
    assert near.max() > far.max() > farther.max() > 0
    assert not len(beyond)


def test_more_plants_than_a_list_holds():
    world = World()
    world.reset(1)
    world.load_around(0, 0)
    world.fill((-20, 21), (FLOOR, FLOOR + 20), (-20, 21), BLOCK_ID["poppy"])
    camera, rays, (width, height) = view()
    camera.place(0.5, FLOOR + 10.3, 0.5, 30, 5)
    depth = np.full((height, width), SKY_DEPTH, np.float32)
    after = drawn(world, camera, rays, depth)[1]
    assert (after < 3).mean() > 0.3 and (after < SKY_DEPTH).mean() > 0.6


def test_every_thin_block_has_a_picture_with_holes():
    looks = set()
    for kind in THIN_KINDS:
        for block in states_of(kind):
            start = SPRITES.starts[block]
            holes = (SPRITES.textures[start : start + 256] & TRANSPARENT != 0).mean()
            assert 0.05 < holes < 0.995, BLOCKS[kind].name
        start = int(SPRITES.starts[kind])
        for level, at in enumerate(MIP_OFFSET):  # no plant vanishes with distance
            words = SPRITES.textures[start + at : start + at + (16 >> level) ** 2]
            assert (words & TRANSPARENT == 0).any(), BLOCKS[kind].name
        looks.add(start)
    for name, property_, values in (
        ("wheat", "age", "07"),
        ("rose_bush", "half", ("lower", "upper")),
    ):
        one, other = (block_of(BLOCK_ID[name], {property_: value}) for value in values)
        assert SPRITES.starts[one] != SPRITES.starts[other]
    assert len(looks) > 50
    assert not SPRITES.starts[STONE]


def test_frames_show_plants_before_the_terrain_and_behind_walls_none():
    stage, renderer = Stage(), Renderer((64, 64))
    stage.stand(0, 0)
    bare = stage.draw(renderer).copy()
    stage.fill((0, 1), (1, 2), (2, 3), "poppy")
    shown = stage.draw(renderer).copy()
    assert (shown != bare).any()
    stage.fill((-2, 3), (0, 4), (1, 2), "stone")
    walled = stage.draw(renderer).copy()
    stage.fill((0, 1), (1, 2), (2, 3), "air")
    assert np.array_equal(stage.draw(renderer), walled)
    assert math.isclose(float(renderer.depth.min()), 0.5, abs_tol=0.01)
