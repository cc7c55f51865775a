"""Random chat commands: most of them sensible, many on the edge, some nonsense."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from rllib_minestudio.env.voxel.commands import COMMANDS
from rllib_minestudio.env.voxel.commands.entity_commands import _NAMED_SLOTS
from rllib_minestudio.env.voxel.commands.world_commands import _RULES
from rllib_minestudio.env.voxel.data import DIFFICULTIES
from rllib_minestudio.env.voxel.entities.records import MOB_KIND_ID
from rllib_minestudio.env.voxel.items.items import ENCHANTMENTS, ITEM_ID
from rllib_minestudio.env.voxel.player.player import EFFECTS
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, FAMILY_OF
from rllib_minestudio.env.voxel.world.climate import BIOMES

_PLAYERS = ("@p", "@s", "@a", "@r", "Player")
_ENTITIES = ("@e", "@e[type=cow]", "@e[type=!player]", "@e[type=item]", "@e[distance=..8,limit=3]")
_FAR = (1e3, 29_999_984.0, 29_999_999.9, 3e7, 1e9, 1e19, 1e300)
_LAYERS = (-1e300, -2e7, -19_999_999, -1e6, -65, -64, -63, -2, -1, -0.5, 0, 1, 2, 62, 126, 127, 128)
_LAYERS += (129, 255, 256, 1e4, 1e6, 19_999_999, 2e7, 1e300)
_NONSENSE = (
    "",
    "nan",
    "inf",
    "-inf",
    "~nan",
    "~1e308",
    "^1",
    "1e",
    "~~",
    "x",
    "9" * 400,
    "{",
    "[]",
)
_WITH_STATES = [kind for kind, family in enumerate(FAMILY_OF) if family.stored]
_HELD = ("diamond_pickaxe", "iron_shovel", "iron_axe", "iron_sword", "dirt", "sand", "oak_planks")


def random_command(random: Random) -> str:
    """A command; about one in fifty is no command at all."""
    if random.random() < 0.02:
        return " ".join(random.choice((*COMMANDS, *_NONSENSE, "run", "~", "@e")) for _ in range(9))
    text = _GENERATORS[random.choice(_NAMES)](random)
    while random.random() < 0.1:
        scope = random.choice((f"as {_target(random)}", f"at {_target(random)}"))
        if random.random() < 0.3:
            scope = f"positioned {_place(random)}"
        text = f"execute {scope} run {text}"
    return "/" + text


def _target(random: Random) -> str:
    return random.choice(_PLAYERS if random.random() < 0.7 else _ENTITIES)


def _along(random: Random, reach: float) -> str:
    """A coordinate along x or z: near the player, seldom at the end of the world or nowhere."""
    dice = random.random()
    if dice < 0.9:
        return f"~{random.randint(-int(reach), int(reach))}"
    if dice < 0.95:
        return f"~{random.uniform(-100.0, 100.0):.2f}"
    if dice < 0.99:
        return repr(random.choice((-1, 1)) * random.choice(_FAR))
    return random.choice(_NONSENSE)


def _up(random: Random, reach: float) -> str:
    dice = random.random()
    if dice < 0.6:
        return f"~{random.randint(-int(reach), int(reach))}"
    if dice < 0.98:
        layer = random.choice(_LAYERS if dice < 0.75 else range(-4, 132))
        return repr(layer)
    return random.choice(_NONSENSE)


def _place(random: Random, reach: float = 5.0) -> str:
    return f"{_along(random, reach)} {_up(random, reach)} {_along(random, reach)}"


def _block(random: Random) -> str:
    return "air" if random.random() < 0.4 else _stated(random)


def _stated(random: Random) -> str:
    """Any block, often with some of its properties, seldom with one that it does not have."""
    kind = random.choice(_WITH_STATES) if random.random() < 0.5 else random.randrange(len(BLOCKS))
    family = FAMILY_OF[kind]
    known = {**family.stored, **family.derived}
    if random.random() < 0.05:
        known = {**known, **family.refused, random.choice(("facing", "x", "")): _NONSENSE}
    names = random.sample(list(known), random.randint(0, len(known)))
    states = ",".join(f"{name}={random.choice(known[name])}" for name in names)
    return BLOCKS[kind].name + (f"[{states}]" if states or random.random() < 0.1 else "")


def _fill(random: Random) -> str:
    # Long in one direction at most, so that few are refused for their size.
    reach = random.choice((3.0, 8.0, 12.0))
    corners = f"{_place(random, reach)} {_place(random, reach)}"
    if random.random() < 0.2:
        corners = f"~ {_up(random, 3)} ~ ~ {_up(random, 130)} ~"  # a shaft or a pillar
    mode = random.choice(("", " replace", f" replace {_stated(random)}", " keep", " 0"))
    return f"fill {corners} {_block(random)}{mode}"


def _teleport(random: Random) -> str:
    name = random.choice(("tp", "teleport"))
    if random.random() < 0.1:
        return f"{name} {_target(random)} {_target(random)}"
    turn = random.choice(("", "", " 0 90", " -180 -90", " 1e30 ~1e30", " 45 nan"))
    place = _place(random, 30.0)
    if random.random() < 0.15:
        x, z = (random.choice((-1, 1)) * random.choice(_FAR[:3]) for _ in range(2))
        place = f"{x} {random.choice((60, 64, 80, -5, 1e6))} {z}"
    return f"{name} {_target(random)} {place}{turn}"


def _give(random: Random) -> str:
    item = random.choice(_HELD if random.random() < 0.5 else list(ITEM_ID))
    return f"give {_target(random)} {item} {random.choice((1, 3, 64, 6400, 0))}"


def _replaceitem(random: Random) -> str:
    slot = random.choice(("weapon", "hotbar.0", *_NAMED_SLOTS))
    item = random.choice((*_HELD, "air"))
    return f"replaceitem entity {_target(random)} {slot} {item} {random.choice((1, 64))}"


def _effect(random: Random) -> str:
    if random.random() < 0.3:
        return f"effect clear {_target(random)}"
    level, seconds = random.choice((0, 1, 4, 255)), random.choice((0, 1, 5, 1_000_000))
    hidden = random.choice(("", " true", " false"))
    return f"effect give {_target(random)} {random.choice(EFFECTS)} {seconds} {level}{hidden}"


_GENERATORS: dict[str, Callable[[Random], str]] = {
    "give": _give,
    "clear": lambda random: f"clear {_target(random)} {random.choice(list(ITEM_ID))} 2",
    "replaceitem": _replaceitem,
    "summon": lambda random: (
        f"summon {random.choice(list(MOB_KIND_ID))}"
        f" {random.choice(('^ ^ ^2', '~1 ~ ~1', '~ ~ ~-1', '~-2 ~ ~', _place(random)))}"
    ),
    "effect": _effect,
    "enchant": lambda random: (
        f"enchant {_target(random)} {random.choice(list(ENCHANTMENTS))} {random.randint(0, 6)}"
    ),
    "kill": lambda random: f"kill {random.choice(('', *_ENTITIES))}",
    "tp": _teleport,
    "teleport": _teleport,
    "teleportbiome": lambda random: (
        f"teleportbiome @p {random.choice(BIOMES)} {_along(random, 500.0)} {_along(random, 500.0)}"
    ),
    "locatebiome": lambda random: f"locatebiome {random.choice(BIOMES)}",
    "setblock": lambda random: f"setblock {_place(random, 3.0)} {_block(random)}",
    "fill": _fill,
    "time": lambda random: f"time {random.choice(('set', 'add'))} {random.randint(0, 30000)}",
    "weather": lambda random: f"weather {random.choice(('clear', 'rain', 'thunder'))}",
    "gamerule": lambda random: (
        f"gamerule {random.choice(_RULES)} {random.choice(('true', 'false'))}"
    ),
    "difficulty": lambda random: f"difficulty {random.choice(DIFFICULTIES)}",
}
"""How a command's arguments are made up; every command but `execute`, which wraps others."""

_SELDOM = (
    *("clear", "kill", "time", "weather", "gamerule", "difficulty", "teleportbiome"),
    "locatebiome",
)
_NAMES = [name for name in _GENERATORS for _ in range(1 if name in _SELDOM else 6)]
if unknown := set(COMMANDS) - set(_GENERATORS) - {"execute"}:
    raise LookupError(f"The fuzz test knows no arguments for {', '.join(sorted(unknown))}")
