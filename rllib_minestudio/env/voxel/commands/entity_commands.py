"""Commands about the player, its items, and animals: from `/give` to `/teleportbiome`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rllib_minestudio.env.voxel.commands.parsing import (
    PLAYER,
    CommandError,
    CommandResult,
    NbtError,
    SelectedEntity,
    Source,
    name_in,
    need,
    plain_name,
    read_bool,
    read_float,
    read_int,
    read_name,
    read_nbt,
    read_position,
    reasons,
    require_in_world,
    select,
    select_player,
    title,
)
from rllib_minestudio.env.voxel.data import (
    TICKS_PER_SECOND,
)
from rllib_minestudio.env.voxel.entities.records import (
    MOB_CAPACITY,
    MOB_KIND_ID,
    MOB_KINDS,
    SHORN,
    YOUNG_AGE,
)
from rllib_minestudio.env.voxel.game import spawning
from rllib_minestudio.env.voxel.game.game import resolve_all
from rllib_minestudio.env.voxel.items.items import (
    ACTING,
    CHEST_SLOT,
    ENCHANTMENTS,
    FEET_SLOT,
    HEAD_SLOT,
    HOTBAR_SLOTS,
    ITEM_ID,
    ITEMS,
    LEGS_SLOT,
    MAIN_SLOTS,
    OFFHAND_SLOT,
    POTION_ITEMS,
    POTIONS,
    enchanted,
    enchantments_of,
    possible_enchantments,
    potion_data,
    with_wear,
)
from rllib_minestudio.env.voxel.player.player import EFFECTS, clear_effects, give_effect, lacking
from rllib_minestudio.env.voxel.screens.enchanting import excludes
from rllib_minestudio.env.voxel.world.climate import BIOMES
from rllib_minestudio.errors import did_you_mean

_DEFAULT_EFFECT_SECONDS = 30
_LONGEST_EFFECT = 1_000_000
_TELEPORT_EFFORT = 8192
"""Cost of generating the land around the player, counted against `LARGEST_EFFORT`."""
_MOST_GIVEN = 6400
_NAMED_SLOTS = {
    "weapon.offhand": OFFHAND_SLOT,
    "armor.head": HEAD_SLOT,
    "armor.chest": CHEST_SLOT,
    "armor.legs": LEGS_SLOT,
    "armor.feet": FEET_SLOT,
    **{f"hotbar.{slot}": slot for slot in range(HOTBAR_SLOTS)},
    **{f"inventory.{slot}": HOTBAR_SLOTS + slot for slot in range(MAIN_SLOTS - HOTBAR_SLOTS)},
}
_IN_HAND = ("weapon", "weapon.mainhand")


def give(source: Source, arguments: list[str]) -> CommandResult:
    """`/give <targets> <item> [count]`."""
    need(arguments, 2, "/give <targets> <item> [<count>]")
    select_player(arguments[0], source)
    name = read_name(arguments[1], ITEM_ID, "item")
    count = read_int(arguments[2], 1, _MOST_GIVEN) if len(arguments) > 2 else 1
    data, lacking = _item_data(name, arguments[1])
    state = source.state
    left = state.player.inventory.add(ITEM_ID[name], count, data)
    if left:
        x, y, z = state.player.position.tolist()
        state.scatter_item(ITEM_ID[name], left, (x, y + 1.3, z), 0, data)
    message = f"Gave {count} [{title(name)}] to {PLAYER}"
    return CommandResult(True, message, lacking)


def clear(source: Source, arguments: list[str]) -> CommandResult:
    """`/clear [targets] [item] [maxCount]`."""
    if arguments:
        select_player(arguments[0], source)
    item = ITEM_ID[read_name(arguments[1], ITEM_ID, "item")] if len(arguments) > 1 else None
    at_most = read_int(arguments[2], 0) if len(arguments) > 2 else None
    state = source.state
    removed = state.player.inventory.remove(item, at_most)
    if state.screen is not None:
        removed += state.screen.menu.remove(item, None if at_most is None else at_most - removed)
    if not removed:
        raise CommandError(f"No items were found on player {PLAYER}")
    return CommandResult(True, f"Removed {removed} items from player {PLAYER}")


def replaceitem(source: Source, arguments: list[str]) -> CommandResult:
    """`/replaceitem entity <targets> <slot> <item> [count]`, for the player only."""
    need(arguments, 4, "/replaceitem entity <targets> <slot> <item> [<count>]")
    if arguments[0] != "entity":
        raise CommandError(f"Incorrect argument for command: '{arguments[0]}' (entity)")
    select_player(arguments[1], source)
    player = source.state.player
    word = arguments[2]
    slot = player.selected if word in _IN_HAND else _NAMED_SLOTS.get(word)
    if slot is None:
        raise CommandError(f"Unknown slot '{word}'.{did_you_mean(word, _NAMED_SLOTS)}")
    if plain_name(arguments[3]) == "air":
        player.inventory.set(slot, 0, 0)
        return CommandResult(True, f"Replaced a slot on {PLAYER} with [Air]")
    name = read_name(arguments[3], ITEM_ID, "item")
    count = read_int(arguments[4], 1, 64) if len(arguments) > 4 else 1
    item = ITEM_ID[name]
    data, lacking = _item_data(name, arguments[3])
    player.inventory.set(slot, item, min(count, ITEMS[item].max_stack), data)
    message = f"Replaced a slot on {PLAYER} with [{title(name)}]"
    return CommandResult(True, message, lacking)


def _nbt_of(word: str) -> dict[str, Any]:
    """Return the NBT data after a name, or alone; empty if there is none.

    Raises:
        CommandError: It cannot be read.
    """
    opening = word.find("{")
    if opening < 0:
        return {}
    try:
        return read_nbt(word[opening:])
    except NbtError as error:
        raise CommandError(f"Invalid NBT data: {error}") from error


def _item_data(name: str, word: str) -> tuple[int, str]:
    """Read what an item has besides its kind: enchantments, wear, the kind of a potion.

    Args:
        name: The item.
        word: The word of the command that names it.

    Returns:
        The data of a stack, and what this engine ignores of the item or its data.

    Raises:
        CommandError: The data cannot be read, or names what does not exist.
    """
    item, tags, ignored = ITEM_ID[name], _nbt_of(word), []
    data = potion_data("water") if item in POTION_ITEMS else 0
    levels: dict[str, int] = {}
    for tag, value in tags.items():
        if tag == "Enchantments" and isinstance(value, list):
            levels = _levels(value)
        elif tag == "Damage" and isinstance(value, int) and 0 <= value <= ITEMS[item].durability:
            data = with_wear(data, value)
        elif tag == "Potion" and item in POTION_ITEMS:
            data = potion_data(read_name(name_in(value), POTIONS, "potion"))
        else:
            ignored.append(tag)
    fitting = set(possible_enchantments(item))
    ignored += sorted(levels.keys() - fitting)
    if fitting & levels.keys():
        data = enchanted(item, data, {name: levels[name] for name in fitting & levels.keys()})
    idle = sorted(fitting & levels.keys() - ACTING)
    return data, reasons(
        ITEMS[item].lacking,
        f"of its data, {', '.join(ignored)} is ignored" if ignored else "",
        f"{' and '.join(idle)} has no effect here" if idle else "",
    )


def _levels(entries: list[Any]) -> dict[str, int]:
    """Read a list of enchantments; levels above those of the game are lowered to its highest."""
    found = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise CommandError(f"An enchantment is {{id: ..., lvl: ...}}; got {entry!r}")
        name = read_name(name_in(entry.get("id", "")), ENCHANTMENTS, "enchantment")
        level = entry.get("lvl", 1)
        if not isinstance(level, int) or level < 1:
            raise CommandError(f"The level of {name} must be a whole number from 1; got {level!r}")
        found[name] = min(level, ENCHANTMENTS[name].levels)
    return found


def summon(source: Source, arguments: list[str]) -> CommandResult:
    """`/summon <entity> [x y z] [nbt]`; of NBT data, age and what a sheep wears."""
    need(arguments, 1, "/summon <entity> [<pos>] [<nbt>]")
    name = read_name(arguments[0], MOB_KIND_ID, "entity")
    position = source.position
    if len(arguments) > 1 and not arguments[1].startswith("{"):
        position = read_position(arguments[1:4], source)
    state = source.state
    if state.mobs.count >= MOB_CAPACITY:
        raise CommandError(f"Unable to summon entity: there are {MOB_CAPACITY} already")
    require_in_world(position, "summon")
    if not state.world.is_loaded(position[0], position[2]):
        raise CommandError("That position is not loaded")
    data, ignored = _of_animal(arguments[-1], name)
    state.spawn_mob(MOB_KIND_ID[name], *position)
    mob = state.mobs.records[state.mobs.count - 1]
    mob["age"] = data.get("Age", 0)
    if name == "sheep":
        mob["coat"] = data.get("Color", int(mob["coat"])) + SHORN * data.get("Sheared", 0)
    lacking = f"of its data, {ignored} is ignored" if ignored else ""
    return CommandResult(True, f"Summoned new {title(name)}", lacking)


_OF_SHEEP = {"Color": (0, SHORN - 1), "Sheared": (0, 1)}
_OF_ANIMALS = {"Age": (YOUNG_AGE, -YOUNG_AGE)}
"""Of NBT data, what is obeyed: the least and the largest value."""


def _of_animal(word: str, name: str) -> tuple[dict[str, int], str]:
    """Return what is obeyed of the NBT data of a mob, and the names of its other tags.

    Raises:
        CommandError: The data cannot be read, or a number is out of range.
    """
    tags = _nbt_of(word) if word.startswith("{") else {}
    obeyed = _OF_ANIMALS if MOB_KINDS[MOB_KIND_ID[name]].food else {}
    if name == "sheep":
        obeyed = {**obeyed, **_OF_SHEEP}
    numbers = {tag: tags[tag] for tag in tags.keys() & obeyed.keys()}
    for tag, value in numbers.items():
        least, most = obeyed[tag]
        if not isinstance(value, int) or not least <= value <= most:
            raise CommandError(f"{tag} must be {least} to {most}; got {value}")
    return numbers, ", ".join(sorted(tags.keys() - numbers.keys()))


def effect(source: Source, arguments: list[str]) -> CommandResult:
    """`/effect give|clear ...`, and `/effect <targets> <effect> ...` as before Minecraft 1.13.

    If the last argument, hideParticles, is true, there is no icon at the edge of the screen either.
    """
    need(arguments, 2, "/effect (give|clear) <targets> [<effect>] [<seconds>] [<amplifier>]")
    player = source.state.player
    if arguments[0] == "clear":
        select_player(arguments[1], source)
        name = _effect_name(arguments[2]) if len(arguments) > 2 else None
        if not clear_effects(player, name):
            raise CommandError("Target has no effects to remove")
        return CommandResult(
            True, f"Removed {title(name) if name else 'every effect'} from {PLAYER}"
        )
    if arguments[0] == "give":
        arguments = arguments[1:]
    need(arguments, 2, "/effect give <targets> <effect> [<seconds>] [<amplifier>] [true|false]")
    select_player(arguments[0], source)
    if arguments[1] == "clear":
        clear_effects(player)
        return CommandResult(True, f"Removed every effect from {PLAYER}")
    name = _effect_name(arguments[1])
    seconds = _DEFAULT_EFFECT_SECONDS
    if len(arguments) > 2:
        seconds = read_int(arguments[2], 0, _LONGEST_EFFECT)
    amplifier = read_int(arguments[3], 0, 255) if len(arguments) > 3 else 0
    hidden = read_bool(arguments[4]) if len(arguments) > 4 else False
    duration = max(seconds * TICKS_PER_SECOND, 1)
    hurt = source.state.hurt_player
    if not give_effect(player, name, amplifier, duration, hurt, hidden=hidden):
        raise CommandError(
            "Unable to apply this effect (target is either immune to effects, or has something"
            " stronger)"
        )
    resolve_all(source.state)
    message = f"Applied effect {title(name)} to {PLAYER}"
    return CommandResult(True, message, lacking(name))


def enchant(source: Source, arguments: list[str]) -> CommandResult:
    """`/enchant <targets> <enchantment> [<level>]`: the item in the player's main hand."""
    need(arguments, 2, "/enchant <targets> <enchantment> [<level>]")
    select_player(arguments[0], source)
    name = read_name(arguments[1], ENCHANTMENTS, "enchantment")
    level = read_int(arguments[2], 0) if len(arguments) > 2 else 1
    most = ENCHANTMENTS[name].levels
    if level > most:
        raise CommandError(
            f"{level} is higher than the maximum level of {most} supported by that enchantment"
        )
    player = source.state.player
    stack = player.inventory[player.selected]
    if not stack.quantity:
        raise CommandError(f"{PLAYER} is not holding any item")
    present = enchantments_of(stack.item, stack.data)
    fits = name in possible_enchantments(stack.item) and name not in present
    if not fits or any(excludes(name, other) for other in present):
        raise CommandError(f"{ITEMS[stack.item].title} cannot support that enchantment")
    data = enchanted(stack.item, stack.data, {**present, name: level})
    player.inventory.set(player.selected, stack.item, stack.quantity, data)
    return CommandResult(
        True,
        f"Applied enchantment {title(name)} of level {level} to {PLAYER}'s item",
        "" if name in ACTING else f"{name} has no effect here",
    )


def _effect_name(word: str) -> str:
    """Return the effect with a name, or with a number as before Minecraft 1.13."""
    if word.isdigit():
        return EFFECTS[read_int(word, 1, len(EFFECTS)) - 1]
    return read_name(word, EFFECTS, "effect")


def kill(source: Source, arguments: list[str]) -> CommandResult:
    """`/kill [targets]`: mobs and items vanish at once; the player is revived in place."""
    found = select(arguments[0] if arguments else "@s", source)
    state = source.state
    _remove(source, found)
    if any(target.is_player for target in found):
        spawning.kill_player(state)
    if len(found) == 1:
        return CommandResult(True, f"Killed {title(found[0].kind)}")
    return CommandResult(True, f"Killed {len(found)} entities")


def _remove(source: Source, found: list[SelectedEntity]) -> None:
    state = source.state
    kept_mobs = np.ones(state.mobs.count, bool)
    kept_items = np.ones(state.items.count, bool)
    for target in found:
        if target.kind == "item":
            kept_items[target.row] = False
        elif not target.is_player:
            kept_mobs[target.row] = False
    state.mobs.keep(kept_mobs)
    state.items.keep(kept_items)


def tp(source: Source, arguments: list[str]) -> CommandResult:
    """`/tp [targets] (<x y z> [yaw pitch] | <destination>)`."""
    need(arguments, 1, "/tp [<targets>] (<location> [<rotation>] | <destination>)")
    found = select("@s", source)
    if len(arguments) not in (1, 3):
        found, arguments = select(arguments[0], source), arguments[1:]
    if len(arguments) < 3:
        position = select(arguments[0], source)[0].position
    else:
        position = read_position(arguments[:3], source)
    require_in_world(position, "teleport")
    for target in found:
        _move(source, target, position, arguments[3:5])
    x, y, z = position
    who = title(found[0].kind) if len(found) == 1 else f"{len(found)} entities"
    return CommandResult(True, f"Teleported {who} to {x:f}, {y:f}, {z:f}")


def _move(
    source: Source,
    target: SelectedEntity,
    position: tuple[float, float, float],
    rotation: list[str],
) -> None:
    state = source.state
    if target.kind == "item":
        state.items.position[target.row] = position
    elif not target.is_player:
        state.mobs.position[target.row] = position
        state.mobs.velocity[target.row] = 0.0
    else:
        if len(rotation) == 2:
            yaw, pitch = (
                _angle(word, now)
                for word, now in zip(rotation, (state.player.yaw, state.player.pitch), strict=True)
            )
            state.player.yaw, state.player.pitch = yaw, pitch
        source.effort.spend(_TELEPORT_EFFORT)
        spawning.teleport(state, *position)


def _angle(word: str, now: float) -> float:
    if word.startswith("~"):
        return now + (read_float(word[1:]) if len(word) > 1 else 0.0)
    return read_float(word)


def teleportbiome(source: Source, arguments: list[str]) -> CommandResult:
    """`/teleportbiome <targets> <biome> [x z | x y z]`: to the ground of the nearest such biome."""
    need(arguments, 2, "/teleportbiome <targets> <biome> [<pos>]")
    select_player(arguments[0], source)
    name = read_name(arguments[1], BIOMES, "biome")
    words = arguments[2:]
    if len(words) == 2:
        words = [words[0], "~", words[1]]
    x, y, z = read_position(words, source) if words else source.position
    require_in_world((x, y, z), "teleport")
    source.effort.spend(_TELEPORT_EFFORT)
    state = source.state
    found = spawning.find_biome(state, BIOMES.index(name), int(x // 1), int(z // 1))
    if found is None:
        raise CommandError(f"Could not find a biome of type {name} within a reasonable distance")
    place = spawning.surface_place(state, *found)
    spawning.teleport(state, *place)
    return CommandResult(
        True, f"Teleported {PLAYER} to {name} at {place[0]}, {place[1]}, {place[2]}"
    )


def locatebiome(source: Source, arguments: list[str]) -> CommandResult:
    """`/locatebiome <biome>`: tells where the nearest such biome is, well inside it."""
    need(arguments, 1, "/locatebiome <biome>")
    name = read_name(arguments[0], BIOMES, "biome")
    source.effort.spend(_TELEPORT_EFFORT)
    x, _, z = source.position
    found = spawning.find_biome(source.state, BIOMES.index(name), int(x // 1), int(z // 1))
    if found is None:
        raise CommandError(f"Could not find a biome of type {name} within a reasonable distance")
    distance = int(math.hypot(found[0] - x, found[1] - z))
    return CommandResult(
        True, f"The nearest {name} is at [{found[0]}, ~, {found[1]}] ({distance} blocks away)"
    )
