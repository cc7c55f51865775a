"""The land: blocks, how terrain is made, and how bodies collide with it.

world        the window of columns that follows the player
worldgen     terrain from the seed
box_field    what lets a ray leap through empty space
physics      collision of boxes with blocks, the constants of motion
blocks       the table of block types
"""
