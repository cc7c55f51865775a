"""Events: what a kernel tells Python about a tick."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import ITEM_CAPACITY, MOB_CAPACITY
from rllib_minestudio.env.voxel.kernels import kernel

EVENT_CAPACITY = 2 * MOB_CAPACITY + ITEM_CAPACITY + 8
"""Most events in one tick: every mob hurt and dead, every item touched, and the player's own."""

MOB_HURT, MOB_DIED, BLOCK_BROKEN, ITEM_TOUCHED, PLAYER_HURT, MOB_SWEPT, FOOD_EATEN = range(7)
"""Kinds of event. `subject` and `amount` mean:

- `MOB_HURT`: index in `MOB_KINDS`, health points dealt by the player's own hit.
- `MOB_DIED`: index in `MOB_KINDS`; `amount` is 1 if the player killed it, else 0.
- `BLOCK_BROKEN`: id of the block at `position`.
- `ITEM_TOUCHED`: row of a dropped item in the player's reach.
- `PLAYER_HURT`: unused, health points lost.
- `MOB_SWEPT`: as `MOB_HURT`, for a mob beside the one that was hit.
- `FOOD_EATEN`: unused; the meal in hand is over.
"""

EVENT_DTYPE = np.dtype(
    [
        ("kind", np.int64),
        ("subject", np.int64),
        ("amount", np.float64),
        ("position", np.float64, 3),  # where it happened; whole numbers for a block
    ],
    align=True,
)


@kernel()
def emit(
    events: NDArray[np.void],
    count: NDArray[np.int64],
    kind: int,
    subject: int,
    amount: float,
    position: NDArray[np.float64],
) -> None:
    """Appends an event; `count` is int64 [1] and `position` float64 [3]."""
    if count[0] < len(events):
        event = events[count[0]]
        event.kind = kind
        event.subject = subject
        event.amount = amount
        for axis in range(3):
            event.position[axis] = position[axis]
        count[0] += 1
