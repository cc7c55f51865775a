"""A whole game: its state, its ticks, and the effects of keys, events and deaths.

game                   begin, tick
survey                 questions that no observation answers; light, sky and biome at the player
building               the use and drop keys
screens                opening, operating and closing screens; contents of blocks; the player's view
event_handlers loot    effects of a tick's events
spawning               beginning, teleporting, dying and reviving
falling                sand and gravel
game_state             everything that a game consists of
statistics             counters of what the player did
"""
