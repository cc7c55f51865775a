"""FastReset: the next episode in another place of the same world, without reloading it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rllib_minestudio.env.callbacks.base import MinecraftCallback, Sim
from rllib_minestudio.env.voxel.data.vocabulary import NAMESPACE, WEATHERS
from rllib_minestudio.option_checks import Problems, is_integer, is_list

_WORLD, _LATEST = 60_000_000, 2**31 - 1
"""Blocks from border to border, and the last tick that Minecraft's clock can show."""


def _is_biome(name: Any) -> bool:
    """Whether a name can be one of a biome: it becomes a word of a command."""
    return isinstance(name, str) and name.removeprefix(NAMESPACE).isidentifier()


class FastResetCallback(MinecraftCallback):
    """Replaces every hard reset but the first by commands that tidy up and teleport the player.

    The game's statistics go on counting across fast resets.
    """

    def __init__(
        self,
        biomes: Sequence[str],
        random_tp_range: int,
        start_time: int = 0,
        start_weather: str = "clear",
    ) -> None:
        """Check and keep the arguments.

        Args:
            biomes: The biome of an episode is drawn from these.
            random_tp_range: Side of the square around the origin, in blocks, in which the
                search for the biome starts.
            start_time: Time of day in ticks; 0 is sunrise, 6000 noon.
            start_weather: "clear", "rain" or "thunder".

        Raises:
            InvalidOptionsError: If an argument has a wrong type or value; lists all problems.
        """
        problems = Problems()
        if not is_list(biomes) or not biomes or not all(map(_is_biome, biomes)):
            problems.add("biomes", biomes, "must be a non-empty list of names, such as ['plains']")
        if not is_integer(random_tp_range) or not 0 <= random_tp_range <= _WORLD:
            rule = f"must be an integer from 0 to {_WORLD}, the width of the world"
            problems.add("random_tp_range", random_tp_range, rule)
        if not is_integer(start_time) or not 0 <= start_time <= _LATEST:
            problems.add(
                "start_time", start_time, f"must be an integer from 0 to {_LATEST} (ticks)"
            )
        problems.choice("start_weather", start_weather, WEATHERS)
        problems.raise_if_any()
        self.biomes = list(biomes)
        self.random_tp_range = random_tp_range
        self.start_time = start_time
        self.start_weather = start_weather

    def before_reset(self, sim: Sim, reset_flag: bool) -> bool:
        """Veto the hard reset if the game runs, and do the same by commands."""
        if not sim.already_reset:
            return reset_flag
        half = self.random_tp_range // 2
        biome = self.biomes[sim.np_random.integers(len(self.biomes))]
        x, z = sim.np_random.integers(-half, half, size=2, endpoint=True)
        commands = (
            "/kill",
            f"/time set {self.start_time}",
            f"/weather {self.start_weather}",
            "/kill @e[type=!player]",
            "/kill @e[type=item]",  # what the killed ones have dropped
            f"/teleportbiome @a {biome} {x} ~0 {z}",
        )
        for command in commands:
            sim.env.execute_cmd(command)
        return False

    def __repr__(self) -> str:
        """Show the arguments."""
        return f"FastResetCallback({self.biomes!r}, {self.random_tp_range})"
