"""The first-person renderer: from the state of a game to a picture.

`Renderer.draw` is the only entry point that the engine needs. The work is done by the kernels of
the `render` package, which work on plain arrays and release the GIL.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel import (
    AVERAGE,
    HIGHEST_GAMMA,
    LOWEST_GAMMA,
    MINESTUDIO_GAMMA,
    SAMPLINGS,
)
from rllib_minestudio.env.voxel.entities.particles import Particles
from rllib_minestudio.env.voxel.entities.records import (
    FALLING_CAPACITY,
    FALLING_DTYPE,
    ITEM_CAPACITY,
    MOB_CAPACITY,
    MOB_KINDS,
    THROWN_CAPACITY,
    THROWN_DTYPE,
    DroppedItems,
    FallingBlocks,
    Mobs,
    ThrownItems,
)
from rllib_minestudio.env.voxel.items.items import (
    FIRST_PLAIN_ITEM,
    HOTBAR_SLOTS,
    ITEMS,
    Inventory,
    ItemStack,
)
from rllib_minestudio.env.voxel.player.player import Player, progress_at
from rllib_minestudio.env.voxel.render.block_atlas import (
    LOOKS,
    BlockAtlas,
    build_block_atlas,
    with_looks,
)
from rllib_minestudio.env.voxel.render.boxes import render_entities
from rllib_minestudio.env.voxel.render.camera import (
    Bytes,
    Camera,
    Floats,
    Ints,
    Viewpoint,
    new_scratch,
    night_vision,
)
from rllib_minestudio.env.voxel.render.clouds import BOTTOM, Clouds
from rllib_minestudio.env.voxel.render.gui import (
    BAR_WIDTH,
    Hud,
    HudState,
    ScreenComposer,
    StackPictures,
)
from rllib_minestudio.env.voxel.render.hand import NO_HAND, Hands, pixel_rays
from rllib_minestudio.env.voxel.render.light import apply_light
from rllib_minestudio.env.voxel.render.mining_marks import MiningMarks
from rllib_minestudio.env.voxel.render.models import (
    INSTANCE_SIZE,
    LEADS_SHOWN,
    ROPE_PIECES,
    Models,
    build_models,
)
from rllib_minestudio.env.voxel.render.overlays import (
    Crosshair,
    EffectIcons,
    blend_overlays,
    effects_of,
)
from rllib_minestudio.env.voxel.render.plants import Plants
from rllib_minestudio.env.voxel.render.see_through import forget_models
from rllib_minestudio.env.voxel.render.sky import (
    SKY_OF_BIOME,
    SKY_STEP_TICKS,
    Sky,
    apply_sky,
    bodies_of,
    brighten_fog,
    mix_fog,
    render_celestial,
    sky_at,
    star_table,
)
from rllib_minestudio.env.voxel.render.terrain import render_terrain
from rllib_minestudio.env.voxel.render.text import HeldItemName
from rllib_minestudio.env.voxel.render.textures import Textures, textures_of
from rllib_minestudio.env.voxel.render.window import Sampling, reduction, sampling_of
from rllib_minestudio.env.voxel.screens.menu import ScreenView
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, states_of
from rllib_minestudio.env.voxel.world.box_field import CHUNK
from rllib_minestudio.env.voxel.world.climate import biome_at
from rllib_minestudio.env.voxel.world.world import LOAD_RADIUS, World
from rllib_minestudio.errors import InvalidOptionsError

Frame = NDArray[np.uint8]
NO_THROWN, NO_FALLING = np.zeros(1, THROWN_DTYPE), np.zeros(1, FALLING_DTYPE)


@lru_cache(maxsize=4)
def _block_atlas(pack: str | None) -> BlockAtlas:
    return build_block_atlas(textures_of(pack))


@lru_cache(maxsize=4)
def _faces_with_looks(pack: str | None) -> Ints:
    atlas = _block_atlas(pack)
    return with_looks(atlas.faces, atlas.has_holes(), atlas.tinted)


@lru_cache(maxsize=4)
def _models(pack: str | None) -> Models:
    names = {identity: item.name for identity, item in ITEMS.items()}
    falling = [block for kind, its in enumerate(BLOCKS) if its.falls for block in states_of(kind)]
    mobs = [kind.name for kind in MOB_KINDS]
    atlas = _block_atlas(pack)
    return build_models(mobs, names, FIRST_PLAIN_ITEM, atlas, textures_of(pack), falling)


class Renderer:
    """Draws what the player sees, at one frame size.

    A renderer keeps scratch memory and the composed display, so it belongs to one thread at a
    time; textures and models are shared by all renderers of a process.

    Attributes:
        camera: The camera of the last frame drawn.
        depth: float32 (h * w,), planar depth in blocks of the pixels drawn last, without hand and
            display; `camera.SKY_DEPTH` for sky. If a frame is mixed from samples, these are the
            samples' depths, not those of the frame's pixels.
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
        """Prepare for a frame size.

        Args:
            frame_size: (width, height) in pixels.
            fov_degrees: Vertical field of view.
            aspect: Width over height of the view, whatever the frame's: MineStudio renders 640x360
                and squeezes it to the observation's size, so square frames show a 16:9 view.
            view_distance: In blocks.
            sampling: Which pixels are drawn, see `window.sampling_of`.
            gamma: How bright the dark is, see `light.light_map`.
            resource_pack: Path of a resource pack whose pictures replace ours; None for ours.

        Raises:
            InvalidOptionsError: If arguments are out of range; the message names all of them.
        """
        if problems := view_problems(
            frame_size, fov_degrees, aspect, view_distance, sampling, gamma
        ):
            raise InvalidOptionsError(problems)
        self.width, self.height = frame_size
        self._sampling = sampling_of(sampling, (self.width, self.height), aspect)
        self.camera = Camera(*self._sampling.window, fov_degrees, aspect, view_distance)
        self._viewpoint = Viewpoint(self.camera)
        self._rays = pixel_rays(self._sampling, self.camera)
        self._usual_rays = self._rays.across.copy(), self._rays.upward.copy()
        self._fov_gain = 0.0
        self._drawn = self._sampling.drawn
        self._canvas = self._sampling.new_canvas()
        self.depth = np.zeros(self._drawn[0] * self._drawn[1], np.float32)
        self._gamma = gamma
        self._tan_y = self._usual_tan = math.tan(math.radians(fov_degrees) / 2)
        self._tan_x = self._tan_y * aspect
        self._atlas, self._models = _block_atlas(resource_pack), _models(resource_pack)
        self._faces = _faces_with_looks(resource_pack)
        self._floats, self._ints = new_scratch()
        # What the models of cells in the scratch depend on.
        self._models_of: tuple[World | None, int, int, int] = (None, 0, 0, 0)
        capacity = MOB_CAPACITY + ITEM_CAPACITY + THROWN_CAPACITY + FALLING_CAPACITY
        capacity += LEADS_SHOWN * (ROPE_PIECES + 1)
        self._instances = np.zeros((capacity, INSTANCE_SIZE), np.float32)
        self._instance_models = np.zeros(capacity, np.int32)
        self._plants = Plants(self.camera, self._rays, resource_pack)
        self._marks = MiningMarks(
            self._sampling,
            self.camera,
            self._viewpoint.eye,
            self._rays,
            self._atlas,
            resource_pack,
        )
        self._overlays = Overlays(
            self._sampling, self._tan_x, self._tan_y, textures_of(resource_pack)
        )
        self._still = StillPicture(self.depth.size)
        self._stars, self._bodies = star_table(), bodies_of(textures_of(resource_pack))
        self._clouds = Clouds(textures_of(resource_pack))
        # The world's seed and the column decide the biome, and so the colour of the sky.
        self._place: tuple[int, int, int] | None = None
        self._biome = self._sky_step = 0
        self._night_vision = 0.0
        self._sky: Sky = sky_at(0)
        self._apply_hour()

    def draw(
        self,
        world: World,
        player: Player,
        mobs: Mobs,
        items: DroppedItems,
        inventory: Inventory,
        time: float,
        out: Frame | None = None,
        falling: FallingBlocks | None = None,
        screen: ScreenView | None = None,
        name_ticks: int = 0,
        particles: Particles | None = None,
        ticks: int = 0,
        thrown: ThrownItems | None = None,
        sleep_ticks: int = 0,
    ) -> Frame:
        """Draw one frame.

        Args:
            world: The blocks.
            player: The player whose view is drawn.
            mobs: All mobs.
            items: All dropped items.
            inventory: What the display and the hand show.
            time: Ticks since the first sunrise (6000 is noon), which decide hour and moon.
            out: uint8 (height, width, 3), C-contiguous, to draw into; a new array by default.
            falling: All falling blocks; none by default.
            screen: The open screen; none by default.
            name_ticks: Ticks for which the name of the item in hand is still shown.
            particles: The dust of blocks; none by default.
            ticks: Ticks since the world began, with which the clouds drift.
            thrown: All thrown things in flight; none by default.
            sleep_ticks: Ticks for which the player has been asleep, which darken the picture.

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
        canvas = frame if self._canvas is None else self._canvas
        self._look(world, player, time)
        view = world, self.camera, self._sky_step, canvas, self.depth
        sees_sky = True
        if screen is None or not self._still.repeat(*view):
            sees_sky = self._draw_world(world, canvas)
            if screen is not None:
                self._still.keep(*view)
        self._draw_entities(world, mobs, items, thrown, falling, canvas)
        self._marks.draw(world, player, mobs, particles, canvas, self.depth)
        # Land is below the clouds, so from below they are seen only where there is sky.
        if sees_sky or self._viewpoint.eye.item(1) >= BOTTOM:
            seen = self.camera, self._viewpoint.eye, self._rays, canvas, self.depth
            self._clouds.draw(*seen, ticks)
        shown = self.camera, self._viewpoint, player, inventory, screen, name_ticks
        self._overlays.draw(canvas, *shown)
        if sleep_ticks:
            darken(canvas, sleep_ticks)
        self._sampling.finish(canvas, frame)
        return out

    def _look(self, world: World, player: Player, time: float) -> None:
        """Move the camera to the player's eyes and set the colours of hour and biome."""
        self._viewpoint.follow(player, world.light)
        if self._viewpoint.fov_gain != self._fov_gain:
            self._fov_gain = self._viewpoint.fov_gain
            self._widen(self._fov_gain)
        step, biome = int(time) // SKY_STEP_TICKS, self._biome_at_eye(world)
        seen = night_vision(player) if player.effects else 0.0
        if step != self._sky_step or biome != self._biome or seen != self._night_vision:
            self._sky_step, self._biome, self._night_vision = step, biome, seen
            self._sky = sky_at(step * SKY_STEP_TICKS, SKY_OF_BIOME[biome])
            self._apply_hour()
        mix_fog(self.camera.vector)
        if seen:
            brighten_fog(self.camera.vector, seen)

    def _biome_at_eye(self, world: World) -> int:
        """Index in `BIOMES` of the biome that the camera is in."""
        place = self.camera.column_x, self.camera.column_z, world.seed
        if place == self._place:
            return self._biome
        self._place = place
        return biome_at(*place)

    def _apply_hour(self) -> None:
        apply_sky(self.camera, self._sky)
        apply_light(self.camera, self._ints, self._sky.sun_angle, self._gamma, self._night_vision)

    def _widen(self, gain: float) -> None:
        """Widen the field of view by this share of its usual angle."""
        half_height = self.camera.widen(gain)
        ratio = np.float32(half_height / self._usual_tan)
        for usual, rays in zip(self._usual_rays, self._rays[:2], strict=True):
            np.multiply(usual, ratio, out=rays)
        self._tan_x, self._tan_y = half_height * self.camera.aspect, half_height

    def _draw_world(self, world: World, frame: Frame) -> bool:
        """Draw terrain, sky and plants; return whether any pixel may show sky."""
        camera = self.camera
        # Other chunks are loaded only when the player enters another one.
        chunk = camera.column_x // CHUNK, camera.column_z // CHUNK
        if self._models_of != (world, world.changes, *chunk):
            self._models_of = (world, world.changes, *chunk)
            forget_models(self._ints)
        sees_sky = render_terrain(
            world.blocks,
            world.box,
            world.tints,
            world.only_tint,
            world.may_have_snow,
            world.shade,
            world.light,
            world.ceiling,
            self._atlas.textures,
            self._faces,
            LOOKS,
            camera.vector,
            self._rays.across,
            self._rays.upward,
            camera.column_x & 255,
            camera.column_z & 255,
            *self._drawn,
            frame,
            self.depth,
            self._floats,
            self._ints,
        )
        if sees_sky:
            render_celestial(
                camera.vector,
                *self._rays,
                self._sky.sun_angle,
                self._sky.stars,
                self._stars,
                *self._bodies.sun,
                *self._bodies.moon[self._sky.moon_phase],
                frame,
                self.depth,
            )
        self._plants.draw(world, frame, self.depth)
        return sees_sky

    def _draw_entities(
        self,
        world: World,
        mobs: Mobs,
        items: DroppedItems,
        thrown: ThrownItems | None,
        falling: FallingBlocks | None,
        frame: Frame,
    ) -> None:
        """Draw mobs, dropped and thrown items and falling blocks."""
        thrown_count = 0 if thrown is None else thrown.count
        falling_count = 0 if falling is None else falling.count
        if not (mobs.count or items.count or thrown_count or falling_count):
            return
        models = self._models
        render_entities(
            mobs.records,
            mobs.count,
            items.records,
            items.count,
            NO_THROWN if thrown is None else thrown.records,
            thrown_count,
            NO_FALLING if falling is None else falling.records,
            falling_count,
            models.mob,
            models.item,
            models.block,
            models.boxes,
            models.textures,
            models.first_box,
            models.atlas,
            world.light,
            self._viewpoint.eye,
            self._tan_x,
            self._tan_y,
            self._instances,
            self._instance_models,
            self.camera.vector,
            *self._rays,
            frame,
            self.depth,
        )


# ----------------------------------------------------------------- checks of a renderer's arguments

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
    """List what is wrong with a renderer's arguments, a sentence each; see `Renderer`."""
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


# -------------------------------------------------- the picture of a world in which nothing changes
# Used behind an open screen, where the player stands still.


class StillPicture:
    """Terrain, sky and plants drawn last, for as long as drawing them again would change nothing.

    They depend on the world's blocks, the camera (which has the colours of biome and fog) and the
    hour. Mobs, items, cracks, outline, dust, clouds, hand and display are drawn over them in every
    frame.
    """

    def __init__(self, pixels: int) -> None:
        """Allocate memory for a picture of `pixels` pixels."""
        self._of: tuple[World, bytes] | None = None
        # Filled now, because the system provides memory only when it is first written to.
        self._drawn = np.full(3 * pixels, 255, np.uint8)
        self._depth = np.full(pixels, np.inf, np.float32)

    def repeat(self, world: World, camera: Camera, hour: int, drawn: Bytes, depth: Floats) -> bool:
        """Copy the kept picture and its depth, if they still apply.

        Args:
            world: The blocks.
            camera: Where they are seen from, and in which light.
            hour: The sky's current step, in units of `SKY_STEP_TICKS`.
            drawn: uint8 (h * w * 3,), receives the picture.
            depth: float32 (h * w,), receives the depth.

        Returns:
            Whether there was such a picture; if not, draw one and `keep` it.
        """
        of = self._of
        if of is None or of[0] is not world or of[1] != _state(world, camera, hour):
            return False
        drawn[:] = self._drawn
        depth[:] = self._depth
        return True

    def keep(self, world: World, camera: Camera, hour: int, drawn: Bytes, depth: Floats) -> None:
        """Keep a picture that has just been drawn; arguments as in `repeat`."""
        self._of = world, _state(world, camera, hour)
        self._drawn[:] = drawn
        self._depth[:] = depth


def _state(world: World, camera: Camera, hour: int) -> bytes:
    """Everything that the picture depends on, except the world object itself."""
    numbers = np.array((world.changes, camera.column_x, camera.column_z, hour), np.int64)
    return numbers.tobytes() + camera.vector.tobytes()


_ASLEEP, _ASLEEP_ALPHA, _DEEP_SLEEP = (16, 16, 32), 220 / 255, 100


def darken(drawn: Bytes, sleep_ticks: int) -> None:
    """Darken a picture, uint8 (h * w * 3,), as for a sleeper: wholly after five seconds."""
    alpha = _ASLEEP_ALPHA * min(sleep_ticks / _DEEP_SLEEP, 1.0)
    pixels = drawn.reshape(-1, 3)
    pixels[...] = np.rint(pixels + (np.array(_ASLEEP, np.float32) - pixels) * np.float32(alpha))


# ---------------------------------------------------------------------- what is glued to the window
# Crosshair, hand and display, and an open screen over them all.


class Overlays:
    """Crosshair, hand, display and open screen, drawn over the world."""

    def __init__(self, sampling: Sampling, tan_x: float, tan_y: float, textures: Textures) -> None:
        """Prepare for a sampling.

        Args:
            sampling: Which pixels are drawn.
            tan_x: Half the width of the view one block ahead.
            tan_y: Half its height.
            textures: Pictures of items, display and screens.
        """
        lines = reduction(sampling.display_rows), reduction(sampling.display_columns)
        stacks = StackPictures(textures)
        self._hud = Hud(sampling, *lines, textures, stacks)
        self._effects = EffectIcons(sampling.display_columns.shape[1], *lines, textures)
        self._name = HeldItemName(sampling.display_columns.shape[1], *lines, textures)
        self._screen = ScreenComposer(sampling.display_columns.shape[1], *lines, textures, stacks)
        self._hands = Hands(sampling, tan_x, tan_y, textures)
        self._crosshair = Crosshair(sampling, textures)
        self._stride = 3 * sampling.drawn[0]
        self._shown: Inventory | None = None
        self._version = 0
        self._stacks: tuple[ItemStack, ...] = ()

    def draw(
        self,
        drawn: Bytes,
        camera: Camera,
        viewpoint: Viewpoint,
        player: Player,
        inventory: Inventory,
        screen: ScreenView | None,
        name_ticks: int,
    ) -> None:
        """Blend the overlays into the drawn pixels.

        Args:
            drawn: uint8 (h * w * 3,), the pixels of the world.
            camera: The camera, with the light of the hour.
            viewpoint: How the player's hand is held and lit, and what the display tells.
            player: The player whose effects are shown.
            inventory: What the display and the hand show.
            screen: The open screen, if there is one.
            name_ticks: Ticks for which the name of the item in hand is still shown.
        """
        stacks, selected = self._hotbar(inventory), player.selected
        level, share = progress_at(player.experience)
        points = viewpoint.health, viewpoint.food
        self._hud.show(HudState(stacks, selected, *points, level, int(share * (BAR_WIDTH + 1))))
        held = stacks[selected].item if viewpoint.hand < 0 else viewpoint.hand
        hand = NO_HAND
        if held or not player.records["invisible"][0]:
            hand = self._hands.of(ITEMS[held].name if held else "", viewpoint.pose)
        stride, display = self._stride, self._hud.layer
        blend_overlays(
            drawn,
            stride,
            *hand,
            camera.vector,
            viewpoint.shine,
            self._crosshair.pixels,
            *self._crosshair.bar(viewpoint.charge),
            display.top,
            display.left,
            display.colour,
            display.keep,
        )
        if held and name_ticks:
            data = stacks[selected].data if viewpoint.hand < 0 else 0
            self._name.show(held, data, name_ticks)
            self._name.layer.blend(drawn, stride)
        if player.effects and player.effects.keys() - player.hidden_effects:
            self._effects.show(effects_of(player, player.hidden_effects))
            self._effects.layer.blend(drawn, stride)
        if screen is not None:
            self._screen.show(screen, effects_of(player))
            self._screen.layer.blend(drawn, stride)

    def _hotbar(self, inventory: Inventory) -> tuple[ItemStack, ...]:
        """The stacks of the hotbar; the same tuple object for as long as nothing changes."""
        if inventory is not self._shown or inventory.version != self._version:
            self._shown, self._version = inventory, inventory.version
            self._stacks = tuple(inventory.stacks()[:HOTBAR_SLOTS])
        return self._stacks
