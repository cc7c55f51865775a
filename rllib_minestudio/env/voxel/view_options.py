"""The engine's rendering options, in a module that compiles no kernels."""

from __future__ import annotations

AVERAGE, SAMPLES = "average", "samples"
SAMPLINGS = (AVERAGE, SAMPLES)
"""How a frame is made from the game's window, see `render.window`."""

MINESTUDIO_GAMMA = 2.0
"""The gamma that MineStudio writes into the game's options; the game's own slider ends at 1."""
LOWEST_GAMMA, HIGHEST_GAMMA = 0.0, 16.0
