"""Pictures from files in the layout of Minecraft's resource packs.

A pack is a folder or a zip (a game's jar is one) with `assets/minecraft/textures/.../NAME.png`. It
may come from anywhere, so it is not trusted: files are read up to a bound, nothing is written to
disk, and a PNG is decoded only if its header declares a size within bounds.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Rgba = NDArray[np.uint8]

TEXTURES = "assets/minecraft/textures"
"""Folder of a pack that holds all pictures."""

LARGEST_FILE = 4 * 1024**2
"""Bytes of a PNG. The game's largest has 0.1 MB; packs with 64 texels per block reach 1 MB."""
LARGEST_RATIO = 100
"""Unpacked over packed bytes in a zip; PNGs are already compressed."""
MOST_PIXELS = 2048 * 2048
LONGEST_SIDE = 8192
"""Pixels; this is long because an animation is a column of frames."""
MOST_ENTRIES = 100_000
"""Files in a zip; the game's jar has about 15,000."""
LARGEST_ARCHIVE = 1024**3
"""Bytes of a zip."""

_PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_HEADER = len(_PNG_START) + 8


class PictureError(Exception):
    """A picture cannot be used; the message says why."""


class PackError(Exception):
    """A path is not a resource pack; the message ends a sentence that begins with the path."""


def not_a_pack(path: str, error: PackError) -> str:
    """Return the error message for a path that is not a resource pack."""
    return (
        f"resource_pack {path!r} {error}; give a folder, zip or jar in the layout of Minecraft's"
        " resource packs, or null for the pictures of this package."
    )


class _Files(Protocol):
    """Where the files of a pack come from."""

    def names(self) -> set[str]:
        """Names of all pictures, such as "block/stone"."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a picture's file.

        Raises:
            PictureError: If it is too large or cannot be read.
        """


class ResourcePack:
    """The pictures of one resource pack.

    Attributes:
        path: Where it is.
        names: Names of its pictures, such as "block/stone".
    """

    def __init__(self, path: Path) -> None:
        """List the pictures of a pack, without reading any.

        Raises:
            PackError: If the path is not a resource pack.
        """
        self.path = path
        try:
            self._files: _Files = _Folder(path) if path.is_dir() else _Archive(path)
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise PackError(f"is neither a folder nor a zip that can be read ({error})") from error
        self.names = self._files.names()
        if not self.names:
            raise PackError(f"has no picture {TEXTURES}/.../NAME.png")

    def picture(self, name: str) -> Rgba:
        """Decode a picture.

        Args:
            name: One of `names`.

        Returns:
            uint8 (h, w, 4), not multiplied by alpha.

        Raises:
            PictureError: If it is damaged or too large.
        """
        return decode_png(self._files.read(name))


def decode_png(data: bytes) -> Rgba:
    """Decode a PNG file whose size is within bounds.

    Returns:
        uint8 (h, w, 4), not multiplied by alpha.

    Raises:
        PictureError: If the data is not such a file.
    """
    if len(data) < _HEADER or not data.startswith(_PNG_START):
        raise PictureError("not a PNG file")
    width, height = struct.unpack(">II", data[len(_PNG_START) : _HEADER])
    if not 0 < width * height <= MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        raise PictureError(f"{width:,} x {height:,} pixels")
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            return np.array(image.convert("RGBA"))
    # What Pillow raises for a damaged picture.
    except (OSError, ValueError, SyntaxError, EOFError, zlib.error, struct.error) as error:
        raise PictureError(f"damaged: {error}") from error


class _Folder:
    """A pack that is a folder."""

    def __init__(self, path: Path) -> None:
        self._textures = path / TEXTURES

    def names(self) -> set[str]:
        found = self._textures.rglob("*.png")
        return {path.relative_to(self._textures).with_suffix("").as_posix() for path in found}

    def read(self, name: str) -> bytes:
        path = self._textures / f"{name}.png"
        if not path.is_file():  # a folder or a pipe called NAME.png
            raise PictureError("not a regular file")
        try:
            with path.open("rb") as file:
                data = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise PictureError(f"cannot be read: {error.strerror}") from error
        if len(data) > LARGEST_FILE:
            raise PictureError(f"more than {LARGEST_FILE:,} bytes")
        return data


class _Archive:
    """A pack that is a zip."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ValueError("there is no such file")
        if path.stat().st_size > LARGEST_ARCHIVE:
            raise ValueError(f"it has more than {LARGEST_ARCHIVE:,} bytes")
        self._archive = zipfile.ZipFile(path)
        entries = self._archive.infolist()
        if len(entries) > MOST_ENTRIES:
            raise ValueError(f"it has {len(entries):,} files, more than {MOST_ENTRIES:,}")
        self._entries = {
            entry.filename.removeprefix(f"{TEXTURES}/").removesuffix(".png"): entry
            for entry in entries
            if entry.filename.startswith(f"{TEXTURES}/") and entry.filename.endswith(".png")
        }

    def names(self) -> set[str]:
        return set(self._entries)

    def read(self, name: str) -> bytes:
        entry = self._entries[name]
        if entry.file_size > LARGEST_FILE:
            raise PictureError(f"{entry.file_size:,} bytes, more than {LARGEST_FILE:,}")
        if entry.file_size > LARGEST_RATIO * max(entry.compress_size, 1):
            raise PictureError(f"unpacks to more than {LARGEST_RATIO} times its size")
        try:
            with self._archive.open(entry) as file:
                data = file.read(LARGEST_FILE + 1)  # the zip's directory may lie about the size
        # What zipfile raises for damaged, encrypted and exotic entries.
        except (OSError, EOFError, zipfile.BadZipFile, RuntimeError, zlib.error) as error:
            raise PictureError(f"cannot be unpacked: {error}") from error
        if len(data) > LARGEST_FILE:
            raise PictureError(f"more than {LARGEST_FILE:,} bytes")
        return data
