"""FastReset, HardReset, SavedGames, JudgeReset: where episodes begin, and when they end."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.env.voxel.data import NAMESPACE, WEATHERS
from rllib_minestudio.errors import RecordingError, SnapshotError
from rllib_minestudio.foundation.options import Problems, is_integer, is_list, is_number
from rllib_minestudio.recordings.reader import find_recordings

_logger = logging.getLogger(__name__)

_WORLD, _LATEST = 60_000_000, 2**31 - 1
"""Blocks from border to border, and the last tick that Minecraft's clock can show."""


def _is_biome(name: Any) -> bool:
    """Whether a name can be that of a biome; it becomes a word of a command."""
    return isinstance(name, str) and name.removeprefix(NAMESPACE).isidentifier()


class FastResetCallback(MinecraftCallback):
    """Replaces every hard reset but the first by commands that tidy up and teleport the player.

    The game's statistics continue across fast resets.
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
        """Veto the hard reset if the game is running, and reset by commands instead."""
        if sim.is_restored or not sim.already_reset:
            return reset_flag
        half = self.random_tp_range // 2
        biome = self.biomes[sim.np_random.integers(len(self.biomes))]
        x, z = sim.np_random.integers(-half, half, size=2, endpoint=True)
        commands = (
            "/kill",
            f"/time set {self.start_time}",
            f"/weather {self.start_weather}",
            "/kill @e[type=!player]",
            "/kill @e[type=item]",  # what the killed mobs have dropped
            f"/teleportbiome @a {biome} {x} ~0 {z}",
        )
        for command in commands:
            sim.env.execute_cmd(command)
        return False

    def __repr__(self) -> str:
        return f"FastResetCallback({self.biomes!r}, {self.random_tp_range})"


# ---------------------------------------------------------------------------------------- HardReset
# Every episode in a new world, from a list of seeds and places.

_HARD_RESET_FIELDS = ("seed", "position")
_FARTHEST = 30_000_000
"""Blocks from the origin to the world's border."""
_SETTLING_TICKS = 50
"""As in MineStudio: the land around the player loads, and the player falls to the ground."""


class HardResetCallback(MinecraftCallback):
    """Loads a new world for every episode, and puts the player at a place in it.

    Seed and place are drawn together from a list. Reloading the real game takes many seconds, which
    `FastReset` avoids. A `FastReset` listed after this one vetoes the reload and keeps the world,
    but the player still goes to the drawn place, as in MineStudio.
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
        """Draw an entry, and reset the game with its seed."""
        if sim.is_restored:
            return reset_flag
        self.position = self.spawn_positions[sim.np_random.integers(len(self.spawn_positions))]
        sim.env.seed(self.position["seed"])
        return True

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Teleport the player, and let it arrive, which takes 51 ticks in all."""
        if sim.is_restored:
            return obs, info
        place = " ".join(map(_coordinate, self.position["position"]))
        raw_obs, _, _, raw_info = sim.env.execute_cmd(f"/tp @a {place}")
        for _ in range(_SETTLING_TICKS):
            raw_obs, _, _, raw_info = sim.env.step(sim.env.noop_action())
        return sim._wrap_obs_info(raw_obs, raw_info)

    def __repr__(self) -> str:
        return f"HardResetCallback({self.spawn_positions!r})"


def _coordinate(value: float) -> str:
    """Return a coordinate as a word of a command, whose parser knows no exponents."""
    return np.format_float_positional(value, trim="0") if isinstance(value, float) else str(value)


def _check_spawn(problems: Problems, where: str, spawn: Any) -> None:
    if not isinstance(spawn, Mapping):
        problems.add(where, spawn, f"must be a mapping with {' and '.join(_HARD_RESET_FIELDS)}")
        return
    problems.known(f"field of {where}", spawn, _HARD_RESET_FIELDS)
    seed: Any = spawn.get("seed")
    if not is_integer(seed) or not -(2**63) <= seed < 2**63:
        problems.add(f"{where}.seed", seed, "must be an integer of 64 bits")
    position: Any = spawn.get("position")
    is_place = is_list(position) and len(position) == 3 and all(map(is_number, position))
    if not is_place or max(map(abs, position)) > _FARTHEST:
        rule = f"must be x, y (height) and z, each from {-_FARTHEST} to {_FARTHEST}"
        problems.add(f"{where}.position", position, rule)


# --------------------------------------------------------------------------------------- SavedGames
# Episodes that begin in the middle, for curricula.

_LAST_STEP = 10**9


class SavedGamesCallback(MinecraftCallback):
    """Begins episodes in games that recordings hold, each drawn from all that fit.

    For curricula, such as those that begin along a demonstration (Salimans and Chen 2018). Games
    are saved by recording with a `snapshot_interval`, `--snapshots` of commands. `Commands`,
    `FastReset`, `HardReset`, `InitInventory` and `SummonMobs` leave such an episode as it is, and
    what was done in the game before is not rewarded. List it first: what an earlier callback does
    in `before_reset` is done in vain. The embedded engine only.
    """

    def __init__(
        self,
        recordings: str | os.PathLike[str],
        share: float = 1.0,
        steps: Sequence[int] = (0, _LAST_STEP),
    ) -> None:
        """Find the games.

        Args:
            recordings: A folder with recordings, at any depth.
            share: How many of the episodes begin in a saved game; the others begin as usual.
            steps: First and last step after which a game may have been saved.

        Raises:
            InvalidOptionsError: If an argument is of a wrong type or value, or there is no such
                game; lists all problems.
            RecordingError: If a recording cannot be opened.
        """
        problems = Problems()
        if not is_number(share) or not 0 < share <= 1:
            problems.add("share", share, "must be a number above 0, up to 1")
        is_range = is_list(steps) and len(steps) == 2 and all(map(is_integer, steps))
        if not is_range or not 0 <= steps[0] <= steps[1] <= _LAST_STEP:
            rule = f"must be two integers, the smaller first, from 0 to {_LAST_STEP}"
            problems.add("steps", steps, rule)
        elif not isinstance(recordings, str | os.PathLike) or not Path(recordings).is_dir():
            problems.add("recordings", recordings, "must be a folder with recordings")
        problems.raise_if_any()
        self.recordings, self.share, self.steps = Path(recordings), share, (steps[0], steps[1])
        self.games = [
            (recording, step)
            for recording in find_recordings(self.recordings)
            for step in recording.snapshot_steps
            if steps[0] <= step <= steps[1]
        ]
        if not self.games:
            rule = f"must hold games saved after steps {steps[0]} to {steps[1]} (--snapshots)"
            problems.add("recordings", str(recordings), rule)
        problems.raise_if_any()
        self._reason = ""

    def before_reset(self, sim: Sim, reset_flag: bool) -> bool:
        """Draw whether the episode begins in a saved game, and in which.

        Raises:
            SnapshotError: If none can be restored.
        """
        begins_there = sim.np_random.random() < self.share
        if begins_there and not sim.is_restored:  # a game that `reset` was given comes first
            self._begin_in_one(sim)
        return reset_flag

    def _begin_in_one(self, sim: Sim) -> None:
        """Begin in a game; one that is damaged is named in the log, and not drawn again."""
        while self.games:
            number = int(sim.np_random.integers(len(self.games)))
            recording, step = self.games[number]
            try:
                return sim.begin_in(recording.snapshot(step))
            except (RecordingError, SnapshotError) as error:
                del self.games[number]
                self._reason = f"{str(recording.path)!r}, step {step}: {error}"
                _logger.error("SavedGames: %s It is left out from now on.", self._reason)
        raise SnapshotError(f"SavedGames: no game can be restored. The last one: {self._reason}")

    def __repr__(self) -> str:
        return f"SavedGamesCallback({str(self.recordings)!r}, {self.share}, {self.steps})"


# --------------------------------------------------------------------------------------- JudgeReset
# The time limit of an episode.

_LONGEST = 10**9
"""Steps of an episode: a year and a half of play."""


class JudgeResetCallback(MinecraftCallback):
    """Truncates an episode after a number of steps.

    MineStudio reports `terminated` instead. The difference matters to learners: a time limit does
    not end the return, so they need the bootstrap value of the final observation.
    """

    def __init__(self, time_limit: int = 600) -> None:
        """Check and keep the limit.

        Args:
            time_limit: Steps per episode; 20 are one second of game time.

        Raises:
            InvalidOptionsError: If it is not an integer of at least 1.
        """
        problems = Problems()
        if not is_integer(time_limit) or not 1 <= time_limit <= _LONGEST:
            problems.add("time_limit", time_limit, f"must be an integer from 1 to {_LONGEST}")
        problems.raise_if_any()
        self.time_limit = time_limit
        self.time_step = 0

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Start counting."""
        self.time_step = 0
        return obs, info

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Count the step; truncate the episode at the limit unless it has terminated."""
        self.time_step += 1
        if self.time_step >= self.time_limit and not terminated:
            truncated = True
        return obs, reward, terminated, truncated, info

    def __repr__(self) -> str:
        return f"JudgeResetCallback(time_limit={self.time_limit})"
