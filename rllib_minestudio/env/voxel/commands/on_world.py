"""Commands about the world: setblock, fill, time, weather, gamerule, difficulty."""

from __future__ import annotations

from rllib_minestudio.env.voxel.commands.parsing import (
    CommandError,
    CommandResult,
    Source,
    need,
    read_block_position,
    read_int,
    read_name,
)
from rllib_minestudio.env.voxel.data.clock import DAY_TICKS, TICKS_PER_SECOND, TIMES
from rllib_minestudio.env.voxel.data.vocabulary import DIFFICULTIES, WEATHERS
from rllib_minestudio.env.voxel.game.game_state import GAME_RULES
from rllib_minestudio.env.voxel.game.loot import drop_loot
from rllib_minestudio.env.voxel.game.screens import spill
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, BLOCKS, Shape
from rllib_minestudio.errors import did_you_mean

_LARGEST_FILL = 32768
_SET_MODES = ("destroy", "keep", "replace")
_FILL_MODES = ("destroy", "hollow", "keep", "outline", "replace")
_TICKS_OF_UNIT = {"d": DAY_TICKS, "s": TICKS_PER_SECOND, "t": 1}
_MOST_EDITS = 2**20
"""Blocks changed since the world was made beyond which commands change no more: each is remembered.
"""

_Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""Half-open ranges of x, y and z."""

_NOT_OBEYED = (
    *("doEntityDrops", "doMobLoot", "doTileDrops", "fallDamage", "naturalRegeneration"),
    *("maxCommandChainLength", "maxEntityCramming"),
)
_WITHOUT_OBJECT = (
    *("announceAdvancements", "commandBlockOutput", "disableElytraMovementCheck", "disableRaids"),
    *("doFireTick", "doImmediateRespawn", "doInsomnia", "doLimitedCrafting", "doMobSpawning"),
    *("doPatrolSpawning", "doTraderSpawning", "doWeatherCycle", "drowningDamage", "fireDamage"),
    *("forgiveDeadPlayers", "logAdminCommands", "mobGriefing", "randomTickSpeed"),
    *("reducedDebugInfo", "sendCommandFeedback", "showDeathMessages", "spawnRadius"),
    *("spectatorsGenerateChunks", "universalAnger"),
)
"""Rules about things that this engine does not have."""
_RULES = (*GAME_RULES, *_NOT_OBEYED, *_WITHOUT_OBJECT)
"""All of Minecraft Java 1.16."""


def setblock(source: Source, arguments: list[str]) -> CommandResult:
    """`/setblock <x y z> <block> [destroy|keep|replace]`."""
    need(arguments, 4, "/setblock <pos> <block> [destroy|keep|replace]")
    x, y, z = read_block_position(arguments, source)
    block, lacking = _read_block(arguments[3])
    mode, only = _read_mode(arguments[4:], _SET_MODES)
    _require_room(source, 1)
    if not _put(source, ((x, x + 1), (y, y + 1), (z, z + 1)), block, mode, only):
        raise CommandError("Could not set the block")
    return CommandResult(True, f"Changed the block at {x}, {y}, {z}", lacking)


def fill(source: Source, arguments: list[str]) -> CommandResult:
    """`/fill <from> <to> <block> [destroy|hollow|keep|outline|replace [<filter>]]`."""
    need(arguments, 7, "/fill <from> <to> <block> [destroy|hollow|keep|outline|replace [<filter>]]")
    start = read_block_position(arguments, source)
    end = read_block_position(arguments[3:], source)
    block, lacking = _read_block(arguments[6])
    mode, only = _read_mode(arguments[7:], _FILL_MODES)
    xs, ys, zs = ((min(a, b), max(a, b) + 1) for a, b in zip(start, end, strict=True))
    volume = (xs[1] - xs[0]) * (ys[1] - ys[0]) * (zs[1] - zs[0])
    if volume > _LARGEST_FILL:
        raise CommandError(
            f"Too many blocks in the specified area (maximum {_LARGEST_FILL}, specified {volume})"
        )
    source.effort.spend(volume)
    _require_room(source, volume)
    changed = _put(source, (xs, ys, zs), block, mode, only)
    if not changed:
        raise CommandError("No blocks were filled")
    return CommandResult(True, f"Successfully filled {changed} blocks", lacking)


def _read_block(word: str) -> tuple[int, str]:
    """The id of a block to put, and what is amiss with it; empty for nothing.

    Raises:
        CommandError: If there is no such block, or none can be put here.
    """
    block = BLOCK_ID[read_name(word, BLOCK_ID, "block type")]
    name, shape = BLOCKS[block].name, BLOCKS[block].shape
    if shape is Shape.REFUSED:
        raise CommandError(f"Unable to put {name}: this engine has only solid blocks")
    return block, f"{name} is a full cube here" if shape is Shape.STAND_IN else ""


def _read_mode(words: list[str], modes: tuple[str, ...]) -> tuple[str, int | None]:
    """How blocks are put, one of `modes`, and the block id that alone is replaced, or None.

    Raises:
        CommandError: If there is no such mode, or something is left over.
    """
    mode, *rest = words or ["replace"]
    if mode not in modes:
        raise CommandError(f"Incorrect argument for command: '{mode}' ({', '.join(modes)})")
    if mode == "keep":
        only = AIR
    elif rest and mode == "replace" and modes == _FILL_MODES:
        word, *rest = rest
        if word.startswith("#"):
            raise CommandError(f"Block tags ('{word}') are not supported; name one block")
        only = BLOCK_ID[read_name(word, BLOCK_ID, "block type")]
    else:
        only = None
    if rest:
        raise CommandError(f"Incorrect argument for command: '{rest[0]}'")
    return mode, only


def _put(source: Source, box: _Box, block: int, mode: str, only: int | None) -> int:
    """Puts blocks into a box as `mode` says; returns how many changed."""
    world = source.state.world
    if mode in ("outline", "hollow"):
        changed = sum(world.fill(*slab, block) for slab in _shell(box))
        if mode == "hollow":
            xs, ys, zs = ((low + 1, high - 1) for low, high in box)
            changed += world.fill(xs, ys, zs, AIR)
        return changed
    if mode == "destroy":
        destroyed = _destroy(source, box)
        return destroyed if block == AIR else world.fill(*box, block)
    return world.fill(*box, block, only)


def _destroy(source: Source, box: _Box) -> int:
    """Empties a box and drops what its blocks yield to no tool; returns how many there were."""
    state = source.state
    for x in range(*box[0]):
        for y in range(*box[1]):
            for z in range(*box[2]):
                if block := state.world.block_at(x, y, z):
                    spill(state, (x, y, z))
                    drop_loot(state, block, None, (x, y, z))
    return state.world.fill(*box, AIR)


def _shell(box: _Box) -> list[_Box]:
    """The outermost layer of a box, as boxes that do not overlap."""
    xs, ys, zs = box
    slabs = []
    for y in dict.fromkeys((ys[0], ys[1] - 1)):
        slabs.append((xs, (y, y + 1), zs))
    ys = (ys[0] + 1, ys[1] - 1)
    if ys[0] >= ys[1]:
        return slabs
    for x in dict.fromkeys((xs[0], xs[1] - 1)):
        slabs.append(((x, x + 1), ys, zs))
    xs = (xs[0] + 1, xs[1] - 1)
    if xs[0] < xs[1]:
        for z in dict.fromkeys((zs[0], zs[1] - 1)):
            slabs.append((xs, ys, (z, z + 1)))
    return slabs


def _require_room(source: Source, changes: int) -> None:
    if source.state.world.num_edits + changes > _MOST_EDITS:
        raise CommandError(f"No more blocks can be changed: a world remembers {_MOST_EDITS}")


def time(source: Source, arguments: list[str]) -> CommandResult:
    """`/time set|add|query <time>`."""
    need(arguments, 2, "/time (set|add|query) <time>")
    state, action = source.state, arguments[0]
    if action == "query":
        return CommandResult(True, f"The time is {state.daytime}")
    if action not in ("set", "add"):
        raise CommandError(f"Incorrect argument for command: '{action}' (set, add or query)")
    ticks = TIMES.get(arguments[1]) if action == "set" else None
    if ticks is None:
        ticks = _duration(arguments[1])
    state.daytime = (ticks + (state.daytime if action == "add" else 0)) % DAY_TICKS
    return CommandResult(True, f"Set the time to {state.daytime}")


def _duration(word: str) -> int:
    scale = _TICKS_OF_UNIT.get(word[-1:])
    return read_int(word if scale is None else word[:-1], 0) * (scale or 1)


def weather(source: Source, arguments: list[str]) -> CommandResult:
    """`/weather clear|rain|thunder [duration]`; kept, but the sky stays as it is."""
    need(arguments, 1, "/weather (clear|rain|thunder)")
    name = read_name(arguments[0], WEATHERS, "weather")
    source.state.raining = name != "clear"
    lacking = "the sky stays clear" if source.state.raining else ""
    return CommandResult(True, f"Set the weather to {name}", lacking)


def gamerule(source: Source, arguments: list[str]) -> CommandResult:
    """`/gamerule <rule> [value]`; of all rules, doDaylightCycle and keepInventory matter here."""
    need(arguments, 1, "/gamerule <rule> [<value>]")
    rule, rules = arguments[0], source.state.rules
    if rule not in _RULES:
        raise CommandError(f"Unknown game rule '{rule}'.{did_you_mean(rule, _RULES)}")
    if len(arguments) == 1:
        shown = rules.get(rule, "not set")
        return CommandResult(True, f"Gamerule {rule} is currently set to: {shown}")
    value = arguments[1].lower()
    if value not in ("true", "false"):
        value = str(read_int(value))
    rules[rule] = value
    lacking = "this rule is not obeyed" if rule in _NOT_OBEYED else ""
    return CommandResult(True, f"Gamerule {rule} is now set to: {value}", lacking)


def difficulty(source: Source, arguments: list[str]) -> CommandResult:
    """`/difficulty peaceful|easy|normal|hard`; accepted, as nothing here is hostile."""
    if not arguments:
        return CommandResult(True, "The difficulty is Easy")
    name = read_name(arguments[0], DIFFICULTIES, "difficulty")
    return CommandResult(True, f"The difficulty has been set to {name.title()}")
