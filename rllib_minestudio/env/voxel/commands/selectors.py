"""Target selectors: @p @a @r @s @e[type=..., distance=..., limit=..., sort=...]."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from rllib_minestudio.env.voxel.commands.parsing import (
    CommandError,
    Source,
    plain_name,
    read_float,
    read_int,
)
from rllib_minestudio.env.voxel.data.vocabulary import NO_ENTITY, NO_PLAYER
from rllib_minestudio.env.voxel.entities.records import MOB_KINDS

PLAYER = "Player"
"""Name of the player in messages, and as a target."""
_MOST_OPTIONS = 32
_OPTIONS = ("type", "distance", "limit", "sort", "gamemode", "name", "tag", "nbt")


class SelectedEntity(NamedTuple):
    """An entity that a selector found.

    Attributes:
        kind: "player", "item" or the name of a mob.
        row: Row of the mob or item; 0 for the player.
        position: Its feet.
    """

    kind: str
    row: int
    position: tuple[float, float, float]

    @property
    def is_player(self) -> bool:
        """Whether this is the player."""
        return self.kind == "player"


def _player(source: Source) -> SelectedEntity:
    x, y, z = source.state.player.position.tolist()
    return SelectedEntity("player", 0, (x, y, z))


def _mobs(source: Source) -> list[SelectedEntity]:
    mobs = source.state.mobs
    rows = zip(mobs.kind.tolist(), mobs.position.tolist(), mobs.death_ticks.tolist(), strict=True)
    return [
        SelectedEntity(MOB_KINDS[kind].name, row, (x, y, z))
        for row, (kind, (x, y, z), dead) in enumerate(rows)
        if not dead
    ]


def _items(source: Source) -> list[SelectedEntity]:
    return [
        SelectedEntity("item", row, (x, y, z))
        for row, (x, y, z) in enumerate(source.state.items.position.tolist())
    ]


def _options(text: str) -> list[tuple[str, str]]:
    options = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, value = part.partition("=")
        if not separator or name.strip() not in _OPTIONS:
            raise CommandError(f"Unknown option '{part}'; one of {', '.join(_OPTIONS)}")
        options.append((name.strip(), value.strip()))
    if len(options) > _MOST_OPTIONS:
        raise CommandError(f"A selector may have {_MOST_OPTIONS} options, found {len(options)}")
    return options


def _type_filter(value: str) -> Callable[[SelectedEntity], bool]:
    wanted = plain_name(value.removeprefix("!"))
    if value.startswith("!"):
        return lambda target: target.kind != wanted
    return lambda target: target.kind == wanted


def _distance_filter(value: str, source: Source) -> Callable[[SelectedEntity], bool]:
    low, dots, high = value.partition("..")
    least = read_float(low) if low else 0.0
    most = read_float(high) if high else (math.inf if dots else least)
    return lambda target: least <= math.dist(target.position, source.position) <= most


def _executor(source: Source) -> list[SelectedEntity]:
    kind, row = source.executor
    if kind == "player":
        return [_player(source)]
    mobs, items = source.state.mobs, source.state.items
    if kind == "item":
        is_there, place = row < items.count, items.position
    else:
        is_there, place = row < mobs.count and not mobs.death_ticks[row], mobs.position
        is_there = is_there and MOB_KINDS[mobs.kind[row]].name == kind
    if not is_there:
        return []
    x, y, z = place[row].tolist()
    return [SelectedEntity(kind, row, (x, y, z))]


def select(word: str, source: Source) -> list[SelectedEntity]:
    """Finds the entities that a selector or a player's name means.

    Raises:
        CommandError: When it is malformed or nothing matches.
    """
    if not word.startswith("@"):
        if word.lower() != PLAYER.lower():
            raise CommandError(NO_PLAYER)
        return [_player(source)]
    head, _, rest = word.partition("[")
    if rest and not rest.endswith("]"):
        raise CommandError(f"Expected ']' at the end of '{word}'")
    if head in ("@p", "@a", "@r"):
        found = [_player(source)]
    elif head == "@s":
        found = _executor(source)
    elif head == "@e":
        found = [_player(source), *_mobs(source), *_items(source)]
    else:
        raise CommandError(f"Unknown selector type '{head}'")
    source.effort.spend(len(found))
    found = _narrow(found, _options(rest[:-1]), source)
    if not found:
        raise CommandError(NO_ENTITY if head in ("@e", "@s") else NO_PLAYER)
    return found


def _narrow(
    found: list[SelectedEntity], options: list[tuple[str, str]], source: Source
) -> list[SelectedEntity]:
    limit = None
    for name, value in options:
        if name == "type":
            found = list(filter(_type_filter(value), found))
        elif name == "distance":
            found = list(filter(_distance_filter(value, source), found))
        elif name == "sort" and value in ("nearest", "furthest"):
            found.sort(
                key=lambda target: math.dist(target.position, source.position),
                reverse=value == "furthest",
            )
        elif name == "limit":
            limit = read_int(value, low=1)
    return found[:limit]


def select_player(word: str, source: Source) -> SelectedEntity:
    """Like `select`, for commands that work on players only.

    Raises:
        CommandError: When the player is not among what was found.
    """
    for target in select(word, source):
        if target.is_player:
            return target
    raise CommandError(NO_PLAYER)
