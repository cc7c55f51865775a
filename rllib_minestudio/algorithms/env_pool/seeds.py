"""Seeds that follow from others."""

from __future__ import annotations

import numpy as np


def derived_seed(*entropy: int) -> int:
    """A seed of 31 bits that belongs to these numbers."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
