"""SummonMobs: animals and monsters around the player at the start of an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim
from rllib_minestudio.env.voxel.data.vocabulary import NAMESPACE
from rllib_minestudio.option_checks import Problems, is_integer, is_list, is_number

_MOST_MOBS = 1000
"""Of one kind; each takes a tick to summon."""

_FARTHEST = 10_000
"""Blocks from the player; farther ones would never be met."""

_FIELDS = ("name", "mob_name", "number", "range_x", "range_z")


class SummonMobsCallback(MinecraftCallback):
    """Summons mobs at uniformly random places near the player, three blocks up."""

    def __init__(self, mobs: Sequence[Mapping[str, Any]]) -> None:
        """Check and keep the list of mobs.

        Args:
            mobs: One mapping per kind: `name` (or `mob_name`), `number`, and `range_x` and
                `range_z`, each [lowest, highest] offset from the player in blocks. Example:
                `[{"name": "cow", "number": 10, "range_x": [-5, 5], "range_z": [-5, 5]}]`.

        Raises:
            InvalidOptionsError: If an entry is incomplete or of a wrong type; lists all problems.
        """
        problems = Problems()
        if not is_list(mobs):
            problems.add("mobs", mobs, "must be a list of mappings")
            mobs = []
        for i, mob in enumerate(mobs):
            _check_mob(problems, f"mobs[{i}]", mob)
        problems.raise_if_any()
        self.mobs = [dict(mob) for mob in mobs]

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Summon all mobs, one game tick each."""
        for mob in self.mobs:
            name = (mob.get("name") or mob["mob_name"]).removeprefix(NAMESPACE)
            for _ in range(mob["number"]):
                x = sim.np_random.uniform(*mob["range_x"])
                z = sim.np_random.uniform(*mob["range_z"])
                # Six digits: the game's command parser knows no exponents.
                command = (
                    "/execute as @p at @p run summon "
                    f"minecraft:{name} ~{x:.6f} ~3 ~{z:.6f} {{Age:0}}"
                )
                raw_obs, _, _, raw_info = sim.env.execute_cmd(command)
                obs, info = sim._wrap_obs_info(raw_obs, raw_info)
        return obs, info

    def __repr__(self) -> str:
        """Show the mobs."""
        return f"SummonMobsCallback({self.mobs!r})"


def _check_mob(problems: Problems, where: str, mob: Any) -> None:
    """Note what is wrong with one entry."""
    if not isinstance(mob, Mapping):
        problems.add(where, mob, f"must be a mapping with {', '.join(_FIELDS)}")
        return
    problems.known(f"field of {where}", mob, _FIELDS)
    name = mob.get("name") or mob.get("mob_name")
    if not isinstance(name, str) or not name.removeprefix(NAMESPACE).isidentifier():
        problems.add(f"{where}.name", name, "must be the name of a mob, such as 'cow'")
    number: Any = mob.get("number")
    if not is_integer(number) or not 0 <= number <= _MOST_MOBS:
        problems.add(f"{where}.number", number, f"must be an integer from 0 to {_MOST_MOBS}")
    for field in ("range_x", "range_z"):
        bounds: Any = mob.get(field)
        is_pair = is_list(bounds) and len(bounds) == 2 and all(map(is_number, bounds))
        if not is_pair or not -_FARTHEST <= bounds[0] <= bounds[1] <= _FARTHEST:
            rule = f"must be two numbers, lowest first, from {-_FARTHEST} to {_FARTHEST}"
            problems.add(f"{where}.{field}", bounds, rule)
