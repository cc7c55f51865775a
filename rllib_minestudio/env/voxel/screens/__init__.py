"""The screens: their slots, and what cursor and keys do to them.

geometry      positions of slots in the window; containers
crafting      recipes, furnaces, and the containers of a world's blocks
slots         what each kind of slot accepts and gives
menu          what a click on a slot does; the menus of the four screens
screen        an open screen: its menu, cursor, mouse buttons and keys
data/         the tables

Everything follows Minecraft Java 1.16.5; docs/embedded_engine.md lists what is left out.
"""
