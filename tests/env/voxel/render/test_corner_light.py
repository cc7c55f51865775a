"""Smooth light: its closed form at corners, and frames against a reference for each pixel."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rllib_minestudio.env.voxel import SAMPLES
from rllib_minestudio.env.voxel.render.block_atlas import LOOKS
from rllib_minestudio.env.voxel.render.camera import (
    FACE,
    FORWARD,
    KEY,
    LANES,
    OPENNESS,
    POINT_X,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
    new_scratch,
)
from rllib_minestudio.env.voxel.render.corner_light import (
    count_cubes,
    find_neighbours,
    list_faces,
    spread_openness,
)
from rllib_minestudio.env.voxel.render.light import light_map
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.sky import sun_angle
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, block_index
from rllib_minestudio.env.voxel.world.light_field import light_at
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.render.render_stage import FLOOR, MIDNIGHT, NOON, Stage

Cell = tuple[int, int, int]
GLASS = BLOCK_ID["glass"]
"""Opaque in these tests, but it does not darken corners."""
# By face, in the kernels' order: outward direction, and the two axes along the face.
OUTWARD = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
ALONG = ((1, 2), (0, 2), (0, 1))


@pytest.fixture(scope="module")
def world() -> World:
    """Air, high above the ground."""
    world = World()
    world.reset(1)
    world.load_around(0, -128)
    return world


def step(cell: Cell, axis: int, steps: int) -> Cell:
    return tuple(at + steps * (axis == along) for along, at in enumerate(cell))  # type: ignore[return-value]


def openness_at_corners(world: World, face: int, front: Cell) -> list[float]:
    """Openness of a face's corners by the kernels; the first axis changes faster."""
    s, n = new_scratch()
    n[KEY : KEY + LANES] = int(block_index(*front)) << 3 | face
    n[FACE : FACE + LANES] = face
    for lane, (two, one) in enumerate(itertools.product((0.0, 1.0), repeat=2)):
        for axis, share in zip(ALONG[face >> 1], (one, two), strict=True):
            s[POINT_X + axis * LANES + lane] = share
    faces = list_faces(n)
    find_neighbours(faces, n)
    count_cubes(faces, world.blocks, LOOKS, n)
    spread_openness(s, n)
    return s[OPENNESS : OPENNESS + 4].tolist()


@pytest.mark.parametrize("face", range(6))
@pytest.mark.parametrize(
    ("one", "two", "diagonal", "openness"),
    [
        (False, False, False, 1.0),
        (True, False, False, 0.8),
        (False, True, False, 0.8),
        (False, False, True, 0.8),
        (True, False, True, 0.6),
        (False, True, True, 0.6),
        (True, True, False, 0.4),
        (True, True, True, 0.4),
    ],
)
def test_a_corner_loses_a_fifth_to_each_cube_and_two_sides_hide_the_diagonal(
    world: World, face: int, one: bool, two: bool, diagonal: bool, openness: float
) -> None:
    first, second = ALONG[face >> 1]
    front = (3, 90, -128)  # at a border of the window
    for corner, (high_2, high_1) in enumerate(itertools.product((-1, 1), repeat=2)):
        side_1, side_2 = step(front, first, high_1), step(front, second, high_2)
        cubes = [
            cell
            for cell, is_there in (
                (side_1, one),
                (side_2, two),
                (step(side_1, second, high_2), diagonal),
            )
            if is_there
        ]
        world.set_blocks(dict.fromkeys(cubes, BLOCK_ID["stone"]))
        assert openness_at_corners(world, face, front)[corner] == pytest.approx(openness)
        world.set_blocks(dict.fromkeys(cubes, 0))


# ---------------------------------------------------------------- a reference, pixel by pixel


def is_cube(world: World, cell: Cell) -> bool:
    return world.block_at(*cell) not in (AIR, GLASS)


def levels(world: World, cell: Cell) -> np.ndarray:
    """Levels of block light and of the sky's."""
    return np.array(divmod(light_at(world.light, *cell), 16))


def expected_corner(world: World, front: Cell, one: Cell, two: Cell) -> np.ndarray:
    """Openness, and both levels of light, at a corner where two sides and a diagonal cell meet."""
    diagonal = tuple(a + b - c for a, b, c in zip(one, two, front, strict=True))
    if is_cube(world, one) and is_cube(world, two):
        diagonal = one
    cells = (front, one, two, diagonal)
    lights = [levels(world, cell) for cell in cells]
    lights = [light if light.any() else lights[0] for light in lights]
    openness = np.mean([0.2 if is_cube(world, cell) else 1.0 for cell in cells])
    return np.array([openness, *np.mean(lights, 0)])


def expected_light(world: World, eye: np.ndarray, ray: np.ndarray, depth: float, lights):
    """Share of the light, RGB, where a ray ends in a block at a depth."""
    point = eye + ray * depth
    # The axis across which the ray has just crossed a border.
    axis = int(np.argmin(np.abs(point - np.rint(point))))
    inside = point.copy()
    inside[axis] = np.rint(point[axis]) + 0.5 * np.sign(ray[axis])
    cell = tuple(np.floor(inside).astype(int).tolist())
    front = step(cell, axis, -int(np.sign(ray[axis])))
    first, second = (along for along in range(3) if along != axis)
    shares = point - np.floor(point)
    found = np.zeros(3)
    for high_1, high_2 in itertools.product((0, 1), repeat=2):
        one, two = step(front, first, 2 * high_1 - 1), step(front, second, 2 * high_2 - 1)
        weight = shares[first] if high_1 else 1 - shares[first]
        weight *= shares[second] if high_2 else 1 - shares[second]
        found += weight * expected_corner(world, front, one, two)
    lit = lights
    for level in found[1:]:
        below = min(int(level), 14)
        lit = lit[below] + (lit[below + 1] - lit[below]) * (level - below)
    return found[0] * lit


def rays_of(renderer: Renderer) -> np.ndarray:
    """Directions of all pixels, one block ahead in depth."""
    camera = renderer.camera.vector.astype(np.float64)
    forward, right, up = (camera[i : i + 3] for i in (FORWARD, RIGHT, UP))
    width, height = renderer.width, renderer.height
    across = (np.arange(width) + 0.5 - width / 2)[None, :, None] * camera[STEP_X] * right
    down = (np.arange(height) + 0.5 - height / 2)[:, None, None] * camera[STEP_Y] * up
    return (forward + across - down).reshape(-1, 3)


def in_white(renderer: Renderer, monkeypatch: pytest.MonkeyPatch) -> Renderer:
    """Let all blocks be white on all sides, and leave out outline, clouds, hand and display."""
    white = np.full_like(renderer._atlas.textures, 0xFFFFFF)
    renderer._atlas = renderer._atlas._replace(textures=white)
    for layer in (renderer._marks, renderer._clouds, renderer._overlays):
        monkeypatch.setattr(layer, "draw", lambda *arguments: None)
    return renderer


def crowd(stage: Stage, seed: int, roofed: bool, lamps: int) -> None:
    """Put blocks at random around the player, under a roof with holes, some of them glowing."""
    random = np.random.default_rng(seed)
    kinds = [BLOCK_ID[name] for name in ("stone", "oak_leaves", "glass")] * 30
    kinds += [BLOCK_ID[name] for name in ("glowstone", "magma_block", "crying_obsidian")] * lamps
    cells = zip(
        *(random.integers(low, high, 350) for low, high in ((-9, 9), (0, 5), (-9, 9))), strict=True
    )
    blocks = {
        (stage.x + int(x), FLOOR + int(y), stage.z + int(z)): int(random.choice(kinds))
        for x, y, z in cells
        if max(abs(x), abs(z)) > 1
    }
    stage.world.set_blocks(blocks)
    if roofed:
        stage.fill((-12, 13), (5, 6), (-12, 13), "stone")
        for _ in range(6):
            x, z = (int(place) for place in random.integers(-9, 9, 2))
            stage.fill((x, x + 2), (5, 6), (z, z + 1), "air")


@pytest.mark.parametrize(
    ("seed", "roofed", "lamps", "daytime", "gamma", "yaw", "pitch"),
    [
        (1, False, 0, NOON, 0.5, 30, 25),
        (2, True, 0, MIDNIGHT, 0.5, 160, 10),
        (3, True, 0, NOON, 0.5, -100, -30),
        (4, True, 0, NOON, 2.0, 20, 5),  # the light map is even from level 8 up
        (5, True, 1, NOON, 0.5, 40, 15),
        (6, False, 1, MIDNIGHT, 1.0, -30, 20),
        (7, True, 2, MIDNIGHT, 2.0, 120, 10),
    ],
)
def test_frames_are_lit_as_a_reference_lights_each_pixel(
    seed: int, roofed: bool, lamps: int, daytime: int, gamma: float, yaw: float, pitch: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    stage = Stage(*((0, 0) if seed == 1 else (250, -130)))  # the latter across the window's border
    crowd(stage, seed, roofed, lamps)
    renderer = in_white(Renderer((56, 40), gamma=gamma), monkeypatch)
    stage.stand(yaw, pitch)
    frame = stage.draw(renderer, daytime).reshape(-1, 3).astype(int)
    eye = stage.player.position + np.array([0.0, stage.player.eye_height, 0.0])
    lights = light_map(sun_angle(daytime), gamma).astype(float)
    near = [
        (index, ray, float(depth))
        for index, (ray, depth) in enumerate(zip(rays_of(renderer), renderer.depth, strict=True))
        if depth < 30
    ]
    assert len(near) > 1000
    expected = np.array([255 * expected_light(stage.world, eye, *hit[1:], lights) for hit in near])
    seen = frame[[hit[0] for hit in near]]
    assert len(np.unique(seen.round(-1), axis=0)) > 8, "there is something to compare"
    assert (np.abs(seen - expected).max(-1) <= 1.5).mean() > 0.995


def test_four_corners_of_a_floor_in_the_games_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ground in the corner of two walls, from above: 0.4, twice 0.6, and 0.8 at a lone cube."""
    stage = Stage()
    stage.fill((1, 4), (0, 1), (2, 3), "stone")  # a wall along x, to the north of the cell (2, 3)
    stage.fill((1, 2), (0, 1), (2, 5), "stone")  # and one along z, to its west
    stage.fill((3, 4), (0, 1), (4, 5), "stone")
    corners = {(2, 3): 0.4, (3, 3): 0.6, (2, 4): 0.6, (3, 4): 0.8}
    stage.stand(yaw=0, pitch=90)
    stage.player.position[:] = 2.5, FLOOR + 3.0, 3.5
    whole = in_white(Renderer((640, 360)), monkeypatch)
    frame = stage.draw(whole).max(-1) / 255
    eye = stage.player.position + np.array([0.0, stage.player.eye_height, 0.0])
    floor = (eye + rays_of(whole) * (eye[1] - FLOOR))[:, [0, 2]].reshape(360, 640, 2)
    for corner, openness in corners.items():
        inwards = np.sign(np.array([2.5, 3.5]) - corner)
        inside = ((floor - corner) * inwards > 0).all(-1)
        away = np.where(inside, np.abs(floor - corner).max(-1), np.inf)
        assert away.min() < 0.03, "a pixel is at the corner"
        assert frame.flat[away.argmin()] == pytest.approx(openness, abs=0.02)
    small = stage.draw(in_white(Renderer((128, 128), sampling=SAMPLES), monkeypatch))
    rows = (np.arange(128) + 0.5) * 360 / 128 - 0.5
    low, share = rows.astype(int), (rows % 1)[:, None]
    columns = frame[:, 2::5] * 255
    expected = columns[low] * (1 - share) + columns[np.minimum(low + 1, 359)] * share
    assert np.abs(small.max(-1) - expected).max() <= 1, "the frame is the window scaled down"


def floor_of_a_hall(lamp: str, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """A row of pixels from the middle of a closed hall's floor outwards, where a lamp is let in."""
    stage = Stage()
    stage.fill((-12, 13), (-1, 9), (-12, 13), "stone")
    stage.fill((-10, 11), (0, 8), (-10, 11), "air")
    stage.fill((0, 1), (-1, 0), (0, 1), lamp)
    stage.stand(pitch=90)
    stage.player.position[1] = FLOOR + 5
    frame = stage.draw(in_white(Renderer((65, 65), aspect=1.0), monkeypatch), MIDNIGHT)
    return frame[32, 32:].astype(int)


def test_lamps_in_the_dark_shine_warmly_and_fade(monkeypatch: pytest.MonkeyPatch) -> None:
    dark = floor_of_a_hall("stone", monkeypatch)
    np.testing.assert_array_equal(dark, 56)  # the reference's darkest level
    # Magma is of level 3, so there is 2 above it, 1 beside that, and on average halfway between.
    faint = floor_of_a_hall("magma_block", monkeypatch)
    assert faint[0].tolist() == pytest.approx(
        [(94 + 131) / 2, (81 + 107) / 2, (72 + 88) / 2], abs=2
    )
    assert (np.diff(faint, axis=0) <= 0).all() and (faint[-4:] == 56).all()
    bright = floor_of_a_hall("glowstone", monkeypatch)
    assert (bright[:12] == 255).all() and bright[-1, 0] > 200 and (bright >= faint).all()


def test_occlusion_does_not_end_with_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.fill((-24, 24), (0, 1), (22, 23), "stone")
    stage.player.position[1] += 8
    stage.player.position[2] -= 18
    renderer = in_white(Renderer((64, 360)), monkeypatch)
    stage.player.pitch = 14.0
    stage.player.yaw = 0.0
    frame = stage.draw(renderer).max(-1)[:, 32]
    depth = renderer.depth.reshape(360, 64)[:, 32]
    far = (depth > 33) & (depth < 45)
    assert frame[far].min() < 0.75 * 255, "the foot of a step 40 blocks away"
    assert frame[far].max() == 255


def test_nothing_is_dark_in_the_highest_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.fill((-6, 7), (HEIGHT - 1 - FLOOR, HEIGHT - FLOOR), (-6, 7), "stone")
    stage.player.position[1] = HEIGHT + 2
    renderer = in_white(Renderer((32, 32)), monkeypatch)
    stage.player.pitch = 90.0
    assert (stage.draw(renderer)[8:24, 8:24] == 255).all()
