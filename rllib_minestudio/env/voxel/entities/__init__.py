"""Moving things other than the player: animals, dropped items, falling blocks.

mobs         kernels: one tick of the animals and of dropped items, hits, events for Python
records      the types, and the record arrays that hold them
"""
