"""What a hit does to a body, as in Minecraft Java 1.16: damage, invulnerability, knockback."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import HURT_TICKS
from rllib_minestudio.env.voxel.kernels import kernel

PANIC_TICKS = 100
"""How long a mob remembers who hit it."""


@kernel()
def knock_back(body: np.void, strength: float, dx: float, dz: float) -> None:
    """Pushes a body against the horizontal direction (dx, dz), from the attacker's side."""
    length = np.sqrt(dx * dx + dz * dz)
    if length < 1e-4:
        return
    velocity = body.velocity
    velocity[0] = velocity[0] / 2.0 - dx / length * strength
    velocity[2] = velocity[2] / 2.0 - dz / length * strength
    if body.on_ground:
        velocity[1] = min(0.4, velocity[1] / 2.0 + strength)


@kernel()
def shielded(body: np.void, amount: float) -> float:
    """What is left of a hit after invulnerability: within 10 ticks, only what exceeds the last."""
    if body.hurt_ticks > 0:
        return max(amount - body.last_damage, 0.0)
    return amount


@kernel()
def hurt_mob(mobs: NDArray[np.void], row: int, amount: float) -> tuple[float, bool]:
    """Takes health from a mob.

    Returns:
        The health points lost, and whether it was a hit of its own (which knocks back and
        starts the invulnerability), not the remainder of a stronger second one.
    """
    mob = mobs[row]
    if mob.death_ticks > 0:
        return 0.0, False
    fresh = mob.hurt_ticks == 0
    dealt = shielded(mob, amount)
    if dealt <= 0.0:
        return 0.0, False
    mob.last_damage = amount
    if fresh:
        mob.hurt_ticks = HURT_TICKS
    dealt = min(dealt, mob.health)
    mob.health -= dealt
    mob.panic_ticks = PANIC_TICKS
    return dealt, fresh
