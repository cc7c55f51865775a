"""A short scripted game that runs, and so compiles, every kernel.

`python -m rllib_minestudio.env.voxel.warmup_game PREFIX PARENT` plays it, and reports its progress
in lines that start with PREFIX. It ends with the process PARENT.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from rllib_minestudio.env.voxel import SAMPLES
from rllib_minestudio.env.voxel.commands import execute
from rllib_minestudio.env.voxel.game import fire
from rllib_minestudio.env.voxel.game.game import Game
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.screen_handling import draw_view
from rllib_minestudio.env.voxel.game.survey import location_stats, visible_blocks
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.player.raycast import BLOCK
from rllib_minestudio.env.voxel.render.camera import Camera
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.world.blocks import STONE
from rllib_minestudio.foundation.processes import die_with

_SIZES = ((128, 128), (64, 64), (640, 360))
"""Frame sizes of environments and videos."""

_SCENE = (
    "/give @p iron_sword",
    "/give @p dirt 4",
    "/summon cow ~ ~ ~2",
    "/summon pig ~1 ~ ~2",
    "/setblock ~ ~4 ~4 sand",
    "/tp @p ~ ~ ~ 0 10",
)


def _terrain() -> None:
    state = GameState()
    state.world.load_around(0.0, 0.0)
    state.world.set_block(0, 100, 0, 1)


def _game() -> Game:
    game = Game()
    game.begin(1, "plains", natural_animals=True)
    for command in _SCENE:
        execute(game.state, command)
    return game


def _throw_at_cow(game: Game) -> None:
    """Hit a cow with a snowball and an arrow."""
    for command in ("/summon cow ~ ~ ~3", "/tp @p ~ ~ ~ 0 10"):
        execute(game.state, command)
    game.state.player.inventory.set(0, ITEM_ID["snowball"], 1)
    game.tick({"hotbar.1": 1})
    for _ in range(8):
        game.tick({"use": 1})
    game.state.player.inventory.set(0, ITEM_ID["bow"], 1)
    game.state.player.inventory.set(1, ITEM_ID["arrow"], 1)
    for tick in range(35):
        game.tick({"use": int(tick < 25)})


def _burn(game: Game) -> None:
    """Let a fire burn beside wood, with an animal in it."""
    for command in ("/setblock ~2 ~ ~2 oak_planks", "/setblock ~2 ~1 ~2 fire"):
        execute(game.state, command)
    for place in list(game.state.block_ticks.places(fire.BURN)):
        fire.burn(game.state, iter([place]))
    fire.tick(game.state, in_lava=False, mobs_burn=False)
    game.state.hurt_mob(0, 1.0)


def _simulation() -> None:
    game = _game()
    for tick in range(60):
        keys = {
            "attack": tick % 12 < 6,
            "forward": tick < 20,
            "sneak": tick > 40,
            "drop": tick == 5,
        }
        game.tick({name: int(held) for name, held in keys.items()})
    game.tick({"hotbar.2": 1, "camera": (80.0, 0.0)})
    game.tick({"jump": 1, "use": 1})
    _throw_at_cow(game)
    _burn(game)
    game.state.target["kind"] = BLOCK
    game.state.particles.hit(game.state.world.blocks, game.state.target)
    game.state.particles.burst(STONE, 0, 100, 0)
    game.tick({})
    location_stats(game.state)
    execute(game.state, "/setblock ~ ~3 ~ stone")
    location_stats(game.state)
    visible_blocks(game.state, Camera(3, 3, 70.0, 16 / 9, 20.0))


def _frames() -> None:
    game = _game()
    x, y, z = (int(place) for place in game.state.player.position.tolist())
    for size in _SIZES:
        game.tick({"attack": 1, "forward": 1})
        game.state.particles.burst(STONE, x, y, z + 2)
        draw_view(game.state, Renderer(size))
    execute(game.state, "/time set midnight")
    renderer = Renderer()
    draw_view(game.state, renderer)
    game.tick({"inventory": 1})
    draw_view(game.state, renderer)
    # This renderer also mixes columns.
    draw_view(game.state, Renderer((100, 100), sampling=SAMPLES))


STAGES: tuple[tuple[str, Callable[[], None]], ...] = (
    ("terrain", _terrain),
    ("physics, animals and combat", _simulation),
    ("pictures", _frames),
)
"""Parts of the game: name for progress messages, and function."""


def main(prefix: str) -> None:
    """Play the game, printing each stage; this compiles all kernels that are not compiled yet."""
    for number, (name, stage) in enumerate(STAGES, 1):
        print(f"{prefix}  {number}/{len(STAGES)} {name}", flush=True)
        stage()


if __name__ == "__main__":
    die_with(int(sys.argv[2]))  # else it would go on compiling after who waits for it has ended
    main(sys.argv[1])
