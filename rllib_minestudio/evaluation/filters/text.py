"""The text form of filters, for the command line and YAML.

    expression = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation = "not" negation | "(" expression ")" | condition
    condition = quantity comparison number      return>=5, kill_entity:cow>=3, y<12, info:a.b==2
              | flag                            success, terminated, truncated
              | "task:" pattern | "held:" pattern | "function:" dotted path

A parser by recursive descent, one method per rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from rllib_minestudio.env.callbacks.rewards import STATISTICS
from rllib_minestudio.errors import InvalidOptionsError, did_you_mean
from rllib_minestudio.evaluation.filters.base import EpisodeFilter
from rllib_minestudio.evaluation.filters.conditions import (
    COMPARISONS,
    FLAGS,
    INFO_SHORTHANDS,
    MEASURES,
    Flag,
    FunctionFilter,
    HeldItem,
    InfoValue,
    Measure,
    Statistic,
    Task,
)

_WORDS = ("and", "or", "not")
_WITH_PATTERN: dict[str, Callable[[str], EpisodeFilter]] = {
    "task": Task,
    "held": HeldItem,
    "function": FunctionFilter,
}
_INFO = "info"
_NAMES = (*STATISTICS, *MEASURES, *FLAGS, *INFO_SHORTHANDS, *_WITH_PATTERN, _INFO)

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w*]))"
    r"|(?P<comparison>>=|<=|==|!=|>|<|=)"
    r"|(?P<bracket>[()])"
    r"|(?P<colon>:)"
    r"|(?P<word>[\w.*?\[\]/-]+))"
)
"""A word may be a shell pattern or a dotted path."""


_LONGEST = 10_000
"""Characters of a filter."""


class _Token(NamedTuple):
    kind: str
    text: str
    column: int
    """Of its first character, from 0."""


def parse_filter(text: str) -> EpisodeFilter:
    """Read a filter, such as `kill_entity:cow>=3 and not length<100`.

    Args:
        text: See the grammar above.

    Raises:
        InvalidOptionsError: The text is no filter; the message points at the place.
    """
    if len(text) > _LONGEST:
        raise InvalidOptionsError(f"filter: must have at most {_LONGEST} characters.")
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise InvalidOptionsError("filter: its brackets are nested too deeply.") from None


class _Parser:
    """One pass over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize()
        self._next = 0

    def parse(self) -> EpisodeFilter:
        found = self._expression()
        if self._peek().kind != "end":
            self._fail(self._peek(), "expected 'and', 'or', or the end")
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
            return Flag(name.text)
        if name.text in _WITH_PATTERN:
            return self._with_pattern(name)
        if name.text in MEASURES:
            return Measure(name.text, *self._comparison(name))
        if name.text in INFO_SHORTHANDS:
            return InfoValue(INFO_SHORTHANDS[name.text], *self._comparison(name))
        pattern = self._pattern(name)
        if name.text == _INFO:
            return InfoValue(pattern.text, *self._comparison(pattern))
        return Statistic(name.text, pattern.text, *self._comparison(pattern))

    def _with_pattern(self, name: _Token) -> EpisodeFilter:
        """Read the pattern or path of a condition that compares nothing."""
        pattern = self._pattern(name)
        try:
            return _WITH_PATTERN[name.text](pattern.text)
        except InvalidOptionsError as error:
            self._fail(pattern, str(error))

    def _pattern(self, name: _Token) -> _Token:
        """Read ":" and what stands behind it; `minecraft:cow` is one name."""
        example = {_INFO: "info:player_pos.y<12", "function": "function:package.module.name"}
        if self._peek().kind != "colon":
            shown = example.get(name.text, f"{name.text}:cow")
            self._fail(self._peek(), f"expected ':' after {name.text!r}, as in {shown}")
        self._advance()
        pattern = self._advance()
        if pattern.kind not in ("word", "number"):
            self._fail(pattern, f"expected a name or a pattern after '{name.text}:'")
        while self._peek().kind == "colon":
            self._advance()
            rest = self._advance()
            pattern = _Token("word", f"{pattern.text}:{rest.text}", pattern.column)
        return pattern

    def _comparison(self, subject: _Token) -> tuple[str, float]:
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

    def _tokenize(self) -> list[_Token]:
        tokens, position = [], 0
        end = len(self._text.rstrip())
        while position < end:
            match = _TOKEN.match(self._text, position)
            if match is None:
                column = position + len(self._text[position:]) - len(self._text[position:].lstrip())
                self._fail(_Token("", self._text[column], column), "unexpected character")
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match.group(kind), match.start(kind)))
            position = match.end()
        return [*tokens, _Token("end", "", end)]

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _advance(self) -> _Token:
        token = self._peek()
        if token.kind != "end":
            self._next += 1
        return token

    def _takes(self, text: str) -> bool:
        """Move on if the next token is `text`."""
        if self._peek().kind in ("word", "bracket") and self._peek().text == text:
            self._next += 1
            return True
        return False

    def _suggest(self, name: str) -> str:
        return did_you_mean(name, _NAMES) or f" There are {', '.join(_NAMES)}."

    def _fail(self, token: _Token, reason: str, hint: str = "") -> NoReturn:
        found = "" if token.kind != "end" else ", found the end"
        dot = "" if reason.endswith((".", "?")) else "."
        raise InvalidOptionsError(
            f"filter, column {token.column + 1}: {reason}{found}{dot}{hint}\n"
            f"  {self._text}\n  {' ' * token.column}^"
        )
