"""The embedded engine: a small voxel game modelled on Minecraft Java 1.16, in numpy and numba.

Its interface is `engine.VoxelEngine`. Each layer imports only from those listed below it:

    engine         facade: reset, tick, execute, render, info
    commands/      chat commands
    game/          a whole game: its state, its ticks, and the effects of keys, events and deaths
    render/        pictures
    screens/       inventory, crafting table, furnace, chest ...: their slots, clicks, recipes
    player/        the player: its state, and the rules of moving, fighting, mining and eating
    entities/      animals, herds, dropped items, falling blocks: their state and their ticks
    items/         item types, tools, food, enchantments, potions, the inventory
    world/         blocks, terrain, collision, and two fields: boxes for rays, light
    data/          tables of facts about Minecraft, constants
    kernels        compilation of kernels

Outside these layers, `kernel_cache` runs `warmup_game` to compile the kernels once per machine,
`contract` checks which blocks and mobs a step asks for and identifies what decides how frames look,
and `server/` implements MineStudio's wire protocol.
"""

from __future__ import annotations

RULES = 5
"""Revision of the game's rules. Raise it with every change to what the same actions lead to:
evaluations under different revisions are not compared."""

LOOKS = 5
"""Revision of how frames are drawn. Raise it with every change that a policy could see, and renew
the frames of tests/env/voxel/render/test_looks.py: policies trained under another one are told."""

# The choices of rendering are declared here, where checking an option compiles no kernels.
AVERAGE, SAMPLES = "average", "samples"
SAMPLINGS = (AVERAGE, SAMPLES)
"""How a frame is made from the game's window, see `render.window`."""

MINESTUDIO_GAMMA = 2.0
"""The gamma that MineStudio writes into the game's options; the game's own slider ends at 1."""
LOWEST_GAMMA, HIGHEST_GAMMA = 0.0, 16.0
