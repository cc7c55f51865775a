"""The embedded engine: a small voxel game after Minecraft Java 1.16, in numpy and numba.

`engine.VoxelEngine` is its interface. Below it, imports point downwards:

    engine         facade: reset, tick, execute, render, info
    commands/      chat commands
    game/          a whole game: its state, its course, what keys, events and deaths do
    player/        the player: its state, and the rules of moving, fighting, mining and eating
    entities/      animals, dropped items, falling blocks: their state, and a tick of each
    render/        pictures
    screens/       inventory, crafting table, furnace, chest: their slots, clicks, recipes
    items/         what can be carried: tables, tools, inventory
    world/         blocks, terrain, collision, and two fields: boxes for rays, light
    kernels        how kernels are compiled

Beside them, `kernel_cache` has `warmup_game` compile the kernels once per machine, `observed_boxes`
is what a step may ask for, `view_options` what there is to choose about pictures, and `server/`
speaks MineStudio's wire protocol.
"""

RULES = 2
"""Revision of the game's rules. Raise it with whatever changes what the same actions lead to:
evaluations that were played under different revisions are not compared."""
