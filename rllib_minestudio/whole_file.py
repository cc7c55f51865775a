"""Files and folders that appear as a whole or not at all: the one way this package writes.

Whatever goes wrong until the end, a full disk or the end of the process, leaves what was there
before, and no half-written file under its final name, which a second attempt would trip over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file beside its place, see it to the disk and rename it; its folder is created.

    Raises:
        OSError: It cannot be written; what was there is as it was.
    """
    with whole_file(file) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """Give a path to write to, which takes the name `file` if the block ends without an error."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())  # some file systems notice only now that they are full
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)


def save_whole(path: Path, save: Callable[[Path], object]) -> None:
    """Let `save` fill a folder that takes the name `path` only once it is complete.

    A folder that was there before is replaced at the very end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    replaced = path.with_name(f".{path.name}.{os.getpid()}.replaced")
    try:
        save(partial)
        if path.exists():
            path.rename(replaced)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def write_probe(folder: Path, size: int) -> None:
    """Find out whether `size` bytes can be written to a folder, by writing them.

    Raises:
        OSError: They cannot.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(size))
        file.flush()
        os.fsync(file.fileno())
