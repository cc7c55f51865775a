"""What is glued to the window: crosshair, hand, display, and an open screen over them all."""

from __future__ import annotations

import math

from rllib_minestudio.env.voxel.items.inventory import HOTBAR_SLOTS, Inventory, ItemStack
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.player.player import SWING_TICKS, Player
from rllib_minestudio.env.voxel.render.camera import Bytes, Floats
from rllib_minestudio.env.voxel.render.hand import Hands, blend_hand
from rllib_minestudio.env.voxel.render.hud import Hud, HudState, invert
from rllib_minestudio.env.voxel.render.sampling import Sampling
from rllib_minestudio.env.voxel.render.screen import ScreenComposer
from rllib_minestudio.env.voxel.render.stack_pictures import StackPictures
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import reduction
from rllib_minestudio.env.voxel.screens.view import ScreenView


class Overlays:
    """Draws over what is drawn of the world."""

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
        self._screen = ScreenComposer(sampling.display_columns.shape[1], *lines, textures, stacks)
        self._hands = Hands(sampling, tan_x, tan_y, textures)
        self._height = sampling.drawn[1]
        self._stacks: tuple[bytes, tuple[ItemStack, ...]] = (b"", ())

    def draw(
        self,
        drawn: Bytes,
        player: Player,
        inventory: Inventory,
        light: Floats,
        screen: ScreenView | None,
    ) -> None:
        """Blend everything in.

        Args:
            drawn: uint8 (h * w * 3,), the pixels drawn so far.
            player: Whose hand and hearts to show.
            inventory: What the display and the hand show.
            light: float32 (3,), light on the hand's red, green and blue, 0..1.
            screen: The open screen; None for none.
        """
        stacks = self._hotbar(inventory)
        health = math.ceil(player.health)
        self._hud.show(HudState(stacks, player.selected, health, player.food))
        held = stacks[player.selected].item
        # Rounded to whole ticks, so that there are few poses to keep.
        swing = round(player.swing_progress * SWING_TICKS) / SWING_TICKS
        hand = self._hands.of(ITEMS[held].name if held else "", swing)
        rows = drawn.reshape(self._height, -1)
        invert(drawn, self._hud.crosshair)
        blend_hand(rows, *hand, light)
        self._hud.layer.blend(rows)
        if screen is not None:
            self._screen.show(screen)
            self._screen.layer.blend(rows)

    def _hotbar(self, inventory: Inventory) -> tuple[ItemStack, ...]:
        """The stacks of the hotbar: the same tuple as before for as long as they are the same."""
        columns = [
            column[:HOTBAR_SLOTS]
            for column in (inventory.item, inventory.quantity, inventory.damage)
        ]
        state = b"".join([column.tobytes() for column in columns])
        if state != self._stacks[0]:
            lists = [column.tolist() for column in columns]
            self._stacks = state, tuple(map(ItemStack._make, zip(*lists, strict=True)))
        return self._stacks[1]
