"""Checks of a renderer's arguments."""

from __future__ import annotations

from rllib_minestudio.env.voxel.view_options import HIGHEST_GAMMA, LOWEST_GAMMA, SAMPLINGS
from rllib_minestudio.env.voxel.world.addressing import CHUNK
from rllib_minestudio.env.voxel.world.world import LOAD_RADIUS

SHORTEST_VIEW, LONGEST_VIEW = 16, LOAD_RADIUS * CHUNK
SMALLEST_SIDE, LARGEST_SIDE = 8, 4096


def view_problems(
    frame_size: tuple[int, int],
    fov_degrees: float,
    aspect: float,
    view_distance: float,
    sampling: str,
    gamma: float,
) -> list[str]:
    """What is wrong with a renderer's arguments, a sentence each; see `Renderer`."""
    problems = []
    if len(frame_size) != 2 or not all(
        SMALLEST_SIDE <= side <= LARGEST_SIDE for side in frame_size
    ):
        problems.append(
            f"frame_size must be (width, height) with both from {SMALLEST_SIDE} to {LARGEST_SIDE},"
            f" got {frame_size!r}."
        )
    if not 10 <= fov_degrees <= 150:
        problems.append(f"fov_degrees must be from 10 to 150, got {fov_degrees!r}.")
    if not 0.2 <= aspect <= 5:
        problems.append(f"aspect must be from 0.2 to 5, got {aspect!r}.")
    if not SHORTEST_VIEW <= view_distance <= LONGEST_VIEW:
        problems.append(
            f"view_distance must be from {SHORTEST_VIEW} to {LONGEST_VIEW} blocks, as far as"
            f" terrain is always loaded, got {view_distance!r}."
        )
    if sampling not in SAMPLINGS:
        problems.append(f"sampling must be one of {', '.join(SAMPLINGS)}, got {sampling!r}.")
    if not LOWEST_GAMMA <= gamma <= HIGHEST_GAMMA:
        problems.append(f"gamma must be from {LOWEST_GAMMA:g} to {HIGHEST_GAMMA:g}, got {gamma!r}.")
    return problems
