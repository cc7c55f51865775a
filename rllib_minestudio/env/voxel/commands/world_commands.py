"""Commands about the world: blocks, time, weather, rules, difficulty."""

from __future__ import annotations

from itertools import product

from rllib_minestudio.env.voxel.commands.parsing import (
    CommandError,
    CommandResult,
    Source,
    ignored_data,
    need,
    read_block_position,
    read_bool,
    read_int,
    read_name,
    read_states,
    reasons,
)
from rllib_minestudio.env.voxel.data import (
    DAY_TICKS,
    DIFFICULTIES,
    NAMESPACE,
    TICKS_PER_SECOND,
    TIMES,
    WEATHERS,
)
from rllib_minestudio.env.voxel.game import fire, husbandry
from rllib_minestudio.env.voxel.game.game_state import GAME_RULES
from rllib_minestudio.env.voxel.game.loot import drop_loot
from rllib_minestudio.env.voxel.game.screen_handling import spill
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    ANY_BLOCK,
    BLOCK_ID,
    BLOCKS,
    FAMILY_OF,
    BlockFilter,
    Shape,
    block_of,
    kind_of,
)
from rllib_minestudio.errors import did_you_mean

_LARGEST_FILL = 32768
_SET_MODES = ("destroy", "keep", "replace")
_FILL_MODES = ("destroy", "hollow", "keep", "outline", "replace")
_TICKS_OF_UNIT = {"d": DAY_TICKS, "s": TICKS_PER_SECOND, "t": 1}
_LONGEST = 2**31 - 1
"""Largest number in a duration: the game's are 32-bit integers."""
_MOST_EDITS = 2**20
"""Most changed blocks of a world, all of which are kept in memory; beyond it, commands that change
blocks are refused."""

_Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""Half-open ranges of x, y and z."""

_NOT_OBEYED = (
    *("doEntityDrops", "doMobLoot", "doTileDrops", "fallDamage", "fireDamage", "mobGriefing"),
    *("naturalRegeneration", "maxCommandChainLength", "maxEntityCramming"),
)
_WITHOUT_OBJECT = (
    *("announceAdvancements", "commandBlockOutput", "disableElytraMovementCheck", "disableRaids"),
    *("doImmediateRespawn", "doInsomnia", "doLimitedCrafting", "doMobSpawning", "doPatrolSpawning"),
    *("doTraderSpawning", "doWeatherCycle", "drowningDamage", "forgiveDeadPlayers"),
    *("logAdminCommands", "randomTickSpeed", "reducedDebugInfo", "sendCommandFeedback"),
    *("showDeathMessages", "spawnRadius", "spectatorsGenerateChunks", "universalAnger"),
)
"""Rules about things that do not exist in this engine."""
_INTEGER_RULES = ("maxCommandChainLength", "maxEntityCramming", "randomTickSpeed", "spawnRadius")
_RULES = (*GAME_RULES, *_NOT_OBEYED, *_WITHOUT_OBJECT)
"""All game rules of Minecraft Java 1.16."""


def setblock(source: Source, arguments: list[str]) -> CommandResult:
    """`/setblock <x y z> <block> [destroy|keep|replace]`."""
    need(arguments, 4, "/setblock <pos> <block> [destroy|keep|replace]")
    x, y, z = read_block_position(arguments, source)
    block, lacking = _read_block(arguments[3])
    mode, only = _read_mode(arguments[4:], _SET_MODES)
    _require_room(source, 1)
    if not _put(source, ((x, x + 1), (y, y + 1), (z, z + 1)), block, mode, only):
        raise CommandError("Could not set the block")
    husbandry.come_to_life(source.state, (x, y, z))
    if kind_of(block) == fire.FIRE:
        fire.settle(source.state, (x, y, z))
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
    if kind_of(block) == fire.FIRE:
        for place in product(range(*xs), range(*ys), range(*zs)):
            if source.state.world.kind_at(*place) == fire.FIRE:
                fire.settle(source.state, place)
    return CommandResult(True, f"Successfully filled {changed} blocks", lacking)


def _read_block(word: str) -> tuple[int, str]:
    """Return a block, and how it differs from Minecraft's (empty if it does not).

    Raises:
        CommandError: If there is no such block, or this engine cannot place it.
    """
    kind = BLOCK_ID[read_name(word, BLOCK_ID, "block type")]
    name, shape = BLOCKS[kind].name, BLOCKS[kind].shape
    if shape is Shape.REFUSED:
        raise CommandError(
            f"Unable to put {name}: water, soul fire, the End's portals and technical blocks"
            " are not simulated"
        )
    properties = _read_properties(word, kind)
    family = FAMILY_OF[kind]
    derived = [name for name in properties if name in family.derived]
    stored = {name: properties[name] for name in properties if name in family.stored}
    follows = f"{', '.join(derived)} follows from the blocks around it" if derived else ""
    is_still = "lava does not flow here" if name == "lava" else ""
    return block_of(kind, stored), reasons(follows, is_still, ignored_data(word))


def _read_filter(word: str) -> BlockFilter:
    """Return which blocks to replace: those of a kind, or those with the properties given.

    Raises:
        CommandError: If there is no such block, or the filter cannot be applied.
    """
    if word.startswith("#"):
        raise CommandError(f"Block tags ('{word}') are not supported; name one block")
    kind = BLOCK_ID[read_name(word, BLOCK_ID, "block type")]
    properties, family = _read_properties(word, kind), FAMILY_OF[kind]
    if derived := [name for name in properties if name in family.derived]:
        raise CommandError(
            f"Unable to look for {', '.join(derived)} of {BLOCKS[kind].name}: it follows from the"
            " blocks around it"
        )
    stored = {name: properties[name] for name in properties if name in family.stored}
    return BlockFilter.of(kind, stored)


def _read_properties(word: str, kind: int) -> dict[str, str]:
    """Return the properties given with a block's name, which need not be stored.

    Raises:
        CommandError: If the block does not have them, or this engine has no such state. The message
            names all problems.
    """
    family, name = FAMILY_OF[kind], NAMESPACE + BLOCKS[kind].name
    known = {**family.stored, **family.derived, **family.refused}
    found: dict[str, str] = {}
    problems = []
    for key, value in read_states(word):
        if key not in known:
            has = f"only {', '.join(known)}" if known else "none"
            problems.append(f"Block {name} does not have property '{key}' ({has})")
        elif key in found:
            problems.append(f"Property '{key}' can only be set once for block {name}")
        elif not value:
            problems.append(f"Expected value for property '{key}' on block {name}")
        elif value not in known[key]:
            problems.append(
                f"Block {name} does not accept '{value}' for {key} property"
                f" (only {_some(known[key])})"
            )
        elif key in family.refused and value != family.refused[key][0]:
            problems.append(
                f"Unable to put {name} with {key}={value}: here it is always"
                f" {family.refused[key][0]}"
            )
        else:
            found[key] = value
    if problems:
        raise CommandError("; ".join(problems))
    return found


def _some(values: tuple[str, ...]) -> str:
    """Return values for a message: numbers as a range."""
    if len(values) > 2 and values[0].isdigit():
        numbers = sorted(map(int, values))
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(values)


def _read_mode(words: list[str], modes: tuple[str, ...]) -> tuple[str, BlockFilter]:
    """Return the mode, one of `modes`, and the blocks to replace.

    Raises:
        CommandError: If there is no such mode, or words are left over.
    """
    mode, *rest = words or ["replace"]
    if mode not in modes:
        raise CommandError(f"Incorrect argument for command: '{mode}' ({', '.join(modes)})")
    if mode == "keep":
        only = BlockFilter(AIR)
    elif rest and mode == "replace" and modes == _FILL_MODES:
        word, *rest = rest
        only = _read_filter(word)
    else:
        only = ANY_BLOCK
    if rest:
        raise CommandError(f"Incorrect argument for command: '{rest[0]}'")
    return mode, only


def _put(source: Source, box: _Box, block: int, mode: str, only: BlockFilter) -> int:
    """Fill a box with a block according to `mode`; return how many blocks changed."""
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
    """Empty a box, dropping what its blocks yield without a tool; return how many changed."""
    state = source.state
    for x in range(*box[0]):
        for y in range(*box[1]):
            for z in range(*box[2]):
                if block := state.world.block_at(x, y, z):
                    spill(state, (x, y, z))
                    drop_loot(state, block, None, (x, y, z))
    return state.world.fill(*box, AIR)


def _shell(box: _Box) -> list[_Box]:
    """Return the outermost layer of a box as boxes that do not overlap."""
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
        raise CommandError(f"No more blocks can be changed: a world remembers only {_MOST_EDITS}")


def time(source: Source, arguments: list[str]) -> CommandResult:
    """`/time set|add <time>`, `/time query daytime|day|gametime`."""
    need(arguments, 2, "/time (set|add|query) <time>")
    state, action = source.state, arguments[0]
    if action == "query":
        counts = {
            "daytime": state.daytime,
            "day": state.time // DAY_TICKS,
            "gametime": state.game_time,
        }
        return CommandResult(True, f"The time is {counts[read_name(arguments[1], counts, 'time')]}")
    if action not in ("set", "add"):
        raise CommandError(f"Incorrect argument for command: '{action}' (set, add or query)")
    ticks = TIMES.get(arguments[1]) if action == "set" else None
    if ticks is None:
        ticks = _duration(arguments[1])
    state.time = ticks + (state.time if action == "add" else 0)
    return CommandResult(True, f"Set the time to {state.daytime}")


def _duration(word: str) -> int:
    scale = _TICKS_OF_UNIT.get(word[-1:])
    return read_int(word if scale is None else word[:-1], 0, _LONGEST) * (scale or 1)


def weather(source: Source, arguments: list[str]) -> CommandResult:
    """`/weather clear|rain|thunder [duration]`: rain puts fires out, but the sky stays clear."""
    need(arguments, 1, "/weather (clear|rain|thunder)")
    name = read_name(arguments[0], WEATHERS, "weather")
    source.state.raining = name != "clear"
    lacking = "the sky stays clear" if source.state.raining else ""
    return CommandResult(True, f"Set the weather to {name}", lacking)


def gamerule(source: Source, arguments: list[str]) -> CommandResult:
    """`/gamerule <rule> [value]`; the rules of `GAME_RULES` have an effect here."""
    need(arguments, 1, "/gamerule <rule> [<value>]")
    rule, rules = arguments[0], source.state.rules
    if rule not in _RULES:
        raise CommandError(f"Unknown game rule '{rule}'.{did_you_mean(rule, _RULES)}")
    if len(arguments) == 1:
        shown = rules.get(rule, "not set")
        return CommandResult(True, f"Gamerule {rule} is currently set to: {shown}")
    value = arguments[1].lower()
    if rule in _INTEGER_RULES:
        value = str(read_int(value))
    else:
        read_bool(value)
    rules[rule] = value
    lacking = "this rule is not obeyed" if rule in _NOT_OBEYED else ""
    return CommandResult(True, f"Gamerule {rule} is now set to: {value}", lacking)


def difficulty(source: Source, arguments: list[str]) -> CommandResult:
    """`/difficulty peaceful|easy|normal|hard`, which decides how fast fire spreads."""
    state = source.state
    if not arguments:
        return CommandResult(True, f"The difficulty is {state.difficulty.title()}")
    name = state.difficulty = read_name(arguments[0], DIFFICULTIES, "difficulty")
    return CommandResult(True, f"The difficulty has been set to {name.title()}")
