"""Behind a screen the world is drawn once, until something in it changes."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel import AVERAGE, SAMPLES
from rllib_minestudio.env.voxel.commands import execute
from rllib_minestudio.env.voxel.game.game import Game
from rllib_minestudio.env.voxel.game.screen_handling import draw_view
from rllib_minestudio.env.voxel.render import renderer as rendering
from rllib_minestudio.env.voxel.render.renderer import Renderer

SIZE = (64, 64)


def new_game() -> Game:
    game = Game()
    game.begin(3, None)
    for command in ("/time set 13390", "/summon cow ~1 ~ ~4", "/summon cow ~-2 ~ ~5"):
        assert execute(game.state, command).ok, command
    game.state.player.yaw = -60.0  # the moon is in view, and cows are
    game.tick({"inventory": 1})
    return game


def change_nothing(game: Game) -> None:
    """Cows walk, the cursor moves."""


def put_a_block(game: Game, place: str = "~1 ~1 ~3") -> None:
    assert execute(game.state, f"/setblock {place} bricks").ok


def turn(game: Game) -> None:
    game.state.player.yaw += 20.0


def make_it_night(game: Game) -> None:
    execute(game.state, "/time set midnight")


def wait_for_another_moon(game: Game) -> None:
    execute(game.state, "/time add 1d")


def begin_anew(game: Game) -> None:
    game.begin(3, None)
    execute(game.state, "/setblock ~ ~1 ~3 oak_log")
    game.state.player.yaw = 0.0
    game.tick({"inventory": 1})


EVENTS = (change_nothing, put_a_block, turn, make_it_night, wait_for_another_moon, begin_anew)


@pytest.mark.parametrize("sampling", [AVERAGE, SAMPLES])
@pytest.mark.parametrize("event", EVENTS)
def test_frames_are_those_of_a_renderer_that_has_drawn_none(event, sampling) -> None:
    game, renderer = new_game(), Renderer(SIZE, sampling=sampling)
    for _ in range(3):
        draw_view(game.state, renderer)
        game.tick({"camera": (3.0, -4.0)})
    put_a_block(game, "~ ~1 ~3")
    draw_view(game.state, renderer)
    event(game)
    game.tick({"camera": (-2.0, 3.0)})
    assert game.state.screen is not None
    fresh = draw_view(game.state, Renderer(SIZE, sampling=sampling))
    np.testing.assert_array_equal(draw_view(game.state, renderer), fresh)


def test_the_world_is_drawn_once_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    draw = rendering.render_terrain
    monkeypatch.setattr(rendering, "render_terrain", lambda *a: drawn.append(draw(*a)))
    game, renderer = new_game(), Renderer(SIZE)
    for _ in range(5):
        game.state.time = 6000  # the hour, too, stands still
        draw_view(game.state, renderer)
        game.tick({"camera": (1.0, 1.0)})
    assert len(drawn) == 1
    game.tick({"inventory": 1})
    draw_view(game.state, renderer)
    draw_view(game.state, renderer)
    assert len(drawn) == 3, "without a screen it is drawn each time"
