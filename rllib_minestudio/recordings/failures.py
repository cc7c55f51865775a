"""Errors of the disk and the encoder, turned into one clear error."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import av

from rllib_minestudio.errors import RecordingError

FAILURES = (OSError, av.error.FFmpegError)
"""Exceptions that writing raises if the disk is full, read-only or gone."""

DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, av.error.FFmpegError),
)
"""Exceptions that reading raises if a file is truncated, or is something else."""


@contextmanager
def reporting(path: Path, discard: Callable[[], None] | None = None) -> Iterator[None]:
    """Turn a failure within the block into a `RecordingError` about `path`.

    Args:
        path: The recording being written.
        discard: Removes what has been written; None if there is nothing yet.
    """
    try:
        yield
    except RecordingError:
        if discard is not None:
            discard()
        raise
    except FAILURES as error:
        if discard is not None:
            discard()
        raise RecordingError(
            f"{str(path)!r} cannot be recorded: {getattr(error, 'strerror', None) or error}. "
            "Free space there, or record to another folder."
        ) from error


def attempt(*actions: Callable[[], object]) -> None:
    """Call each action, even if earlier ones fail with one of `FAILURES`."""
    for action in actions:
        with suppress(*FAILURES):
            action()
