"""Eating by holding the use key, as in Minecraft Java 1.16."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.mobs import FOOD_EATEN, emit
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.player import MAX_FOOD, USE, USE_DELAY


@kernel()
def begin_meal(player: np.void, keys: int) -> None:
    """Begin to eat the item in hand, if it is food that can be eaten now and nothing is mined."""
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
    """Advance a meal by one tick; the handler of the final event consumes the food."""
    if player.eating_ticks > 0:
        player.eating_ticks -= 1
        if player.eating_ticks == 0:
            emit(events, event_count, FOOD_EATEN, 0, 1.0, player.position)
