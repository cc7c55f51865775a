"""What the player of a game sees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.render.renderer import Renderer


def draw_view(
    state: GameState, renderer: Renderer, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Draws the player's view.

    Args:
        state: The game.
        renderer: Of the frame's size.
        out: uint8 [height, width, 3] to draw into; None for a new array.

    Returns:
        The frame, uint8 [height, width, 3].
    """
    return renderer.draw(
        state.world,
        state.player,
        state.mobs,
        state.items,
        state.player.inventory,
        state.daytime,
        out,
        state.falling,
        None if state.screen is None else state.screen.view(),
    )
