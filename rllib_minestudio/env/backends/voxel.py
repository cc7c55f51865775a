"""The embedded engine as a backend."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.backends.protocol import OBSERVED, KeySpace, RawObs, RawStep
from rllib_minestudio.env.callbacks import summon_mobs
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.env.voxel.contract import Box, mobs_box, voxels_box
from rllib_minestudio.env.voxel.data import NAMESPACE, NO_ENTITY, NO_PLAYER
from rllib_minestudio.errors import InvalidActionError
from rllib_minestudio.foundation.names import POV
from rllib_minestudio.foundation.options import Problems

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.game.survey import Survey, VisibleBlocks


_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_MOST_COMPLAINTS = 1000
"""Per environment: a callback may make up commands without end."""

_logger = logging.getLogger(__name__)


class VoxelBackend:
    """The embedded engine as a `Backend`.

    Frames are rendered at the size of observations, with the 16:9 view that MineStudio squeezes
    into its observations.
    """

    def __init__(self, options: EnvOptions) -> None:
        """Build an engine; it shows nothing before the first `reset`.

        Raises:
            InvalidOptionsError: If the engine knows no such biome or item.
        """
        # Imported late: numba takes a second, which checking options should not cost.
        from rllib_minestudio.env.voxel.engine import VoxelEngine
        from rllib_minestudio.env.voxel.items.items import ITEMS

        self._biome, self._inventory = _known_names(options)
        self.action_space = KeySpace()
        self.engine = VoxelEngine(
            frame_size=options.obs_size,
            sampling=options.sampling,
            gamma=float(options.gamma),
            resource_pack=options.resource_pack,
        )
        self._seed = options.seed
        natural = options.natural_animals
        self._natural_animals = not summon_mobs(options.callbacks) if natural is None else natural
        self._idle = self.action_space.no_op()
        self._complaints: set[tuple[str, str]] = set()
        for _, item, _ in self._inventory:
            if lacking := ITEMS[item].lacking:
                self._complain("The initial %r is there, but %s", ITEMS[item].name, lacking)

    def begin_episode(self) -> bool:
        """Return False: this engine never needs a restart."""
        return False

    def reset(self) -> RawObs:
        """Start a new world from the seed, with the initial inventory."""
        self.engine.reset(self._seed, self._biome, self._natural_animals)
        for slot, item, quantity in self._inventory:
            self.engine.player.inventory.set(slot, item, quantity)
        return self._observe()[0]

    def snapshot(self) -> bytes:
        """Return the whole game as bytes."""
        return self.engine.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Go on with a saved game."""
        self.engine.restore(snapshot)

    def step(self, action: Mapping[str, Any]) -> RawStep:
        """Play one tick; `drop` is not sent, as MineStudio's game never receives it.

        Raises:
            InvalidActionError: If `voxels` or `mobs` is not a box, or is too large.
        """
        keys = dict(action)
        keys.pop("drop", None)
        command = keys.pop("chat", "")
        voxels, mobs = _boxes(keys.pop("voxels", None), keys.pop("mobs", None))
        if command:
            self._execute(command)
        self.engine.tick(keys)
        return self._observe(voxels, mobs)

    def execute_cmd(self, command: str) -> RawStep:
        """Execute a command and play one tick; failures are logged, once per command."""
        return self.step({**self._idle, "chat": command})

    def noop_action(self) -> EnvAction:
        """Return an action that does nothing."""
        return self.action_space.no_op()

    def seed(self, seed: int) -> None:
        """Set the seed of future worlds."""
        self._seed = seed

    def image(self, raw_obs: Mapping[str, Any]) -> np.ndarray:
        """Return the frame, which is already rendered at the size of observations."""
        return raw_obs[POV]

    def render(self, size: tuple[int, int]) -> np.ndarray:
        """Return the current view at another size."""
        return self.engine.render(frame_size=size)

    def mobs_near(self, radius: float) -> list[dict[str, Any]]:
        """Return the mobs within `radius` blocks of the player."""
        return self.engine.mobs_near(radius)

    def survey(self) -> Survey:
        """Return the survey, which answers questions about the world for judges of tasks."""
        return self.engine.survey

    def visible_blocks(self, columns: int, rows: int, reach: float) -> VisibleBlocks:
        """Return the blocks that the pixels of a frame show, up to `reach` blocks away."""
        return self.engine.visible_blocks(columns, rows, reach)

    def visible_items(self, reach: float) -> list[dict[str, Any]]:
        """Return name, x, y and z of each dropped item in view within `reach` blocks."""
        return self.engine.visible_items(reach)

    def item_names(self) -> list[str]:
        """Return the names of this engine's items."""
        from rllib_minestudio.env.voxel.items.items import ITEM_ID

        return sorted(ITEM_ID)

    def close(self) -> None:
        """Do nothing: the engine is only memory."""

    def _complain(self, text: str, what: str, reason: str) -> None:
        """Log, once for each such thing, that something has no effect or not all of it.

        Numbers make no difference: callbacks draw places at random.
        """
        complaint = (_NUMBER.sub("#", what), _NUMBER.sub("#", reason))
        if complaint not in self._complaints and len(self._complaints) < _MOST_COMPLAINTS:
            self._complaints.add(complaint)
            _logger.warning(text, what, reason)

    def _execute(self, command: str) -> None:
        result = self.engine.execute(command)
        # Selecting nothing is no mistake: a fast reset kills mobs whether there are any or not.
        if not result.ok and result.message not in (NO_ENTITY, NO_PLAYER):
            self._complain("The command %r failed: %s", command, result.message)
        if result.lacking:
            self._complain("The command %r was executed, but %s", command, result.lacking)

    def _observe(self, voxels: Box | None = None, mobs: Box | None = None) -> RawStep:
        engine = self.engine
        obs: RawObs = {POV: engine.render()}
        info = engine.info(voxels, mobs)
        for name in OBSERVED:
            obs[name] = info.pop(name)
        return obs, 0.0, engine.player_dead, info


def _boxes(voxels: Any, mobs: Any) -> tuple[Box | None, Box | None]:
    """Check and return the boxes that an action requests.

    Raises:
        InvalidActionError: If one is not a box, or is too large.
    """
    try:
        return (
            None if voxels is None else voxels_box(voxels),
            None if mobs is None else mobs_box(mobs),
        )
    except ValueError as error:
        raise InvalidActionError(f"{error}.") from error


def _known_names(options: EnvOptions) -> tuple[str | None, list[tuple[int, int, int]]]:
    """Return the biome's name, and (slot, item id, quantity) of the initial inventory.

    Raises:
        InvalidOptionsError: If the engine knows no such biome or item; lists all problems.
    """
    from rllib_minestudio.env.voxel.items.items import ITEM_ID
    from rllib_minestudio.env.voxel.world.climate import BIOMES

    problems = Problems()
    biome = options.preferred_spawn_biome
    if biome is not None:
        biome = biome.removeprefix(NAMESPACE)
        problems.choice("preferred_spawn_biome", biome, BIOMES)
    stacks = []
    for slot, stack in options.inventory.items():
        name = stack["type"].removeprefix(NAMESPACE)
        if name in ITEM_ID:
            stacks.append((slot, ITEM_ID[name], stack.get("quantity", 1)))
        else:
            problems.unknown(f"item in inventory[{slot}]", name, ITEM_ID)
    problems.raise_if_any()
    return biome, stacks
