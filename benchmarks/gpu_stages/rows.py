"""What a stage is told, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Setting(NamedTuple):
    """What a stage is told.

    Attributes:
        device: `cuda`, or `cpu` on a machine without one.
        short: Whether small sizes and few repetitions will do.
        folder: Of all results; a stage may leave files there for those after it.
        ends_at: When the stage is ended (`time.monotonic`).
    """

    device: str
    short: bool
    folder: Path
    ends_at: float


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        what: What was measured; a later row about the same takes the place of an earlier one.
        value: What was found.
        unit: Of `value` and `beside`.
        beside: What it is to be compared with.
        whose: Whose number that is.
        goal: What was hoped for, in words.
        met: Whether it is so; None where nothing was hoped for.
    """

    what: str
    value: float | str
    unit: str = ""
    beside: float | None = None
    whose: str = ""
    goal: str = ""
    met: bool | None = None
