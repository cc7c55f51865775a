"""A clear error for runs that end because the disk is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.foundation.files import write_probe

LEAST_ROOM = 1024**2
"""Bytes written to probe the disk, about what Tune saves every few seconds."""


@contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Raise one clear error if the block fails and the disk of `folder` is full.

    Tune reads back files that it could not write, so the block may fail with any error, such as an
    `EOFError`; other errors are raised unchanged if the disk is not full.

    Raises:
        MineStudioError: The block failed, and the disk is full.
    """
    try:
        yield
    except Exception as error:
        try:
            write_probe(folder, LEAST_ROOM)
        except OSError as full:
            raise MineStudioError(
                f"{str(folder)!r} cannot be written to any more ({full.strerror}), which ended the "
                "run. Free space there and run the same command with --resume: training goes on "
                "from the last whole checkpoint. If there was none yet, start again without it."
            ) from error
        raise
