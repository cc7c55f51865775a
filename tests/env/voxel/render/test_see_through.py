"""Rays through gaps, glass and between boxes, against a naive traversal in double precision."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pytest

from rllib_minestudio.env.voxel.render.block_atlas import CLEAR_SHIFT, FACE_BITS, HOLE, joined
from rllib_minestudio.env.voxel.render.camera import (
    FORWARD,
    MIP_DEPTH,
    RIGHT,
    SKY_DEPTH,
    STEP_X,
    STEP_Y,
    UP,
)
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.textures import FACE_TOP, textures_of
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, default_shape, shape_at
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    SNOW,
    Shape,
    kind_of,
    states_of,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.render.render_stage import FLOOR, Stage

SIZE, VIEW = 32, 16.0
FULL_LEAVES, MOST_TINTS = 12.0, 6
NORTH_SHADE = 0.8
"""Factor on the colours of faces to the north."""
SEEN_THROUGH = (
    *("oak_leaves", "birch_leaves", "glass", "ice", "slime_block", "red_stained_glass"),
    *("blue_stained_glass", "glass_pane", "red_stained_glass_pane", "iron_bars", "oak_slab"),
    *("oak_stairs", "stone_brick_stairs", "oak_fence", "cobblestone_wall", "oak_door"),
    *("oak_trapdoor", "ladder", "oak_fence_gate", "chest", "lantern", "white_carpet", "snow"),
)
Cell = tuple[int, int, int]
Box = tuple[float, ...]


# ------------------------------------------------------------------------ the naive traversal


class Oracle:
    """What rays hit in a world, surface by surface."""

    def __init__(self, world: World, renderer: Renderer) -> None:
        self._world = world
        self._textures, self._faces, _ = renderer._atlas
        self._boxes = lru_cache(None)(self._boxes_in)

    def forget(self) -> None:
        """Forget what was where, after blocks have changed."""
        self._boxes.cache_clear()

    def _boxes_in(self, cell: Cell) -> tuple[Box, ...]:
        if self._world.block_at(*cell) in (AIR, SNOW):
            return ()  # a single layer of snow is painted on the cube below
        return SHAPES[shape_at(self._world.blocks, *cell)].model

    def depth(self, eye: np.ndarray, ray: np.ndarray) -> float:
        """The ray's parameter where it ends; infinity if it hits nothing within the view."""
        length = float(np.linalg.norm(ray))
        tints = 0
        for cell in _cells(eye.tolist(), ray.tolist(), VIEW / length):
            for t, face in self._surfaces(cell, eye.tolist(), ray.tolist()):
                if t * length > VIEW:
                    return math.inf
                clear = self._clear(cell, face, eye + ray * t, t * length)
                if clear == 0 or (clear < HOLE and tints == MOST_TINTS):
                    return t
                tints += clear < HOLE
        return math.inf

    def _surfaces(self, cell: Cell, eye: list[float], ray: list[float]) -> list[tuple[float, int]]:
        """Outer faces of a cell's boxes that a ray meets, nearest first."""
        boxes = [[place + cell[n % 3] for n, place in enumerate(box)] for box in self._boxes(cell)]
        found = []
        for number, box in enumerate(boxes):
            for axis in range(3):
                low = ray[axis] > 0
                plane = box[axis + (0 if low else 3)]
                t = (plane - eye[axis]) / ray[axis]
                point = [e + r * t for e, r in zip(eye, ray, strict=True)]
                others = [other for other in range(3) if other != axis]
                if t <= 0 or not all(box[o] <= point[o] <= box[o + 3] for o in others):
                    continue
                before = [e + r * (t - 1e-6) for e, r in zip(eye, ray, strict=True)]
                if any(
                    all(other[n] <= before[n] <= other[n + 3] for n in range(3))
                    for another, other in enumerate(boxes)
                    if another != number
                ):
                    continue
                if plane in (cell[axis], cell[axis] + 1) and self._is_culled(cell, axis, low):
                    continue
                found.append((t, 2 * axis + low))
        return sorted(found)

    def _is_culled(self, cell: Cell, axis: int, low: bool) -> bool:
        front = tuple(c + ((-1 if low else 1) if n == axis else 0) for n, c in enumerate(cell))
        name, other = (
            BLOCKS[kind_of(self._world.block_at(*place))].name for place in (cell, front)
        )
        ends = ("glass", "glass_pane", "iron_bars", "ice", "slime_block", "honey_block")
        is_one = name.endswith(ends) and name not in ("packed_ice", "blue_ice")
        return is_one and name == other

    def _clear(self, cell: Cell, face: int, point: np.ndarray, distance: float) -> int:
        """How clear the texel at a point is."""
        block = self._world.block_at(*cell)
        x, y, z = cell
        is_cube = SHAPES[shape_at(self._world.blocks, *cell)].model == ((0, 0, 0, 1, 1, 1),)
        if face == FACE_TOP and is_cube and self._world.block_at(x, y + 1, z) == SNOW:
            return 0
        if BLOCKS[kind_of(block)].name.endswith("_leaves") and distance > FULL_LEAVES:
            return 0
        x, y, z = (float(p - c) for p, c in zip(point, cell, strict=True))
        u = z if face >> 1 == 0 else x
        v = z if face >> 1 == 1 else 1 - y
        column, row = (min(max(int(w * 16), 0), 15) for w in (u, v))
        start = int(self._faces[block << FACE_BITS | face])
        return int(self._textures[start + 16 * row + column]) >> CLEAR_SHIFT


def _cells(eye: list[float], ray: list[float], t_max: float):
    """The cells along a ray, by Amanatides and Woo's traversal (1987)."""
    cell = [math.floor(value) for value in eye]
    step = [1 if value > 0 else -1 for value in ray]
    per_cell = [abs(1 / value) if value else math.inf for value in ray]
    border = [
        (c + 1 - e if s > 0 else e - c) * p
        for c, e, s, p in zip(cell, eye, step, per_cell, strict=True)
    ]
    yield tuple(cell)
    while min(border) < t_max:
        axis = border.index(min(border))
        cell[axis] += step[axis]
        border[axis] += per_cell[axis]
        yield tuple(cell)


# -------------------------------------------------------------------------------- random rays


def crowd(stage: Stage, random: np.random.Generator) -> None:
    """Put blocks of all kinds with boxes around the player, more of those one sees through."""
    kinds = [
        kind
        for kind, its in enumerate(BLOCKS)
        if its.shape is not Shape.REFUSED and SHAPES[default_shape(kind)].model
    ]
    blocks = {}
    for x, y, z in itertools.product(range(-9, 10), range(-2, 7), range(-9, 10)):
        share = random.random()
        if share < 0.25:
            kind = (
                int(random.choice(kinds)) if share < 0.05 else BLOCK_ID[random.choice(SEEN_THROUGH)]
            )
            blocks[stage.x + x, FLOOR + y, stage.z + z] = int(random.choice(list(states_of(kind))))
    stage.world.set_blocks(blocks)


def share_that_agrees(seed: int, views: int) -> tuple[float, float]:
    """Share of random rays that end where the oracle's do, and of those that end in a block."""
    random = np.random.default_rng(seed)
    stage = Stage(*(int(place) for place in random.integers(-300, 300, 2)))
    stage.fill((-24, 24), (-1, 0), (-24, 24), "air")
    crowd(stage, random)
    renderer = Renderer((SIZE, SIZE), view_distance=VIEW)
    renderer.camera.vector[MIP_DEPTH] = 1e9
    oracle = Oracle(stage.world, renderer)
    same, hits = 0, 0
    for _ in range(views):
        place = np.array([stage.x, FLOOR, stage.z]) + random.uniform((-4, 0, -4), (4, 5, 4))
        # What the eye is in may be glass, but not stone, in which one sees nothing.
        cell = tuple(math.floor(value) for value in place)
        stage.world.set_blocks({cell: BLOCK_ID[random.choice(SEEN_THROUGH)]})
        oracle.forget()
        stage.player.position[:] = place - [0, stage.player.eye_height, 0]
        eye = stage.player.position + [0, stage.player.eye_height, 0]  # noqa: RUF005
        stage.player.yaw, stage.player.pitch = random.uniform(-180, 180), random.uniform(-80, 80)
        stage.draw(renderer)
        for ray, depth in zip(rays_of(renderer), renderer.depth.tolist(), strict=True):
            expected = oracle.depth(eye, ray)
            seen = depth if depth < 1e8 else math.inf
            same += seen == expected or abs(seen - expected) < 2e-3
            hits += expected < math.inf
    return same / (views * SIZE**2), hits / (views * SIZE**2)


def rays_of(renderer: Renderer) -> np.ndarray:
    """Directions of all pixels, float64 (SIZE * SIZE, 3), one block ahead in depth."""
    camera = renderer.camera.vector.astype(np.float64)
    forward, right, up = (camera[i : i + 3] for i in (FORWARD, RIGHT, UP))
    middle = np.arange(SIZE) + 0.5 - SIZE / 2
    across = middle[None, :, None] * camera[STEP_X] * right
    down = middle[:, None, None] * camera[STEP_Y] * up
    return (forward + across - down).reshape(-1, 3)


def test_rays_end_where_those_of_a_naive_traversal_do() -> None:
    share, hits = share_that_agrees(1, views=3)
    assert share >= 0.998
    assert 0.3 < hits < 1


@pytest.mark.slow
def test_a_hundred_thousand_rays_end_where_those_of_a_naive_traversal_do() -> None:
    shares = [share_that_agrees(seed, views=10)[0] for seed in range(2, 12)]
    assert np.mean(shares) >= 0.998


# ------------------------------------------------------------------------ colours and borders


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    """A renderer that always sees the finest texels."""
    renderer = Renderer((SIZE, SIZE), view_distance=VIEW)
    renderer.camera.vector[MIP_DEPTH] = 1e9
    return renderer


def middle(picture: np.ndarray) -> np.ndarray:
    """The colour just above the middle of a picture, where there is no crosshair."""
    return picture[SIZE // 2 - 2, SIZE // 2].astype(float)


def seen_in_the_middle(renderer: Renderer, blocks: dict[int, str]) -> np.ndarray:
    """The colour behind blocks in the north of the eye, by their distance."""
    stage = Stage()
    for ahead, name in blocks.items():
        stage.fill((-4, 5), (0, 6), (ahead, ahead + 1), name)
    return middle(stage.draw(renderer))


def test_stained_glass_is_blended_with_what_is_behind_by_its_opacity(renderer: Renderer) -> None:
    wall = seen_in_the_middle(renderer, {7: "white_concrete"})
    one = seen_in_the_middle(renderer, {3: "red_stained_glass", 7: "white_concrete"})
    *colour, alpha = textures_of(None).picture("block/red_stained_glass")[8, 8] / 255
    expected = wall * (1 - alpha) + np.array(colour) * 255 * NORTH_SHADE * alpha
    assert 0.2 < alpha < 0.8
    np.testing.assert_allclose(one, expected, atol=6)


def test_faces_between_equal_glass_are_not_drawn(renderer: Renderer) -> None:
    one = seen_in_the_middle(renderer, {3: "red_stained_glass", 8: "white_concrete"})
    three = seen_in_the_middle(
        renderer,
        {**dict.fromkeys((3, 4, 5), "red_stained_glass"), 8: "white_concrete"},
    )
    mixed = seen_in_the_middle(
        renderer,
        {3: "red_stained_glass", 4: "blue_stained_glass", 8: "white_concrete"},
    )
    np.testing.assert_array_equal(one, three)
    assert np.abs(one - mixed).max() > 20


def test_what_is_behind_many_panes_is_hidden_at_last(renderer: Renderer) -> None:
    panes = {
        2 + n: ("red_stained_glass", "blue_stained_glass")[n % 2] for n in range(MOST_TINTS + 1)
    }
    white = seen_in_the_middle(renderer, {**panes, 10: "white_concrete"})
    black = seen_in_the_middle(renderer, {**panes, 10: "black_concrete"})
    np.testing.assert_array_equal(white, black)


@pytest.mark.parametrize("layer", [0, HEIGHT - 1])
@pytest.mark.parametrize("pitch", [-90.0, 90.0])
def test_glass_at_the_worlds_ends_shows_the_sky(
    renderer: Renderer, layer: int, pitch: float
) -> None:
    stage = Stage()
    cells = [(x, layer, z) for x in range(-20, 20) for z in range(-20, 20)]
    stage.fill((-20, 20), (-FLOOR, HEIGHT - FLOOR), (-20, 20), "air")
    stage.world.set_blocks(dict.fromkeys(cells, BLOCK_ID["red_stained_glass"]))
    stage.player.position[:] = 0.5, layer + 0.3 - stage.player.eye_height, 0.5
    stage.player.pitch = pitch
    stage.draw(renderer)
    assert (renderer.depth == SKY_DEPTH).all()


def test_a_frame_that_is_no_multiple_of_a_tile_is_drawn_alike() -> None:
    stage = Stage()
    crowd(stage, np.random.default_rng(5))
    for size in ((37, 29), (8, 61)):
        pictures = [stage.draw(Renderer(size, view_distance=VIEW)) for _ in range(2)]
        np.testing.assert_array_equal(*pictures)


def test_fences_have_the_arms_of_this_moment_and_this_world(renderer: Renderer) -> None:
    def post_with(*neighbours: int) -> Stage:
        stage = Stage()
        for x in (0, *neighbours):
            stage.fill((x, x + 1), (0, 2), (2, 3), "oak_fence")
        return stage

    def assert_drawn_as_by_another(stage: Stage) -> None:
        fresh = Renderer((SIZE, SIZE), view_distance=VIEW)
        fresh.camera.vector[MIP_DEPTH] = 1e9
        np.testing.assert_array_equal(stage.draw(renderer), stage.draw(fresh))

    stage, other = post_with(1), post_with(-1)
    assert stage.world.changes == other.world.changes
    assert_drawn_as_by_another(stage)
    assert_drawn_as_by_another(other)
    other.fill((1, 2), (0, 2), (2, 3), "oak_fence")
    assert_drawn_as_by_another(other)


def test_joined_boxes_fill_the_same_space() -> None:
    points = np.random.default_rng(1).uniform(0, 1, (2000, 3))

    def filled(boxes: Iterable[Box]) -> np.ndarray:
        inside = np.zeros(len(points), np.bool_)
        for box in boxes:
            inside |= ((points > box[:3]) & (points < box[3:])).all(1)
        return inside

    for shape in SHAPES:
        boxes = joined(shape.model)
        assert len(boxes) <= len(shape.model)
        np.testing.assert_array_equal(filled(boxes), filled(shape.model))
    fence = [(6, 0, 6, 10, 16, 10), (7, 6, 0, 9, 9, 6), (7, 6, 10, 9, 9, 16)]
    assert len(joined(tuple(box) for box in fence)) == 2, "the arms run through the post"


def test_a_layer_of_snow_is_painted_on_the_cube_below():
    stage = Stage()
    stage.stand(pitch=60.0)
    bare = stage.draw(Renderer((SIZE, SIZE)))
    stage.fill((-8, 9), (0, 1), (-8, 9), "snow")
    snowy = stage.draw(Renderer((SIZE, SIZE)))
    below = np.s_[: SIZE // 2, :]
    assert snowy[below].mean() > 225 > 140 > bare[below].mean()
    stage.fill((-8, 9), (-1, 0), (-8, 9), "glass")
    assert stage.draw(Renderer((SIZE, SIZE)))[below].mean() > 225
