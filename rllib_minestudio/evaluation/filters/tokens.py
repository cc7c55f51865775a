"""The words of a filter's text, and complaints that point at one."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from rllib_minestudio.errors import InvalidOptionsError

END = "end"
"""Kind of the token behind the last one; the other kinds are the groups of `_TOKEN`."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w*]))"
    r"|(?P<comparison>>=|<=|==|!=|>|<|=)"
    r"|(?P<bracket>[()])"
    r"|(?P<colon>:)"
    r"|(?P<word>[\w.*?\[\]/@,-]+))"
)
"""A word may be a shell pattern, with the box that is meant behind it, or a dotted path."""


class Token(NamedTuple):
    """A word, a number or a sign.

    Attributes:
        kind: A group of `_TOKEN`, or `END`.
        text: As it is written.
        column: Of its first character, from 0.
    """

    kind: str
    text: str
    column: int


def tokenize(text: str, subject: str) -> list[Token]:
    """Cut a text into tokens, the last of which is the end.

    Args:
        text: What is read.
        subject: What complaints call it: "filter" or "quantity".

    Raises:
        InvalidOptionsError: A character belongs to none.
    """
    tokens, position = [], 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            column = position + len(text[position:]) - len(text[position:].lstrip())
            complain(text, subject, Token("", text[column], column), "unexpected character")
        kind = str(match.lastgroup)
        tokens.append(Token(kind, match.group(kind), match.start(kind)))
        position = match.end()
    return [*tokens, Token(END, "", end)]


def complain(text: str, subject: str, token: Token, reason: str, hint: str = "") -> NoReturn:
    """Say what is wrong, and point at the token.

    Raises:
        InvalidOptionsError: In any case.
    """
    found = "" if token.kind != END else ", found the end"
    dot = "" if reason.endswith((".", "?")) else "."
    raise InvalidOptionsError(
        f"{subject}, column {token.column + 1}: {reason}{found}{dot}{hint}\n"
        f"  {text}\n  {' ' * token.column}^"
    )
