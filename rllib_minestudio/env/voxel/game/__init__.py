"""A whole game: its state, its course, and what keys, events and deaths do to it.

game                   begin, tick
surroundings view      light, sky and biome where the player is; what the player sees
building               the use and drop keys
screens                opening, working and closing screens; what lies in blocks
event_handlers loot    what follows from the events of a tick
spawning               beginning, dying and coming back
falling                sand and gravel
game_state             everything that a game consists of
statistics             counters of what the player did
"""
