"""The world of a task: what an episode begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rllib_minestudio.env.callbacks import check_callbacks
from rllib_minestudio.env.voxel.data.clock import DAY_TICKS, TIMES
from rllib_minestudio.env.voxel.data.vocabulary import DIFFICULTIES, NAMESPACE, WEATHERS
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_checks import Problems, broken_rule, is_integer, is_list


@dataclass(frozen=True)
class TaskWorld:
    """What an episode of a task begins with; everything in it follows from the episode's seed.

    Attributes:
        biomes: The episode begins in one of these, drawn.
        commands: Chat commands, executed in order.
        inventory: Items, as `InitInventory` takes them.
        summon: Mobs around the player, as `SummonMobs` takes them.
        time: Time of day in ticks since sunrise, or one of `TIMES`.
        weather: One of `WEATHERS`.
        difficulty: One of `DIFFICULTIES`.
    """

    biomes: tuple[str, ...] = ("plains",)
    commands: tuple[str, ...] = ()
    inventory: tuple[Mapping[str, Any], ...] = ()
    summon: tuple[Mapping[str, Any], ...] = ()
    time: int | str = "day"
    weather: str = "clear"
    difficulty: str = "easy"
    callbacks: tuple[Mapping[str, Any], ...] = field(init=False)
    """What prepares the world after a reset, as `env_config.callbacks` takes it."""

    def __post_init__(self) -> None:
        """Check everything.

        Raises:
            InvalidOptionsError: Something is wrong; lists all problems.
        """
        problems = Problems()
        self._check_biomes(problems)
        for name in ("commands", "inventory", "summon"):
            value = getattr(self, name)
            if is_list(value):
                object.__setattr__(self, name, tuple(value))
            else:
                problems.add(name, value, "must be a list")
        if not isinstance(self.time, str):
            if not is_integer(self.time) or not 0 <= self.time <= DAY_TICKS:
                rule = (
                    f"must be one of {', '.join(TIMES)}, or ticks since sunrise, 0 to {DAY_TICKS}"
                )
                problems.add("time", self.time, rule)
        else:
            problems.choice("time", self.time, TIMES)
        problems.choice("weather", self.weather, WEATHERS)
        problems.choice("difficulty", self.difficulty, DIFFICULTIES)
        problems.raise_if_any()
        object.__setattr__(self, "callbacks", self._callbacks())
        self._check_callbacks(problems)
        problems.raise_if_any()

    @classmethod
    def from_mapping(cls, given: Any) -> TaskWorld:
        """Read the section `world` of a task file.

        Raises:
            InvalidOptionsError: It is not in order; lists all problems.
        """
        names = [option.name for option in fields(cls) if option.init]
        if not isinstance(given, Mapping):
            rule = f"must be a mapping with some of {', '.join(names)}"
            raise InvalidOptionsError(broken_rule("world", given, rule))
        problems = Problems("world")
        known = problems.known("field", given, names)
        world = cls()
        try:
            world = cls(**known)
        except InvalidOptionsError as error:
            problems.include(error)
        problems.raise_if_any()
        return world

    def _check_biomes(self, problems: Problems) -> None:
        """Note what is wrong with the biomes; their names are checked by the engine."""
        names = self.biomes
        if not is_list(names) or not names or not all(isinstance(name, str) for name in names):
            problems.add("biomes", names, "must be a non-empty list of names, such as [plains]")
            return
        object.__setattr__(self, "biomes", tuple(name.removeprefix(NAMESPACE) for name in names))

    def _callbacks(self) -> tuple[Mapping[str, Any], ...]:
        """Return the callbacks; those for what a task does not ask for are left out."""
        time = TIMES[self.time] if isinstance(self.time, str) else self.time
        settings = [
            f"/time set {time}",
            f"/weather {self.weather}",
            f"/difficulty {self.difficulty}",
        ]
        specs: list[Mapping[str, Any]] = []
        if len(self.biomes) > 1:
            specs.append({"rllib_minestudio.benchmark.biome.BiomeCallback": list(self.biomes)})
        specs.append({"Commands": settings})
        if self.summon:
            specs.append({"SummonMobs": [dict(mobs) for mobs in self.summon]})
        if self.commands:
            specs.append({"Commands": list(self.commands)})
        if self.inventory:
            items = [dict(item) for item in self.inventory]
            specs.append({"InitInventory": {"init_inventory": items}})
        return tuple(specs)

    def _check_callbacks(self, problems: Problems) -> None:
        """Have the callbacks check their parts, and name them as the file does."""
        for spec in self.callbacks:
            try:
                check_callbacks([spec])
            except InvalidOptionsError as error:
                problems.messages.extend(
                    problem.removeprefix("callbacks[0]: ") for problem in error.problems
                )
