"""Properties of whole frames, without stored pictures."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.render import renderer as renderer_module
from rllib_minestudio.env.voxel.render.camera import SKY_DEPTH
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.errors import InvalidOptionsError
from tests.env.voxel.render.render_stage import FLOOR, MIDNIGHT, NOON, Stage

SIZE = 64


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer((SIZE, SIZE))


@pytest.fixture
def stage() -> Stage:
    return Stage()


def centre_depth(renderer: Renderer) -> float:
    return float(renderer.depth.reshape(renderer.height, -1)[SIZE // 2, SIZE // 2])


def test_sky_above_and_ground_below(renderer: Renderer, stage: Stage) -> None:
    stage.stand(pitch=-40)
    up = stage.draw(renderer).astype(int)
    assert (renderer.depth == SKY_DEPTH).all()
    assert (up[5, :, 2] > up[5, :, 0] + 40).all(), "the sky at noon is blue"
    stage.stand(pitch=90)
    stage.draw(renderer)
    assert centre_depth(renderer) == pytest.approx(1.62, abs=1e-3), "eyes are 1.62 above the floor"


@pytest.mark.parametrize("hour", [NOON, MIDNIGHT])
def test_sun_stars_and_clouds_are_drawn_wherever_there_is_sky(
    renderer: Renderer, stage: Stage, hour: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are left out where the terrain's rays all end on blocks, which changes no frame."""
    stage.fill((-6, 7), (0, 5), (-6, 7), "stone")
    stage.fill((-5, 6), (0, 4), (-5, 6), "air")
    stage.fill((2, 4), (1, 3), (6, 7), "air")  # a window
    stage.fill((-3, -2), (4, 5), (-3, -2), "air")  # a hole in the roof
    stage.fill((-4, -3), (0, 3), (3, 4), "glass")
    terrain, said = renderer_module.render_terrain, []

    def always_sky(*arguments: object) -> bool:
        said.append(terrain(*arguments))
        return True

    for yaw in range(0, 360, 20):
        for pitch in (-90, -35, 0, 40):
            stage.stand(yaw, pitch)
            frame = stage.draw(renderer, hour)
            with monkeypatch.context() as patch:
                patch.setattr(renderer_module, "render_terrain", always_sky)
                assert (stage.draw(renderer, hour) == frame).all()
            assert said[-1] or (renderer.depth < SKY_DEPTH).all()
    assert 0.1 < np.mean(said) < 0.9


def test_a_cow_in_front_covers_the_crosshair(renderer: Renderer, stage: Stage) -> None:
    stage.stand(pitch=12)
    empty = stage.draw(renderer)
    far = centre_depth(renderer)
    stage.add_mob("cow", ahead=3)
    seen = stage.draw(renderer)
    near = centre_depth(renderer)
    assert near == pytest.approx(3 - 6 / 16, abs=0.15)
    assert near < far
    assert (seen != empty).any(-1).mean() > 0.05
    assert (seen[SIZE // 2, SIZE // 2] != empty[SIZE // 2, SIZE // 2]).any()


def test_mobs_look_different(renderer: Renderer, stage: Stage) -> None:
    stage.stand(pitch=22)
    empty = stage.draw(renderer)
    colours = []
    for kind in ("cow", "sheep", "pig"):
        stage.mobs.clear()
        stage.add_mob(kind, ahead=2)
        frame = stage.draw(renderer)
        colours.append(frame[(frame != empty).any(-1)].mean(0))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(colours[i] - colours[j]).max() > 30


def test_a_mob_behind_a_wall_is_hidden(renderer: Renderer, stage: Stage) -> None:
    stage.fill((-3, 4), (0, 4), (4, 5), "oak_planks")
    wall = stage.draw(renderer)
    stage.add_mob("cow", ahead=7)
    np.testing.assert_array_equal(stage.draw(renderer), wall)
    stage.mobs.position[0, 2] = stage.z + 3.0
    assert (stage.draw(renderer) != wall).any(), "before the wall it is seen"


def test_the_nearer_mob_wins_whatever_the_order(renderer: Renderer, stage: Stage) -> None:
    frames = []
    for kinds in (("cow", 3.0, "pig", 6.0), ("pig", 6.0, "cow", 3.0)):
        stage.mobs.clear()
        stage.add_mob(kinds[0], ahead=kinds[1])
        stage.add_mob(kinds[2], ahead=kinds[3])
        frames.append(stage.draw(renderer))
    np.testing.assert_array_equal(*frames)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"hurt_ticks": 5}, "hurt"),
        ({"death_ticks": 15}, "fallen over"),
        ({"limb_amplitude": 1.0}, "in stride"),
        ({"yaw": 0.3}, "turned"),
    ],
)
def test_mob_state_shows(
    renderer: Renderer, stage: Stage, values: dict[str, float], why: str
) -> None:
    stage.stand(pitch=15)
    stage.add_mob("cow", ahead=3)
    usual = stage.draw(renderer).astype(int)
    for name, value in values.items():
        stage.mobs.records[name][0] = value
    changed = stage.draw(renderer).astype(int)
    assert (changed != usual).any(-1).sum() > 20, why
    if why == "hurt":
        touched = (changed != usual).any(-1)
        redder = (changed - usual)[touched]
        assert (redder[:, 0] > redder[:, 2]).mean() > 0.95


def test_dropped_items_show(renderer: Renderer, stage: Stage) -> None:
    stage.stand(pitch=35)
    empty = stage.draw(renderer)
    for item in ("beef", "oak_log"):
        stage.items.clear()
        stage.add_item(item, ahead=2)
        assert (stage.draw(renderer) != empty).any(-1).sum() > 4


def test_night_is_darker_and_the_hour_returns(renderer: Renderer, stage: Stage) -> None:
    stage.stand(pitch=20)
    noon = stage.draw(renderer, NOON)
    night = stage.draw(renderer, MIDNIGHT)
    dusk = stage.draw(renderer, 12800)
    top = slice(0, SIZE // 2)  # the display below does not darken
    assert night[top].mean() < dusk[top].mean() < noon[top].mean()
    assert night[top].mean() > 3, "moonlight"
    np.testing.assert_array_equal(stage.draw(renderer, NOON + 24000), noon)


def test_a_roof_casts_a_shadow_by_night_and_hardly_one_by_day(
    renderer: Renderer, stage: Stage
) -> None:
    stage.stand(pitch=70)
    under_the_sky = {hour: stage.draw(renderer, hour)[:20].mean() for hour in (NOON, MIDNIGHT)}
    stage.fill((-4, 5), (6, 7), (-4, 5), "oak_planks")
    shares = {
        hour: stage.draw(renderer, hour)[:20].mean() / of for hour, of in under_the_sky.items()
    }
    assert shares[NOON] == pytest.approx(1, abs=0.01)  # five steps to the edge: level 10
    assert shares[MIDNIGHT] < 0.75


def test_a_lower_gamma_shows_the_shadow(stage: Stage) -> None:
    stage.stand(pitch=70)
    stage.fill((-4, 5), (6, 7), (-4, 5), "oak_planks")
    bright, moody = (stage.draw(Renderer((SIZE, SIZE), gamma=g))[:20].mean() for g in (2.0, 0.0))
    assert moody < 0.6 * bright


def test_light_falls_from_the_side_and_not_through_walls(renderer: Renderer, stage: Stage) -> None:
    """The floor at the feet, in a closed room, and with a window three blocks away."""
    stage.stand(pitch=90)
    middle = np.s_[SIZE // 2 - 6 : SIZE // 2 - 2, SIZE // 2 - 6 : SIZE // 2 - 2]
    seen = [stage.draw(renderer)[middle].mean()]
    stage.fill((-4, 5), (0, 5), (-4, 5), "stone")
    stage.fill((-3, 4), (0, 4), (-3, 4), "air")
    seen.append(stage.draw(renderer)[middle].mean())
    stage.fill((4, 5), (0, 1), (0, 1), "air")
    seen.append(stage.draw(renderer)[middle].mean())
    assert seen[1] / seen[0] == pytest.approx(0.22, abs=0.02)
    assert seen[2] / seen[0] == pytest.approx(1, abs=0.02)  # five steps to the window


def test_animals_and_the_hand_are_lit_as_the_cells_they_are_in(
    renderer: Renderer, stage: Stage
) -> None:
    """In a closed hall with lamps let into its floor: warm near magma, bright near glowstone."""
    stage.fill((-4, 5), (-1, 6), (-4, 9), "stone")
    stage.fill((-3, 4), (0, 4), (-3, 8), "air")
    frames = {}
    for lamp in ("stone", "magma_block", "glowstone"):
        stage.fill((0, 1), (-1, 0), (0, 1), lamp)
        stage.fill((0, 1), (-1, 0), (3, 4), lamp)
        empty = stage.draw(renderer).copy()
        stage.add_mob("cow", ahead=3)
        frame = stage.draw(renderer)
        stage.mobs.clear()
        hand = frame[SIZE * 3 // 4 :, SIZE * 3 // 4 :]
        cow = frame[(frame != empty).any(-1)]
        frames[lamp] = [part.reshape(-1, 3).mean(0) for part in (cow, hand)]
    for dark, faint, bright in zip(*frames.values(), strict=True):
        assert (faint > 1.1 * dark).all() and (bright > 1.5 * faint).all()
        assert faint[0] / dark[0] > 1.15 * faint[2] / dark[2], "warm"


def test_a_wall_darkens_the_ground_at_its_foot(stage: Stage) -> None:
    renderer = Renderer((128, 128))
    stage.fill((-24, 24), (-1, 0), (-24, 24), "white_wool")
    stage.stand(pitch=45)
    before = stage.draw(renderer).sum(-1, dtype=int)
    ground = renderer.depth.copy()
    stage.fill((-3, 4), (0, 3), (2, 3), "white_wool")
    after = stage.draw(renderer).sum(-1, dtype=int)
    still_ground = (renderer.depth == ground).reshape(128, 128)
    still_ground[100:] = still_ground[:, 80:] = False  # display and hand
    ratio = (after / np.maximum(before, 1))[still_ground]
    assert 0.6 <= ratio.min() < 0.65, "close to the wall"
    assert ratio.max() > 0.9, "a block away from it"


def test_there_are_no_specks_along_the_edges_of_blocks(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer = Renderer((640, 360))
    monkeypatch.setattr(renderer._marks, "draw", lambda *_: None)  # the outline is dark, too
    stage.fill((-24, 24), (-1, 0), (-24, 24), "white_wool")
    dark = total = 0
    for yaw, pitch in ((47, 60), (90, 30), (170, 25)):
        stage.stand(yaw, pitch)
        stage.player.position[:] += 0.13, 0.0, 0.27
        frame = stage.draw(renderer)[:160, :400].max(-1)
        floor = renderer.depth.reshape(360, 640)[:160, :400] < 16
        dark += int((frame[floor] < 0.85 * np.median(frame[floor])).sum())
        total += int(floor.sum())
    assert dark / total < 1e-4


@pytest.mark.parametrize("shift", [(250, 0), (-137, 500), (29_000_000, -29_000_000)])
def test_the_picture_does_not_depend_on_where_the_world_is(
    renderer: Renderer, stage: Stage, shift: tuple[int, int]
) -> None:
    """Covers the wrap of the 256-column window and the precision of float32 far out."""
    frames = []
    for place in (stage, Stage(*shift)):
        place.fill((2, 4), (0, 3), (4, 6), "oak_log")
        place.add_mob("sheep", ahead=5, side=-1.0)
        place.stand(yaw=20, pitch=40)
        frames.append(place.draw(renderer).astype(int))
    difference = np.abs(frames[0] - frames[1]).max(-1)
    assert (difference <= 2).mean() > 0.999


@pytest.mark.parametrize("size", [(64, 64), (128, 128), (100, 52), (33, 17), (640, 360)])
def test_every_pixel_is_drawn_at_any_size(stage: Stage, size: tuple[int, int]) -> None:
    renderer = Renderer(size)
    stage.add_mob("cow", ahead=3)
    frames = [
        stage.draw(renderer, out=np.full((size[1], size[0], 3), filler, np.uint8))
        for filler in (0, 255)
    ]
    np.testing.assert_array_equal(*frames)


def test_a_squarish_frame_is_the_squeezed_wide_view(stage: Stage) -> None:
    stage.fill((-6, -3), (0, 5), (8, 9), "bricks")
    stage.add_mob("cow", ahead=4, side=1.5)
    wide = stage.draw(Renderer((640, 360))).astype(float)
    squeezed = wide.reshape(72, 5, 64, 10, 3).mean((1, 3))

    def error(aspect: float) -> float:
        square = stage.draw(Renderer((64, 72), aspect=aspect)).astype(float)
        return float(np.abs(square - squeezed).mean())

    assert error(16 / 9) < 0.5 * error(1.0)


def test_out_is_reused_and_checked(renderer: Renderer, stage: Stage) -> None:
    out = np.empty((SIZE, SIZE, 3), np.uint8)
    assert stage.draw(renderer, out=out) is out
    np.testing.assert_array_equal(stage.draw(renderer), out)
    for wrong in (
        np.empty((SIZE, SIZE, 4), np.uint8),
        np.empty((SIZE, SIZE, 3), np.float32),
        np.empty((SIZE, 2 * SIZE, 3), np.uint8)[:, ::2],
    ):
        with pytest.raises(InvalidOptionsError, match="out must be"):
            stage.draw(renderer, out=wrong)


def test_all_wrong_options_are_named_at_once() -> None:
    with pytest.raises(InvalidOptionsError) as error:
        Renderer((0, 64), 200, aspect=9, view_distance=500, sampling="some", gamma=-1)
    assert len(error.value.problems) == 6
    assert "view_distance must be from 16 to 80" in str(error.value)


def test_eyes_above_every_block_see_the_ground(renderer: Renderer, stage: Stage) -> None:
    stage.player.position[1] = FLOOR + 20.0
    stage.player.pitch = 90.0
    stage.draw(renderer)
    assert centre_depth(renderer) == pytest.approx(21.62, abs=1e-2)
