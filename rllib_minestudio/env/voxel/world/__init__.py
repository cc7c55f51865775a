"""The land: blocks, the generation of terrain, and the collision of bodies with it.

world        the blocks around the player, and all operations on them
land         the chunks in the window, which have their fields, and what was changed in them
climate      biomes and heights
worldgen     how a chunk is made from the seed: the order of the steps; the ground, and snow
tunnels      the ways of caves and ravines
caves        what is carved out of the land, and veins of ores and other stone
trees        trees and cactus
vegetation   grass, flowers and pumpkins
column_bits  what bits for the cells of a column have in common
box_field    the empty boxes through which rays leap
cell_bits    where the land is hollow, and where plants are that rays pass through
light_field  light in every cell, and how it spreads
sky_light    the light of the sky
block_light  the light of blocks that emit it
lighting     both, and where there is nothing but full light of the sky
physics      collision of boxes with blocks, the constants of motion
surfaces     what blocks do to those who touch them: walking, climbing, lava, fire
block_shapes the boxes of blocks: for bodies, the crosshair and the picture
blocks       kinds of blocks and their states: what they stop, hide, bear and do to light; plants
"""
