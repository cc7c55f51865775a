"""A whole game: its state, its ticks, and the effects of keys, events and deaths.

game                   begin, tick
survey                 questions that no observation answers; light, sky and biome at the player
use_and_drop           the use key, as a table of what it does; the drop key
husbandry leads        what one does with animals: shearing, dyes, milk, breeding; leads and knots
golems                 those that players build, and snow golems' tracks
projectiles            what is thrown and shot
sleeping               beds, nights, the spawn point
doors                  what opens, by hand or by a lever or button
fire                   what burns, whom it harms; portals
placement              what becomes of a block item, where, and in which state
screen_handling        opening, operating and closing screens; contents of blocks; the player's view
event_handlers loot    effects of a tick's events
spawning               beginning, teleporting, dying and reviving
block_ticks            what is scheduled to happen to blocks
supports               what becomes of blocks that have lost their support
falling                sand and gravel
game_state             everything that a game consists of
statistics             counters of what the player did
"""
