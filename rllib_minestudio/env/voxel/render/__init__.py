"""The first-person renderer: `renderer` and the parts that it combines.

Reading order: `camera` (what is seen) and `viewpoint` (from where, and how it sways), `window`
(which pixels are drawn, and how layers over the world are composed), `ray_tiles`, `terrain`, `look`
and `march` (ray casting of blocks), `see_through`, `block_looks` and `waiting_rays` (rays that go
on behind gaps and glass and past boxes), `light` and `corner_light` (shading of hits, the light
map), `plants` (flat pictures on the terrain), `sky` (the hour's colours, fog and dome), `celestial`
(sun, moon and stars), `models` and `boxes` (mobs and items as textured boxes), `mining_marks` and
`particles` (cracks, outline and dust), `clouds`, `hand` (the arm or the item in hand, and the rays
of the drawn pixels), `gui` and `crosshair` (screens and heads-up display).

Pictures come from `textures`: files in the layout of Minecraft's resource packs, ours or the
user's, read by `resource_pack`. `renderer`, `mob_textures` and `texels` turn them into arrays
for the kernels; `block_rays` draws blocks as slots and the hand show them.
"""
