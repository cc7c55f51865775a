"""What the disk and the encoder raise, in one clear error."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import av

from rllib_minestudio.errors import RecordingError

FAILURES = (OSError, av.error.FFmpegError)
"""What writing raises when the disk is full, read-only or gone."""

DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, av.error.FFmpegError),
)
"""What reading a file raises that is cut off, or is something else."""


@contextmanager
def reporting(path: Path, discard: Callable[[], None] | None = None) -> Iterator[None]:
    """Turn a failure within the block into a `RecordingError` about `path`.

    Args:
        path: What could not be written.
        discard: Removes what there is of it; None if there is nothing yet.
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
    """Call each action, whether or not the ones before could do their work."""
    for action in actions:
        with suppress(*FAILURES):
            action()
