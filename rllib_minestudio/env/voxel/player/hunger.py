"""Hunger: exhaustion, food and natural healing, as in Minecraft Java 1.16."""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.player import MAX_FOOD, MAX_HEALTH

SPRINT_FOOD = 6
"""With this food level or less one cannot sprint."""
PER_SPRINTED_BLOCK = 0.1
PER_JUMP = 0.05
PER_SPRINT_JUMP = 0.2
PER_ATTACK = 0.1
PER_MINED_BLOCK = 0.005
"""Exhaustion that actions cause; 4 points cost one point of saturation or food.

Damage that armour does not hold off, such as a fall's, causes none.
"""

_EXHAUSTED = 4.0
_HEALING_FOOD = 18
_FAST_HEALING_TICKS = 10
_SLOW_HEALING_TICKS = 80
_MOST_HEALING = 6.0
_LEAST_HEALTH = 1.0
"""Starvation on normal difficulty stops here."""


@kernel()
def tick_hunger(player: np.void) -> None:
    """Turns exhaustion into hunger, and food into health or hunger into damage."""
    if player.exhaustion > _EXHAUSTED:
        player.exhaustion -= _EXHAUSTED
        if player.saturation > 0.0:
            player.saturation = max(player.saturation - 1.0, 0.0)
        else:
            player.food = max(player.food - 1, 0)
    hurt = 0.0 < player.health < MAX_HEALTH
    player.food_ticks += 1
    if hurt and player.food >= MAX_FOOD and player.saturation > 0.0:
        if player.food_ticks >= _FAST_HEALING_TICKS:
            spent = min(player.saturation, _MOST_HEALING)
            player.health = min(player.health + spent / _MOST_HEALING, MAX_HEALTH)
            player.exhaustion += spent
            player.food_ticks = 0
    elif hurt and player.food >= _HEALING_FOOD:
        if player.food_ticks >= _SLOW_HEALING_TICKS:
            player.health = min(player.health + 1.0, MAX_HEALTH)
            player.exhaustion += _MOST_HEALING
            player.food_ticks = 0
    elif player.food <= 0:
        if player.food_ticks >= _SLOW_HEALING_TICKS:
            if player.health > _LEAST_HEALTH:
                player.health -= 1.0
            player.food_ticks = 0
    else:
        player.food_ticks = 0
