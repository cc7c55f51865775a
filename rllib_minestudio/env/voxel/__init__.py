"""The embedded engine: a small voxel game after Minecraft Java 1.16, in numpy and numba.

`engine.VoxelEngine` is the door. Below it, imports point downwards:

    engine                      facade: reset, tick, execute, render, info
    commands/  renderer         chat commands; pictures (renderer and render/)
    surroundings                light, sky and biome where the player is
    game                        the course of a game: begin, tick
    building consequences places    what keys, events and deaths do
    state                       everything a game consists of
    mobs drops player_tick      kernels: one tick of each kind of thing
    combat mining locomotion hunger raycast physics    kernels: the rules
    world  worldgen  accel      blocks, terrain, and the box field for rays
    player inventory entities   records and containers
    blocks items tools boxes    tables; what a step may ask for
    kernels jitcache rehearsal  how kernels are compiled, once per machine
"""

RULES = 1
"""Revision of the game's rules. Raise it with whatever changes what the same actions lead to:
evaluations that were played under different revisions are not compared. Summaries from before there
were revisions name none."""
