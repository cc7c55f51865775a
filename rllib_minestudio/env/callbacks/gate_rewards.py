"""GateRewards: payment for obsidian that stands where the frame of a Nether portal needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.env.callbacks.voxels import DEFAULT_BOX, VOXELS

_WIDTH, _HEIGHT = 4, 5
"""Blocks of a portal's frame, corners included."""
_USEFUL_FRAME = 12
"""Blocks of a frame beyond which each further one counts twice."""
_PER_BLOCK = 0.1
"""What every block of obsidian in sight costs, so that none is wasted."""

_Place = tuple[int, int, int]

_FRAME = tuple(
    (across, up)
    for across in range(_WIDTH)
    for up in range(_HEIGHT)
    if across in (0, _WIDTH - 1) or up in (0, _HEIGHT - 1)
)
_OPENING = tuple((across, up) for across in (1, 2) for up in (1, 2, 3))


class GateRewardsCallback(MinecraftCallback):
    r"""Replaces the reward of each step by how much nearer the portal is to its completion.

    The reward is the difference of two steps' scores. The score is that of the best frame, 4 wide
    and 5 high, in the plane of x or of z, whose lower corner with the smallest coordinates is
    obsidian:

        # # # #      blocks of the frame (#) that are obsidian, those beyond 12 twice,
        # . . #    - blocks of the opening (.) that are obsidian,
        # . . #    - 0.1 for each block of obsidian in the box that is observed,
        # . . #
        # # # #

    and at least 0. Scores and rewards are MineStudio's to the last bit, with two consequences:
    the first step pays for obsidian that stood there before, and an agent that walks away from a
    portal pays back what leaves the box.

    Two things are different. The blocks are asked for here if no callback before this one asks for
    them (`Voxels` after it still chooses the box); MineStudio pays nothing without its `Voxels`.
    And where the game tells no blocks in a step, the score stays; there it falls to 0.
    """

    def __init__(self) -> None:
        """Begin with a score of zero."""
        self._score = 0.0

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Begin anew: no blocks are known before the first step."""
        self._score = 0.0
        return obs, info

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Ask for the blocks around the player."""
        return action if VOXELS in action else {**action, VOXELS: list(DEFAULT_BOX)}

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Pay the difference of the scores."""
        earned = 0.0
        if VOXELS in info:
            score = gate_score(info[VOXELS])
            earned, self._score = score - self._score, score
        return obs, earned, terminated, truncated, info


def gate_score(voxels: Iterable[Mapping[str, Any]]) -> float:
    """Return the score of the best frame of a portal among blocks.

    Args:
        voxels: Blocks with `type`, a name, and `x`, `y`, `z`; as in `info["voxels"]`.
    """
    places = [(block["x"], block["y"], block["z"]) for block in voxels if _counts(block["type"])]
    obsidian = set(places)
    return max((0.0, *(_score(place, axis, obsidian) for place in places for axis in (0, 2))))


def _counts(name: str) -> bool:
    """Whether a block is obsidian; as in MineStudio, crying obsidian is some, too."""
    return "obsidian" in name


def _score(corner: _Place, axis: int, obsidian: set[_Place]) -> float:
    """The score of the frame that extends from `corner` along an axis, 0 (x) or 2 (z)."""
    x, y, z = corner

    def standing(parts: Iterable[tuple[int, int]]) -> int:
        if axis == 0:
            return sum((x + across, y + up, z) in obsidian for across, up in parts)
        return sum((x, y + up, z + across) in obsidian for across, up in parts)

    frame = standing(_FRAME)
    bonus = max(0, frame - _USEFUL_FRAME)
    return frame + bonus - standing(_OPENING) - _PER_BLOCK * len(obsidian)
