"""The first-person renderer: `renderer` and the parts that it combines.

Reading order: `camera` (what is seen, from where, and how it sways), `window` (which pixels are
drawn, and how layers over the world are composed), `terrain` and `march` (ray casting of blocks),
`block_atlas` and `see_through` (how blocks look; rays that go on behind gaps and glass and past
boxes), `light` and `corner_light` (shading of hits, the light map), `plants` (flat pictures on the
terrain), `sky` (the hour's colours, fog and dome; sun, moon and stars), `models` and `boxes` (mobs
and items as textured boxes), `mining_marks` (cracks, outline and dust), `clouds`, `hand` (the arm
or the item in hand, the figure in the inventory), `gui` and `overlays` (screens and heads-up
display).

Pictures come from `textures`: files in the layout of Minecraft's resource packs, ours or the
user's, read by `resource_pack`. `textures` and `mob_textures` turn them into arrays for the
kernels.
"""
