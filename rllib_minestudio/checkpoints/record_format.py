"""Which format a checkpoint's record names: this version reads its own, and refuses all others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rllib_minestudio.errors import CheckpointFormatError
from rllib_minestudio.option_checks import is_integer, shown
from rllib_minestudio.provenance import DISTRIBUTION, versions

FORMAT = 1
"""Of checkpoints; whatever makes the next version read them differently raises it."""


def check_format(file: Path, facts: Mapping[str, Any]) -> None:
    """See whether a record is of the format that this version reads.

    Args:
        file: The record's.
        facts: What it says; what is wrong with anything but the format is left to others.

    Raises:
        CheckpointFormatError: It is of another format, or names none.
    """
    found = facts.get("format")
    if is_integer(found) and found == FORMAT:
        return
    said = facts.get("versions")
    wrote = said.get(DISTRIBUTION) if isinstance(said, Mapping) else None
    other = (
        f"{DISTRIBUTION} {wrote}" if isinstance(wrote, str) else f"the version of {DISTRIBUTION}"
    )
    raise CheckpointFormatError(
        f"{str(file)!r} "
        + (f"is of format {shown(found)}" if "format" in facts else "names no format")
        + f", and {DISTRIBUTION} {versions()[DISTRIBUTION]} reads format {FORMAT} of checkpoints: "
        + f"use {other}, which wrote it."
    )
