"""Translation of old chat commands to the syntax of Minecraft 1.16."""

from __future__ import annotations

import logging
import re

from rllib_minestudio.errors import InvalidActionError

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
