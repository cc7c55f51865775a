"""Files and folders that appear as a whole or not at all: the one way this package writes.

Whatever goes wrong until the end, a full disk or the end of the process, leaves what was there
before, and no half-written file under its final name, which a second attempt would trip over.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Unfinished:
    """A file or folder that is written under a hidden name, beside its place, until it is complete.

    Attributes:
        path: Its place.
        partial: The hidden name to write to; its folder may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        """Choose the hidden name; nothing is written yet."""
        self.path = path
        self.partial = _hidden(path, "partial")

    def complete(self) -> None:
        """Give it its name; what was there is replaced.

        Raises:
            OSError: It cannot be renamed; what was there is as it was.
        """
        put_in_place(self.partial, self.path)

    def discard(self) -> None:
        """Remove what was written, if anything was."""
        _remove(self.partial)

    def remove_abandoned(self) -> None:
        """Remove what processes that were killed left unfinished of the same path."""
        for abandoned in self.path.parent.glob(f".{glob.escape(self.path.name)}.*partial"):
            _remove(abandoned)


def put_in_place(source: Path, target: Path) -> None:
    """Rename a file or folder; what was at `target` is replaced.

    Raises:
        OSError: It cannot be renamed; what was there is as it was.
    """
    if target.is_symlink() or not target.is_dir():
        os.replace(source, target)
        return
    replaced = _hidden(target, "replaced")  # a folder can take the name of an empty one only
    target.rename(replaced)
    try:
        os.replace(source, target)
    except OSError:
        replaced.rename(target)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file beside its place, see it to the disk and rename it; its folder is created.

    Raises:
        OSError: It cannot be written; what was there is as it was.
    """
    with whole_file(file) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """Give a path to write to, which takes the name `file` if the block ends without an error.

    Who may read the file is up to the process's umask, whatever the library that writes it wants:
    safetensors, for one, makes files that nobody else can read.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Unfinished(file)
    try:
        unfinished.partial.touch()
        mode = unfinished.partial.stat().st_mode
        yield unfinished.partial
        unfinished.partial.chmod(mode)
        with unfinished.partial.open("rb") as written:
            os.fsync(written.fileno())  # some file systems notice only now that they are full
        unfinished.complete()
    finally:
        unfinished.discard()


def save_whole(path: Path, save: Callable[[Path], object]) -> None:
    """Let `save` fill a folder that takes the name `path` only once it is complete.

    A folder that was there before is replaced at the very end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Unfinished(path)
    try:
        save(unfinished.partial)
        unfinished.complete()
    finally:
        unfinished.discard()


def write_probe(folder: Path, size: int) -> None:
    """Find out whether `size` bytes can be written to a folder, by writing them.

    Raises:
        OSError: They cannot.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(size))
        file.flush()
        os.fsync(file.fileno())


def _hidden(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{kind}")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
