"""Cracks, outline and dust in the game's window, against the reference computed ray by ray."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from rllib_minestudio.env.voxel.entities.particles import Particles
from rllib_minestudio.env.voxel.render.mining_marks import MiningMarks
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.resource_pack import TEXTURES
from rllib_minestudio.env.voxel.render.textures import textures_of
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS, NOTHING
from rllib_minestudio.env.voxel.screens.menu import ScreenView
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from tests.env.voxel.render.render_stage import FLOOR, NOON, Stage

WIDTH, HEIGHT = 640, 360
TAN_Y = math.tan(math.radians(35))
TAN_X = TAN_Y * 16 / 9
# Columns and rows without hand and display.
CLEAR = np.s_[:320, :400]


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer((WIDTH, HEIGHT))


@pytest.fixture
def stage() -> Stage:
    """A wall of planks three blocks ahead."""
    stage = Stage()
    stage.fill((-4, 5), (0, 4), (3, 4), "oak_planks")
    return stage


def rays() -> NDArray[np.float64]:
    """Directions (right, up, ahead) of all pixels for who looks to the south."""
    across = ((np.arange(WIDTH) + 0.5) / WIDTH * 2 - 1) * TAN_X
    up = (1 - (np.arange(HEIGHT) + 0.5) / HEIGHT * 2) * TAN_Y
    grid = np.meshgrid(across, up)
    return np.stack([*grid, np.ones((HEIGHT, WIDTH))], -1)


def mine(stage: Stage, progress: float, x: int = 0, y: int = 0, z: int = 3) -> None:
    """Let the player mine the block at (x, y, z) of the stage."""
    record = stage.player.records
    record["is_mining"], record["mining_progress"] = 1, progress
    record["mining_x"], record["mining_y"], record["mining_z"] = (
        stage.x + x,
        FLOOR + y,
        stage.z + z,
    )


def unmarked(stage: Stage, renderer: Renderer, monkeypatch: pytest.MonkeyPatch) -> NDArray:
    """The frame without cracks and outline."""
    with monkeypatch.context() as patch:
        patch.setattr(renderer._marks, "draw", lambda *_: None)
        return stage.draw(renderer).astype(int)


def cracked(
    plain: NDArray, picture: NDArray, place: tuple[NDArray, NDArray], inside: NDArray
) -> NDArray:
    """A frame with a picture of cracks at places (from the left, from the top, 0 to 1)."""
    column, row = (np.clip((part * 16).astype(int), 0, 15) for part in place)
    texels = picture[row, column].astype(int)
    mixed = np.minimum(np.floor(2 * plain * texels[..., :3] / 255 + 0.5), 255)
    return np.where((inside & (texels[..., 3] > 25))[..., None], mixed, plain)


@pytest.mark.parametrize(
    ("progress", "picture"),
    [(0.05, None), (0.0999, None), (0.15, 0), (0.2, 1), (0.55, 4), (0.899, 7), (0.95, 8), (1.0, 9)],
)
def test_cracks_are_those_of_the_progress_and_double_the_product(
    progress: float,
    picture: int | None,
    renderer: Renderer,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The block is below and left of the middle, so that no outline crosses it."""
    plain = unmarked(stage, renderer, monkeypatch)
    mine(stage, progress, x=1)  # to the left, as the east is for who looks south
    frame = stage.draw(renderer).astype(int)
    if picture is None:
        mine(stage, 0.0, x=1)
        np.testing.assert_array_equal(frame, stage.draw(renderer))
        return
    at = rays() * (3 - 0.5)  # on the wall's northern side
    left, top = at[..., 0] + 1.5, -0.62 - at[..., 1]
    inside = (left > 0) & (left < 1) & (top > 0) & (top < 1)
    sprite = textures_of(None).picture(f"block/destroy_stage_{picture}")
    expected = cracked(plain, sprite, (left, top), inside)
    border = np.maximum(np.abs(left * 16 % 1 - 0.5), np.abs(top * 16 % 1 - 0.5)) > 0.47
    stage.player.records["is_mining"] = 0
    outline = (stage.draw(renderer) != plain).any(-1)
    wrong = (np.abs(frame - expected) > 1).any(-1) & ~border & ~outline
    assert inside[CLEAR].sum() > 5000
    assert wrong[CLEAR].sum() == 0
    assert ((frame != plain).any(-1) & ~outline)[CLEAR].sum() > 200


def test_cracks_are_on_all_sides_and_hidden_by_what_is_before_them(
    renderer: Renderer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.fill((-4, 5), (0, 4), (3, 4), "air")
    stage.fill((1, 2), (0, 1), (2, 3), "oak_planks")
    stage.stand(yaw=-40, pitch=20)
    plain = unmarked(stage, renderer, monkeypatch)
    mine(stage, 0.95, x=1, z=2)
    changed = (stage.draw(renderer) != plain).any(-1)
    depth = renderer.depth.copy()
    point = renderer.depth.reshape(HEIGHT, WIDTH, 1) * directions(renderer) + eye_of(stage)
    for axis, side in ((1, FLOOR + 1.0), (0, stage.x + 1.0), (2, stage.z + 2.0)):
        on_side = np.abs(point[..., axis] - side) < 1e-3
        assert changed[on_side].sum() > 100
    stage.add_mob("cow", ahead=1.2, side=0.6)
    plain = unmarked(stage, renderer, monkeypatch)
    nearer = renderer.depth < depth - 0.01
    marked = (stage.draw(renderer) != plain).any(-1)
    assert nearer.sum() > 1000 and changed.reshape(-1)[nearer].any()
    assert not marked.reshape(-1)[nearer].any()


def test_the_outline_is_two_and_a_half_pixels_of_black_at_0_4(
    renderer: Renderer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = unmarked(stage, renderer, monkeypatch)
    frame = stage.draw(renderer).astype(int)
    pixel = 2 * TAN_Y / HEIGHT * (3 - 0.5)  # of the wall, in blocks
    across, up = rays()[..., 0] * (3 - 0.5), rays()[..., 1] * (3 - 0.5)
    sides = np.zeros((HEIGHT, WIDTH), bool)
    for edge in (-0.5, 0.5):
        sides |= (np.abs(across - edge) < 1.25 * pixel) & (up > -0.62) & (up < 0.38)
    for edge in (-0.62, 0.38):
        sides |= (np.abs(up - edge) < 1.25 * pixel) & (np.abs(across) < 0.5)
    expected = np.where(sides[..., None], np.floor(plain * 0.6 + 0.5), plain)
    wrong = (np.abs(frame - expected) > 1).any(-1)
    assert sides[CLEAR].sum() > 1000
    assert wrong[CLEAR].sum() == 0


def test_no_block_in_reach_no_outline(
    renderer: Renderer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.fill((-4, 5), (0, 4), (3, 4), "air")
    stage.fill((-4, 5), (0, 4), (6, 7), "oak_planks")
    np.testing.assert_array_equal(stage.draw(renderer), unmarked(stage, renderer, monkeypatch))
    stage.player.position[2] += 1.1  # 4.4 to the wall
    assert (stage.draw(renderer) != unmarked(stage, renderer, monkeypatch)).any()
    stage.add_mob("cow", ahead=3.5, yaw=0.0)
    stage.stand(pitch=12)
    stage.player.position[2] += 1.1
    np.testing.assert_array_equal(stage.draw(renderer), unmarked(stage, renderer, monkeypatch))


def test_the_outline_is_that_of_the_block_in_the_frames_middle(
    renderer: Renderer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the one that the player, who has moved on since, would hit now."""
    stage.player.position[0] += 1.0
    stage.player.records["moved"][0, 0] = 1.0
    marked = (stage.draw(renderer) != unmarked(stage, renderer, monkeypatch)).any(-1)
    columns = np.flatnonzero(marked[CLEAR].any(0))
    assert columns.mean() == pytest.approx(319.5, abs=2)


def test_the_outline_stays_behind_a_screen(
    renderer: Renderer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = (NOTHING,) * len(LAYOUTS["furnace"].slots)
    view = ScreenView("furnace", nothing, (0, 0), NOTHING)
    stage.player.position[2] += 1.5  # the block is wider than the panel
    outline = (stage.draw(renderer) != unmarked(stage, renderer, monkeypatch)).any(-1)
    for _ in range(2):  # the second time, the world behind the screen is not drawn again
        marked = stage.draw(renderer, screen=view)
        with monkeypatch.context() as patch:
            patch.setattr(renderer._marks, "draw", lambda *_: None)
            plain = stage.draw(renderer, screen=view)
        behind = (marked != plain).any(-1)
        assert behind[CLEAR][:, :220].sum() > 200
        assert not (behind & ~outline).any()


def test_coarse_frames_show_the_lines_share_of_a_pixel(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Averaged over five window pixels, a vertical line of 2.5 darkens by half of 0.4."""
    small, large = Renderer((128, 128)), Renderer((WIDTH, HEIGHT))
    stage.fill((-4, 5), (0, 4), (3, 4), "white_concrete")
    darkness = []
    for renderer in (small, large):
        plain = unmarked(stage, renderer, monkeypatch)[: renderer.height // 2]
        frame = stage.draw(renderer)[: renderer.height // 2]
        darkness.append(1 - frame.sum() / plain.sum())
    assert darkness[0] == pytest.approx(darkness[1], rel=0.25)


def directions(renderer: Renderer) -> NDArray[np.float64]:
    """Directions of all pixels, one block ahead in depth, in the world."""
    vector = renderer.camera.vector.astype(np.float64)
    ray = rays()
    return ray[..., :1] * vector[6:9] + ray[..., 1:2] * vector[9:12] + vector[3:6]


def eye_of(stage: Stage) -> NDArray[np.float64]:
    return stage.player.position + np.array([0.0, 1.62, 0.0])


def dust(texel: float, x: float, y: float, z: float, half: float) -> Particles:
    """One particle of planks at (x, y, z), which shows texels from `texel` on."""
    particles = Particles()
    row = particles.append()
    row["seen"], row["half"] = (x, y, z), half
    row["position"] = 1e6  # where it is now does not show
    row["column"] = row["row"] = texel
    row["block"] = BLOCK_ID["oak_planks"]
    return particles


def test_dust_is_four_texels_of_the_block_at_0_6(renderer: Renderer, stage: Stage) -> None:
    stage.player.position[2] -= 3.0  # the wall is out of reach, and has no outline
    plain = stage.draw(renderer).astype(int)
    eye, half, ahead = eye_of(stage), 0.08, 1.5
    particles = dust(3.0, eye[0] + 0.4, eye[1] + 0.3, eye[2] + ahead, half)
    frame = draw_with(stage, renderer, particles).astype(int)
    right, up = rays()[..., 0] * ahead + 0.4, rays()[..., 1] * ahead - 0.3
    inside = (np.abs(right) < half) & (np.abs(up) < half)
    planks = textures_of(None).picture("block/oak_planks")[..., :3].astype(int)
    column = np.clip(3 + (right + half) / half * 2, 0, 15).astype(int)
    line = np.clip(3 + (half - up) / half * 2, 0, 15).astype(int)
    expected = np.where(inside[..., None], planks[line, column] * 0.6, plain)
    wrong = (np.abs(frame - expected) > 2).any(-1)
    assert inside.sum() > 700
    assert wrong[CLEAR].sum() <= 0.02 * inside.sum(), "pixels at the border of texels"
    assert renderer.depth.reshape(HEIGHT, WIDTH)[inside].max() == pytest.approx(ahead)


def test_dust_behind_a_block_is_hidden_and_in_the_shade_dark(
    renderer: Renderer, stage: Stage
) -> None:
    empty = stage.draw(renderer)
    eye = eye_of(stage)
    behind = dust(3.0, eye[0], eye[1], eye[2] + 3.0, 0.08)
    np.testing.assert_array_equal(draw_with(stage, renderer, behind), empty)
    before = dust(3.0, eye[0] + 0.2, eye[1], eye[2] + 1.0, 0.08)
    shown = (draw_with(stage, renderer, before) != empty).any(-1)
    light = draw_with(stage, renderer, before)[shown].mean()
    stage.fill((-8, 9), (4, 5), (-8, 9), "stone")
    stage.fill((-9, 10), (0, 4), (-9, -8), "stone")
    stage.fill((-9, 10), (0, 4), (8, 9), "stone")
    stage.fill((-9, -8), (0, 4), (-9, 10), "stone")
    stage.fill((8, 9), (0, 4), (-9, 10), "stone")
    assert draw_with(stage, renderer, before)[shown].mean() < 0.6 * light


def draw_with(stage: Stage, renderer: Renderer, particles: Particles) -> NDArray[np.uint8]:
    return renderer.draw(
        stage.world,
        stage.player,
        stage.mobs,
        stage.items,
        stage.player.inventory,
        NOON,
        particles=particles,
    )


def test_a_pack_replaces_the_cracks(
    tmp_path: Path, renderer: Renderer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A red texel makes red twice as bright, and leaves no green or blue."""
    file = tmp_path / TEXTURES / "block" / "destroy_stage_3.png"
    file.parent.mkdir(parents=True)
    Image.fromarray(np.full((16, 16, 4), (255, 0, 0, 255), np.uint8)).save(file)
    plain = unmarked(stage, renderer, monkeypatch)
    mine(stage, 0.45, x=1)
    own = renderer._sampling, renderer.camera, renderer._viewpoint.eye, renderer._rays
    marks = MiningMarks(*own, renderer._atlas, str(tmp_path))
    monkeypatch.setattr(renderer, "_marks", marks)
    pixel = stage.draw(renderer)[290, 230].astype(int)
    assert pixel.tolist() == [min(2 * plain[290, 230, 0], 255), 0, 0]
