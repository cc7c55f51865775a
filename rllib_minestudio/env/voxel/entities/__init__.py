"""Moving things other than the player: animals, dropped items, falling blocks.

goals        kernels: what mobs do, by kind and by priority
mobs         kernels: one tick of the animals and of dropped items, hits, events for Python
records      the types, and the record arrays that hold them
"""
