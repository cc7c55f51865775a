"""The biome that an episode begins in, where a task names several."""

from __future__ import annotations

from collections.abc import Sequence

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim


class BiomeCallback(MinecraftCallback):
    """Moves the player to the nearest of a biome, drawn from a list, when an episode begins."""

    def __init__(self, biomes: Sequence[str]) -> None:
        """Keep the biomes' names, of which there is at least one."""
        self.biomes = list(biomes)

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Draw the biome and go there, which takes a tick."""
        biome = self.biomes[sim.np_random.integers(len(self.biomes))]
        raw_obs, _, _, raw_info = sim.env.execute_cmd(f"/teleportbiome @a {biome}")
        return sim._wrap_obs_info(raw_obs, raw_info)

    def __repr__(self) -> str:
        """Show the biomes."""
        return f"BiomeCallback({self.biomes!r})"
