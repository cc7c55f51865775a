"""HardReset: every episode in a new world, from a list of seeds and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim
from rllib_minestudio.option_checks import Problems, is_integer, is_list, is_number

_FIELDS = ("seed", "position")
_FARTHEST = 30_000_000
"""Blocks from the origin to the world's border."""
_SETTLING_TICKS = 50
"""As in MineStudio: the land around the player loads, and it falls to the ground."""


class HardResetCallback(MinecraftCallback):
    """Loads a new world for every episode, and puts the player at a place in it.

    Seed and place are drawn together from a list. Reloading the real game takes many seconds;
    `FastReset` does without. A `FastReset` listed after this one vetoes the reload and keeps the
    world; the player goes to the drawn place nevertheless. That is MineStudio's behaviour, too.
    """

    def __init__(self, spawn_positions: Sequence[Mapping[str, Any]]) -> None:
        """Check and keep the list.

        Args:
            spawn_positions: Mappings of `seed`, the world's, and `position`, the x, y (height) and
                z of the `/tp` command. Example: `[{"seed": 123, "position": [0, 64, 0]}]`.

        Raises:
            InvalidOptionsError: If it is empty or an entry incomplete; lists all problems.
        """
        problems = Problems()
        if not is_list(spawn_positions) or not spawn_positions:
            rule = "must be a non-empty list of mappings with seed and position"
            problems.add("spawn_positions", spawn_positions, rule)
            spawn_positions = []
        for i, spawn in enumerate(spawn_positions):
            _check_spawn(problems, f"spawn_positions[{i}]", spawn)
        problems.raise_if_any()
        self.spawn_positions = [dict(spawn) for spawn in spawn_positions]
        self.position = self.spawn_positions[0]

    def before_reset(self, sim: Sim, reset_flag: bool) -> bool:
        """Draw an entry, and have the game reset with its seed."""
        self.position = self.spawn_positions[sim.np_random.integers(len(self.spawn_positions))]
        sim.env.seed(self.position["seed"])
        return True

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Teleport the player, and let it arrive: 51 ticks in all."""
        place = " ".join(map(_coordinate, self.position["position"]))
        raw_obs, _, _, raw_info = sim.env.execute_cmd(f"/tp @a {place}")
        for _ in range(_SETTLING_TICKS):
            raw_obs, _, _, raw_info = sim.env.step(sim.env.noop_action())
        return sim._wrap_obs_info(raw_obs, raw_info)

    def __repr__(self) -> str:
        """Show the list."""
        return f"HardResetCallback({self.spawn_positions!r})"


def _coordinate(value: float) -> str:
    """A coordinate as a word of a command, whose parser knows no exponents."""
    return np.format_float_positional(value, trim="0") if isinstance(value, float) else str(value)


def _check_spawn(problems: Problems, where: str, spawn: Any) -> None:
    """Note what is wrong with one entry."""
    if not isinstance(spawn, Mapping):
        problems.add(where, spawn, f"must be a mapping with {' and '.join(_FIELDS)}")
        return
    problems.known(f"field of {where}", spawn, _FIELDS)
    seed: Any = spawn.get("seed")
    if not is_integer(seed) or not -(2**63) <= seed < 2**63:
        problems.add(f"{where}.seed", seed, "must be an integer of 64 bits")
    position: Any = spawn.get("position")
    is_place = is_list(position) and len(position) == 3 and all(map(is_number, position))
    if not is_place or max(map(abs, position)) > _FARTHEST:
        rule = f"must be x, y (height) and z, each from {-_FARTHEST} to {_FARTHEST}"
        problems.add(f"{where}.position", position, rule)
