"""The first-person renderer: `renderer`, and the parts that it puts together.

Reading order: `camera` (what is seen), `sampling` and `pixel_rays` (which pixels are drawn), `sky`
and `light_map` (colours of the hour), `ray_tiles` and `terrain` (ray casting of blocks) with
`shading` and `occlusion` (what a hit looks like), `celestial` (sun, moon, stars), `models`,
`placement` and `entities` (mobs and items as textured boxes), `hand` and `hud` (what is glued to
the screen), `overlay` (how those are blended in). Textures are painted by `texels`,
`block_textures`, `item_pictures`, `item_sprites` and `mob_textures`; every picture is our own,
drawn by code.
"""
