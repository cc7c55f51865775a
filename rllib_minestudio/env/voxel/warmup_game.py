"""A short scripted game that runs every kernel once, so that all of them get compiled."""

from __future__ import annotations

from collections.abc import Callable

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game.game_state import GameState

_SIZES = ((128, 128), (64, 64), (640, 360))
"""Frames of the environments and of videos."""


def _terrain() -> None:
    state = GameState()
    state.world.load_around(0.0, 0.0)
    state.world.set_block(0, 100, 0, 1)


def _engine() -> VoxelEngine:
    engine = VoxelEngine(frame_size=_SIZES[0])
    engine.reset(1, "plains")
    engine.execute("/give @p iron_sword")
    engine.execute("/give @p dirt 4")
    engine.execute("/summon cow ~ ~ ~2")
    engine.execute("/summon pig ~1 ~ ~2")
    engine.execute("/setblock ~ ~4 ~4 sand")
    engine.execute("/tp @p ~ ~ ~ 0 10")
    return engine


def _simulation() -> None:
    engine = _engine()
    for tick in range(60):
        keys = {
            "attack": tick % 12 < 6,
            "forward": tick < 20,
            "sneak": tick > 40,
            "drop": tick == 5,
        }
        engine.tick({name: int(held) for name, held in keys.items()})
    engine.tick({"hotbar.2": 1, "camera": (80.0, 0.0)})
    engine.tick({"jump": 1, "use": 1})
    engine.mobs_near(20.0)
    engine.info()
    engine.execute("/setblock ~ ~3 ~ stone")
    engine.info()
    engine.biome()


def _frames() -> None:
    engine = _engine()
    for size in _SIZES:
        engine.tick({"attack": 1})
        engine.render(frame_size=size)
    engine.execute("/time set midnight")
    engine.render()


STAGES: tuple[tuple[str, Callable[[], None]], ...] = (
    ("terrain", _terrain),
    ("physics, animals and combat", _simulation),
    ("pictures", _frames),
)
"""Parts of the game, with their names for progress messages."""
