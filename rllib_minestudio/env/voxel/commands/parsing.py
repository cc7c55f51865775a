"""Parsing of command arguments: words, numbers, coordinates, names and selectors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rllib_minestudio.env.voxel.data import NAMESPACE, NO_ENTITY, NO_PLAYER
from rllib_minestudio.env.voxel.entities.records import MOB_KINDS
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.world.box_field import HEIGHT
from rllib_minestudio.errors import did_you_mean

_FARTHEST_COLUMN = 30_000_000
_FARTHEST_LAYER = 20_000_000
"""Bounds along x and z, and along y, within which Minecraft lets commands put entities."""
LARGEST_EFFORT = 2**19
"""Entities and blocks that one command may read or change, all its branches together.

Using it up takes seconds. Minecraft instead stops a chain after 65,536 commands
(`maxCommandChainLength`), however much each of them does.
"""

_OPENING, _CLOSING = "{[", "}]"


class CommandError(Exception):
    """A command cannot be executed; the message is shown to the player in the chat."""


class Effort:
    """Remaining budget of one command, shared by its branches; starts at `LARGEST_EFFORT`."""

    def __init__(self) -> None:
        self._left = LARGEST_EFFORT

    def spend(self, amount: int) -> None:
        """Subtract `amount` from the budget.

        Raises:
            CommandError: If less is left; what the command has already done is not undone.
        """
        self._left -= amount
        if self._left < 0:
            raise CommandError(
                f"Stopped: one command may process at most {LARGEST_EFFORT} entities and blocks"
            )


class Source(NamedTuple):
    """The entity that runs a command, and where.

    Attributes:
        state: The game.
        effort: The command's remaining budget.
        executor: The entity that `@s` means: its kind, and the row of a mob or item.
        position: Origin of relative coordinates and distances.
    """

    state: GameState
    effort: Effort
    executor: tuple[str, int]
    position: tuple[float, float, float]


class CommandResult(NamedTuple):
    """Outcome of a command.

    Attributes:
        ok: Whether it succeeded.
        message: The chat message.
        lacking: What Minecraft would do and this engine does not; empty for nothing.
    """

    ok: bool
    message: str
    lacking: str = ""


Command = Callable[[Source, list[str]], CommandResult]
"""Function that runs a command for a source and its arguments; raises `CommandError` on misuse."""


def split_words(text: str) -> list[str]:
    """Split at spaces, but not inside {...}, [...] or quotes (NBT data, selectors)."""
    words, word, depth, quoted = [], "", 0, False
    for character in text.strip():
        if character == '"':
            quoted = not quoted
        elif not quoted and character in _OPENING:
            depth += 1
        elif not quoted and character in _CLOSING:
            depth -= 1
        if character.isspace() and depth <= 0 and not quoted:
            if word:
                words.append(word)
            word = ""
        else:
            word += character
    return [*words, word] if word else words


def plain_name(word: str) -> str:
    """Return a name in lower case without namespace, NBT data and block states."""
    for opening in _OPENING:
        word = word.split(opening, 1)[0]
    return word.removeprefix(NAMESPACE).lower()


def read_name(word: str, valid: Iterable[str], what: str) -> str:
    """Read a name that must be among `valid`.

    Raises:
        CommandError: If it is not. The message names the kind of thing, `what`, and the closest
            valid names.
    """
    name, names = plain_name(word), list(valid)
    if name in names:
        return name
    shown = ", ".join(names) if len(names) <= 8 else ""
    hint = did_you_mean(name, names) or (f" This engine has: {shown}." if shown else "")
    raise CommandError(f"Unknown {what} '{word}'.{hint}")


def read_states(word: str) -> list[tuple[str, str]]:
    """Return the block states after a name, as in "furnace[facing=east,lit=true]".

    Returns:
        Pairs of property and value, in lower case; an empty value if there is none.

    Raises:
        CommandError: If the bracket is not closed.
    """
    head = word.split("{", 1)[0]
    _, opened, inside = head.partition("[")
    if not opened:
        return []
    inside, closed, _ = inside.partition("]")
    if not closed:
        raise CommandError("Expected closing ] for block state properties")
    pairs = []
    for part in filter(None, map(str.strip, inside.lower().split(","))):
        name, _, value = part.partition("=")
        pairs.append((name.strip(), value.strip().strip('"')))
    return pairs


def read_int(word: str, low: int | None = None, high: int | None = None) -> int:
    """Read a whole number, within the bounds that are given."""
    try:
        value = int(word)
    except ValueError:
        raise CommandError(f"Expected integer, found '{word}'") from None
    if low is not None and value < low:
        raise CommandError(f"Integer must not be less than {low}, found {value}")
    if high is not None and value > high:
        raise CommandError(f"Integer must not be more than {high}, found {value}")
    return value


def read_bool(word: str) -> bool:
    """Read `true` or `false`, in any case, as Python writes them too."""
    value = word.lower()
    if value not in ("true", "false"):
        raise CommandError(f"Invalid boolean, expected 'true' or 'false' but found '{word}'")
    return value == "true"


def read_float(word: str) -> float:
    """Read a finite number."""
    try:
        value = float(word)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise CommandError(f"Expected number, found '{word}'")
    return value


def _coordinate(word: str, origin: float, centre: bool) -> float:
    if word.startswith("^"):
        raise CommandError("Local coordinates (^) are not supported; use ~ or numbers")
    if word.startswith("~"):
        return origin + (read_float(word[1:]) if len(word) > 1 else 0.0)
    value = read_float(word)
    return value + 0.5 if centre and "." not in word else value


def read_position(words: list[str], source: Source) -> tuple[float, float, float]:
    """Read three coordinates, absolute or relative (`~`); whole x and z mean the block's middle.

    Raises:
        CommandError: If there are fewer than three, or they are not finite numbers.
    """
    if len(words) < 3:
        raise CommandError("Incomplete (expected 3 coordinates)")
    x = _coordinate(words[0], source.position[0], centre=True)
    y = _coordinate(words[1], source.position[1], centre=False)
    z = _coordinate(words[2], source.position[2], centre=True)
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        raise CommandError("That position is out of this world!")
    return x, y, z


def require_in_world(position: tuple[float, float, float], purpose: str) -> None:
    """Check that an entity may be put at a position, which may be far above or below all blocks.

    Raises:
        CommandError: If not; the message names the `purpose` ("teleport", "summon").
    """
    x, y, z = position
    along_x, along_z = (-_FARTHEST_COLUMN <= value < _FARTHEST_COLUMN for value in (x, z))
    if not (along_x and along_z and -_FARTHEST_LAYER <= y < _FARTHEST_LAYER):
        raise CommandError(f"Invalid position for {purpose}")


def read_block_position(words: list[str], source: Source) -> tuple[int, int, int]:
    """Read three coordinates, absolute or relative, of a block that can be changed.

    Raises:
        CommandError: If they are not coordinates, or the block does not exist or is not loaded.
    """
    position = read_position(words, source)
    x, y, z = (int(value // 1) for value in position)
    if not source.state.world.is_loaded(x, z):
        raise CommandError("That position is not loaded")
    if not 0 <= y < HEIGHT:
        raise CommandError(
            f"That position is out of this world! There are blocks from y = 0 to {HEIGHT - 1}"
        )
    return x, y, z


def need(arguments: list[str], count: int, usage: str) -> None:
    """Check that there are at least `count` arguments.

    Raises:
        CommandError: If there are fewer; the message shows `usage`.
    """
    if len(arguments) < count:
        raise CommandError(f"Unknown or incomplete command. Usage: {usage}")


def title(name: str) -> str:
    """Return a name as the game shows it: "iron_sword" -> "Iron Sword"."""
    return name.replace("_", " ").title()


# --------------------------------------------------------------------------------- target selectors
# @p @a @r @s @e[type=..., distance=..., limit=..., sort=...].

PLAYER = "Player"
"""Name of the player, in messages and as a target."""
_MOST_OPTIONS = 32
_OPTIONS = ("type", "distance", "limit", "sort")
_SORTS = ("nearest", "furthest", "arbitrary")


class SelectedEntity(NamedTuple):
    """An entity matched by a selector.

    Attributes:
        kind: "player", "item" or the name of a mob.
        row: Row of the mob or item; 0 for the player.
        position: Position of its feet.
    """

    kind: str
    row: int
    position: tuple[float, float, float]

    @property
    def is_player(self) -> bool:
        """Whether the entity is the player."""
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
            raise CommandError(
                f"Option '{part}' is not known here; the options are {', '.join(_OPTIONS)}"
            )
        options.append((name.strip(), value.strip()))
    if len(options) > _MOST_OPTIONS:
        raise CommandError(f"A selector has at most {_MOST_OPTIONS} options, found {len(options)}")
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
    """Return the entities that match a selector or a player's name.

    Raises:
        CommandError: If the selector is malformed or nothing matches.
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
        elif name == "sort":
            if read_name(value, _SORTS, "sort order") == "arbitrary":
                continue
            found.sort(
                key=lambda target: math.dist(target.position, source.position),
                reverse=value == "furthest",
            )
        elif name == "limit":
            limit = read_int(value, low=1)
    return found[:limit]


def select_player(word: str, source: Source) -> SelectedEntity:
    """Return the player if it matches, for commands that work on players only.

    Raises:
        CommandError: If the selector is malformed or does not match the player.
    """
    for target in select(word, source):
        if target.is_player:
            return target
    raise CommandError(NO_PLAYER)


def ignored_data(word: str) -> str:
    """Return that NBT data after a name is ignored; empty if there is none."""
    return "NBT data is ignored" if "{" in word else ""


def reasons(*reasons: str) -> str:
    """Return in one clause why a command does less than in Minecraft; empty reasons drop out."""
    return ", and ".join(filter(None, reasons))


# -------------------------------------------------------------------- NBT data as commands write it
# NBT data as commands write it: `{Enchantments:[{id:"minecraft:silk_touch",lvl:1s}],Damage:3}`.

_DEEPEST = 16
"""Most compounds and lists within each other."""
_TOKEN = re.compile(r"""\s*([{}\[\],:;]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z0-9._+-]+)\s*""")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?[bBsSlLfFdD]?")


class NbtError(ValueError):
    """A text is no NBT data; the message says why."""


def read_nbt(text: str) -> dict[str, Any]:
    """Read a compound.

    Args:
        text: The data, from "{" to "}".

    Returns:
        Its tags: numbers as int or float, texts without the quotes, lists and compounds.

    Raises:
        NbtError: It is not a compound.
    """
    tokens, end = [], 0
    while end < len(text):
        match = _TOKEN.match(text, end)
        if match is None:
            raise NbtError(f"Unexpected {text[end : end + 10]!r}")
        tokens.append(match[1])
        end = match.end()
    tokens.reverse()
    value = _value(tokens, 0)
    if tokens or not isinstance(value, dict):
        raise NbtError("Expected one compound, {...}")
    return value


def _value(tokens: list[str], depth: int) -> Any:
    if depth > _DEEPEST:
        raise NbtError(f"More than {_DEEPEST} lists and compounds within each other")
    token = _take(tokens)
    if token == "{":
        return _compound(tokens, depth)
    if token == "[":
        return _list(tokens, depth)
    if token[0] in "\"'":
        return _text(token)
    if token in "}],:;":
        raise NbtError(f"Unexpected {token!r}")
    if _NUMBER.fullmatch(token):
        digits = token.rstrip("bBsSlLfFdD")
        return int(digits) if re.fullmatch(r"[+-]?\d{1,18}", digits) else float(digits)
    return {"true": 1, "false": 0}.get(token, token)


def _take(tokens: list[str]) -> str:
    if not tokens:
        raise NbtError("It ends too early")
    return tokens.pop()


def _text(token: str) -> str:
    if token[0] == "'":
        return token[1:-1].replace("\\'", "'").replace("\\\\", "\\")
    try:
        return str(json.loads(token))
    except ValueError as error:
        raise NbtError(f"Unreadable text {token}") from error


def _compound(tokens: list[str], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while (name := _take(tokens)) != "}":
        if _take(tokens) != ":":
            raise NbtError(f"Expected ':' after {name!r}")
        found[_text(name) if name[0] in "\"'" else name] = _value(tokens, depth + 1)
        if tokens and tokens[-1] == ",":
            tokens.pop()
        elif not tokens or tokens[-1] != "}":
            raise NbtError(f"Expected ',' or '}}' after the tag {name!r}")
    return found


def _list(tokens: list[str], depth: int) -> list[Any]:
    found: list[Any] = []
    if len(tokens) > 1 and tokens[-1] in ("B", "I", "L") and tokens[-2] == ";":
        del tokens[-2:]  # an array of numbers
    while True:
        if tokens and tokens[-1] == "]":
            tokens.pop()
            return found
        found.append(_value(tokens, depth + 1))
        if tokens and tokens[-1] == ",":
            tokens.pop()
        elif not tokens or tokens[-1] != "]":
            raise NbtError("Expected ',' or ']' in a list")


def name_in(value: Any) -> str:
    """Return a name in NBT data without its namespace; empty if it is none."""
    return value.removeprefix(NAMESPACE) if isinstance(value, str) else ""
