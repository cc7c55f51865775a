"""NBT data as commands write it: `{Enchantments:[{id:"minecraft:silk_touch",lvl:1s}],Damage:3}`."""

from __future__ import annotations

import json
import re
from typing import Any

from rllib_minestudio.env.voxel.data import NAMESPACE

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
