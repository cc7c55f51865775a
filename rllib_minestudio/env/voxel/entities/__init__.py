"""What moves besides the player: animals, dropped items, falling blocks.

drops        kernel: one tick of the dropped items
mobs         kernel: one tick of the animals
damage       kernels: what a hit does to a body
events       what a kernel tells Python about a tick
records      the types, and the record arrays that hold them
"""
