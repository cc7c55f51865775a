"""The embedded engine's public interface, `VoxelEngine`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel import AVERAGE, MINESTUDIO_GAMMA, commands, kernel_cache
from rllib_minestudio.env.voxel.commands import CommandResult
from rllib_minestudio.env.voxel.contract import Box
from rllib_minestudio.env.voxel.data import NAMESPACE
from rllib_minestudio.env.voxel.entities.records import MOB_KINDS
from rllib_minestudio.env.voxel.game import survey as survey_of
from rllib_minestudio.env.voxel.game.game import Game
from rllib_minestudio.env.voxel.game.screen_handling import draw_view
from rllib_minestudio.env.voxel.game.survey import Survey, location_stats
from rllib_minestudio.env.voxel.player.player import Player
from rllib_minestudio.env.voxel.render.camera import Camera
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.textures import textures_of
from rllib_minestudio.env.voxel.world.blocks import BLOCKS
from rllib_minestudio.env.voxel.world.climate import BIOMES, biome_at
from rllib_minestudio.errors import InvalidOptionsError, did_you_mean

_PLACE = (("x", "xpos"), ("y", "ypos"), ("z", "zpos"), ("pitch", "pitch"), ("yaw", "yaw"))
"""Keys of `player_pos`, each with the key of the same value in `location_stats`."""
_DISTANCE_OF_MOBS = 1800.0
"""Radius in blocks that covers the largest box of mobs that a step can ask for."""


class VoxelEngine:
    """A small Minecraft: one world, one player, some animals.

    The same seed, ticks and commands lead to the same state in every process.
    """

    def __init__(
        self,
        frame_size: tuple[int, int] = (128, 128),
        fov_degrees: float = 70.0,
        aspect: float = 16 / 9,
        view_distance: float = 64.0,
        sampling: str = AVERAGE,
        gamma: float = MINESTUDIO_GAMMA,
        resource_pack: str | None = None,
    ) -> None:
        """Create an engine; the first on a machine compiles the kernels.

        Before the first `reset`, the world is that of seed 0.

        Args:
            frame_size: (width, height) of the frames in pixels.
            fov_degrees: Vertical field of view.
            aspect: Width over height of the view, whatever the frame's shape.
            view_distance: How far the player sees, in blocks; at most 80.
            sampling: How frames are made from the pixels of the game's window, see
                `render.window`.
            gamma: Brightness of the dark, see `render.light.light_map`.
            resource_pack: Path of a folder or zip in the layout of Minecraft's resource packs;
                its pictures replace the built-in ones.

        Raises:
            InvalidOptionsError: If there is no such resource pack.
        """
        kernel_cache.warmup()
        self._view = (fov_degrees, aspect, view_distance, sampling, gamma, resource_pack)
        textures_of(resource_pack)  # raises for an invalid pack before anything is drawn
        self._frame_size = frame_size
        self._renderers: dict[tuple[int, int], Renderer] = {}

    @cached_property
    def _game(self) -> Game:
        """The game; its world has seed 0, unless `reset` comes first, as it nearly always does."""
        game = Game()
        game.begin(0, None)
        return game

    @property
    def player(self) -> Player:
        """The player of the current game."""
        return self._game.state.player

    @property
    def player_dead(self) -> bool:
        """Whether the player died during a tick; `/kill` instead revives it at once."""
        return self._game.state.player_dead

    @property
    def survey(self) -> Survey:
        """A `Survey` of the current game, for questions that no observation answers."""
        return Survey(self._game.state)

    def reset(self, seed: int, biome: str | None = None, natural_animals: bool = False) -> None:
        """Begin a new game; the seed determines everything in it.

        Args:
            seed: Any integer.
            biome: Biome to begin in, with or without "minecraft:"; None for any.
            natural_animals: Whether herds of animals come with the land, as in Minecraft.

        Raises:
            InvalidOptionsError: If there is no such biome.
        """
        if biome is not None:
            biome = biome.removeprefix(NAMESPACE)
            if biome not in BIOMES:
                raise InvalidOptionsError(
                    f"biome: {biome!r} is not one of this engine's biomes ({', '.join(BIOMES)})."
                    + did_you_mean(biome, BIOMES)
                )
        if "_game" not in vars(self):
            self._game = Game()
        self._game.begin(int(seed), biome, natural_animals)

    def tick(self, action: Mapping[str, Any]) -> None:
        """Advance the game by one tick (1/20 s).

        Args:
            action: MineStudio's env action: keys 0 or 1, and `camera`, the turn of the head
                (pitch, yaw) in degrees. Missing keys are not held. The mapping is not modified.

        Raises:
            InvalidActionError: If the camera is not finite; the game is then unchanged.
        """
        self._game.tick(action)

    def execute(self, command: str) -> CommandResult:
        """Execute a chat command, with or without the leading slash; it takes no game time.

        Returns:
            Whether it succeeded, and the chat message; an invalid command never raises.
        """
        return commands.execute(self._game.state, command)

    def snapshot(self) -> bytes:
        """Return the whole game as bytes, as it is between two ticks.

        Source of the format: `game.snapshot`.
        """
        from rllib_minestudio.env.voxel.game import snapshot  # its models take time to build

        return snapshot.saved(self._game.state)

    def restore(self, data: bytes) -> None:
        """Go on with the game of a snapshot, which has the same future in every process.

        Raises:
            SnapshotError: If it is damaged, or of another version; the game is then unchanged.
        """
        from rllib_minestudio.env.voxel.game import snapshot

        snapshot.restore(self._game.state, data)

    def render(
        self, out: NDArray[np.uint8] | None = None, frame_size: tuple[int, int] | None = None
    ) -> NDArray[np.uint8]:
        """Draw what the player sees.

        Args:
            out: uint8 [height, width, 3] to draw into; None for a new array.
            frame_size: (width, height) in pixels; None for the engine's own.

        Returns:
            The frame, uint8 [height, width, 3].
        """
        size = frame_size or self._frame_size
        renderer = self._renderers.get(size)
        if renderer is None:
            renderer = self._renderers[size] = Renderer(size, *self._view)
        return draw_view(self._game.state, renderer, out)

    def info(self, voxels: Box | None = None, mobs: Box | None = None) -> dict[str, Any]:
        """Return what MineStudio reports besides the frame, as new plain objects.

        Args:
            voxels: Also report the blocks of this box, under "voxels".
            mobs: Also report the mobs of this box, under "mobs".
        """
        state = self._game.state
        player = state.player
        location = location_stats(state)
        info: dict[str, Any] = {
            "inventory": player.inventory.describe(),
            "equipped_items": player.inventory.equipment(player.selected),
            **self._statistics(),
            "location_stats": location,
            "player_pos": {name: location[key] for name, key in _PLACE},
            "isGuiOpen": state.screen is not None,
            "is_gui_open": state.screen is not None,
            "health": player.health,
            "food_level": player.food,
        }
        if voxels is not None:
            info["voxels"] = self.blocks_within(voxels)
        if mobs is not None:
            info["mobs"] = self.mobs_within(mobs)
        return info

    def biome(self) -> str:
        """Name of the biome that the player is in."""
        x, _, z = self.player.position.tolist()
        return BIOMES[biome_at(int(x // 1), int(z // 1), self._game.state.world.seed)]

    def mobs_near(self, radius: float) -> list[dict[str, Any]]:
        """The living mobs within `radius` blocks of the player, nearest first.

        Returns:
            Dictionaries with name, x, y, z (feet), yaw (degrees), health and distance.
        """
        state = self._game.state
        mobs, feet = state.mobs, state.player.position.tolist()
        found = []
        for record in mobs.records[: mobs.count]:
            x, y, z = record["position"].tolist()
            distance = math.dist((x, y, z), feet)
            if distance <= radius and not record["death_ticks"]:
                found.append(
                    {
                        "name": MOB_KINDS[record["kind"]].name,
                        "x": x,
                        "y": y,
                        "z": z,
                        "yaw": math.degrees(record["yaw"]),
                        "health": float(record["health"]),
                        "distance": distance,
                    }
                )
        return sorted(found, key=lambda mob: mob["distance"])

    def mobs_within(self, box: Box) -> list[dict[str, Any]]:
        """The living mobs whose feet are in a box around the player's feet, as by `mobs_near`."""
        x0, x1, y0, y1, z0, z1 = box
        x, y, z = self.player.position.tolist()
        return [
            mob
            for mob in self.mobs_near(_DISTANCE_OF_MOBS)
            if x0 <= mob["x"] - x <= x1 and y0 <= mob["y"] - y <= y1 and z0 <= mob["z"] - z <= z1
        ]

    def blocks_within(self, box: Box) -> list[dict[str, Any]]:
        """The blocks of a box around the player, air included.

        Args:
            box: Relative to the block that the player's feet are in.

        Returns:
            Dictionaries with type (the block's name) and x, y, z (its position in the world).
        """
        world = self._game.state.world
        x, y, z = (int(coordinate // 1) for coordinate in self.player.position.tolist())
        x0, x1, y0, y1, z0, z1 = box
        return [
            {"type": BLOCKS[world.kind_at(i, j, k)].name, "x": i, "y": j, "z": k}
            for i in range(x + x0, x + x1 + 1)
            for j in range(y + y0, y + y1 + 1)
            for k in range(z + z0, z + z1 + 1)
        ]

    def visible_blocks(self, columns: int, rows: int, reach: float) -> survey_of.VisibleBlocks:
        """The blocks that the pixels of a frame of `columns` x `rows` show.

        Args:
            columns: Rays from left to right, over the width of the view.
            rows: Rays from top to bottom, over its height.
            reach: Length of the rays in blocks; at most the view distance.
        """
        camera = self._sight_camera(columns, rows, reach)
        return survey_of.visible_blocks(self._game.state, camera)

    def visible_items(self, reach: float) -> list[dict[str, Any]]:
        """The dropped items in view, as returned by `game.survey.visible_items`.

        Args:
            reach: How far the player sees, in blocks; at most the view distance.
        """
        return survey_of.visible_items(self._game.state, self._sight_camera(1, 1, reach))

    def _sight_camera(self, columns: int, rows: int, reach: float) -> Camera:
        fov_degrees, aspect, view_distance = self._view[:3]
        return Camera(columns, rows, fov_degrees, aspect, min(reach, view_distance))

    def _statistics(self) -> dict[str, dict[str, int]]:
        """The state's counters, and those that the kernels keep in the player's record."""
        counters = self._game.state.statistics.copy()
        records = self.player.records
        custom = counters["custom"]
        for name, field in _DISTANCES:
            if centimetres := int(records[field].item() * 100.0):
                custom[name] = centimetres
        if jumps := records["jumps"].item():
            custom["jump"] = jumps
        return counters


_DISTANCES = (
    ("walk_one_cm", "walked"),
    ("sprint_one_cm", "sprinted"),
    ("crouch_one_cm", "crept"),
)
"""Minecraft's distance statistics, and the field of the player's record that holds each."""
