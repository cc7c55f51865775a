"""Every item of Minecraft Java 1.16.5 with the size of its stacks; old commands in its syntax.

Commands name items by these identifiers, without the namespace `minecraft:`.
"""

from __future__ import annotations

import logging
import re

from rllib_minestudio.errors import InvalidActionError

_BY_STACK = {
    1: """
    acacia_boat beetroot_soup birch_boat black_bed black_shulker_box blue_bed blue_shulker_box
    bow brown_bed brown_shulker_box cake carrot_on_a_stick chainmail_boots chainmail_chestplate
    chainmail_helmet chainmail_leggings chest_minecart cod_bucket command_block_minecart
    creeper_banner_pattern crossbow cyan_bed cyan_shulker_box dark_oak_boat debug_stick
    diamond_axe diamond_boots diamond_chestplate diamond_helmet diamond_hoe diamond_horse_armor
    diamond_leggings diamond_pickaxe diamond_shovel diamond_sword elytra enchanted_book
    fishing_rod flint_and_steel flower_banner_pattern furnace_minecart globe_banner_pattern
    golden_axe golden_boots golden_chestplate golden_helmet golden_hoe golden_horse_armor
    golden_leggings golden_pickaxe golden_shovel golden_sword gray_bed gray_shulker_box
    green_bed green_shulker_box hopper_minecart iron_axe iron_boots iron_chestplate iron_helmet
    iron_hoe iron_horse_armor iron_leggings iron_pickaxe iron_shovel iron_sword jungle_boat
    knowledge_book lava_bucket leather_boots leather_chestplate leather_helmet
    leather_horse_armor leather_leggings light_blue_bed light_blue_shulker_box light_gray_bed
    light_gray_shulker_box lime_bed lime_shulker_box lingering_potion magenta_bed
    magenta_shulker_box milk_bucket minecart mojang_banner_pattern mushroom_stew music_disc_11
    music_disc_13 music_disc_blocks music_disc_cat music_disc_chirp music_disc_far
    music_disc_mall music_disc_mellohi music_disc_pigstep music_disc_stal music_disc_strad
    music_disc_wait music_disc_ward netherite_axe netherite_boots netherite_chestplate
    netherite_helmet netherite_hoe netherite_leggings netherite_pickaxe netherite_shovel
    netherite_sword oak_boat orange_bed orange_shulker_box piglin_banner_pattern pink_bed
    pink_shulker_box potion pufferfish_bucket purple_bed purple_shulker_box rabbit_stew red_bed
    red_shulker_box saddle salmon_bucket shears shield shulker_box skull_banner_pattern
    splash_potion spruce_boat stone_axe stone_hoe stone_pickaxe stone_shovel stone_sword
    suspicious_stew tnt_minecart totem_of_undying trident tropical_fish_bucket turtle_helmet
    water_bucket white_bed white_shulker_box wooden_axe wooden_hoe wooden_pickaxe wooden_shovel
    wooden_sword writable_book yellow_bed yellow_shulker_box
    """,
    16: """
    acacia_sign armor_stand birch_sign black_banner blue_banner brown_banner bucket crimson_sign
    cyan_banner dark_oak_sign egg ender_pearl gray_banner green_banner honey_bottle jungle_sign
    light_blue_banner light_gray_banner lime_banner magenta_banner oak_sign orange_banner
    pink_banner purple_banner red_banner snowball spruce_sign warped_sign white_banner
    written_book yellow_banner
    """,
    64: """
    acacia_button acacia_door acacia_fence acacia_fence_gate acacia_leaves acacia_log
    acacia_planks acacia_pressure_plate acacia_sapling acacia_slab acacia_stairs acacia_trapdoor
    acacia_wood activator_rail allium ancient_debris andesite andesite_slab andesite_stairs
    andesite_wall anvil apple arrow azure_bluet baked_potato bamboo barrel barrier basalt
    bat_spawn_egg beacon bedrock bee_nest bee_spawn_egg beef beehive beetroot beetroot_seeds
    bell birch_button birch_door birch_fence birch_fence_gate birch_leaves birch_log
    birch_planks birch_pressure_plate birch_sapling birch_slab birch_stairs birch_trapdoor
    birch_wood black_carpet black_concrete black_concrete_powder black_dye
    black_glazed_terracotta black_stained_glass black_stained_glass_pane black_terracotta
    black_wool blackstone blackstone_slab blackstone_stairs blackstone_wall blast_furnace
    blaze_powder blaze_rod blaze_spawn_egg blue_carpet blue_concrete blue_concrete_powder
    blue_dye blue_glazed_terracotta blue_ice blue_orchid blue_stained_glass
    blue_stained_glass_pane blue_terracotta blue_wool bone bone_block bone_meal book bookshelf
    bowl brain_coral brain_coral_block brain_coral_fan bread brewing_stand brick brick_slab
    brick_stairs brick_wall bricks brown_carpet brown_concrete brown_concrete_powder brown_dye
    brown_glazed_terracotta brown_mushroom brown_mushroom_block brown_stained_glass
    brown_stained_glass_pane brown_terracotta brown_wool bubble_coral bubble_coral_block
    bubble_coral_fan cactus campfire carrot cartography_table carved_pumpkin cat_spawn_egg
    cauldron cave_spider_spawn_egg chain chain_command_block charcoal chest chicken
    chicken_spawn_egg chipped_anvil chiseled_nether_bricks chiseled_polished_blackstone
    chiseled_quartz_block chiseled_red_sandstone chiseled_sandstone chiseled_stone_bricks
    chorus_flower chorus_fruit chorus_plant clay clay_ball clock coal coal_block coal_ore
    coarse_dirt cobblestone cobblestone_slab cobblestone_stairs cobblestone_wall cobweb
    cocoa_beans cod cod_spawn_egg command_block comparator compass composter conduit cooked_beef
    cooked_chicken cooked_cod cooked_mutton cooked_porkchop cooked_rabbit cooked_salmon cookie
    cornflower cow_spawn_egg cracked_nether_bricks cracked_polished_blackstone_bricks
    cracked_stone_bricks crafting_table creeper_head creeper_spawn_egg crimson_button
    crimson_door crimson_fence crimson_fence_gate crimson_fungus crimson_hyphae crimson_nylium
    crimson_planks crimson_pressure_plate crimson_roots crimson_slab crimson_stairs crimson_stem
    crimson_trapdoor crying_obsidian cut_red_sandstone cut_red_sandstone_slab cut_sandstone
    cut_sandstone_slab cyan_carpet cyan_concrete cyan_concrete_powder cyan_dye
    cyan_glazed_terracotta cyan_stained_glass cyan_stained_glass_pane cyan_terracotta cyan_wool
    damaged_anvil dandelion dark_oak_button dark_oak_door dark_oak_fence dark_oak_fence_gate
    dark_oak_leaves dark_oak_log dark_oak_planks dark_oak_pressure_plate dark_oak_sapling
    dark_oak_slab dark_oak_stairs dark_oak_trapdoor dark_oak_wood dark_prismarine
    dark_prismarine_slab dark_prismarine_stairs daylight_detector dead_brain_coral
    dead_brain_coral_block dead_brain_coral_fan dead_bubble_coral dead_bubble_coral_block
    dead_bubble_coral_fan dead_bush dead_fire_coral dead_fire_coral_block dead_fire_coral_fan
    dead_horn_coral dead_horn_coral_block dead_horn_coral_fan dead_tube_coral
    dead_tube_coral_block dead_tube_coral_fan detector_rail diamond diamond_block diamond_ore
    diorite diorite_slab diorite_stairs diorite_wall dirt dispenser dolphin_spawn_egg
    donkey_spawn_egg dragon_breath dragon_egg dragon_head dried_kelp dried_kelp_block dropper
    drowned_spawn_egg elder_guardian_spawn_egg emerald emerald_block emerald_ore
    enchanted_golden_apple enchanting_table end_crystal end_portal_frame end_rod end_stone
    end_stone_brick_slab end_stone_brick_stairs end_stone_brick_wall end_stone_bricks
    ender_chest ender_eye enderman_spawn_egg endermite_spawn_egg evoker_spawn_egg
    experience_bottle farmland feather fermented_spider_eye fern filled_map fire_charge
    fire_coral fire_coral_block fire_coral_fan firework_rocket firework_star fletching_table
    flint flower_pot fox_spawn_egg furnace ghast_spawn_egg ghast_tear gilded_blackstone glass
    glass_bottle glass_pane glistering_melon_slice glowstone glowstone_dust gold_block
    gold_ingot gold_nugget gold_ore golden_apple golden_carrot granite granite_slab
    granite_stairs granite_wall grass grass_block grass_path gravel gray_carpet gray_concrete
    gray_concrete_powder gray_dye gray_glazed_terracotta gray_stained_glass
    gray_stained_glass_pane gray_terracotta gray_wool green_carpet green_concrete
    green_concrete_powder green_dye green_glazed_terracotta green_stained_glass
    green_stained_glass_pane green_terracotta green_wool grindstone guardian_spawn_egg gunpowder
    hay_block heart_of_the_sea heavy_weighted_pressure_plate hoglin_spawn_egg honey_block
    honeycomb honeycomb_block hopper horn_coral horn_coral_block horn_coral_fan horse_spawn_egg
    husk_spawn_egg ice infested_chiseled_stone_bricks infested_cobblestone
    infested_cracked_stone_bricks infested_mossy_stone_bricks infested_stone
    infested_stone_bricks ink_sac iron_bars iron_block iron_door iron_ingot iron_nugget iron_ore
    iron_trapdoor item_frame jack_o_lantern jigsaw jukebox jungle_button jungle_door
    jungle_fence jungle_fence_gate jungle_leaves jungle_log jungle_planks jungle_pressure_plate
    jungle_sapling jungle_slab jungle_stairs jungle_trapdoor jungle_wood kelp ladder lantern
    lapis_block lapis_lazuli lapis_ore large_fern lead leather lectern lever light_blue_carpet
    light_blue_concrete light_blue_concrete_powder light_blue_dye light_blue_glazed_terracotta
    light_blue_stained_glass light_blue_stained_glass_pane light_blue_terracotta light_blue_wool
    light_gray_carpet light_gray_concrete light_gray_concrete_powder light_gray_dye
    light_gray_glazed_terracotta light_gray_stained_glass light_gray_stained_glass_pane
    light_gray_terracotta light_gray_wool light_weighted_pressure_plate lilac lily_of_the_valley
    lily_pad lime_carpet lime_concrete lime_concrete_powder lime_dye lime_glazed_terracotta
    lime_stained_glass lime_stained_glass_pane lime_terracotta lime_wool llama_spawn_egg
    lodestone loom magenta_carpet magenta_concrete magenta_concrete_powder magenta_dye
    magenta_glazed_terracotta magenta_stained_glass magenta_stained_glass_pane
    magenta_terracotta magenta_wool magma_block magma_cream magma_cube_spawn_egg map melon
    melon_seeds melon_slice mooshroom_spawn_egg mossy_cobblestone mossy_cobblestone_slab
    mossy_cobblestone_stairs mossy_cobblestone_wall mossy_stone_brick_slab
    mossy_stone_brick_stairs mossy_stone_brick_wall mossy_stone_bricks mule_spawn_egg
    mushroom_stem mutton mycelium name_tag nautilus_shell nether_brick nether_brick_fence
    nether_brick_slab nether_brick_stairs nether_brick_wall nether_bricks nether_gold_ore
    nether_quartz_ore nether_sprouts nether_star nether_wart nether_wart_block netherite_block
    netherite_ingot netherite_scrap netherrack note_block oak_button oak_door oak_fence
    oak_fence_gate oak_leaves oak_log oak_planks oak_pressure_plate oak_sapling oak_slab
    oak_stairs oak_trapdoor oak_wood observer obsidian ocelot_spawn_egg orange_carpet
    orange_concrete orange_concrete_powder orange_dye orange_glazed_terracotta
    orange_stained_glass orange_stained_glass_pane orange_terracotta orange_tulip orange_wool
    oxeye_daisy packed_ice painting panda_spawn_egg paper parrot_spawn_egg peony
    petrified_oak_slab phantom_membrane phantom_spawn_egg pig_spawn_egg piglin_brute_spawn_egg
    piglin_spawn_egg pillager_spawn_egg pink_carpet pink_concrete pink_concrete_powder pink_dye
    pink_glazed_terracotta pink_stained_glass pink_stained_glass_pane pink_terracotta pink_tulip
    pink_wool piston player_head podzol poisonous_potato polar_bear_spawn_egg polished_andesite
    polished_andesite_slab polished_andesite_stairs polished_basalt polished_blackstone
    polished_blackstone_brick_slab polished_blackstone_brick_stairs
    polished_blackstone_brick_wall polished_blackstone_bricks polished_blackstone_button
    polished_blackstone_pressure_plate polished_blackstone_slab polished_blackstone_stairs
    polished_blackstone_wall polished_diorite polished_diorite_slab polished_diorite_stairs
    polished_granite polished_granite_slab polished_granite_stairs popped_chorus_fruit poppy
    porkchop potato powered_rail prismarine prismarine_brick_slab prismarine_brick_stairs
    prismarine_bricks prismarine_crystals prismarine_shard prismarine_slab prismarine_stairs
    prismarine_wall pufferfish pufferfish_spawn_egg pumpkin pumpkin_pie pumpkin_seeds
    purple_carpet purple_concrete purple_concrete_powder purple_dye purple_glazed_terracotta
    purple_stained_glass purple_stained_glass_pane purple_terracotta purple_wool purpur_block
    purpur_pillar purpur_slab purpur_stairs quartz quartz_block quartz_bricks quartz_pillar
    quartz_slab quartz_stairs rabbit rabbit_foot rabbit_hide rabbit_spawn_egg rail
    ravager_spawn_egg red_carpet red_concrete red_concrete_powder red_dye red_glazed_terracotta
    red_mushroom red_mushroom_block red_nether_brick_slab red_nether_brick_stairs
    red_nether_brick_wall red_nether_bricks red_sand red_sandstone red_sandstone_slab
    red_sandstone_stairs red_sandstone_wall red_stained_glass red_stained_glass_pane
    red_terracotta red_tulip red_wool redstone redstone_block redstone_lamp redstone_ore
    redstone_torch repeater repeating_command_block respawn_anchor rose_bush rotten_flesh salmon
    salmon_spawn_egg sand sandstone sandstone_slab sandstone_stairs sandstone_wall scaffolding
    scute sea_lantern sea_pickle seagrass sheep_spawn_egg shroomlight shulker_shell
    shulker_spawn_egg silverfish_spawn_egg skeleton_horse_spawn_egg skeleton_skull
    skeleton_spawn_egg slime_ball slime_block slime_spawn_egg smithing_table smoker
    smooth_quartz smooth_quartz_slab smooth_quartz_stairs smooth_red_sandstone
    smooth_red_sandstone_slab smooth_red_sandstone_stairs smooth_sandstone smooth_sandstone_slab
    smooth_sandstone_stairs smooth_stone smooth_stone_slab snow snow_block soul_campfire
    soul_lantern soul_sand soul_soil soul_torch spawner spectral_arrow spider_eye
    spider_spawn_egg sponge spruce_button spruce_door spruce_fence spruce_fence_gate
    spruce_leaves spruce_log spruce_planks spruce_pressure_plate spruce_sapling spruce_slab
    spruce_stairs spruce_trapdoor spruce_wood squid_spawn_egg stick sticky_piston stone
    stone_brick_slab stone_brick_stairs stone_brick_wall stone_bricks stone_button
    stone_pressure_plate stone_slab stone_stairs stonecutter stray_spawn_egg strider_spawn_egg
    string stripped_acacia_log stripped_acacia_wood stripped_birch_log stripped_birch_wood
    stripped_crimson_hyphae stripped_crimson_stem stripped_dark_oak_log stripped_dark_oak_wood
    stripped_jungle_log stripped_jungle_wood stripped_oak_log stripped_oak_wood
    stripped_spruce_log stripped_spruce_wood stripped_warped_hyphae stripped_warped_stem
    structure_block structure_void sugar sugar_cane sunflower sweet_berries tall_grass target
    terracotta tipped_arrow tnt torch trader_llama_spawn_egg trapped_chest tripwire_hook
    tropical_fish tropical_fish_spawn_egg tube_coral tube_coral_block tube_coral_fan turtle_egg
    turtle_spawn_egg twisting_vines vex_spawn_egg villager_spawn_egg vindicator_spawn_egg vine
    wandering_trader_spawn_egg warped_button warped_door warped_fence warped_fence_gate
    warped_fungus warped_fungus_on_a_stick warped_hyphae warped_nylium warped_planks
    warped_pressure_plate warped_roots warped_slab warped_stairs warped_stem warped_trapdoor
    warped_wart_block weeping_vines wet_sponge wheat wheat_seeds white_carpet white_concrete
    white_concrete_powder white_dye white_glazed_terracotta white_stained_glass
    white_stained_glass_pane white_terracotta white_tulip white_wool witch_spawn_egg wither_rose
    wither_skeleton_skull wither_skeleton_spawn_egg wolf_spawn_egg yellow_carpet yellow_concrete
    yellow_concrete_powder yellow_dye yellow_glazed_terracotta yellow_stained_glass
    yellow_stained_glass_pane yellow_terracotta yellow_wool zoglin_spawn_egg zombie_head
    zombie_horse_spawn_egg zombie_spawn_egg zombie_villager_spawn_egg zombified_piglin_spawn_egg
    """,
}
"""Names by the size of a full stack."""

STACK_SIZES: dict[str, int] = {
    name: size for size, names in _BY_STACK.items() for name in names.split()
}
"""Size of a full stack by name."""


# --------------------------------- translation of old chat commands to the syntax of Minecraft 1.16

# Status effects by the numbers that commands had until Minecraft 1.12 (minecraft.wiki/w/Effect).
_EFFECTS = (
    *("speed", "slowness", "haste", "mining_fatigue", "strength", "instant_health"),
    *("instant_damage", "jump_boost", "nausea", "regeneration", "resistance"),
    *("fire_resistance", "water_breathing", "invisibility", "blindness", "night_vision"),
    *("hunger", "weakness", "poison", "wither", "health_boost", "absorption", "saturation"),
    *("glowing", "levitation", "luck", "unluck", "slow_falling", "conduit_power"),
    *("dolphins_grace", "bad_omen", "hero_of_the_village"),
)

_OLD_EFFECT = re.compile(
    r"/?effect\s+(?P<who>@\w(?:\[[^\]]*\])?|\w+)\s+(?:minecraft:)?(?P<what>\w+)(?P<rest>(?:\s+\w+)*)"
)
_ACTIONS = ("give", "clear")

_logger = logging.getLogger(__name__)
_translated: set[str] = set()


def modern(command: str) -> str:
    """Return a command in the syntax of Minecraft 1.16.

    Before 1.13, `/effect give @p minecraft:strength 9999 255 true` was written `/effect @p 5 9999
    255 true`. MineStudio's examples still use the old form, which the game silently ignores.

    Raises:
        InvalidActionError: If the command has several lines: the protocol is line-based, so the
            second one would press keys.
    """
    if "\n" in command or "\r" in command:
        raise InvalidActionError(f"A command must be one line; got {command!r}.")
    match = _OLD_EFFECT.fullmatch(command.strip())
    if match is None or match["who"] in _ACTIONS:
        return command
    what, rest = match["what"], match["rest"].lower()
    if what == "clear":
        translated = f"/effect clear {match['who']}"
    else:
        if what.isdecimal():
            if not 1 <= int(what) <= len(_EFFECTS):
                return command
            what = _EFFECTS[int(what) - 1]
        translated = f"/effect give {match['who']} minecraft:{what}{rest}"
    if command not in _translated:
        _translated.add(command)
        _logger.warning("%r is no command of Minecraft 1.16; sending %r.", command, translated)
    return translated
