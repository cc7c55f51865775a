"""The use and drop keys: opening screens, placing blocks, throwing items."""

from __future__ import annotations

from rllib_minestudio.env.voxel.entities.records import MOB_KINDS
from rllib_minestudio.env.voxel.game import screen_handling
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.placement import Click, placed_blocks
from rllib_minestudio.env.voxel.items.items import EMPTY, FOOD, ITEMS, is_block_item
from rllib_minestudio.env.voxel.player import combat
from rllib_minestudio.env.voxel.player.player import (
    SNEAKING_HEIGHT,
    STANDING_HEIGHT,
    USE_DELAY,
    WIDTH,
)
from rllib_minestudio.env.voxel.player.raycast import BLOCK
from rllib_minestudio.env.voxel.world.block_states import is_replaceable
from rllib_minestudio.env.voxel.world.box_field import HEIGHT


def _touches(position: list[float], half: float, height: float, cell: tuple[int, int, int]) -> bool:
    """Whether a body with its feet at `position` overlaps a block's cell."""
    x, y, z = position
    return (
        cell[0] - half < x < cell[0] + 1 + half
        and cell[1] - height < y < cell[1] + 1
        and cell[2] - half < z < cell[2] + 1 + half
    )


def is_vacant(state: GameState, cell: tuple[int, int, int]) -> bool:
    """Whether a block can be put into `cell`: it is loaded, replaceable, and free of bodies."""
    return _is_free(state, cell) and is_replaceable(state.world.block_at(*cell))


def _is_free(state: GameState, cell: tuple[int, int, int]) -> bool:
    """Whether `cell` is loaded, within the world, and free of bodies."""
    x, y, z = cell
    if not (0 <= y < HEIGHT and state.world.is_loaded(x, z)):
        return False
    player = state.player
    height = SNEAKING_HEIGHT if player.sneaking else STANDING_HEIGHT
    if _touches(player.position.tolist(), WIDTH / 2, height, cell):
        return False
    kinds = state.mobs.kind.tolist()
    return not any(
        _touches(position, MOB_KINDS[kind].width / 2, MOB_KINDS[kind].height, cell)
        for kind, position in zip(kinds, state.mobs.position.tolist(), strict=True)
    )


def use_item(state: GameState, sneaks: bool) -> None:
    """Open the screen of the block under the crosshair, or place the block in hand against it.

    Nothing is used while a block is being mined. Food in hand is left to `locomotion.begin_meal`.

    Args:
        state: The game.
        sneaks: Whether the sneak key was held in the last tick.
    """
    player, target = state.player, state.target[0]
    item = player.held_item
    if player.records["is_mining"][0]:
        return
    if screen_handling.use_block(state, sneaks):
        player.records["use_delay"] = USE_DELAY
        combat.swing(player.records[0])
        return
    if item in FOOD:
        return
    player.records["use_delay"] = USE_DELAY
    if not is_block_item(item) or target["kind"] != BLOCK or not target["face"].any():
        return
    click = Click(
        cell=(int(target["x"]), int(target["y"]), int(target["z"])),
        face=tuple(target["face"].tolist()),
        hit=tuple(target["hit"].tolist()),
        yaw=player.yaw,
        pitch=player.pitch,
    )
    placed = placed_blocks(item, click, state.world.block_at)
    if placed and all(_is_free(state, cell) for cell in placed):
        state.world.set_blocks(placed)
        player.inventory.take(player.selected)
        state.statistics.add("use_item", ITEMS[item].name)
        combat.swing(player.records[0])


def drop_held_item(state: GameState) -> None:
    """Throw one item of the stack in hand forward."""
    player = state.player
    stack = player.inventory.take(player.selected)
    if stack.item == EMPTY:
        return
    state.throw_item(stack)
    state.statistics.add("custom", "drop")
    combat.swing(player.records[0])
