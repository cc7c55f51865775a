"""The land: blocks, how terrain is made, and how bodies collide with it.

world        what is within reach of the player, and all that may be done with it
land         the chunks in the window: which are made, and which have their fields
edits        changing blocks, and remembering what was changed
worldgen     terrain from the seed
box_field    what lets a ray leap through empty space
physics      collision of boxes with blocks, the constants of motion
blocks       the table of block types
"""
