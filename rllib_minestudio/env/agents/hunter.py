"""The hunter, a scripted agent that kills animals, and the human limits of scripted agents.

They know where the mobs are, which a learning agent has to see, but act through the same 8641 x 121
tokens: at most 10 degrees per tick and axis, in mu-law bins.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.foundation.names import TASK
from rllib_minestudio.foundation.options import Problems, is_list

# ---------- the imperfections of a scripted agent's play, and a hand that moves within these limits

_TURN_RANGE = 10.0  # degrees per tick and axis that a camera token can express


@dataclass(frozen=True)
class HumanLimits:
    """How far the play is from perfect; a tick is 1/20 s.

    Attributes:
        sight: Blocks beyond which an animal is too small to be seen in a 64 x 64 frame.
        reaction_ticks: Minimum and maximum delay between seeing and acting; drawn once per episode.
        turn_gain: Share of the angle to the target that the hand wants to turn in one tick.
        turn_acceleration: Largest change of the turning speed, in degrees per tick^2.
        turn_noise: Standard deviation of a turn, as a share of it.
        search_speed: Degrees per tick while nothing is in view.
        twitch_rate: Probability that the mouse goes astray in a tick in which it moves.
        twitch_degrees: Standard deviation of how far it then goes astray, in degrees.
        pause_rate: Probability per tick that a rest begins.
        pause_ticks: Minimum and maximum duration of a rest.
        late_start: Probability that an episode begins with a rest.
        slip_rate: Probability of clicking before the cursor is where it should be.
        aim_pixels: Standard deviation of the aim within a slot, cut off at two of them.
        click_gap: Minimum and maximum ticks between releasing a button and the next movement.
        counts_out: Whether items are counted out for a grid with a single ingredient; otherwise the
            whole stack is put there.
    """

    sight: float = 20.0
    reaction_ticks: tuple[int, int] = (2, 5)
    turn_gain: float = 0.35
    turn_acceleration: float = 3.0
    turn_noise: float = 0.15
    search_speed: float = 6.0
    twitch_rate: float = 0.0
    twitch_degrees: float = 0.0
    pause_rate: float = 1 / 200
    pause_ticks: tuple[int, int] = (5, 15)
    late_start: float = 0.0
    slip_rate: float = 0.02
    aim_pixels: float = 3.0
    click_gap: tuple[int, int] = (1, 3)
    counts_out: bool = True

    def draw_reaction(self, random: np.random.Generator) -> int:
        """Draw an episode's delay between seeing and acting, in ticks."""
        least, most = self.reaction_ticks
        return int(random.integers(least, most + 1))


WITHOUT_LIMITS = HumanLimits(
    reaction_ticks=(0, 0),
    turn_gain=1.0,
    turn_acceleration=2 * _TURN_RANGE,
    turn_noise=0.0,
    pause_rate=0.0,
    slip_rate=0.0,
    aim_pixels=0.0,
)
"""For a script that shows what can be done, not how a person would do it."""

PRACTISED = HumanLimits(
    reaction_ticks=(1, 3),
    turn_gain=0.6,
    turn_acceleration=6.0,
    turn_noise=0.1,
    twitch_rate=0.05,
    twitch_degrees=4.0,
    pause_rate=1 / 250,
    pause_ticks=(1, 50),
    late_start=0.5,
    click_gap=(0, 1),
    counts_out=False,
)
"""The limits of an experienced player: quick, and used to correcting what goes astray. A clone of
such play sees the cursor being moved to its target from anywhere, not only from the usual path; and
it sees that a player who has stood still for a while goes on, at the beginning of an episode, too.
All logs become planks at once: how many items a slot holds cannot be read in a small frame, and a
clone does not see its own clicks either, so it would have nothing to count by."""


class HumanHand:
    """Moves the mouse smoothly and slightly inaccurately, and rests now and then."""

    def __init__(self, limits: HumanLimits, random: np.random.Generator) -> None:
        """Begin at rest.

        Args:
            limits: The imperfections.
            random: The generator for the noise and the rests.
        """
        self._limits = limits
        self._random = random
        self._speed = np.zeros(2)  # of the camera: pitch and yaw, degrees per tick
        starts_late = limits.late_start and random.random() < limits.late_start
        self._resting_ticks = self._draw_pause() if starts_late else 0

    def rests(self) -> bool:
        """Advance by a tick; return whether the hand rests in it."""
        if self._resting_ticks:
            self._resting_ticks -= 1
        elif self._random.random() < self._limits.pause_rate:
            self._resting_ticks = self._draw_pause()
        return self._resting_ticks > 0

    def _draw_pause(self) -> int:
        least, most = self._limits.pause_ticks
        return int(self._random.integers(least, most + 1))

    def turn(self, wanted: np.ndarray) -> tuple[float, float]:
        """Bring the camera's speed closer to the wanted one; return the turn of this tick.

        Args:
            wanted: Pitch and yaw, degrees per tick.
        """
        limit = self._limits.turn_acceleration
        self._speed += np.clip(wanted - self._speed, -limit, limit)
        np.clip(self._speed, -_TURN_RANGE, _TURN_RANGE, out=self._speed)
        noise = 1.0 + self._limits.turn_noise * self._random.standard_normal(2)
        turned = self._speed * noise
        rate = self._limits.twitch_rate
        if rate and wanted.any() and self._random.random() < rate:
            turned += self._random.normal(0.0, self._limits.twitch_degrees, 2)
        pitch, yaw = turned
        return float(pitch), float(yaw)


# ---- scripted hunters, which show that a hunting task can be solved with the agent's action tokens

EYE_HEIGHT = 1.62
"""Height of a standing player's eyes above its feet, in blocks."""
REACH = 3.0
"""Reach of an attack from the eyes to the mob's box, in blocks."""
COOLDOWN_TICKS = 11
"""Ticks between attacks: past a mob's 10 ticks of invulnerability, with a sword nearly charged."""

_SIGHT = 48.0
_WALK_UNTIL = 2.0  # blocks to the mob's middle; any nearer, the player bumps into it
_SPRINT_FROM = 4.0
_FACING_DEGREES = 60.0
_WOUNDED_BONUS = 3.0  # blocks by which a wounded mob is preferred: it is one hit from the end
_TURN_COST = 0.02  # blocks per degree
_INSIDE = 0.8  # share of the box that counts as a safe hit
_STUCK_SPEED = 0.05  # blocks per tick; walking is 0.216


class PreyBody(NamedTuple):
    """Width and height of a mob's collision box in blocks, and its full health."""

    width: float
    height: float
    health: float


BODIES = {
    "cow": PreyBody(0.9, 1.4, 10.0),
    "sheep": PreyBody(0.9, 1.3, 8.0),
    "pig": PreyBody(0.9, 0.9, 10.0),
    "chicken": PreyBody(0.4, 0.7, 4.0),
}
"""The animals that the hunter knows."""


@dataclass(frozen=True)
class _Aim:
    """A mob's position as seen from the player's eyes.

    Attributes:
        body: The mob's body.
        yaw_error: Degrees to turn right.
        pitch_error: Degrees to turn down.
        horizontal: Horizontal distance to the mob's middle, in blocks.
        vertical: Blocks up to the mob's middle.
        wounded: Whether it has been hit.
    """

    body: PreyBody
    yaw_error: float
    pitch_error: float
    horizontal: float
    vertical: float
    wounded: bool

    @property
    def cost(self) -> float:
        """How far out of the way the mob is, in blocks."""
        return self.horizontal + _TURN_COST * abs(self.yaw_error) - _WOUNDED_BONUS * self.wounded

    @property
    def in_reach(self) -> bool:
        """Whether an attack now would hit: near enough, and looking well inside the box."""
        gap = max(self.horizontal - self.body.width / 2, 0.0)
        reach_yaw = math.atan2(_INSIDE * self.body.width / 2, max(self.horizontal, 0.5))
        reach_pitch = math.atan2(_INSIDE * self.body.height / 2, max(self.horizontal, 0.5))
        return (
            math.hypot(gap, self.vertical) < REACH
            and abs(self.yaw_error) < math.degrees(reach_yaw)
            and abs(self.pitch_error) < math.degrees(reach_pitch)
        )


class ScriptedHunter:
    """Runs to the nearest prey, looks at it, and strikes whenever the weapon is ready.

    If the episode's task has a `prey`, as in `{name: hunt cows, prey: [cow]}` under `Task`, it
    hunts that.
    """

    def __init__(self, prey: Sequence[str] = tuple(BODIES)) -> None:
        """Choose what to hunt.

        Args:
            prey: Names of mobs among `BODIES`, for episodes whose task names none.

        Raises:
            InvalidOptionsError: If a name is not among them; lists all problems.
        """
        self._own_prey = _checked_prey(prey, "ScriptedHunter")
        self.reset()

    def reset(self) -> None:
        """Forget the previous episode."""
        self.prey = self._own_prey
        self._ticks_since_attack = COOLDOWN_TICKS
        self._last_place: tuple[float, float] | None = None
        self._walked = False

    def take_over(self) -> None:
        """Begin to hunt in the middle of an episode that another agent began."""
        self.reset()

    def act(self, env: gym.Env[Any, Any]) -> dict[str, int]:
        """Return the next agent action for a `MineStudioEnv` or a wrapped one.

        Raises:
            InvalidOptionsError: If the episode's task has a prey that is not among `BODIES`.
        """
        base = env.unwrapped
        if not isinstance(base, MineStudioEnv):
            raise TypeError(f"ScriptedHunter plays MineStudioEnv; got {type(base).__name__}.")
        self.note_task(base.sim.obs)
        keys = self.keys(base.sim.info["player_pos"], base.backend.mobs_near(_SIGHT))
        buttons, camera = base.sim.mapper.from_env(keys)
        return {"buttons": buttons, "camera": camera}

    def note_task(self, obs: Mapping[str, Any]) -> None:
        """Hunt the prey of the episode's task from now on, if it has one.

        Args:
            obs: The simulator's observation; an episode's first one holds the task.

        Raises:
            InvalidOptionsError: If the task has a prey that is not among `BODIES`.
        """
        task = obs.get(TASK)
        if isinstance(task, Mapping) and "prey" in task:
            self.prey = _checked_prey(task["prey"], f"prey of the task {task.get('name')!r}")

    def keys(self, player: dict[str, float], mobs: list[dict[str, Any]]) -> EnvAction:
        """Return the keys to press, given the player's pose and the mobs around it."""
        self._ticks_since_attack += 1
        aims = [_aim(player, mob) for mob in mobs if mob["name"] in self.prey]
        if not aims:
            self._walked = False
            return {"camera": (0.0, 10.0)}
        aim = min(aims, key=lambda aim: aim.cost)
        action: EnvAction = {"camera": (aim.pitch_error, aim.yaw_error)}
        self._walk(action, player, aim)
        if self._ticks_since_attack >= COOLDOWN_TICKS and aim.in_reach:
            action["attack"] = 1
            self._ticks_since_attack = 0
        return action

    def _walk(self, action: EnvAction, player: dict[str, float], aim: _Aim) -> None:
        """Approach the mob, jumping when something is in the way."""
        place = (player["x"], player["z"])
        stuck = (
            self._walked
            and self._last_place is not None
            and math.dist(place, self._last_place) < _STUCK_SPEED
        )
        self._last_place = place
        self._walked = aim.horizontal > _WALK_UNTIL and abs(aim.yaw_error) < _FACING_DEGREES
        if self._walked:
            action["forward"] = 1
            action["sprint"] = int(aim.horizontal > _SPRINT_FROM)
            action["jump"] = int(stuck)


def _checked_prey(prey: Any, owner: str) -> frozenset[str]:
    """Return names of mobs, all among `BODIES`.

    Raises:
        InvalidOptionsError: If they are not; lists all problems.
    """
    problems = Problems(owner)
    if not is_list(prey):
        problems.add("prey", prey, "must be a list of animals, such as [cow]")
        prey = []
    for name in prey:
        if not isinstance(name, str) or name not in BODIES:
            problems.unknown("prey", name, BODIES)
    problems.raise_if_any()
    return frozenset(prey)


def _aim(player: dict[str, float], mob: dict[str, Any]) -> _Aim:
    """Return how to turn to look at the middle of a mob.

    Minecraft's yaw is 0 towards +z and grows clockwise; its pitch is positive downwards.
    """
    body = BODIES[mob["name"]]
    dx, dz = mob["x"] - player["x"], mob["z"] - player["z"]
    dy = mob["y"] + body.height / 2 - (player["y"] + EYE_HEIGHT)
    horizontal = math.hypot(dx, dz)
    yaw = math.degrees(math.atan2(-dx, dz))
    pitch = math.degrees(math.atan2(-dy, horizontal))
    yaw_error = (yaw - player["yaw"] + 180.0) % 360.0 - 180.0
    return _Aim(
        body=body,
        yaw_error=yaw_error,
        pitch_error=pitch - player["pitch"],
        horizontal=horizontal,
        vertical=dy,
        wounded=mob["health"] < body.health,
    )


# ----------------- a hunter with a player's limits, whose play can be learned from the frames alone
# The scripted hunter knows every animal around it and turns at once. A network that imitates it
# sees neither the animals behind it nor the reason for a sudden turn, and a clone of faultless play
# never sees a mistake corrected. This hunter sees what the frame shows, with a delay, turns
# smoothly and with small errors, and rests now and then.

VIEW_DEGREES = (102.4, 70.0)
"""Width and height of the view: 70 degrees high at 16:9, whatever the size of the frame."""

_SEARCH_PITCH = 8.0  # degrees down, which shows the ground and what stands on it
_TURNING_TICKS = 60  # a full turn, and a little more
_WALKING_TICKS = 30  # then a walk, to search elsewhere


class HumanlikeHunter:
    """Hunts like `ScriptedHunter`, within `HumanLimits`.

    It also hunts the prey of an episode's task. The same seed gives the same play in the same
    episodes.
    """

    def __init__(
        self,
        prey: Sequence[str] = tuple(BODIES),
        seed: int | None = None,
        limits: HumanLimits | None = None,
    ) -> None:
        """Choose what to hunt and how well.

        Args:
            prey: Names of mobs among `hunter.BODIES`, for episodes whose task names none.
            seed: The seed of all randomness; None draws one.
            limits: The imperfections.

        Raises:
            InvalidOptionsError: If a name is not among them; lists all problems.
        """
        self._hunter = ScriptedHunter(prey)
        self._limits = limits or HumanLimits()
        self._random = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Forget the previous episode."""
        self._hunter.reset()
        reaction = self._limits.draw_reaction(self._random)
        self._seen: deque[list[dict[str, Any]]] = deque(maxlen=reaction + 1)
        self._hand = HumanHand(self._limits, self._random)
        self._searching_ticks = 0
        self._search_side = 1.0

    def take_over(self) -> None:
        """Begin to look around in the middle of an episode that another agent began."""
        self.reset()

    def act(self, env: gym.Env[Any, Any]) -> dict[str, int]:
        """Return the next agent action for a `MineStudioEnv` or a wrapped one.

        Raises:
            InvalidOptionsError: If the episode's task has a prey that is not among `BODIES`.
        """
        base = env.unwrapped
        if not isinstance(base, MineStudioEnv):
            raise TypeError(f"HumanlikeHunter plays MineStudioEnv; got {type(base).__name__}.")
        self._hunter.note_task(base.sim.obs)
        mobs = base.backend.mobs_near(self._limits.sight)
        keys = self.keys(base.sim.info["player_pos"], mobs)
        buttons, camera = base.sim.mapper.from_env(keys)
        return {"buttons": buttons, "camera": camera}

    def keys(self, player: dict[str, float], mobs: list[dict[str, Any]]) -> EnvAction:
        """Return the keys to press, given the player's pose and the mobs around it."""
        self._seen.append(
            [mob for mob in mobs if mob["name"] in self._hunter.prey and _in_view(player, mob)]
        )
        # The player's own turns are felt at once; what the animals do is seen late.
        action = self._hunter.keys(player, self._seen[0])
        found = bool(self._seen[0])
        wanted = np.asarray(action["camera"], np.float64) * self._limits.turn_gain
        if not found:
            wanted = self._search(action, player)
        self._searching_ticks = 0 if found else self._searching_ticks + 1
        if self._hand.rests():
            action, wanted = {}, np.zeros(2)
        action["camera"] = self._hand.turn(wanted)
        return action

    def _search(self, action: EnvAction, player: dict[str, float]) -> np.ndarray:
        """Look all around, then walk on; return the wanted turning speed."""
        phase = self._searching_ticks % (_TURNING_TICKS + _WALKING_TICKS)
        if self._searching_ticks == 0:
            self._search_side = float(self._random.choice((-1.0, 1.0)))
        level = (_SEARCH_PITCH - player["pitch"]) * self._limits.turn_gain
        if phase < _TURNING_TICKS:
            return np.array([level, self._search_side * self._limits.search_speed])
        action["forward"] = 1
        return np.array([level, 0.0])


def _in_view(player: dict[str, float], mob: dict[str, Any]) -> bool:
    """Whether the middle of an animal is inside the frame; occlusion is ignored."""
    dx, dz = mob["x"] - player["x"], mob["z"] - player["z"]
    dy = mob["y"] + BODIES[mob["name"]].height / 2 - (player["y"] + EYE_HEIGHT)
    yaw = math.degrees(math.atan2(-dx, dz)) - player["yaw"]
    pitch = math.degrees(math.atan2(-dy, math.hypot(dx, dz))) - player["pitch"]
    width_degrees, height_degrees = VIEW_DEGREES
    yaw = (yaw + 180.0) % 360.0 - 180.0
    return abs(yaw) < width_degrees / 2 and abs(pitch) < height_degrees / 2
