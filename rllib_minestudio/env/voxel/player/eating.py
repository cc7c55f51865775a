"""Eating: the use key held on food, as in Minecraft Java 1.16."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.mobs import FOOD_EATEN, emit
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.player import MAX_FOOD, USE, USE_DELAY


@kernel()
def begin_meal(player: np.void, keys: int) -> None:
    """Begin to eat what is in the hand, if it is food, there is hunger and nothing is mined."""
    pressed = not player.keys & USE or player.use_delay == 0
    if player.meal_ticks == 0 or not keys & USE or not pressed or player.is_mining:
        return
    player.use_delay = USE_DELAY
    if player.food < MAX_FOOD or player.eats_when_full:
        player.eating_ticks = player.meal_ticks


@kernel()
def continue_meal(
    player: np.void, events: NDArray[np.void], event_count: NDArray[np.int64]
) -> None:
    """Advance a meal by one tick; the food itself is eaten by the event's reader."""
    if player.eating_ticks > 0:
        player.eating_ticks -= 1
        if player.eating_ticks == 0:
            emit(events, event_count, FOOD_EATEN, 0, 1.0, player.position)
