"""Infos as compressed JSON lines that hold only what changed."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rllib_minestudio.recordings.layout import REMOVED, to_json
from rllib_minestudio.small_files import parse_json

COMPRESSION = 1
"""gzip's fastest level: most of what it saves, at a tenth of the time."""

_LONGEST_LINE = 8 * 1024**2
_LARGEST_INFO = 64 * 1024**2
"""Characters of a line, and of all lines that an info is made of; real ones have thousands."""


class InfoLines:
    """Writes infos one by one.

    A line holds the top-level entries that are new or different since the line before, and under
    `REMOVED` the keys that are gone. The inventory and the statistics rarely change, so that this
    is several times smaller and faster than whole infos.
    """

    def __init__(self, path: Path) -> None:
        """Open `path` for writing."""
        compressed = gzip.GzipFile(path, "wb", compresslevel=COMPRESSION)
        self._stream = io.TextIOWrapper(compressed, encoding="utf-8")
        self._before: dict[str, Any] = {}

    def add(self, info: Mapping[str, Any]) -> None:
        """Append one info."""
        # Serialised entry by entry: what is remembered must not change under our hands.
        entries = {str(key): to_json(value) for key, value in info.items()}
        changed = {
            key: text for key, text in entries.items() if self._before.get(key, None) != text
        }
        removed = [key for key in self._before if key not in entries]
        if removed:
            changed[REMOVED] = json.dumps(removed)
        line = ",".join(f"{json.dumps(key)}:{text}" for key, text in changed.items())
        self._stream.write(f"{{{line}}}\n")
        self._before = entries

    def close(self) -> None:
        """Write what is buffered."""
        self._stream.close()


def read_infos(path: Path) -> Iterator[dict[str, Any]]:
    """Yield whole infos, line by line.

    Raises:
        OSError, EOFError, ValueError: The file is missing, cut off, or not what it should be.
    """
    info: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        while line := stream.readline(_LONGEST_LINE):
            changed = parse_json(line)
            if not isinstance(changed, dict):
                raise ValueError(f"a line holds no info: {line[:40]!r}")
            gone = changed.pop(REMOVED, ())
            if not isinstance(gone, list | tuple):
                raise ValueError(f"a line lists no keys under {REMOVED!r}")
            info = {**{key: value for key, value in info.items() if key not in gone}, **changed}
            sizes = {
                key: _size(changed[key], line) if key in changed else sizes[key] for key in info
            }
            if sum(sizes.values()) > _LARGEST_INFO:
                raise ValueError("an info has more than anybody could have recorded")
            yield info


def _size(value: Any, line: str) -> int:
    """Characters that an entry takes, or more: a short line is simply taken for all of it."""
    return len(line) if len(line) < 4096 else len(to_json(value))
