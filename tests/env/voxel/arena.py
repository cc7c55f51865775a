"""A flat stage for the tests of the rules: one layer of stone under open air, far from terrain."""

from __future__ import annotations

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.world.blocks import AIR, STONE

FLOOR = 100
"""The y on which things stand."""
REACH = 40
"""The stage extends this far from the origin, in blocks."""


def arena(yaw: float = 0.0) -> VoxelEngine:
    """Builds an engine whose player stands at (0.5, FLOOR, 0.5), at rest, looking level."""
    engine = VoxelEngine(frame_size=(32, 32))
    engine.reset(1, "plains")
    engine.execute("/tp @p 0 120 0")
    world = engine._game.state.world
    world.fill((-REACH, REACH), (FLOOR - 1, FLOOR), (-REACH, REACH), STONE)
    engine.execute(f"/tp @p 0 {FLOOR} 0 {yaw} 0")
    for _ in range(5):
        engine.tick({})
    return engine


def state(engine: VoxelEngine):
    """The engine's game state, which only tests look at."""
    return engine._game.state


def ticks(engine: VoxelEngine, count: int, **keys) -> None:
    """Plays `count` ticks with the given keys held."""
    for _ in range(count):
        engine.tick(keys)


def cleared(engine: VoxelEngine, pitch: float = 0.0) -> VoxelEngine:
    """Empties an arena around its middle, where the player then stands with nothing, in health."""
    game = state(engine)
    game.mobs.clear()
    game.items.clear()
    game.world.fill((-12, 13), (FLOOR, FLOOR + 5), (-12, 13), AIR)
    engine.execute("/effect clear @p")
    engine.player.inventory.clear()
    engine.player.selected = 0
    engine.player.revive()
    engine.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 {pitch}")
    return engine
