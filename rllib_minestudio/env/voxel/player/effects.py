"""Status effects of the player: their names, and what they change."""

from __future__ import annotations

from rllib_minestudio.env.voxel.player.player import MAX_FOOD, Player

EFFECTS: tuple[str, ...] = (
    "speed",
    "slowness",
    "haste",
    "mining_fatigue",
    "strength",
    "instant_health",
    "instant_damage",
    "jump_boost",
    "nausea",
    "regeneration",
    "resistance",
    "fire_resistance",
    "water_breathing",
    "invisibility",
    "blindness",
    "night_vision",
    "hunger",
    "weakness",
    "poison",
    "wither",
    "health_boost",
    "absorption",
    "saturation",
    "glowing",
    "levitation",
    "luck",
    "unluck",
    "slow_falling",
    "conduit_power",
    "dolphins_grace",
    "bad_omen",
    "hero_of_the_village",
)
"""Effects of Minecraft 1.16 in the order of their numeric ids, which begin at 1.

`ACTING` names those that change something in this engine.
"""
ACTING = frozenset(
    (
        *("speed", "slowness", "haste", "mining_fatigue", "strength", "weakness", "jump_boost"),
        *("resistance", "regeneration", "instant_health", "saturation", "conduit_power"),
    )
)
_WITHOUT_OBJECT = frozenset(
    (
        *("fire_resistance", "water_breathing", "dolphins_grace", "luck", "unluck", "bad_omen"),
        *("hero_of_the_village", "invisibility"),
    )
)
"""Effects on things that this engine does not have: nothing is amiss without them."""

_HEALING_PERIOD = 50
"""Ticks between two points of health from regeneration of the lowest level."""


def lacking(name: str) -> str:
    """What this engine does not do of the effect called `name`; empty for nothing."""
    return "" if name in ACTING | _WITHOUT_OBJECT else f"the effect {name} changes nothing here"


def give_effect(player: Player, name: str, amplifier: int, ticks: int) -> None:
    """Gives the player an effect, in place of a present one of the same name.

    Args:
        player: Who receives it.
        name: One of `EFFECTS`.
        amplifier: Level minus one, 0 to 255.
        ticks: How long it lasts.
    """
    if name == "instant_health":
        player.health += 4.0 * 2.0 ** min(amplifier, 8)
        return
    player.effects[name] = (amplifier, ticks)
    apply_effects(player)


def clear_effects(player: Player, name: str | None = None) -> bool:
    """Takes away one effect, or all of them; returns whether there was one."""
    taken = bool(player.effects) if name is None else name in player.effects
    if name is None:
        player.effects.clear()
    else:
        player.effects.pop(name, None)
    apply_effects(player)
    return taken


def tick_effects(player: Player) -> None:
    """Advances the player's effects by one tick."""
    ended = False
    for name, (amplifier, ticks) in list(player.effects.items()):
        if name == "regeneration" and ticks % max(_HEALING_PERIOD >> min(amplifier, 6), 1) == 0:
            player.health += 1.0
        elif name == "saturation":
            feed(player, amplifier + 1, 2.0 * (amplifier + 1))
        if ticks > 1:
            player.effects[name] = (amplifier, ticks - 1)
        else:
            del player.effects[name]
            ended = True
    if ended:
        apply_effects(player)


def feed(player: Player, nutrition: int, saturation: float) -> None:
    """Raises the food level, up to full, then the saturation, up to the food level."""
    state = player.records[0]
    state["food"] = min(int(state["food"]) + nutrition, MAX_FOOD)
    state["saturation"] = min(float(state["saturation"]) + saturation, float(state["food"]))


def apply_effects(player: Player) -> None:
    """Writes what the present effects change into the player's record.

    Formulas: minecraft.wiki/w/Effect (Java 1.16).
    """
    level = {name: amplifier + 1 for name, (amplifier, _) in player.effects.items()}
    state = player.records[0]
    slowed = max(1.0 - 0.15 * level.get("slowness", 0), 0.0)
    state["speed_factor"] = (1.0 + 0.2 * level.get("speed", 0)) * slowed
    state["jump_boost"] = level.get("jump_boost", 0)
    state["resistance"] = min(0.2 * level.get("resistance", 0), 1.0)
    player.damage_bonus = 3.0 * level.get("strength", 0) - 4.0 * level.get("weakness", 0)
    haste, fatigue = level.get("haste", 0), level.get("mining_fatigue", 0)
    player.attack_haste = (1.0 + 0.1 * haste) * max(1.0 - 0.1 * fatigue, 0.0)
    player.mining_haste = max(haste, level.get("conduit_power", 0))
    player.mining_fatigue = fatigue
    player.update_equipment(force=True)
