"""Commands about the world: setblock, fill, time, weather, gamerule, difficulty."""

from __future__ import annotations

from rllib_minestudio.env.voxel.blocks import BLOCK_ID
from rllib_minestudio.env.voxel.commands.parsing import (
    CommandError,
    CommandResult,
    Source,
    need,
    read_block_position,
    read_int,
    read_name,
)
from rllib_minestudio.env.voxel.state import DAY_TICKS, GAME_RULES
from rllib_minestudio.errors import did_you_mean

_LARGEST_FILL = 32768
_TIMES = {"day": 1000, "noon": 6000, "night": 13000, "midnight": 18000}
_TICKS_OF_UNIT = {"d": DAY_TICKS, "s": 20, "t": 1}
_WEATHERS = ("clear", "rain", "thunder")
_DIFFICULTIES = ("peaceful", "easy", "normal", "hard")
_MOST_EDITS = 2**20
"""Blocks changed since the world was made beyond which commands change no more: each is remembered.
"""

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
    """`/setblock <x y z> <block> [mode]`."""
    need(arguments, 4, "/setblock <pos> <block>")
    x, y, z = read_block_position(arguments, source)
    block = BLOCK_ID[read_name(arguments[3], BLOCK_ID, "block type")]
    _require_room(source, 1)
    if not source.state.world.set_block(x, y, z, block):
        raise CommandError("Could not set the block")
    return CommandResult(True, f"Changed the block at {x}, {y}, {z}")


def fill(source: Source, arguments: list[str]) -> CommandResult:
    """`/fill <from> <to> <block> [mode]`; every mode works as "replace"."""
    need(arguments, 7, "/fill <from> <to> <block>")
    start = read_block_position(arguments, source)
    end = read_block_position(arguments[3:], source)
    block = BLOCK_ID[read_name(arguments[6], BLOCK_ID, "block type")]
    (x0, x1), (y0, y1), (z0, z1) = (
        (min(a, b), max(a, b) + 1) for a, b in zip(start, end, strict=True)
    )
    volume = (x1 - x0) * (y1 - y0) * (z1 - z0)
    if volume > _LARGEST_FILL:
        raise CommandError(
            f"Too many blocks in the specified area (maximum {_LARGEST_FILL}, specified {volume})"
        )
    source.effort.spend(volume)
    _require_room(source, volume)
    changed = source.state.world.fill((x0, x1), (y0, y1), (z0, z1), block)
    if not changed:
        raise CommandError("No blocks were filled")
    return CommandResult(True, f"Successfully filled {changed} blocks")


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
    ticks = _TIMES.get(arguments[1]) if action == "set" else None
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
    name = read_name(arguments[0], _WEATHERS, "weather")
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
    name = read_name(arguments[0], _DIFFICULTIES, "difficulty")
    return CommandResult(True, f"The difficulty has been set to {name.title()}")
