"""The first-person renderer: `renderer`, and the parts that it puts together.

Reading order: `camera` (what is seen), `sampling` and `pixel_rays` (which pixels are drawn), `sky`
and `light_map` (colours of the hour), `ray_tiles` and `terrain` (ray casting of blocks) with
`shading` and `occlusion` (what a hit looks like), `celestial` (sun, moon, stars), `models`,
`placement` and `entities` (mobs and items as textured boxes), `hand`, `hud` and `screen` (what is
glued to the window), `window` (how that is composed and brought to what is drawn).

Pictures come from `textures`: files in the layout of Minecraft's resource packs, read by
`resource_pack`, ours or the user's. `block_textures`, `mob_textures` and `texels` make of them what
the kernels read; `block_rays` and `stack_pictures` draw what slots and the hand show.
"""
