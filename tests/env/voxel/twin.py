"""Plays a varied scripted game and prints a digest of everything it led to.

Run as a program by the determinism tests, so that two processes can be compared.
"""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np

from rllib_minestudio.env.voxel.engine import VoxelEngine

COMMANDS = {
    0: "/give @p iron_sword",
    10: "/summon cow ~2 ~ ~2",
    11: "/summon pig ~-2 ~ ~2",
    12: "/summon sheep ~ ~ ~2",
    150: "/fill ~2 ~ ~2 ~4 ~2 ~4 stone",
    160: "/fill ~-2 ~5 ~-2 ~2 ~6 ~2 gravel",
    200: "/teleportbiome @a forest 400 ~ 400",
    210: "/summon cow ~1 ~ ~1",
}


def play(seed: int, tick_count: int = 400) -> VoxelEngine:
    """Plays random keys from a seed of their own, with some commands in between."""
    engine = VoxelEngine(frame_size=(32, 32))
    engine.reset(seed, "plains")
    keys = np.random.default_rng(seed)
    names = ("attack", "forward", "left", "right", "jump", "sneak", "sprint", "use", "drop")
    for tick in range(tick_count):
        if tick in COMMANDS:
            engine.execute(COMMANDS[tick])
        action = {name: int(keys.random() < 0.4) for name in names}
        engine.tick({**action, "camera": keys.normal(0.0, 10.0, 2)})
    return engine


def digest(engine: VoxelEngine) -> str:
    """Hash of blocks, player, mobs, items, random state and info."""
    state = engine._game.state
    parts = hashlib.sha256()
    for array in (
        state.world.blocks,
        state.world.box,
        state.player.records,
        state.mobs.records[: state.mobs.count],
        state.items.records[: state.items.count],
        state.falling.records[: state.falling.count],
        state.rng,
    ):
        parts.update(array.tobytes())
    parts.update(json.dumps(engine.info(), sort_keys=True).encode())
    return parts.hexdigest()


if __name__ == "__main__":
    print(digest(play(int(sys.argv[1]))))
