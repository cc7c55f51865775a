"""The text form of filters, for the command line and YAML.

    expression = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation = "not" negation | "(" expression ")" | condition
    condition = quantity comparison number      return>=5, kill_entity:cow>=3, y<12, info:a.b==2
              | flag                            success, terminated, truncated
              | "task:" pattern | "held:" pattern | "worn:" pattern | "inside:" pattern
              | "function:" dotted path
    quantity = measure                          return, length, distance, height, alive, x, health
             | statistic ":" pattern            mine_block:*_ore
             | "has:" pattern | "chest:" pattern | "structure:" name | "info:" dotted path
             | "placed:" pattern "@" box | "block:" pattern "@" box
    box = "near" | span "," span "," span       of x, y and z
    span = number [ ".." number ]

The parser works by recursive descent, with one method per rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, NoReturn, TypeVar

from rllib_minestudio.env.voxel.game.statistics import STATISTICS
from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.evaluation.filters.conditions import (
    BLOCK,
    CHEST,
    COMPARISONS,
    FLAGS,
    INFO_SHORTHANDS,
    INSIDE,
    MEASURES,
    MOBS,
    PLACED,
    STRUCTURE,
    EpisodeFilter,
    FunctionFilter,
    Has,
    HeldItem,
    InfoValue,
    Inside,
    Measure,
    OutcomeFlag,
    Quantity,
    Statistic,
    Task,
    Threshold,
    WorldFact,
    WorldQuantity,
    WornItem,
    located_fact,
)

_WORDS = ("and", "or", "not")
_WITH_PATTERN: dict[str, Callable[[str], EpisodeFilter]] = {
    "task": Task,
    "held": HeldItem,
    "worn": WornItem,
    INSIDE: Inside,
    "function": FunctionFilter,
}
"""Conditions that consist of a pattern or path."""
_OF_PATTERN: dict[str, Callable[[str], Quantity]] = {
    **{name: partial(Statistic, name) for name in STATISTICS},
    "info": InfoValue,
    "has": Has,
    PLACED: lambda text: WorldQuantity(located_fact(PLACED, text)),
    BLOCK: lambda text: WorldQuantity(located_fact(BLOCK, text)),
    CHEST: lambda text: WorldQuantity(WorldFact(CHEST, text)),
    MOBS: lambda text: WorldQuantity(WorldFact(MOBS, text)),
    STRUCTURE: lambda text: WorldQuantity(WorldFact(STRUCTURE, text)),
}
"""Quantities that take a pattern or path."""
_QUANTITIES = (*_OF_PATTERN, *MEASURES, *INFO_SHORTHANDS)
_NAMES = (*_QUANTITIES, *FLAGS, *_WITH_PATTERN)
_EXAMPLES = {
    "info": "info:player_pos.y<12",
    "function": "function:package.module.name",
    PLACED: "placed:*_planks@near>=3",
    BLOCK: "block:*_log@-3..3,0..4,-3..3>=1",
    STRUCTURE: "structure:pillar>=1",
    CHEST: "chest:diamond>=1",
    MOBS: "mobs:*_golem>=1",
    INSIDE: "inside:cobweb",
    "has": "has:stick>=4",
    "held": "held:*_sword",
    "worn": "worn:iron_helmet",
}
"""Examples for messages about a missing pattern; other names get `NAME:cow`."""

_LONGEST = 10_000
"""Most characters of a filter."""


_Made = TypeVar("_Made")


def parse_filter(text: str) -> EpisodeFilter:
    """Parse a filter, such as `kill_entity:cow>=3 and not length<100`.

    Args:
        text: See the grammar above.

    Raises:
        InvalidOptionsError: The text is not a filter; the message points at the mistake.
    """
    if len(text) > _LONGEST:
        raise InvalidOptionsError(f"filter: must have at most {_LONGEST} characters.")
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise InvalidOptionsError("filter: its brackets are nested too deeply.") from None


def parse_quantity(text: str) -> Quantity:
    """Parse a single quantity, such as `kill_entity:cow`.

    Args:
        text: See the grammar above.

    Raises:
        InvalidOptionsError: The text is not a quantity; the message points at the mistake.
    """
    if len(text) > _LONGEST:
        raise InvalidOptionsError(f"quantity: must have at most {_LONGEST} characters.")
    return _Parser(text, "quantity").parse_quantity()


class _Parser:
    """A parser that makes one pass over the tokens of a text."""

    def __init__(self, text: str, subject: str = "filter") -> None:
        """Split the text into tokens; `subject` is its name in messages."""
        self._text, self._subject = text, subject
        self._tokens = tokenize(text, subject)
        self._next = 0

    def parse(self) -> EpisodeFilter:
        found = self._expression()
        if self._peek().kind != "end":
            self._fail(self._peek(), "expected 'and', 'or', or the end")
        return found

    def parse_quantity(self) -> Quantity:
        name = self._advance()
        if name.kind != "word" or name.text not in _QUANTITIES:
            hint = did_you_mean(name.text, _QUANTITIES)
            self._fail(
                name,
                f"expected a quantity, one of {', '.join(_QUANTITIES)}",
                hint=hint,
            )
        found, _ = self._quantity(name)
        if self._peek().kind != "end":
            self._fail(self._peek(), "expected the end")
        return found

    # ---------------------------------------------------------------- rules

    def _expression(self) -> EpisodeFilter:
        found = self._conjunction()
        while self._takes("or"):
            found = found | self._conjunction()
        return found

    def _conjunction(self) -> EpisodeFilter:
        found = self._negation()
        while self._takes("and"):
            found = found & self._negation()
        return found

    def _negation(self) -> EpisodeFilter:
        if self._takes("not"):
            return ~self._negation()
        if self._takes("("):
            found = self._expression()
            if not self._takes(")"):
                self._fail(self._peek(), "expected ')'")
            return found
        return self._condition()

    def _condition(self) -> EpisodeFilter:
        name = self._advance()
        if name.kind != "word" or name.text in _WORDS:
            self._fail(name, "expected a condition, such as return>=5 or kill_entity:cow>=3")
        if name.text not in _NAMES:
            self._fail(name, f"unknown quantity {name.text!r}", hint=self._suggest(name.text))
        if name.text in FLAGS:
            return OutcomeFlag(name.text)
        if name.text in _WITH_PATTERN:
            return self._with_pattern(name)
        quantity, subject = self._quantity(name)
        return Threshold(quantity, *self._comparison(subject))

    def _quantity(self, name: Token) -> tuple[Quantity, Token]:
        """Read the rest of a quantity; also return its last token."""
        if name.text in MEASURES:
            return Measure(name.text), name
        if name.text in INFO_SHORTHANDS:
            return InfoValue(INFO_SHORTHANDS[name.text]), name
        pattern = self._pattern(name)
        return self._made(_OF_PATTERN[name.text], pattern), pattern

    def _with_pattern(self, name: Token) -> EpisodeFilter:
        """Read the pattern or path of a condition that compares nothing."""
        return self._made(_WITH_PATTERN[name.text], self._pattern(name))

    def _made(self, make: Callable[[str], _Made], pattern: Token) -> _Made:
        """Call `make` with a pattern; an error points at the pattern."""
        try:
            return make(pattern.text)
        except InvalidOptionsError as error:
            self._fail(pattern, str(error))

    def _pattern(self, name: Token) -> Token:
        """Read ":" and the pattern after it; `minecraft:cow` is a single name."""
        if self._peek().kind != "colon":
            shown = _EXAMPLES.get(name.text, f"{name.text}:cow")
            self._fail(self._peek(), f"expected ':' after {name.text!r}, as in {shown}")
        self._advance()
        pattern = self._advance()
        if pattern.kind not in ("word", "number"):
            self._fail(pattern, f"expected a name or a pattern after '{name.text}:'")
        while self._peek().kind == "colon":
            self._advance()
            rest = self._advance()
            pattern = Token("word", f"{pattern.text}:{rest.text}", pattern.column)
        if name.text not in (PLACED, BLOCK) and set(pattern.text) & set("@,"):
            self._fail(pattern, f"only {PLACED} and {BLOCK} are followed by a box")
        return pattern

    def _comparison(self, subject: Token) -> tuple[str, float]:
        comparison = self._advance()
        if comparison.kind == "comparison" and comparison.text == "=":
            self._fail(comparison, "'=' is no comparison", hint=" Did you mean '=='?")
        if comparison.kind != "comparison":
            choices = " ".join(COMPARISONS)
            self._fail(comparison, f"expected one of {choices} after {subject.text!r}")
        number = self._advance()
        if number.kind != "number":
            self._fail(number, f"expected a number after '{comparison.text}'")
        if not math.isfinite(float(number.text)):
            self._fail(number, f"{number.text[:40]} is no finite number")
        return comparison.text, float(number.text)

    # ---------------------------------------------------------------- tokens

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _advance(self) -> Token:
        token = self._peek()
        if token.kind != "end":
            self._next += 1
        return token

    def _takes(self, text: str) -> bool:
        """Consume the next token if it is `text`; return whether it was."""
        if self._peek().kind in ("word", "bracket") and self._peek().text == text:
            self._next += 1
            return True
        return False

    def _suggest(self, name: str) -> str:
        return did_you_mean(name, _NAMES) or f" There are {', '.join(_NAMES)}."

    def _fail(self, token: Token, reason: str, hint: str = "") -> NoReturn:
        complain(self._text, self._subject, token, reason, hint)


# ----------------------------------------------------------- tokens, and messages that point at one

END = "end"
"""Kind of the token after the last one; the other kinds are the groups of `_TOKEN`."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w*]))"
    r"|(?P<comparison>>=|<=|==|!=|>|<|=)"
    r"|(?P<bracket>[()])"
    r"|(?P<colon>:)"
    r"|(?P<word>[\w.*?\[\]/@,-]+))"
)
"""A word may be a dotted path, or a shell pattern optionally followed by a box."""


class Token(NamedTuple):
    """A word, number or sign.

    Attributes:
        kind: A group of `_TOKEN`, or `END`.
        text: The token as written.
        column: Column of its first character, from 0.
    """

    kind: str
    text: str
    column: int


def tokenize(text: str, subject: str) -> list[Token]:
    """Split a text into tokens, the last of which is the end.

    Args:
        text: The text.
        subject: Its name in messages: "filter" or "quantity".

    Raises:
        InvalidOptionsError: A character belongs to no token.
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
    """Raise an error that points at the token.

    Raises:
        InvalidOptionsError: Always.
    """
    found = "" if token.kind != END else ", found the end"
    dot = "" if reason.endswith((".", "?")) else "."
    visible = "".join(c if c.isprintable() else "\ufffd" for c in text)  # as long as the text
    raise InvalidOptionsError(
        f"{subject}, column {token.column + 1}: {reason}{found}{dot}{hint}\n"
        f"  {visible}\n  {' ' * token.column}^"
    )
