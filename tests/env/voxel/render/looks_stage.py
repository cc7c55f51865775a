"""Small frames of what a policy may see, which `test_looks` compares with those that are kept.

    python -m tests.env.voxel.render.looks_stage

draws them again and replaces the file. It is due with each change of `env.voxel.LOOKS`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rllib_minestudio.env.voxel import LOOKS
from rllib_minestudio.env.voxel.engine import VoxelEngine

SIZE = WIDTH, HEIGHT = 96, 54
SCENES: dict[str, tuple[str, ...]] = {
    "plains": ("/time set noon", "/give @p iron_sword 1"),
    "animals": ("/summon cow ~1 ~ ~4", "/summon pig ~-1 ~ ~3", "/summon sheep ~-3 ~ ~5"),
    "forest": ("/teleportbiome @p forest 300 ~ 300", "/tp @p ~ ~ ~ 40 10"),
    "sunset": ("/time set 12500", "/tp @p ~ ~6 ~ 90 -5"),
    "night": ("/time set midnight", "/tp @p ~ ~6 ~ -90 -40"),
    "rain": ("/time set noon", "/weather rain", "/give @p oak_log 1"),
    "underground": ("/fill ~-4 40 ~-4 ~4 44 ~4 air", "/tp @p ~ 40 ~ 30 20"),
    "blocks": (
        "/fill ~-3 ~-1 ~2 ~3 ~-1 ~4 oak_planks",
        "/setblock ~-2 ~ ~3 furnace[facing=north]",
        "/setblock ~-1 ~ ~3 furnace[facing=north,lit=true]",
        "/setblock ~ ~ ~3 oak_log[axis=x]",
        "/setblock ~1 ~ ~3 oak_log[axis=z]",
        "/setblock ~2 ~ ~3 chest[facing=west]",
        "/give @p dirt 64",
    ),
    "mining": ("/setblock ~ ~1 ~2 stone", "/give @p wooden_pickaxe 1"),
    "crafting table": ("/setblock ~ ~1 ~2 crafting_table", "/give @p oak_planks 9"),
    "inventory": ("/give @p oak_log 3", "/give @p stone_axe 1", "/give @p chest 12"),
}
"""The commands before a scene, in plains of seed 1, facing south."""
_KEYS = {"mining": {"attack": 1}, "crafting table": {"use": 1}}


def draw(scene: str) -> NDArray[np.uint8]:
    """A frame of a scene, uint8 [54, 96, 3]."""
    engine = VoxelEngine(frame_size=SIZE)
    engine.reset(1, "plains")
    engine.execute("/tp @p ~ ~ ~ 0 0")
    for command in SCENES[scene]:
        assert engine.execute(command).ok, command
    for _ in range(12):
        engine.tick(_KEYS.get(scene, {}))
    if scene == "inventory":
        engine.tick({"inventory": 1})
    return engine.render()


def file(revision: int = LOOKS) -> Path:
    """Where the frames of a revision are kept: below one another."""
    return Path(__file__).with_name(f"looks_{revision}.png")


def main() -> None:
    """Draws all frames."""
    for old in file().parent.glob("looks_*.png"):
        old.unlink()
    Image.fromarray(np.concatenate([draw(scene) for scene in SCENES])).save(file(), optimize=True)


if __name__ == "__main__":
    main()
