"""Names a full disk as what ended a run, whatever Ray made of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.foundation.files import write_probe

LEAST_ROOM = 1024**2
"""Bytes that a disk with room takes; what Tune saves every few seconds is of this size."""


@contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Raise one clear error if the block fails and the disk of `folder` is full.

    Tune reads files back that it could not write, so that the error that ends the block may be
    anything, an `EOFError` for example.

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
