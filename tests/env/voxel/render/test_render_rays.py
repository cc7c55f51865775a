"""The renderer's rays against an exact traversal, block by block, in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import DroppedItems, Mobs
from rllib_minestudio.env.voxel.player.player import Player
from rllib_minestudio.env.voxel.render.block_atlas import CLEAR_SHIFT
from rllib_minestudio.env.voxel.render.camera import FORWARD, RIGHT, STEP_X, STEP_Y, UP
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.world.box_field import HEIGHT
from rllib_minestudio.env.voxel.world.world import World

SIZE = 48
VIEW = 64.0
Block = tuple[int, int, int]


def exact_hit(world: World, eye: np.ndarray, ray: np.ndarray, t_max: float) -> Block | None:
    """First block on a ray, by Amanatides and Woo's traversal (1987)."""
    cell = [math.floor(value) for value in eye]
    step = [1 if value > 0 else -1 for value in ray]
    per_cell = [abs(1 / value) if value else math.inf for value in ray]
    border = [
        (c + 1 - e if s > 0 else e - c) * p
        for c, e, s, p in zip(cell, eye, step, per_cell, strict=True)
    ]
    while True:
        axis = border.index(min(border))
        if border[axis] > t_max:
            return None
        cell[axis] += step[axis]
        border[axis] += per_cell[axis]
        if world.block_at(cell[0], cell[1], cell[2]):
            return cell[0], cell[1], cell[2]


def rays_of(renderer: Renderer) -> np.ndarray:
    """Directions of all pixels, float64 (SIZE * SIZE, 3), one block ahead in depth."""
    camera = renderer.camera.vector.astype(np.float64)
    forward, right, up = (camera[i : i + 3] for i in (FORWARD, RIGHT, UP))
    middle = np.arange(SIZE) + 0.5 - SIZE / 2
    across = middle[None, :, None] * camera[STEP_X] * right
    down = middle[:, None, None] * camera[STEP_Y] * up
    return (forward + across - down).reshape(-1, 3)


@pytest.mark.parametrize(("x", "z"), [(0, 0), (8000, -3000), (-20_000_000, 20_000_000)])
def test_pixels_show_the_block_an_exact_traversal_hits(x: int, z: int) -> None:
    world = World()
    world.reset(5, has_plants=False)
    world.load_around(x, z)
    renderer = without_holes(Renderer((SIZE, SIZE), view_distance=VIEW))
    player = Player()
    shares = []
    for yaw, pitch in ((30.0, 10.0), (170.0, -5.0), (-100.0, 35.0)):
        player.position[:] = x + 0.3, world.surface(x + 0.3, z + 0.7) + 1.5, z + 0.7
        player.yaw, player.pitch = yaw, pitch
        shares.append(share_that_agrees(renderer, world, player)[0])
    assert np.mean(shares) >= 0.999


def without_holes(renderer: Renderer) -> Renderer:
    """Let leaves be opaque."""
    textures = renderer._atlas.textures & np.uint32((1 << CLEAR_SHIFT) - 1)
    renderer._atlas = renderer._atlas._replace(textures=textures)
    return renderer


def share_that_agrees(renderer: Renderer, world: World, player: Player) -> tuple[float, int]:
    """Share of a frame's pixels that show what an exact traversal hits, and how many hit at all."""
    renderer.draw(world, player, Mobs(), DroppedItems(), player.inventory, 6000)
    eye = player.position + np.array([0.0, player.eye_height, 0.0])
    same = hits = 0
    for ray, depth in zip(rays_of(renderer), renderer.depth, strict=True):
        t_max = VIEW / float(np.linalg.norm(ray))
        expected = exact_hit(world, eye, ray, t_max)
        point = eye + ray * (float(depth) + 1e-3)
        seen = tuple(np.floor(point).astype(int).tolist()) if depth < t_max else None
        same += seen == expected
        hits += expected is not None
    return same / SIZE**2, hits


@pytest.mark.parametrize(
    ("eye", "pitch", "sees"),
    [
        (-0.3, -60.0, True),  # below the floor, at which it looks up
        (-9.0, -90.0, True),
        (-50.0, -80.0, True),
        (-0.3, 60.0, False),
        (-30.0, 30.0, False),
        (-1e6, -90.0, False),
        (60.5, 85.0, True),  # down a shaft that ends in nothing
        (HEIGHT + 8.0, 60.0, True),
        (HEIGHT + 50.0, 80.0, True),
        (1e6, 90.0, False),
    ],
)
def test_rays_from_and_to_the_outside_of_the_world(eye: float, pitch: float, sees: bool) -> None:
    world = World()
    world.reset(5, has_plants=False)
    world.load_around(0, 0)
    world.fill((-2, 3), (0, HEIGHT), (-3, 2), 0)
    world.fill((4, 9), (HEIGHT - 1, HEIGHT), (4, 9), 1)
    renderer = Renderer((SIZE, SIZE), view_distance=VIEW)
    player = Player()
    player.position[:] = 0.3, eye - player.eye_height, 0.7
    player.yaw, player.pitch = -40.0, pitch
    share, hits = share_that_agrees(renderer, world, player)
    assert share >= 0.998
    assert (hits > 0) == sees
