"""What there is to choose about the engine's pictures; checking it needs no kernel."""

from __future__ import annotations

AVERAGE, SAMPLES = "average", "samples"
SAMPLINGS = (AVERAGE, SAMPLES)
"""How a frame is made, see `render.sampling`."""

MINESTUDIO_GAMMA = 2.0
"""What MineStudio writes into the game's options; the game's own slider ends at 1."""
LOWEST_GAMMA, HIGHEST_GAMMA = 0.0, 16.0
