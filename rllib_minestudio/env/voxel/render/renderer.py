"""The first-person renderer: from the state of a game to a picture.

`Renderer.draw` is the only entry point the engine needs; the work is done by the kernels of the
`render` package, each over plain arrays and each releasing the GIL.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import (
    FALLING_CAPACITY,
    ITEM_CAPACITY,
    MOB_CAPACITY,
    MOB_KINDS,
    DroppedItems,
    FallingBlocks,
    Mobs,
)
from rllib_minestudio.env.voxel.items.inventory import HOTBAR_SLOTS, Inventory
from rllib_minestudio.env.voxel.items.items import FIRST_PLAIN_ITEM, ITEMS
from rllib_minestudio.env.voxel.player.player import SWING_TICKS, Player
from rllib_minestudio.env.voxel.render.block_textures import build_block_atlas
from rllib_minestudio.env.voxel.render.camera import LIGHT, Camera
from rllib_minestudio.env.voxel.render.celestial import render_celestial, star_directions
from rllib_minestudio.env.voxel.render.entities import render_instances
from rllib_minestudio.env.voxel.render.hand import Hands, blend_hand
from rllib_minestudio.env.voxel.render.hud import Hud, HudState, invert
from rllib_minestudio.env.voxel.render.models import Models, build_models
from rllib_minestudio.env.voxel.render.placement import (
    INSTANCE_SIZE,
    place_falling,
    place_items,
    place_mobs,
)
from rllib_minestudio.env.voxel.render.ray_tiles import new_scratch
from rllib_minestudio.env.voxel.render.screen import Screen
from rllib_minestudio.env.voxel.render.sky import SKY_STEP_TICKS, Sky, apply_sky, sky_at
from rllib_minestudio.env.voxel.render.stack_pictures import StackPictures
from rllib_minestudio.env.voxel.render.terrain import render_terrain
from rllib_minestudio.env.voxel.render.texels import Texture
from rllib_minestudio.env.voxel.render.textures import textures_of
from rllib_minestudio.env.voxel.render.window import WINDOW_HEIGHT, averaging, window_width
from rllib_minestudio.env.voxel.screens.view import ScreenView
from rllib_minestudio.env.voxel.world.addressing import CHUNK
from rllib_minestudio.env.voxel.world.blocks import BLOCKS
from rllib_minestudio.env.voxel.world.world import LOAD_RADIUS, World
from rllib_minestudio.errors import InvalidOptionsError

Frame = NDArray[np.uint8]

SHORTEST_VIEW, LONGEST_VIEW = 16, LOAD_RADIUS * CHUNK
LARGEST_SIDE = 4096


@lru_cache(maxsize=4)
def _block_atlas(pack: str | None) -> Texture:
    return build_block_atlas([block.name for block in BLOCKS], textures_of(pack))


@lru_cache(maxsize=4)
def _models(pack: str | None) -> Models:
    names = {identity: item.name for identity, item in ITEMS.items()}
    falling = [identity for identity, block in enumerate(BLOCKS) if block.falls]
    mobs = [kind.name for kind in MOB_KINDS]
    atlas = _block_atlas(pack)
    return build_models(mobs, names, FIRST_PLAIN_ITEM, atlas, textures_of(pack), falling)


def _problems(
    frame_size: tuple[int, int], fov_degrees: float, aspect: float, view_distance: float
) -> list[str]:
    problems = []
    if len(frame_size) != 2 or not all(8 <= side <= LARGEST_SIDE for side in frame_size):
        problems.append(
            f"frame_size must be (width, height) with both from 8 to {LARGEST_SIDE},"
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
    return problems


class Renderer:
    """Draws what the player sees, at one frame size.

    A renderer keeps scratch memory and the composed display, so it belongs to one thread at a
    time; textures and models are shared by all renderers of a process.

    Attributes:
        camera: The camera of the last frame drawn.
        depth: float32 (height * width,), planar depth in blocks of the last frame's pixels without
            hand and display; `ray_tiles.SKY_DEPTH` where there is sky.
    """

    def __init__(
        self,
        frame_size: tuple[int, int] = (128, 128),
        fov_degrees: float = 70.0,
        aspect: float = 16 / 9,
        view_distance: float = 64.0,
        resource_pack: str | None = None,
    ) -> None:
        """Prepare for a frame size.

        Args:
            frame_size: (width, height) in pixels.
            fov_degrees: Vertical field of view.
            aspect: Width over height of the view, whatever the frame's: MineStudio renders 640x360
                and squeezes it to the observation's size, so square frames show a 16:9 view.
            view_distance: Blocks.
            resource_pack: Path of a resource pack whose pictures replace ours; None for ours.

        Raises:
            InvalidOptionsError: If an argument is out of range; names them all.
        """
        if problems := _problems(frame_size, fov_degrees, aspect, view_distance):
            raise InvalidOptionsError(problems)
        self.width, self.height = frame_size
        self.camera = Camera(self.width, self.height, fov_degrees, aspect, view_distance)
        self.depth = np.zeros(self.width * self.height, np.float32)
        self._tan_y = math.tan(math.radians(fov_degrees) / 2)
        self._tan_x = self._tan_y * aspect
        self._atlas, self._models = _block_atlas(resource_pack), _models(resource_pack)
        self._floats, self._ints = new_scratch()
        capacity = MOB_CAPACITY + ITEM_CAPACITY + FALLING_CAPACITY
        self._instances = np.zeros((capacity, INSTANCE_SIZE), np.float32)
        self._instance_models = np.zeros(capacity, np.int32)
        self._eye = np.zeros(3)
        self._prepare_overlays(window_width(aspect), resource_pack)
        self._stars = star_directions()
        self._sky_step = 0
        self._sky: Sky = sky_at(0)
        apply_sky(self.camera, self._sky)

    def _prepare_overlays(self, window: int, resource_pack: str | None) -> None:
        """Prepare what is glued to a window of this width."""
        rows, columns = averaging(self.height, WINDOW_HEIGHT), averaging(self.width, window)
        textures = textures_of(resource_pack)
        stacks = StackPictures(textures)
        size = self.width, self.height
        self._hud = Hud(size, window, rows, columns, textures, stacks)
        self._screen = Screen(window, rows, columns, textures, stacks)
        self._hands = Hands(*size, self._tan_x, self._tan_y, textures)

    def draw(
        self,
        world: World,
        player: Player,
        mobs: Mobs,
        items: DroppedItems,
        inventory: Inventory,
        daytime: float,
        out: Frame | None = None,
        falling: FallingBlocks | None = None,
        screen: ScreenView | None = None,
    ) -> Frame:
        """Draw one frame.

        Args:
            world: The blocks.
            player: Whose eyes to look through.
            mobs: All mobs.
            items: All dropped items.
            inventory: What the display and the hand show.
            daytime: Ticks since sunrise, 0..23999 (6000 is noon).
            out: uint8 (height, width, 3), C-contiguous, to draw into; a new array by default.
            falling: All falling blocks; none by default.
            screen: The open screen; none by default.

        Returns:
            The frame, `out` if given.

        Raises:
            InvalidOptionsError: If `out` is not such an array.
        """
        if out is None:
            out = np.empty((self.height, self.width, 3), np.uint8)
        elif (
            out.shape != (self.height, self.width, 3)
            or out.dtype != np.uint8
            or not out.flags.c_contiguous
        ):
            raise InvalidOptionsError(
                f"out must be a C-contiguous uint8 array of shape {(self.height, self.width, 3)},"
                f" got {out.dtype} {out.shape}."
            )
        frame = out.reshape(-1)
        self._look(player, daytime)
        self._draw_world(world, frame)
        self._draw_entities(world, mobs, items, falling, frame)
        self._draw_overlays(player, inventory, frame)
        if screen is not None:
            self._screen.show(screen)
            self._screen.layer.blend(frame.reshape(self.height, -1))
        return out

    def _look(self, player: Player, daytime: float) -> None:
        """Move the camera to the player's eyes and set the hour's colours."""
        position = player.position
        eye = self._eye
        eye[0], eye[1], eye[2] = position[0], position[1] + player.eye_height, position[2]
        self.camera.place(float(eye[0]), float(eye[1]), float(eye[2]), player.yaw, player.pitch)
        step = int(daytime) // SKY_STEP_TICKS
        if step != self._sky_step:
            self._sky_step = step
            self._sky = sky_at(step * SKY_STEP_TICKS)
            apply_sky(self.camera, self._sky)

    def _draw_world(self, world: World, frame: Frame) -> None:
        """Draw terrain and sky."""
        camera = self.camera
        render_terrain(
            world.blocks,
            world.box,
            world.top,
            world.ceiling,
            self._atlas,
            camera.vector,
            camera.column_x & 255,
            camera.column_z & 255,
            self.width,
            self.height,
            frame,
            self.depth,
            self._floats,
            self._ints,
        )
        render_celestial(
            camera.vector,
            self._sky.sun_angle,
            self._sky.stars,
            self._stars,
            self.width,
            self.height,
            frame,
            self.depth,
        )

    def _draw_entities(
        self,
        world: World,
        mobs: Mobs,
        items: DroppedItems,
        falling: FallingBlocks | None,
        frame: Frame,
    ) -> None:
        """Draw mobs, dropped items and falling blocks."""
        models, vector = self._models, self.camera.vector
        instances, chosen = self._instances, self._instance_models
        view = (world.top, vector, self._eye, self._tan_x, self._tan_y, instances, chosen)
        found = 0
        if mobs.count:
            found = place_mobs(mobs.records, mobs.count, models.mob, *view, found)
        if items.count:
            found = place_items(items.records, items.count, models.item, *view, found)
        if falling is not None and falling.count:
            found = place_falling(falling.records, falling.count, models.block, *view, found)
        if found:
            render_instances(
                instances,
                chosen,
                found,
                models.boxes,
                models.textures,
                models.first_box,
                models.atlas,
                vector,
                self.width,
                self.height,
                frame,
                self.depth,
            )

    def _draw_overlays(self, player: Player, inventory: Inventory, frame: Frame) -> None:
        """Blend in crosshair, hand and display."""
        stacks = tuple(inventory[slot] for slot in range(HOTBAR_SLOTS))
        health = math.ceil(player.health)
        self._hud.show(HudState(stacks, player.selected, health, player.food))
        held = stacks[player.selected].item
        # Rounded to whole ticks, so that there are few poses to keep.
        swing = round(player.swing_progress * SWING_TICKS) / SWING_TICKS
        hand = self._hands.of(ITEMS[held].name if held else "", swing)
        rows = frame.reshape(self.height, -1)
        invert(frame, self._hud.crosshair)
        red, green, blue = self.camera.vector[LIGHT : LIGHT + 3]
        blend_hand(rows, *hand, red, green, blue)
        self._hud.layer.blend(rows)
