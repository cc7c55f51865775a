"""Draw a page of scenes to look at one by one: `python -m tools.gallery FOLDER`.

Each scene is played by the embedded engine with commands and keys, and drawn as the game's window
and as VPT's observation. The page says what should be seen. Whoever changes the looks of the engine
draws it before and after.
"""

from __future__ import annotations

import argparse
import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from rllib_minestudio.env.voxel import SAMPLES
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS

WINDOW, OBSERVATION = (640, 360), (128, 128)
SEED = 7
Keys = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """One picture.

    Attributes:
        name: Its file's name.
        shows: What should be seen.
        commands: Chat commands at the beginning; the player looks south at the horizon.
        play: Numbers of ticks, and the keys held for as long.
        biome: Where it is.
        slot: In an open screen, the slot that the cursor is moved to.
        herds: Whether animals come with the land.
    """

    name: str
    shows: str
    commands: tuple[str, ...] = ()
    play: tuple[tuple[int, Keys], ...] = ((1, {}),)
    biome: str = "plains"
    slot: int | None = field(default=None, kw_only=True)
    herds: bool = field(default=False, kw_only=True)


def _at(daytime: int | str, yaw: int = 0, pitch: int = 0) -> tuple[str, ...]:
    return f"/time set {daytime}", f"/tp @p ~ ~ ~ {yaw} {pitch}"


def _room(inside: str = "air") -> tuple[str, ...]:
    """A room of planks below the ground, with steps and pillars, and a shaft to the sky."""
    return (
        "/tp @p ~ 40 ~ 20 20",
        "/fill ~-6 ~-1 ~-3 ~6 ~4 ~12 oak_planks",
        f"/fill ~-5 ~ ~-2 ~5 ~3 ~11 {inside}",
        "/fill ~3 ~ ~6 ~5 ~ ~11 stone_bricks",
        "/fill ~4 ~1 ~8 ~5 ~1 ~11 stone_bricks",
        "/fill ~-4 ~ ~5 ~-4 ~3 ~5 oak_log",
        "/setblock ~-1 ~ ~4 stone",
        "/setblock ~ ~ ~5 stone",
        "/fill ~-3 ~4 ~8 ~-3 ~60 ~8 air",
    )


_ROWS_OF_PLANTS = (
    ("grass", "fern", "dandelion", "poppy", "azure_bluet", "oxeye_daisy", "cornflower"),
    ("red_tulip", "white_tulip", "allium", "lily_of_the_valley", "oak_sapling", "red_mushroom"),
    ("dead_bush", "sugar_cane", "cobweb", "sweet_berry_bush[age=3]", "wheat[age=7]", "wheat[age=3]",
     "carrots[age=7]"),
    ("tall_grass", "large_fern", "sunflower", "lilac", "rose_bush", "peony"),
)  # fmt: skip


def _garden() -> tuple[str, ...]:
    """Rows of plants on a clearing, the tall ones behind."""
    return (
        "/fill ~-9 ~ ~ ~9 ~4 ~14 air",
        *(
            f"/setblock ~{2 * column - 6} ~ ~{2 * row + 3} {plant}"
            for row, plants in enumerate(_ROWS_OF_PLANTS)
            for column, plant in enumerate(plants)
        ),
        *(f"/setblock ~{2 * column - 6} ~1 ~9 {plant}[half=upper]"
          for column, plant in enumerate(_ROWS_OF_PLANTS[-1])),
        *_at(6000, 0, 12),
    )  # fmt: skip


def _house(daytime: int | str = 6000, *view: str) -> tuple[str, ...]:
    """A house with windows, a roof of stairs, a fence around it and doors."""
    parts = (
        "-7 0 5 7 0 5 oak_fence",
        "-7 0 5 -7 0 16 oak_fence",
        "7 0 5 7 0 16 oak_fence",
        "0 0 5 0 0 5 oak_fence_gate[facing=south,open=true]",
        "-4 -1 8 4 -1 14 oak_planks",
        "-4 0 8 4 2 14 oak_planks",
        "-3 0 9 3 2 13 air",
        "-4 0 8 -4 2 8 oak_log",
        "4 0 8 4 2 8 oak_log",
        "-3 1 8 -2 1 8 glass_pane",
        "2 1 8 3 1 8 glass",
        "-4 1 10 -4 1 12 glass",
        "4 1 10 4 1 12 red_stained_glass",
        "0 0 8 0 0 8 oak_door[facing=south,half=lower]",
        "0 1 8 0 1 8 oak_door[facing=south,half=upper]",
        *(
            f"{x} {y} 7 {x} {y} 15 stone_brick_stairs[facing={side}]"
            for step in range(5)
            for x, y, side in ((step - 5, step + 2, "east"), (5 - step, step + 2, "west"))
        ),
        "0 7 7 0 7 15 stone_brick_slab",
        *(f"{step - 3} {step + 3} 8 {3 - step} {step + 3} 8 oak_planks" for step in range(4)),
        *(f"{step - 3} {step + 3} 14 {3 - step} {step + 3} 14 oak_planks" for step in range(4)),
        "3 0 12 3 0 12 chest[facing=west]",
        "-3 0 13 -3 0 13 crafting_table",
        "3 0 9 3 2 9 ladder[facing=west]",
        "-2 0 11 -2 0 11 oak_slab[type=top]",
        "-5 0 8 -5 0 8 cobblestone_wall",
        "-6 0 8 -6 0 8 cobblestone_wall",
        "-6 0 9 -6 0 9 cobblestone_wall",
        "6 0 9 6 0 9 iron_bars",
        "6 0 10 6 0 10 iron_bars",
    )
    placed = (
        " ".join(word if word[-1].isalpha() or "]" in word else f"~{word}" for word in part.split())
        for part in parts
    )
    return (*(f"/fill {part}" for part in placed), *(view or _at(daytime, 0, 0)))


_STONE_AHEAD = ("/setblock ~ ~1 ~2 stone", "/tp @p ~ ~ ~ 0 0")
_WALK = {"forward": 1}
_OPEN: tuple[tuple[int, Keys], ...] = ((12, {}), (1, {"inventory": 1}), (2, {}))

SCENES = (
    Scene("noon", "plains: fog towards the horizon, steps dark at their foot", _at(6000)),
    Scene("sky", "clouds and sky, looking up", _at(6000, 30, -35)),
    Scene("sunrise", "the sun low in the east, glow on this side only", _at(23200, -90)),
    Scene("away_from_sunrise", "no glow in the west", _at(23200, 90)),
    Scene("sunset", "the sun low in the west, glow on this side only", _at(12600, 90)),
    Scene("night", "moon, stars, a dark blue ground that can be made out", _at(18000, 0, -10)),
    Scene("moon", "the full moon overhead among stars", _at(18000, 90, -80)),
    Scene("half_moon", "the moon's third phase, two days later", _at(18000 + 2 * 24000, 90, -80)),
    Scene("moonrise", "the moon low in the east, faint stars", _at(13400, -90, -10)),
    Scene("below_clouds", "the undersides of clouds near by", ("/tp @p ~ 112 ~ 60 -30",)),
    Scene("among_clouds", "clouds all around, the land in fog", ("/tp @p ~ 128 ~ 60 5",)),
    Scene("above_clouds", "clouds below", ("/tp @p ~ 138 ~ 60 25",)),
    Scene("forest", "trunks and leaves, shade under the trees", _at(6000, 60, 5), biome="forest"),
    Scene("forest_night", "darker below trees", _at(18000, 60, 5), biome="forest"),
    Scene("desert", "sand, far view", _at(6000, 120, 5), biome="desert"),
    Scene("birch_forest", "white trunks, grass a little bluer than in plains", _at(6000, 60, 5),
          biome="birch_forest"),
    Scene("taiga", "spruces in tiers and pines with bare trunks, ferns",
          ("/tp @p ~3 ~ ~3", *_at(6000, 60, 5)), biome="taiga"),
    Scene("taiga_above", "the crowns from above", ("/tp @p ~ ~18 ~", *_at(6000, 45, 25)),
          biome="taiga"),
    Scene("savanna", "yellow grass, much of it tall; acacias that bend", _at(6000, 90, 3),
          biome="savanna"),
    Scene("tundra", "snow with tufts of grass, and white rims on its steps; few spruces",
          _at(6000, 0, 8), biome="snowy_tundra"),
    Scene("tundra_steps", "the same from a tree's height: white rims, no green ones",
          ("/tp @p ~ ~9 ~", *_at(6000, 45, 35)), biome="snowy_tundra"),
    Scene("mountains", "stone, grass and gravel on slopes; snow on the tops",
          ("/tp @p ~ ~6 ~", *_at(6000, 200, 12)), biome="mountains"),
    Scene("mountain_foot", "a slope that begins gently, from the plains before it",
          ("/teleportbiome @p mountains", "/tp @p ~-70 ~-12 ~", *_at(6000, -90, 0))),
    Scene("herd", "a herd on the plains, chickens among them",
          ("/execute at @e[type=chicken,limit=1] run tp @p ~1 ~3 ~-5 10 22", "/time set 6000"),
          herds=True),
    Scene("chickens", "chickens from near by: body, wings, thin legs, beak and wattle",
          ("/summon chicken ~ ~ ~2", "/summon chicken ~1 ~ ~2.5", "/summon chicken ~-1 ~ ~3",
           *_at(6000, 0, 25))),
    Scene("meadow", "tufts of grass, flowers here and there, and the ground between them",
          _at(6000, 200, 18)),
    Scene("meadow_ahead", "grass thins out with distance", _at(6000, 200, 2)),
    Scene("garden", "plants in rows: flowers, crops, bushes; both halves of tall ones", _garden()),
    Scene("garden_above", "the same from above: crosses, and strokes of a #",
          (*_garden(), "/tp @p ~ ~5 ~5 0 60"), ((0, {}),)),
    Scene("forest_floor", "grass, flowers and bushes between trunks", _at(6000, 60, 25),
          biome="forest"),
    Scene("desert_bushes", "dead bushes and cactus on sand",
          (*_at(6000), "/tp @p ~-12 ~2 ~-7 120 12"), biome="desert"),
    Scene("meadow_night", "grass as dark as the ground", _at(18000, 200, 18)),
    Scene("room", "corners, steps and pillars with soft shade; light from the shaft", _room()),
    Scene("cave_mouth", "a cave that is open to the sky: earth, then stone, dark at the bottom",
          (*_at(6000), "/tp @p 98 70 -245 -90 25")),
    Scene("ravine", "a ravine in a meadow, too deep to see its ground",
          (*_at(6000), "/tp @p -226 72 -392 -33 40")),
    Scene("ravine_floor", "the same from its ground: a strip of sky, ledges, ores and other stone",
          (*_at(6000), "/tp @p -232 27 -373 -80 -10")),
    Scene("lava", "a cave with a lake of lava, which lights it", ("/tp @p -280.5 12 -155.5 0 8",)),
    Scene("in_lava", "the eye in lava",
          ("/tp @p -280.5 9 -147.5 0 0", "/fill ~-3 ~ ~-3 ~3 ~3 ~3 lava",
           "/give @p diamond_sword")),
    Scene(
        "tunnel", "an unlit tunnel: dim grey, its corners darker",
        ("/tp @p ~ 20 ~ 0 5", "/fill ~-1 ~ ~-3 ~1 ~2 ~20 air"),
    ),
    Scene(
        "torches", "a cave by torchlight: torches on floor and walls, a lantern, a soul torch;"
        " the light is warm and fades into the dark",
        (
            *("/tp @p ~ 20 ~ 0 5", "/fill ~-2 ~ ~-3 ~2 ~3 ~24 air"),
            *("/setblock ~-1 ~ ~4 torch", "/setblock ~2 ~1 ~6 wall_torch[facing=west]"),
            *("/setblock ~-2 ~1 ~9 wall_torch[facing=east]", "/setblock ~1 ~ ~12 soul_torch"),
            *("/setblock ~ ~3 ~8 lantern[hanging=true]", "/setblock ~2 ~ ~3 furnace[facing=west]"),
        ),
    ),
    Scene(
        "roof", "by night, the ground under a roof gets darker towards the middle",
        ("/fill ~-5 ~4 ~2 ~5 ~4 ~12 oak_planks", *_at(18000, 0, 20)),
    ),
    Scene(
        "house", "windows and a door, a roof of stairs, fence, gate, wall and bars; through the"
        " windows one sees the room", _house(),
    ),
    Scene("house_near", "the front of the house", _house(6000, "/tp @p ~-1.5 ~ ~4 10 0")),
    Scene("house_night", "the same by night", _house(18000)),
    Scene(
        "house_inside", "the room: chest, ladder, slab, light from the windows; red glass to the"
        " left", _house(6000, "/tp @p ~-2 ~ ~10 -50 10"),
    ),
    Scene("house_roof", "the roof from above", _house(6000, "/tp @p ~-8 ~9 ~4 -45 35")),
    Scene(
        "windows", "glass, panes, bars, stained glass, ice, slime and honey before bricks",
        (
            "/fill ~-9 ~ ~9 ~9 ~4 ~9 bricks",
            *(f"/fill ~{x} ~ ~5 ~{x + 1} ~2 ~5 {block}" for x, block in zip(
                range(-9, 9, 2), ("glass", "glass_pane", "iron_bars", "red_stained_glass",
                "lime_stained_glass", "blue_stained_glass_pane", "ice", "slime_block",
                "honey_block"), strict=True)),
            *_at(6000, 0, 0),
        ),
    ),
    Scene("forest_edge", "gaps in the leaves near by, none far away", _at(6000, 60, -15),
          biome="forest"),
    Scene(
        "in_leaves", "from inside leaves: nothing of their own block, gaps in the next ones",
        ("/fill ~-4 ~ ~-4 ~4 ~5 ~4 oak_leaves", *_at(6000, 20, -5)),
    ),
    Scene(
        "below_leaves", "the sky through the gaps of a crown, seen from below",
        ("/fill ~-5 ~4 ~-5 ~5 ~5 ~5 birch_leaves", *_at(6000, 0, -60)),
    ),
    Scene("outline", "the outline of the block aimed at", _STONE_AHEAD),
    *(
        Scene(f"mining_{ticks}", f"stone after {ticks} of 150 ticks: cracks and dust",
              _STONE_AHEAD, ((ticks, {"attack": 1}),))
        for ticks in (20, 75, 140)
    ),
    Scene(
        "burst", "dirt has just broken: a burst of its dust",
        ("/setblock ~ ~1 ~2 dirt", "/tp @p ~ ~ ~ 0 0"), ((18, {"attack": 1}),),
    ),
    Scene("walking", "the view in mid-step", _at(6000, 0, 10), ((13, _WALK),)),
    Scene("sprinting", "a wider view", _at(6000, 0, 10), ((20, {**_WALK, "sprint": 1}),)),
    Scene("hurt", "the view tilts after a fall", ("/tp @p ~ ~7 ~ 0 0",), ((19, {}),)),
    Scene(
        "attack_indicator", "a bar below the crosshair after a blow",
        ("/give @p iron_axe", *_at(6000, 0, 0)), ((60, {}), (1, {"attack": 1}), (6, {})),
    ),
    Scene(
        "furnaces", "furnaces with their fronts to all sides, logs along all axes",
        (
            *(f"/setblock ~{x} ~1 ~4 furnace[facing={side}]"
              for x, side in zip(range(-4, 4, 2), ("north", "east", "south", "west"), strict=True)),
            *(f"/setblock ~{x} ~2 ~5 oak_log[axis={axis}]"
              for x, axis in zip(range(-3, 3, 2), "xyz", strict=True)),
            "/tp @p ~ ~1 ~ 0 5",
        ),
    ),
    Scene("sand", "sand that falls", ("/setblock ~ ~6 ~4 sand", *_at(6000, 0, -10)), ((6, {}),)),
    Scene("cows", "cows", ("/summon cow ~ ~ ~4", "/summon sheep ~2 ~ ~5", *_at(6000, 0, 10))),
    Scene("item_name", "the name above the hotbar", ("/give @p golden_apple 3",), ((12, {}),)),
    Scene("item_name_fading", "the same, half gone", ("/give @p golden_apple 3",), ((36, {}),)),
    Scene(
        "inventory", "the figure looks at the cursor; a tool's name and what it does",
        (
            "/give @p wooden_pickaxe",
            *(f"/give @p {stack}" for stack in ("iron_sword", "oak_log 7", "cobblestone 64",
              "dirt 23", "apple 3", "stick 9", "crafting_table", "beef 5", "oak_planks 40",
              "coal 12", "bow")),
        ),
        _OPEN, slot=36,
    ),
    Scene("inventory_above", "the figure looks up and to its left", (), _OPEN, slot=2),
    Scene(
        "chest", "a chest's screen with a name at its right edge",
        ("/give @p chest", "/give @p enchanted_golden_apple", "/setblock ~ ~1 ~2 chest",
         "/tp @p ~ ~ ~ 0 0"),
        ((1, {"hotbar.9": 1}), (1, {"use": 1}), (2, {})), slot=55,
    ),
)  # fmt: skip


def draw(scene: Scene, engine: VoxelEngine) -> dict[tuple[int, int], Image.Image]:
    """Play a scene and draw it in both sizes."""
    engine.reset(SEED, biome=scene.biome, natural_animals=scene.herds)
    x, y, z = engine.player.position.tolist()
    engine.execute(f"/tp @p {int(x // 1) + 0.5} {y} {int(z // 1) + 0.5} 0 0")
    for command in scene.commands:
        result = engine.execute(command)
        if not result.ok:
            raise SystemExit(f"{scene.name}: {command}: {result.message}")
    for ticks, keys in scene.play:
        for _ in range(ticks):
            engine.tick(keys)
    screen = engine._game.state.screen
    if scene.slot is not None and screen is not None:
        place = LAYOUTS[screen.kind].slots[scene.slot]
        screen.cursor.x, screen.cursor.y = place.x + 6.0, place.y + 6.0
        engine.tick({})
    return {size: Image.fromarray(engine.render(frame_size=size)) for size in (WINDOW, OBSERVATION)}


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenes", nargs="+", choices=[scene.name for scene in SCENES])
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    engine = VoxelEngine(sampling=SAMPLES)
    figures = []
    for scene in SCENES:
        if options.scenes and scene.name not in options.scenes:
            continue
        for (width, _), picture in draw(scene, engine).items():
            picture.save(options.folder / f"{scene.name}_{width}.png")
        figures.append(
            f'<figure><img src="{scene.name}_{WINDOW[0]}.png" alt="">'
            f'<img src="{scene.name}_{OBSERVATION[0]}.png" alt="" height="{WINDOW[1]}">'
            f"<figcaption><b>{scene.name}</b>: {html.escape(scene.shows)}</figcaption></figure>"
        )
    page = options.folder / "index.html"
    page.write_text(
        "<!doctype html><meta charset=utf-8><title>What the engine draws</title>"
        "<style>img{image-rendering:pixelated;margin-right:8px}</style>" + "\n".join(figures),
        encoding="utf-8",
    )
    print(f"{len(figures)} scenes in {page}")


if __name__ == "__main__":
    main()
