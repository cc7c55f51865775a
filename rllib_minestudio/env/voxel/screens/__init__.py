"""The screens: what their slots hold, and what the cursor does to them.

containers    stacks that belong to a block
ingredients   names and tags of the tables as sets of item ids
crafting      which recipe a grid fits
smelting      the furnace
block_entities  the containers of a world, by the block that they belong to
slots         what each kind of slot accepts and gives
menu          what a click on a slot does to the stacks
menus         the menus of the four screens
geometry      where slots are in the window
clicks        mouse buttons as clicks, drags and double clicks
screen        an open screen: its menu, its cursor, and what keys do
view          what is seen of it
data/         the tables

Everything follows Minecraft Java 1.16.5; docs/screens.md says what is left out.
"""
