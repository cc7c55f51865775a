"""Pictures from files in the layout of Minecraft's resource packs.

A pack is a folder or a zip (a game's jar is one) with `assets/minecraft/textures/.../NAME.png`. It
may come from anywhere, so nothing that it says about itself is relied on. What is read and decoded
is bounded, per picture and in all; nothing is written to disk. Of a PNG, Pillow gets only the
chunks that hold pixels, behind a single header. A zip's directory is read here, because `zipfile`
reads all of it before it tells how large it is, and takes a time that grows with the square of the
length of extra fields.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from rllib_minestudio.foundation.options import shown

Rgba = NDArray[np.uint8]

OUR_PACK = Path(__file__).parents[1] / "resource_pack"
"""The engine's own pictures."""

TEXTURES = "assets/minecraft/textures"
"""Folder of a pack that holds all pictures."""

LARGEST_FILE = 4 * 1024**2
"""Bytes of a PNG. The game's largest has 0.1 MB; packs with 64 texels per block reach 1 MB."""
MOST_BYTES = 64 * 1024**2
"""Bytes of all PNGs that are read; a pack with 64 texels per block has about 20 million."""
LARGEST_RATIO = 100
"""Unpacked over packed bytes in a zip; PNGs are already compressed."""
MOST_PIXELS = 2048 * 2048
"""Pixels of a PNG."""
MOST_PIXELS_IN_ALL = 7 * MOST_PIXELS
"""Pixels of all PNGs that are read; a pack with 64 texels per block has 14 million."""
LONGEST_SIDE = 8192
"""Pixels; this is long because an animation is a column of frames."""
MOST_CHUNKS = 600
"""Chunks of a PNG; those of the largest file have 8 KB each, as usual encoders write them."""
MOST_ENTRIES = 100_000
"""Files of a pack; the game's jar has about 15,000."""
DEEPEST = 16
"""Folders within each other, below `TEXTURES`; the game's are 3."""
LARGEST_ARCHIVE = 1024**3
"""Bytes of a zip."""
LARGEST_DIRECTORY = 32 * 1024**2
"""Bytes of a zip's directory: some three hundred per file."""


class PictureError(Exception):
    """A picture cannot be used; the message says why."""


class PackError(Exception):
    """A path is not a resource pack; the message ends a sentence that begins with the path."""


def not_a_pack(path: str, error: PackError) -> str:
    """Return the error message for a path that is not a resource pack."""
    return (
        f"resource_pack {shown(path)} {error}; give a folder, zip or jar in the layout of"
        " Minecraft's resource packs, or null for the pictures of this package."
    )


class _Files(Protocol):
    """Where the files of a pack come from."""

    def names(self) -> set[str]:
        """Names of all pictures, such as "block/stone"."""

    def size(self, name: str) -> int:
        """Return how many bytes reading a picture's file takes.

        Raises:
            PictureError: If it cannot be read.
        """

    def read(self, name: str, size: int) -> bytes:
        """Return the bytes of a picture's file.

        Args:
            name: One of `names`.
            size: What `size` returned; no more is read.

        Raises:
            PictureError: If it cannot be read.
        """


class ResourcePack:
    """The pictures of one resource pack.

    Attributes:
        path: Where it is.
        names: Names of its pictures, such as "block/stone".
    """

    def __init__(self, path: str | Path) -> None:
        """List the pictures of a pack, without reading any.

        Args:
            path: A folder or a zip; `~` is the user's home.

        Raises:
            PackError: If the path is not a resource pack.
        """
        try:
            self.path = Path(path).expanduser()
            self._files: _Files = _Folder(self.path) if self.path.is_dir() else _Archive(self.path)
            self.names = self._files.names()
        # RuntimeError: there is no such home.
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error  # without the path
            raise PackError(f"is neither a folder nor a zip that can be read ({reason})") from error
        if not self.names:
            raise PackError(f"has no picture {TEXTURES}/.../NAME.png")
        self._bytes_left, self._pixels_left = MOST_BYTES, MOST_PIXELS_IN_ALL

    def picture(self, name: str) -> Rgba:
        """Decode a picture.

        Args:
            name: One of `names`.

        Returns:
            uint8 (h, w, 4), not multiplied by alpha.

        Raises:
            PictureError: If it is damaged or too large, or the pack is, with those before it.
        """
        size = self._files.size(name)
        if size > LARGEST_FILE:
            raise PictureError(f"{size:,} bytes, more than {LARGEST_FILE:,}")
        if size > self._bytes_left:
            raise PictureError(f"with those before it more than {MOST_BYTES:,} bytes")
        self._bytes_left -= size
        png, pixels = _checked_png(self._files.read(name, size))
        if pixels > self._pixels_left:
            raise PictureError(f"with those before it more than {MOST_PIXELS_IN_ALL:,} pixels")
        self._pixels_left -= pixels
        return _decoded(png)

    def digest(self) -> bytes:
        """Return a digest of the names and files of all pictures; none is decoded.

        A folder and a zip with equal files have equal digests. Files that cannot be read, and those
        beyond the bounds of what is read in all, count by their names alone.
        """
        found = hashlib.sha256()
        left = MOST_BYTES
        for name in sorted(self.names):
            found.update(name.encode(errors="surrogateescape") + b"\0")
            try:
                size = self._files.size(name)
                if size <= min(LARGEST_FILE, left):
                    left -= size
                    found.update(hashlib.sha256(self._files.read(name, size)).digest())
            except PictureError:
                continue
        return found.digest()


# --------------------------------------------------------------------------- PNG
#
#     signature | IHDR | PLTE | tRNS | IDAT | IDAT | ... | IEND      each: length, kind, data, CRC
#
# Pillow believes the last of several headers, and unpacks texts and colour profiles. The chunks
# above are all that decoding pixels takes, so it gets no others. It stops unpacking at the last
# pixel.

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK = struct.Struct(">I4s")
_HEADER = struct.Struct(">II5B")
_CRC = 4
_KEPT = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
_ORDER = re.compile(rb"IHDR(PLTE)?(tRNS)?(IDAT)+IEND")
_ANCILLARY = 0x20
"""Bit in the first byte of the kinds of chunks that a decoder may leave out."""


def _checked_png(data: bytes) -> tuple[bytes, int]:
    """Check the structure of a PNG file, whose pixels are not decoded.

    Returns:
        The file with only the chunks that hold the pixels, and their number.

    Raises:
        PictureError: If it is damaged, or its size is not within bounds.
    """
    if not data.startswith(_SIGNATURE):
        raise PictureError("not a PNG file")
    kept = [(kind, data[start:end]) for kind, start, end in _chunks(data) if kind in _KEPT]
    if not _ORDER.fullmatch(b"".join(kind for kind, _ in kept)):
        raise PictureError("damaged: a chunk is missing, doubled or out of place")
    header = kept[0][1][_CHUNK.size : -_CRC]
    if len(header) != _HEADER.size:
        raise PictureError("damaged: its header has another length")
    width, height, *_ = _HEADER.unpack(header)
    pixels = width * height
    if not 0 < pixels <= MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        raise PictureError(f"{width:,} x {height:,} pixels")
    return _SIGNATURE + b"".join(chunk for _, chunk in kept), pixels


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and end of the chunks of a PNG file, up to the one that ends it.

    Raises:
        PictureError: If the file is cut off, has too many chunks, or an essential one of an unknown
            kind.
    """
    end = len(_SIGNATURE)
    for _ in range(MOST_CHUNKS):
        start = end
        if start + _CHUNK.size > len(data):
            raise PictureError("damaged: it is cut off")
        length, kind = _CHUNK.unpack_from(data, start)
        end = start + _CHUNK.size + length + _CRC
        if end > len(data):
            raise PictureError("damaged: it is cut off")
        if kind not in _KEPT and not kind[0] & _ANCILLARY:
            raise PictureError(f"damaged: it has a chunk {kind!r}")
        yield kind, start, end
        if kind == b"IEND":
            return
    raise PictureError(f"more than {MOST_CHUNKS:,} chunks")


def _decoded(png: bytes) -> Rgba:
    """Decode the pixels of a checked PNG file.

    Raises:
        PictureError: If it is damaged.
    """
    try:
        with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
            return np.array(image.convert("RGBA"))
    except UnidentifiedImageError as error:  # whose message quotes the address of the bytes
        raise PictureError("damaged: its header cannot be read") from error
    # Pillow raises nearly anything for damaged pictures, and errors of its own for large ones.
    except Exception as error:
        raise PictureError(f"damaged: {error}") from error


# --------------------------------------------------------------------------- folders


class _Folder:
    """A pack that is a folder."""

    def __init__(self, path: Path) -> None:
        self._textures = path / TEXTURES

    def names(self) -> set[str]:
        """List the pictures.

        Raises:
            OSError: If a folder cannot be listed.
            ValueError: If there are too many files, or folders within each other.
        """
        names: set[str] = set()
        waiting = [("", 0)] if self._textures.is_dir() else []
        count = 0
        while waiting:
            folder, depth = waiting.pop()
            if depth > DEEPEST:
                raise ValueError(f"its folders are nested more than {DEEPEST} deep")
            with os.scandir(self._textures / folder) as entries:
                for entry in entries:
                    count += 1
                    if count > MOST_ENTRIES:
                        raise ValueError(f"it has more than {MOST_ENTRIES:,} files")
                    if entry.name.endswith(".png"):
                        names.add(folder + entry.name.removesuffix(".png"))
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((f"{folder}{entry.name}/", depth + 1))
        return names

    def size(self, name: str) -> int:
        try:
            found = (self._textures / f"{name}.png").stat()
        except OSError as error:
            raise PictureError(f"cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(found.st_mode):  # a folder or a pipe called NAME.png
            raise PictureError("not a regular file")
        return found.st_size

    def read(self, name: str, size: int) -> bytes:
        try:
            with (self._textures / f"{name}.png").open("rb") as file:
                return file.read(size)
        except OSError as error:
            raise PictureError(f"cannot be read: {error.strerror}") from error


# --------------------------------------------------------------------------- zips
#
#     header, data | header, data | ... | directory | [end of zip64, its locator] | end, comment
#
# https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3 and 4.4. Of zip64, only
# the end is read, which tells of more than 65,534 files: no file here has 4 GiB.

_LOCAL = struct.Struct("<4s5H3L2H")
_RECORD = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64_SIZE = 20
_LONGEST_COMMENT = 2**16 - 1
_ENCRYPTED, _UTF8 = 0x1, 0x800
"""Flags of an entry."""
_STORED, _DEFLATED = 0, 8
"""Methods of compression; the game reads no others."""


class _Entry(NamedTuple):
    """What a zip's directory says of a file."""

    flags: int
    method: int
    checksum: int
    packed_size: int
    size: int
    position: int
    """Of its local header, in the file."""


class _Archive:
    """A pack that is a zip."""

    def __init__(self, path: Path) -> None:
        """Read the directory.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not a zip, or beyond the bounds.
        """
        self._path = path
        if not path.is_file():
            raise ValueError("there is no such file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST_ARCHIVE:
                raise ValueError(f"it has more than {LARGEST_ARCHIVE:,} bytes")
            directory, shift = _directory(file, size)
        self._entries = {
            name.removeprefix(f"{TEXTURES}/").removesuffix(".png"): entry
            for name, entry in _entries(directory, shift)
            if name.startswith(f"{TEXTURES}/") and name.endswith(".png")
        }

    def names(self) -> set[str]:
        return set(self._entries)

    def size(self, name: str) -> int:
        return max(self._entries[name].size, self._entries[name].packed_size)

    def read(self, name: str, size: int) -> bytes:
        entry = self._entries[name]
        if entry.size > LARGEST_RATIO * max(entry.packed_size, 1):
            raise PictureError(f"unpacks to more than {LARGEST_RATIO} times its size")
        if entry.flags & _ENCRYPTED or entry.method not in (_STORED, _DEFLATED):
            raise PictureError("encrypted, or packed in a way that the game does not read")
        try:
            packed = self._packed(entry)
            if entry.method == _DEFLATED:
                data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size)
            else:
                data = packed
        except (OSError, ValueError, zlib.error) as error:
            raise PictureError(f"cannot be unpacked: {error}") from error
        if len(data) != entry.size or zlib.crc32(data) != entry.checksum:
            raise PictureError("damaged: it is not what the zip's directory says")
        return data

    def _packed(self, entry: _Entry) -> bytes:
        """Return the packed bytes of a file.

        Raises:
            OSError: If the zip cannot be read.
            ValueError: If there is no file at its position.
        """
        with self._path.open("rb") as file:
            file.seek(entry.position)
            header = file.read(_LOCAL.size)
            if len(header) < _LOCAL.size or not header.startswith(b"PK\3\4"):
                raise ValueError("there is no file where the zip's directory says")
            *_, name_length, extra_length = _LOCAL.unpack(header)
            file.seek(name_length + extra_length, io.SEEK_CUR)
            return file.read(entry.packed_size)


def _directory(file: BinaryIO, size: int) -> tuple[bytes, int]:
    """Read the directory of a zip.

    Returns:
        Its bytes, and what to add to the positions in it: the length of what was put before the
        zip.

    Raises:
        ValueError: If there is none, or a larger one than `LARGEST_DIRECTORY` and `MOST_ENTRIES`
            allow.
    """
    file.seek(max(0, size - _END.size - _LONGEST_COMMENT))
    first, tail = file.tell(), file.read()
    start = tail.rfind(b"PK\5\6", 0, len(tail) - _END.size + 4)
    if start < 0:
        raise ValueError("it has no directory at its end")
    *_, count, length, offset, _ = _END.unpack_from(tail, start)
    end = first + start
    file.seek(max(0, end - _LOCATOR64_SIZE - _END64.size))
    position, ends = file.tell(), file.read(_END64.size + _LOCATOR64_SIZE)
    if ends.startswith(b"PK\6\6") and ends[_END64.size :].startswith(b"PK\6\7"):
        end = position
        *_, count, length, offset = _END64.unpack(ends[: _END64.size])
    if count > MOST_ENTRIES or length > LARGEST_DIRECTORY:
        raise ValueError(
            f"its directory lists {count:,} files in {length:,} bytes; at most {MOST_ENTRIES:,} in"
            f" {LARGEST_DIRECTORY:,} are read"
        )
    if length > end:
        raise ValueError("its directory is cut off")
    file.seek(end - length)
    return file.read(length), end - length - offset


def _entries(directory: bytes, shift: int) -> Iterator[tuple[str, _Entry]]:
    """Yield the names and entries of a zip's directory, whatever number it says it has.

    Raises:
        ValueError: If it is damaged, or has too many.
    """
    position, count = 0, 0
    while position < len(directory):
        count += 1
        if count > MOST_ENTRIES:
            raise ValueError(f"it has more than {MOST_ENTRIES:,} files")
        if not directory.startswith(b"PK\1\2", position):
            raise ValueError("its directory is damaged")
        if position + _RECORD.size > len(directory):
            raise ValueError("its directory is cut off")
        record = _RECORD.unpack_from(directory, position)
        flags, method, checksum, packed_size, size = *record[3:5], *record[7:10]
        name_length, extra_length, comment_length = record[10:13]
        start = position + _RECORD.size
        name = directory[start : start + name_length]
        entry = _Entry(flags, method, checksum, packed_size, size, max(0, record[-1] + shift))
        yield name.decode("utf-8" if flags & _UTF8 else "cp437", "replace"), entry
        position = start + name_length + extra_length + comment_length
