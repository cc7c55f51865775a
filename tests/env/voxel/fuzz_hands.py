"""Random keys, camera and clicks: now and then with a purpose."""

from __future__ import annotations

from random import Random
from typing import Any

from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.screen import PIXELS_PER_DEGREE, Screen

_KEYS = ("forward", "back", "left", "right", "jump", "sneak", "sprint", "attack", "use", "drop")
_TURNS = (0.0, 1.0, 15.0, 400.0, 1e6, 1e300)
"""How fast the camera turns, in degrees per tick."""
_SCREEN_KEYS = {"attack": 0.5, "use": 0.3, "sneak": 0.2, "forward": 0.2, "inventory": 0.02}
"""How likely each is to be held in a tick with a screen open."""


class Hands:
    """Keys and camera: now and then with a purpose, otherwise at random, each for a while."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._ticks_left = 0
        self._held: dict[str, float] = {}
        self._turn = 0.0
        self._is_visiting = False

    def visit(self) -> None:
        """Uses, in the next ticks, what is ahead at the height of the eyes."""
        self._ticks_left, self._turn, self._is_visiting = 10, 0.0, True
        self._held = {"use": 0.5, "sneak": 0.05}

    def build_around(self) -> None:
        """Puts what is in the hand beside, below and above for a while, from all sides."""
        self._ticks_left, self._turn = 60, 40.0
        self._held = {"use": 0.5, "sneak": 0.3, "jump": 0.2, "back": 0.2}

    def action(self, screen: Screen | None, pitch: float) -> dict[str, Any]:
        """The action of a tick."""
        if screen is not None:
            return self._work(screen)
        random, turn = self._random, self._turn
        camera = random.uniform(-turn, turn), random.uniform(-turn, turn)
        slot = 0
        if self._is_visiting:
            camera, self._is_visiting = (5.0 - pitch, 0.0), False
        elif self._ticks_left == 0:
            start, slot = self._choose()
            camera = start - pitch, 0.0
        elif random.random() < 0.005:
            slot = random.randint(1, 9)
        self._ticks_left -= 1
        keys = {key: int(random.random() < chance) for key, chance in self._held.items()}
        if slot:
            keys[f"hotbar.{slot}"] = 1
        if random.random() < 0.005:
            keys["inventory"] = 1
        return {**keys, "camera": camera}

    def _work(self, screen: Screen) -> dict[str, Any]:
        """Clicks, drags and swaps on slots of an open screen, which is closed after some time."""
        random = self._random
        place = LAYOUTS[screen.kind].slots[self._choose_slot(screen)]
        target = place.x + random.randint(-3, 20), place.y + random.randint(-3, 20)
        if random.random() < 0.05:
            target = random.choice(((0, 0), (320, 170), (240, 100), (1e9, -1e9)))
        cursor = screen.cursor
        keys = {key: int(random.random() < chance) for key, chance in _SCREEN_KEYS.items()}
        if random.random() < 0.1:
            keys[f"hotbar.{random.randint(1, 9)}"] = 1
        camera = (
            (target[1] - cursor.y) / PIXELS_PER_DEGREE,
            (target[0] - cursor.x) / PIXELS_PER_DEGREE,
        )
        return {**keys, "camera": camera if random.random() < 0.6 else (0.0, 0.0)}

    def _choose_slot(self, screen: Screen) -> int:
        """Mostly a slot where something happens: a result, something to take, a place for it."""
        random, view, slots = self._random, screen.view(), LAYOUTS[screen.kind].slots
        full = [index for index, stack in enumerate(view.stacks) if stack.item]
        results = [index for index in full if slots[index].group in ("result", "output")]
        special = [i for i, slot in enumerate(slots) if slot.group not in ("main", "hotbar")]
        dice = random.random()
        if dice < 0.3 and results:
            return random.choice(results)
        if dice < 0.8 and (view.carried.item or full):
            return random.choice(special if view.carried.item else full)
        return random.randrange(len(slots))

    def _choose(self) -> tuple[float, int]:
        """Chooses what to do next, and for how long; returns pitch and slot to begin with."""
        random = self._random
        self._ticks_left = random.choice((5, 20, 60, 200))
        self._turn = 0.0
        dice = random.random()
        if dice < 0.25:  # dig
            self._held = {"attack": 1.0, "forward": random.choice((0.0, 1.0)), "jump": 0.02}
            return random.choice((90.0, 90.0, 60.0, 30.0, 0.0, -90.0)), random.choice((1, 1, 5))
        if dice < 0.4:  # build
            self._held = {"use": 1.0, "jump": 1.0, "back": random.choice((0.0, 0.0, 1.0))}
            return random.choice((90.0, 70.0, 20.0)), random.choice((3, 4, 6, 7, 8))
        if dice < 0.6:  # fight
            self._held = {"attack": 0.3, "forward": 0.7, "sprint": 0.3, "jump": 0.2}
            self._turn = 5.0
            return random.uniform(0.0, 30.0), 2
        self._held = {key: random.choice((0.0, 0.0, 1.0, 0.5)) for key in _KEYS}
        self._turn = random.choice(_TURNS)
        return random.uniform(-200.0, 200.0), random.randint(0, 9)
