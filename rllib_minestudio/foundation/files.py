"""Atomic writing of files and folders, bounded reading of small ones, and folders in use.

If writing fails, because the disk is full or the process dies, the previous file stays as it was,
and there is never an incomplete file under the final name.
"""

from __future__ import annotations

import glob
import json
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from rllib_minestudio.errors import FolderInUseError, MineStudioError
from rllib_minestudio.foundation.options import shown

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/+[^/]")
"""Also one whose slashes `Path` has merged."""

NOT_A_URL = (
    "is an address, and nothing is read from or written to addresses: download it and give the "
    "path, or, for a model on Hugging Face, its id: owner/name"
)
"""What is wrong with an address that is given for a path, without a full stop."""


def is_url(text: str) -> bool:
    """Return whether a text that should be a path is an address, such as https://host/x."""
    return _URL.match(text) is not None and not os.path.exists(text)


class Unfinished:
    """A file or folder that has a hidden name in the same folder until it is complete.

    Attributes:
        path: The final path.
        partial: The hidden path to write to; its parent folder may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.partial = _hidden(path, "partial")

    def complete(self) -> None:
        """Rename `partial` to `path`, replacing what is there.

        Raises:
            OSError: It cannot be renamed; what is at `path` is unchanged.
        """
        put_in_place(self.partial, self.path)

    def discard(self) -> None:
        """Remove `partial` if it exists."""
        _remove(self.partial)

    def remove_abandoned(self) -> None:
        """Remove what killed processes left unfinished of the same path."""
        for abandoned in self.path.parent.glob(f".{glob.escape(self.path.name)}.*partial"):
            _remove(abandoned)


def put_in_place(source: Path, target: Path) -> None:
    """Rename a file or folder, replacing what is at `target`.

    Raises:
        OSError: It cannot be renamed; what is at `target` is unchanged.
    """
    if target.is_symlink() or not target.is_dir():
        os.replace(source, target)
        return
    replaced = _hidden(target, "replaced")  # os.replace only replaces empty folders
    target.rename(replaced)
    try:
        os.replace(source, target)
    except OSError:
        replaced.rename(target)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file atomically and sync it to disk; its folder is created.

    Raises:
        OSError: It cannot be written; an existing file is unchanged.
    """
    with whole_file(file) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """Yield a path to write to, which is renamed to `file` if the block raises no error.

    The file's permissions follow the process's umask, not the library that writes it: safetensors,
    for example, creates files that nobody else can read.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Unfinished(file)
    try:
        unfinished.partial.touch()
        mode = unfinished.partial.stat().st_mode
        yield unfinished.partial
        unfinished.partial.chmod(mode)
        with unfinished.partial.open("rb") as written:
            os.fsync(written.fileno())  # some file systems report only now that they are full
        unfinished.complete()
    finally:
        unfinished.discard()


def save_whole(path: Path, save: Callable[[Path], object]) -> None:
    """Let `save` write a folder that is renamed to `path`, replacing it, once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Unfinished(path)
    try:
        save(unfinished.partial)
        unfinished.complete()
    finally:
        unfinished.discard()


def write_probe(folder: Path, size: int) -> None:
    """Test whether `size` bytes can be written to a folder, by writing them.

    Raises:
        OSError: They cannot be written.
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


# ------------------------------------------------------------ reading small files that others wrote
# Only regular files of a bounded size are read. A named pipe would block, and a file of gigabytes,
# or a few lines of YAML with nested aliases, would fill the memory.

LARGEST = 16 * 1024**2
"""Size limit of a text file in bytes."""

_MOST_YAML_NODES = 200_000
"""Limit on the nodes of a YAML document, each counted as often as it is referenced."""

_MOST_INTERPOLATIONS = 27
"""Limit on references in a document; nested in the worst way, they expand to twenty thousand."""

_MERGE = "tag:yaml.org,2002:merge"
"""The tag of the key `<<`, which may be there several times."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SmallFileError(ValueError):
    """A file is not a regular text file, is too large, or does not have the expected contents."""


def read_bounded(path: Path, largest: int = LARGEST) -> bytes:
    """Return the bytes of a file.

    Raises:
        OSError: It does not exist or cannot be read.
        SmallFileError: It is not a regular file, or is too large.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise SmallFileError("it is not a regular file")
    if found.st_size > largest:
        raise SmallFileError(f"it has {found.st_size:,} bytes, more than {largest:,}")
    return path.read_bytes()


def read_text(path: Path, largest: int = LARGEST) -> str:
    """Return the text of a file.

    Raises:
        OSError: It does not exist or cannot be read.
        SmallFileError: It is not a regular file, is too large, or is not UTF-8.
    """
    try:
        return read_bounded(path, largest).decode()
    except UnicodeDecodeError as error:
        raise SmallFileError(f"it is not UTF-8 text ({error})") from error


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        SmallFileError: It is not JSON, nested too deeply, or has a key twice.
    """
    try:
        return _DECODER.decode(text.decode() if isinstance(text, bytes) else text)
    except RecursionError:
        raise SmallFileError("it is nested too deeply") from None
    except SmallFileError:
        raise
    except ValueError as error:
        raise SmallFileError(f"it is not JSON ({error})") from error


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a mapping of JSON; of a key that is given twice, readers would take different values.

    Raises:
        SmallFileError: A key is given twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        _refuse_doubled(key for key, _ in pairs)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_mapping)
"""Made once, as a recording has thousands of lines."""


def _refuse_doubled(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise SmallFileError(f"it has the key {shown(key)} twice")
        seen.add(key)


def read_json(path: Path, largest: int = LARGEST) -> Any:
    """Return the value of a JSON file.

    Raises:
        OSError: It does not exist or cannot be read.
        SmallFileError: It is not a regular file, is too large, nested too deeply, not JSON, or has
            a key twice.
    """
    return parse_json(read_text(path, largest))


def check_yaml(text: str) -> yaml.Node | None:
    """Refuse a YAML document that would be far larger in memory than as text.

    Returns:
        Its root; None if it is empty.

    Raises:
        yaml.YAMLError: It is not YAML.
        SmallFileError: It has too many nodes, is nested too deeply, contains itself, or has a key
            twice.
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
    """Refuse a text whose `${...}` references could expand exponentially.

    Raises:
        SmallFileError: It has so many that it could become larger than any experiment.
    """
    count = text.count("${")
    # k references expand the most in levels of three, to 3 ** (k / 3) copies.
    if count > _MOST_INTERPOLATIONS:
        raise SmallFileError(f"it has {count} references ${{...}}; write some of them out")


def read_yaml(path: Path, largest: int = LARGEST) -> Any:
    """Return the value of a YAML file, as plain data.

    Raises:
        OSError: It does not exist or cannot be read.
        yaml.YAMLError: It is not YAML.
        SmallFileError: It is too large, as text or in memory, or has an impossible value.
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
    """Count a node and all below it; `known` caches the counts of shared ones."""
    if id(node) not in known:
        children: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            children = node.value
        elif isinstance(node, yaml.MappingNode):
            _refuse_doubled(
                key.value
                for key, _ in node.value
                if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE
            )
            children = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_count_nodes(child, known) for child in children)
    return known[id(node)]


# ------------------------------------------------------------------- folders that one process uses

LOCK = ".lock"
"""File that a process locks while it uses a folder, with the process's id and machine in it."""
_MOST_HOLDER = 1000


def make_new_folder(folder: Path) -> Path:
    """Create a folder that did not exist, with a number after its name if necessary.

    Raises:
        OSError: It cannot be created.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    candidate, number = folder, 1
    while True:
        with suppress(FileExistsError):
            candidate.mkdir()
            return candidate
        number += 1
        candidate = folder.with_name(f"{folder.name}_{number}")


def require_room(folder: Path, size: int, options: str = "--out") -> None:
    """Create a folder if necessary, and check that so many bytes can be written to it.

    Args:
        folder: The folder.
        size: Bytes.
        options: The options that name the folder, for the message.

    Raises:
        MineStudioError: It cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_probe(folder, size)
    except OSError as error:
        raise MineStudioError(
            f"{str(folder)!r} cannot be written to: {error.strerror}. Free space there, or choose "
            f"another folder with {options}."
        ) from error


@contextmanager
def sole_use(folder: Path) -> Iterator[None]:
    """Keep other processes that ask likewise from using a folder during a `with` block.

    The lock ends with the process, however that ends.

    Raises:
        FolderInUseError: Another process uses it.
        OSError: The folder does not exist, or cannot be written to.
    """
    from filelock import FileLock, Timeout  # takes a moment, which --help should not cost

    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise FolderInUseError(folder, read_text(folder / LOCK, _MOST_HOLDER).strip()) from None
    try:
        (folder / LOCK).write_text(f"process {os.getpid()} on {platform.node()}\n")
        yield
    finally:
        lock.release()
