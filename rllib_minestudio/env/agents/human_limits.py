"""The imperfections of a scripted agent's play, and a hand that moves within these limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
