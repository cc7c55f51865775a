"""Documents: what a file from elsewhere may hold, declared as a model and read through it alone.

    class Outcome(Document):
        task: Name
        steps: Count
        progress: Share

    outcome = read_document(file, Outcome)

In a file that someone else wrote, a number may be a text, NaN, 2^63, or a million characters. A
model states the type and the bounds of each field, so that the code that uses the values needs no
checks of its own. The tests refuse a field without bounds, and generate attacks on every model.

Importing this module imports pydantic, which takes a tenth of a second. What `--help` imports
imports it only where it reads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import yaml
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails

from rllib_minestudio.errors import did_you_mean
from rllib_minestudio.foundation.files import LARGEST, SmallFileError, read_json, read_yaml
from rllib_minestudio.foundation.options import (
    EVER,
    MANY,
    Problems,
    printable,
    shown,
    unknown_name,
)

MOST_FIELDS = 10_000
"""Limit on the entries of a mapping, known or not."""


class Contradiction(ValueError):
    """Fields of a document contradict each other; raised by a model's own validators."""


class _Strict(BaseModel):
    """Strict types, no unknown fields, only finite numbers, immutable."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Document(_Strict):
    """Base class of models of whole files, and of lines of which everything is used."""

    @model_validator(mode="before")
    @classmethod
    def _is_small(cls, facts: Any) -> Any:
        if isinstance(facts, dict) and len(facts) > MOST_FIELDS:  # each unknown one costs an error
            raise ValueError(f"must have at most {MOST_FIELDS:,} fields")
        return facts


class Excerpt(_Strict):
    """Base class of models of what is used of a line that holds more; the rest is dropped.

    Its text is parsed where it is checked, without an object for what is dropped. The text's size
    is the bound of that.

    Attributes:
        longest: Most bytes of the text; real lines have thousands.
    """

    model_config = ConfigDict(extra="ignore")
    longest: ClassVar[int] = 1024**2


# --------------------------------------------------------------------------------- types of fields

LONGEST_NAME, LONGEST_TEXT = 300, 100_000
HUGE = 1e100
"""Limit on the size of finite numbers; sums of their squares are still finite."""

LARGEST_INTEGER = 2**63 - 1

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]

Count = Annotated[int, Field(ge=0, le=EVER)]
Few = Annotated[int, Field(ge=0, le=MANY)]
"""How many of something that is held at once."""

First = Annotated[int, Field(ge=1, le=1)]
"""The version of a format that has only one; `Literal[1]` would take true for it."""

Seed = Annotated[int, Field(ge=0, le=2**64 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=EVER)]


def _measured(value: float) -> float:
    if math.isfinite(value) and abs(value) > HUGE:
        raise ValueError(f"must be a number from -{HUGE:g} to {HUGE:g}, infinite or NaN")
    return value


Measure = Annotated[
    float,
    AllowInfNan(),
    AfterValidator(_measured),
    WithJsonSchema({"type": "number", "minimum": -HUGE, "maximum": HUGE}),
]
"""A measured number: an environment's rewards, and so a return, may be infinite or NaN."""

_ABOUT_A_SHARE = Annotated[float, Field(ge=-1e-9, le=1 + 1e-9)]


def _ordered(ends: list[float]) -> list[float]:
    if ends[0] > ends[1]:
        raise ValueError("must have the lower end first")
    return ends


Interval = Annotated[
    list[_ABOUT_A_SHARE],
    Field(min_length=2, max_length=2, fail_fast=True),
    AfterValidator(_ordered),
]
"""The interval of a share; its ends are rounded."""


def _relative(path: str) -> str:
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
        raise ValueError("must be a path inside the folder of the file")
    return path


RelativePath = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_relative)]

Item = TypeVar("Item")
ListOf = Annotated[list[Item], Field(max_length=MANY, fail_fast=True)]
TupleOf = Annotated[tuple[Item, ...], Field(strict=False, max_length=MANY, fail_fast=True)]
"""A list of a file that stays as it is."""

MappingOf = Annotated[dict[Name, Item], Field(max_length=MOST_FIELDS)]


class NotOneOf(ValueError):
    """A text is none of those that there are."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = tuple(names)
        super().__init__(f"must be one of {', '.join(map(repr, self.names))}")


def one_of(names: Collection[str]) -> AfterValidator:
    """Return the validator of a text that is one of a table's names."""

    def check(name: str) -> str:
        if name not in names:
            raise NotOneOf(names)
        return name

    return AfterValidator(check)


# ------------------------------------------------------------------------------------- plain data
# Options and results whose names only their owner knows: an environment's options, a policy's
# identity, what Ray reports of an iteration.

MOST_NESTED = 32
MOST_VALUES = 200_000
"""Limits on the depth of plain data, and on its values, nested ones included."""


class _NotPlain(ValueError):
    """A part of plain data breaks a rule.

    Attributes:
        part: The part.
        path: Where it is, innermost key first.
    """

    def __init__(self, rule: str, part: Any) -> None:
        super().__init__(rule)
        self.part = part
        self.path: list[str | int] = []


class _Plain:
    """Checks plain data.

    Args:
        finite: Whether numbers must be finite, and at most `HUGE`.
        longest: Most characters of a text.
        values: Most values, nested ones included.
        largest: Largest integer.
    """

    def __init__(
        self,
        finite: bool,
        longest: int = LONGEST_TEXT,
        values: int = MOST_VALUES,
        largest: int = LARGEST_INTEGER,
    ) -> None:
        self._finite, self._longest, self._values = finite, longest, values
        self._largest = largest
        self._free = {bool, type(None)} if finite else {bool, type(None), float}
        self.schema = {
            "maxLength": longest,
            "minimum": -largest,
            "maximum": largest,
            "maxItems": values,
            "maxDepth": MOST_NESTED,
        }

    def __call__(self, value: Any) -> Any:
        self._left = self._values
        self._check(value, 0)
        return value

    def _check(self, value: Any, depth: int) -> None:
        if type(value) in self._free:
            return
        if isinstance(value, float):
            if not abs(value) <= HUGE:
                raise _NotPlain(f"must be a number from -{HUGE:g} to {HUGE:g}", value)
        elif isinstance(value, str):
            if len(value) > self._longest:
                raise _NotPlain(f"must have at most {self._longest:,} characters", value)
            if not value.isascii():
                _check_characters(value)
        elif isinstance(value, int):
            if not -self._largest <= value <= self._largest:
                rule = f"must be an integer from -{self._largest} to {self._largest}"
                raise _NotPlain(rule, value)
        elif isinstance(value, (dict, list)):
            self._check_entries(value, depth)
        else:
            raise _NotPlain("must be a number, text, list or mapping", value)

    def _check_entries(self, value: dict[Any, Any] | list[Any], depth: int) -> None:
        if depth == MOST_NESTED:
            raise _NotPlain(f"must be nested at most {MOST_NESTED} deep", value)
        self._left -= len(value)
        if self._left < 0:
            raise _NotPlain(f"must have at most {self._values:,} values", value)
        if isinstance(value, dict):
            for key in value:
                if not (type(key) is str and len(key) <= LONGEST_NAME and key.isascii()):
                    _check_key(key, is_outer=depth == 0)
        free, most, longest = self._free, self._largest, self._longest
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            kind = type(entry)  # the usual ones first: a recording has millions
            if (
                kind in free
                or (kind is int and -most <= entry <= most)
                or (kind is str and len(entry) <= longest and entry.isascii())
            ):
                continue
            try:
                self._check(entry, depth + 1)
            except _NotPlain as error:
                error.path.append(key)
                raise


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _NotPlain("must be Unicode text", text) from None


def _check_key(key: Any, is_outer: bool) -> None:
    """Check a key; below the first level it may be a number, such as that of an inventory's slot.

    Raises:
        _NotPlain: It is neither a short text nor such a number.
    """
    if isinstance(key, str) and len(key) <= LONGEST_NAME:
        return _check_characters(key)
    if type(key) is not int or is_outer or not 0 <= key <= MANY:
        rule = f"must have texts of at most {LONGEST_NAME} characters as keys"
        raise _NotPlain(f"{rule}, or numbers from 0 to {MANY:,}" if not is_outer else rule, key)
    return None


def _mapping(value: Any) -> Any:
    if not isinstance(value, dict):
        raise _NotPlain("must be a mapping", value)
    return value


_LIMITS = _Plain(finite=True).schema
_FINITE, _ANY = BeforeValidator(_Plain(finite=True)), BeforeValidator(_Plain(finite=False))

Plain = Annotated[Any, _FINITE, WithJsonSchema(_LIMITS)]
"""Plain data with finite numbers."""

PlainMapping = Annotated[
    dict[str, Any], _FINITE, BeforeValidator(_mapping), WithJsonSchema(_LIMITS)
]
MeasuredMapping = Annotated[
    dict[str, Any], _ANY, BeforeValidator(_mapping), WithJsonSchema(_LIMITS)
]
"""Plain data with any numbers: what was measured may be infinite or NaN."""

Measured = Annotated[Any, _ANY, WithJsonSchema(_LIMITS)]

LONGEST_LINE = 8 * 1024**2
"""Limit on the characters of a line of plain data; it bounds the texts and values in it."""

_IN_A_LINE = _Plain(finite=False, longest=LONGEST_LINE, values=LONGEST_LINE, largest=2**128)

MeasuredInLine = Annotated[Any, BeforeValidator(_IN_A_LINE), WithJsonSchema(_IN_A_LINE.schema)]
"""Measured data of an environment, in a line: an array may be in it, or a seed of numpy's."""


# ---------------------------------------------------------------------------------------- reading

Model = TypeVar("Model", bound=Document)
Used = TypeVar("Used", bound=Excerpt)


def read_document(file: Path, model: type[Model], largest: int = LARGEST) -> Model:
    """Read a JSON file, or a YAML file if its name ends so.

    Args:
        file: The file.
        model: What it may hold.
        largest: Most bytes that it may have.

    Raises:
        OSError: It does not exist or cannot be read.
        SmallFileError: It is no such document; the message is a phrase without a full stop.
    """
    return parse_document(read_plain(file, largest), model)


def read_plain(file: Path, largest: int = LARGEST) -> Any:
    """Return the value of a JSON or YAML file of which no model has been chosen yet.

    Raises:
        OSError: It does not exist or cannot be read.
        SmallFileError: It is not a regular file, too large, or neither JSON nor YAML.
    """
    return read_plain_yaml(file, largest) if file.suffix == ".yaml" else read_json(file, largest)


def read_plain_yaml(file: Path, largest: int = LARGEST) -> Any:
    """Return the value of a YAML file, whatever its name.

    Raises:
        OSError: It does not exist or cannot be read.
        SmallFileError: It is not a regular file, too large, or not YAML.
    """
    try:
        return read_yaml(file, largest)
    except yaml.YAMLError as error:
        problem = printable(str(getattr(error, "problem", None) or type(error).__name__))
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        raise SmallFileError(f"it is not YAML ({problem}{place})") from error


def parse_document(facts: Any, model: type[Model]) -> Model:
    """Check what a file holds.

    Raises:
        SmallFileError: It is no such document; the message is a phrase without a full stop.
    """
    try:
        return model.model_validate(facts)
    except ValidationError as error:
        raise SmallFileError(first_problem(error)) from None


MOST_MISTAKES = 20
"""Most mistakes of a file of which messages tell."""


def parse_written(facts: Any, model: type[Model], problems: Problems) -> Model | None:
    """Check what a person wrote, and note every mistake in it with what was probably meant.

    Returns:
        The document; None if there are mistakes.
    """
    try:
        return model.model_validate(facts)
    except ValidationError as error:
        found = error.errors(include_url=False)
    owner = f"{problems.owner}: " if problems.owner else ""
    for mistake in found[:MOST_MISTAKES]:
        *path, name = mistake["loc"] or ("",)
        where, reason = "".join(_steps(path)), (mistake.get("ctx") or {}).get("error")
        if mistake["type"] == "extra_forbidden":
            sentence = unknown_name("field", name, _fields_at(model, path), where)
        else:
            sentence = f"{_problem(mistake)}."
        if isinstance(reason, NotOneOf):
            sentence += did_you_mean(mistake["input"], reason.names)
        problems.messages.append(owner + sentence)
    if len(found) > MOST_MISTAKES:
        more = len(found) - MOST_MISTAKES
        problems.messages.append(f"{owner}{more:,} more of its fields are wrong.")
    return None


def _fields_at(model: type[BaseModel], path: list[str | int]) -> list[str]:
    """Return the names of the fields of a part of a document."""
    for key in path:
        kind = model.model_fields[str(key)].annotation
        model = next(part for part in (kind, *get_args(kind)) if _is_model(part))
    return list(model.model_fields)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def parse_excerpt(text: bytes, model: type[Used]) -> Used:
    """Parse and check a JSON text of which a part is used.

    Of a key that is given twice, the last value is taken, as by `json.loads`.

    Raises:
        SmallFileError: It is too long, not JSON, or no such text; the message is a phrase without a
            full stop.
    """
    if len(text) > model.longest:
        raise SmallFileError(f"it has {len(text):,} bytes, more than {model.longest:,}")
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise SmallFileError(first_problem(error)) from None


def given(document: Document) -> dict[str, Any]:
    """Return the fields that a document's file has, as plain data."""
    return document.model_dump(exclude_unset=True, by_alias=True)


_RULES = {
    "missing": "is missing",
    "extra_forbidden": "is not a field that it has",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "string_type": "must be text",
    "string_unicode": "must be Unicode text",
    "int_type": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "invalid_key": "must be a text, as all names are",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must have the form {pattern}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "must be {expected}",
    "greater_than": "must be above {gt:g}",
    "json_invalid": "is not JSON ({error})",
}
"""pydantic's kinds of errors -> the rule, in the words that all our messages use."""


def first_problem(error: ValidationError) -> str:
    """Return the first problem in words, and how many more there are."""
    more = error.error_count() - 1
    others = f", and {more:,} more of its fields are wrong" if more else ""
    return f"{_problem(error.errors(include_url=False)[0])}{others}"


def _problem(found: ErrorDetails) -> str:
    """Return a problem in words: field, rule, and the value received."""
    context = dict(found.get("ctx") or {})
    path, value = list(found["loc"]), found["input"]
    rule = _RULES.get(found["type"], "must be something else").format(**context)
    if found["type"] == "value_error":
        rule = str(context["error"])
        if isinstance(context["error"], _NotPlain):
            path, value = [*path, *reversed(context["error"].path)], context["error"].part
    name = "".join(_steps(path)) or "it"
    if isinstance(context.get("error"), Contradiction):
        return f"{name}: {rule}" if path else rule
    if found["type"] in ("missing", "extra_forbidden", "json_invalid"):
        return f"{name} {rule}"
    return f"{name} {rule}; got {shown(value)}"


def _steps(path: list[str | int]) -> Iterator[str]:
    """Yield the parts of a field's name: `tasks[0].episodes[3].seed`."""
    for number, key in enumerate(path):
        if key == "[key]":  # pydantic's word for an error in a key, which stands before it
            continue
        if isinstance(key, str) and key.isidentifier() and len(key) <= LONGEST_NAME:
            yield f".{key}" if number else key
        else:
            yield f"[{shown(key)}]"
