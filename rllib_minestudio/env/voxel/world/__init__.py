"""The land: blocks, the generation of terrain, and the collision of bodies with it.

world        the blocks around the player, and all operations on them
land         the chunks in the window: which are made, and which have their fields
edits        changes of blocks, and the memory of what was changed
climate      biomes and heights from the seed
making       the order in which the blocks of a chunk are made
worldgen     the ground of each biome, its colours and snow, from the seed
trees        trees and cactus from the seed
vegetation   grass, flowers and pumpkins from the seed
box_field    the empty boxes through which rays leap
thin_blocks  where the plants are that rays pass through
optics       what blocks do to light
light_field  light in every cell, and how it spreads
sky_light    the light of the sky
block_light  the light of blocks that emit it
lighting     both, and where there is nothing but full light of the sky
physics      collision of boxes with blocks, the constants of motion
surfaces     what blocks do to those who walk on them, stand in them or climb them
block_shapes the boxes of blocks: for bodies, the crosshair and the picture
block_states kinds in their states, and what they stop, hide and bear
plants       which blocks are plants, what they grow on, where in their cell they stand
blocks       the table of block types
"""
