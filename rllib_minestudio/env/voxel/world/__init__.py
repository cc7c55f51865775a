"""The land: blocks, the generation of terrain, and the collision of bodies with it.

world        the blocks around the player, and all operations on them
land         the chunks in the window: which are made, and which have their fields
edits        changes of blocks, and the memory of what was changed
climate      biomes and heights
worldgen     how a chunk is made from the seed: the order of the steps; the ground, and snow
tunnels      the ways of caves and ravines
caves        what is carved out of the land
veins        ores, and other stone, earth and gravel
trees        trees and cactus
vegetation   grass, flowers and pumpkins
column_bits  what bits for the cells of a column have in common
box_field    the empty boxes through which rays leap
cell_bits    where the land is hollow, and where plants are that rays pass through
optics       what blocks do to light
light_field  light in every cell, and how it spreads
sky_light    the light of the sky
block_light  the light of blocks that emit it
lighting     both, and where there is nothing but full light of the sky
physics      collision of boxes with blocks, the constants of motion
lava         what it does to those who are in it
surfaces     what blocks do to those who walk on them, stand in them or climb them
block_shapes the boxes of blocks: for bodies, the crosshair and the picture
block_states kinds in their states, and what they stop, hide and bear
plants       which blocks are plants, what they grow on, where in their cell they stand
blocks       the table of block types
"""
