"""A whole game: its state, its ticks, and the effects of keys, events and deaths.

game                   begin, tick; effects of a tick's events
survey                 questions that no observation answers; light, sky and biome at the player
use_and_drop           the use key, as a table of what it does; doors; the drop key
husbandry              what one does with animals: shearing, milk, breeding, leads; golems
projectiles            what is thrown and shot
fire                   what burns, whom it harms; portals
placement              what becomes of a block item, where, and in which state
screen_handling        opening, operating and closing screens; contents of blocks; the player's view
loot                   what blocks, animals and fishing give
spawning               beginning, teleporting, dying and reviving; beds and nights
block_ticks            what is scheduled to happen to blocks
game_state             everything that a game consists of
statistics             counters of what the player did
"""
