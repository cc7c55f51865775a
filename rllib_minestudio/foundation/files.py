"""Files: written as a whole or not at all, and small ones of others' making read within bounds.

Whatever goes wrong until the end, a full disk or the end of the process, leaves what was there
before, and no half-written file under its final name, which a second attempt would trip over.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml


class Unfinished:
    """A file or folder that is written under a hidden name, beside its place, until it is complete.

    Attributes:
        path: Its place.
        partial: The hidden name to write to; its folder may not exist yet.
    """

    def __init__(self, path: Path) -> None:
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


# ------------------------------------------------------------ reading small files of others' making
# Regular ones of a bounded size, and what is in them.
#
# A named pipe would be waited for; a file of gigabytes, or a few lines of YAML that name one part
# inside the other, would fill the memory before anybody looked at it.

LARGEST = 16 * 1024**2
"""Bytes of the largest file of text that is read."""

_MOST_YAML_NODES = 200_000
"""Nodes of a YAML document, each counted as often as it is named."""

_MOST_INTERPOLATIONS = 27
"""References in a document; nested at worst, they are followed twenty thousand times."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SmallFileError(ValueError):
    """A file of text is none, or larger than such a file may be."""


def read_text(path: Path, largest: int = LARGEST) -> str:
    """Return the text of a file.

    Raises:
        OSError: It is not there or cannot be read.
        SmallFileError: It is no regular file, too large, or not UTF-8.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise SmallFileError("it is no regular file")
    if found.st_size > largest:
        raise SmallFileError(f"it has {found.st_size:,} bytes, more than {largest:,}")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise SmallFileError(f"it is no text in UTF-8 ({error})") from error


def parse_json(text: str | bytes) -> Any:
    """Return what a text of JSON says.

    Raises:
        SmallFileError: It is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise SmallFileError("it is nested too deeply") from None
    except ValueError as error:
        raise SmallFileError(f"it is not JSON ({error})") from error


def read_json(path: Path, largest: int = LARGEST) -> Any:
    """Return what a file of JSON says.

    Raises:
        OSError: It is not there or cannot be read.
        SmallFileError: It is no such file, too large, nested too deeply, or not JSON.
    """
    return parse_json(read_text(path, largest))


def check_yaml(text: str) -> yaml.Node | None:
    """Refuse a YAML document that would be far larger in memory than it is as text.

    Returns:
        Its root; None if it is empty.

    Raises:
        yaml.YAMLError: It is not YAML.
        SmallFileError: It has too many nodes, is nested too deeply, or contains itself.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
        nodes = 0 if root is None else _count_nodes(root, {})
    except RecursionError:
        raise SmallFileError("it is nested too deeply, or contains itself") from None
    if nodes > _MOST_YAML_NODES:
        raise SmallFileError(
            f"it has more than {_MOST_YAML_NODES:,} values once its aliases are written out"
        )
    return root


def check_interpolations(text: str) -> None:
    """Refuse a text whose `${...}` could multiply: ten that name ten others are ten billion.

    Raises:
        SmallFileError: They could make it larger than any experiment is.
    """
    count = text.count("${")
    # Of k references, the most copies come out of levels of three: 3 ** (k / 3).
    if count > _MOST_INTERPOLATIONS:
        raise SmallFileError(f"it has {count} references ${{...}}; write some of them out")


def read_yaml(path: Path, largest: int = LARGEST) -> Any:
    """Return what a file of YAML says, as plain data.

    Raises:
        OSError: It is not there or cannot be read.
        yaml.YAMLError: It is not YAML.
        SmallFileError: It is too large, as text or in memory, or holds an impossible value.
    """
    text = read_text(path, largest)
    check_yaml(text)
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        raise
    except (ValueError, TypeError) as error:  # such as a date of the 31st of February
        raise SmallFileError(f"it has a value that cannot be read ({error})") from error


def _count_nodes(node: yaml.Node, known: dict[int, int]) -> int:
    """Count a node and all below it; `known` remembers the counts of shared ones."""
    if id(node) not in known:
        children: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            children = node.value
        elif isinstance(node, yaml.MappingNode):
            children = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_count_nodes(child, known) for child in children)
    return known[id(node)]
