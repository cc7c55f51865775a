"""What is seen is what is drawn: the first hit of every pixel's ray, and items nothing hides."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game.screen_handling import draw_view
from rllib_minestudio.env.voxel.render.block_atlas import FULL_LEAVES
from rllib_minestudio.env.voxel.render.camera import SKY_DEPTH
from rllib_minestudio.env.voxel.render.renderer import Renderer
from tests.env.voxel.arena import FLOOR, arena, state, ticks

COLUMNS, ROWS, REACH = 96, 54, 40.0


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_the_rays_end_where_the_frame_has_its_blocks(seed):
    engine = VoxelEngine(frame_size=(32, 32))
    engine.reset(seed, "forest")
    world = state(engine).world
    world.reset(world.seed, has_plants=False)  # of plants, pixels show what a ray cannot hit
    engine.tick({"camera": (10.0, 35.0 * seed)})
    renderer = Renderer((COLUMNS, ROWS), view_distance=REACH)
    draw_view(state(engine), renderer)
    drawn = renderer.depth.reshape(ROWS, COLUMNS)  # planar
    seen = engine.visible_blocks(COLUMNS, ROWS, REACH)
    forward = seen.direction[ROWS // 2 - 1 : ROWS // 2 + 1, COLUMNS // 2 - 1 : COLUMNS // 2 + 1]
    forward = forward.mean((0, 1))
    planar = seen.distance * (seen.direction @ (forward / np.linalg.norm(forward)))
    hit = seen.kind > 0
    # Pixels show what is behind the gaps of leaves near by, where a ray ends.
    leaves = np.array([name.endswith("leaves") for name in seen.names])[seen.kind]
    judged = ~(leaves & (seen.distance < FULL_LEAVES + 1.0))
    agree = (hit == (drawn < SKY_DEPTH)) & (~hit | (np.abs(planar - drawn) < 0.02))
    assert judged.mean() > 0.5
    assert agree[judged].mean() > 0.998, agree[judged].mean()  # the rest: along edges of blocks
    assert 0.2 < hit.mean() < 1.0
    for row, column in zip(*np.nonzero(hit), strict=True):
        block = state(engine).world.block_at(*seen.cell[row, column].tolist())
        assert block != 0


def test_names_cells_and_faces_are_those_of_the_block_ahead():
    engine = arena()
    engine.execute(f"/setblock 0 {FLOOR + 1} 4 iron_ore")
    seen = engine.visible_blocks(3, 3, REACH)
    assert seen.names[seen.kind[1, 1]] == "iron_ore"
    assert seen.cell[1, 1].tolist() == [0, FLOOR + 1, 4]
    assert seen.face[1, 1].tolist() == [0, 0, -1]
    assert seen.distance[1, 1] == pytest.approx(3.5, abs=1e-6)
    assert seen.kind[0, 1] == 0 and seen.distance[0, 1] == REACH  # the sky
    assert seen.names[seen.kind[2, 1]] == "stone"
    assert seen.face[2, 1].tolist() == [0, 1, 0]


def test_an_animal_hides_what_is_behind_it():
    engine = arena()
    engine.execute(f"/setblock 0 {FLOOR + 1} 4 iron_ore")
    engine.execute(f"/summon cow 0.5 {FLOOR}.4 2.5")
    seen = engine.visible_blocks(3, 3, REACH)
    assert seen.kind[1, 1] == 0
    assert 1.0 < seen.distance[1, 1] < 2.0


def test_items_are_seen_in_front_of_blocks_and_inside_the_frame_only():
    engine = arena()
    game = state(engine)
    stone = game.world.block_at(0, FLOOR - 1, 0)
    for z in (4.5, -4.5, 8.5):
        game.drop_item(stone, 1, (0.5, FLOOR + 1.3, z), (0.0, 0.0, 0.0), 40)
    engine.execute(f"/setblock 0 {FLOOR + 1} 6 dirt")
    engine.execute(f"/setblock 0 {FLOOR + 2} 6 dirt")
    ticks(engine, 1)
    assert [item["name"] for item in engine.visible_items(REACH)] == ["stone"]
    assert engine.visible_items(REACH)[0]["z"] == pytest.approx(4.5, abs=0.1)
    assert engine.visible_items(3.0) == []
    engine.execute(f"/fill 0 {FLOOR + 1} 6 0 {FLOOR + 2} 6 air")
    assert len(engine.visible_items(REACH)) == 2
