"""Resource packs with pictures, zips and folders that were made to do harm."""

from __future__ import annotations

import io
import logging
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from judging import ACCEPTED, Case
from PIL import Image

from rllib_minestudio.env.voxel.render.resource_pack import (
    LARGEST_FILE,
    OUR_PACK,
    TEXTURES,
    ResourcePack,
)
from rllib_minestudio.env.voxel.render.textures import Textures, textures_of

MOST_BYTES = 200 * 1024**2
"""Memory that a pack takes at most."""

DIRT, APPLE = f"{TEXTURES}/block/dirt.png", f"{TEXTURES}/item/apple.png"


def use(path: str) -> str:
    """Draw with a pack whose apple is honest, and tell what is said of its dirt."""
    pictures, said = _taken(path)
    assert (pictures.picture("item/apple") == 77).all(), "an honest picture is taken"
    if "1 cannot be used: block/dirt (" not in said:
        return said
    assert (pictures.picture("block/dirt") == textures_of(None).picture("block/dirt")).all()
    return f"refused: {said}"


def use_all(path: str) -> str:
    """Draw with a pack, and tell what is said of it."""
    _, said = _taken(path)
    return f"refused: {said}" if "cannot be used" in said else said


def _taken(path: str) -> tuple[Textures, str]:
    """Read a pack; return its pictures, and its only warning."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(Textures.__module__).addHandler(handler)
    pictures = Textures(path)
    (warning,) = said or ["none"]
    return pictures, warning


def check(path: str) -> str:
    """What checking an experiment does."""
    from rllib_minestudio.env import EnvOptions

    return str(EnvOptions.from_mapping({"resource_pack": path}))


def _apple() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((16, 16, 4), 77, np.uint8)).save(file, "PNG")
    return file.getvalue()


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def _folder(dirt: bytes | None, folder: Path) -> str:
    _write(folder / APPLE, _apple())
    if dirt is not None:
        _write(folder / DIRT, dirt)
    return str(folder)


# ---------------------------------------------------------------- PNG


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(
    width: int = 16, height: int = 16, depth: int = 8, kind: int = 6, lace: int = 0
) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, lace))


ADAM7 = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
    *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
)
"""Left, top, and distances of the pixels in each pass of an interlaced picture."""

START, END = b"\x89PNG\r\n\x1a\n", chunk(b"IEND")
PIXELS = chunk(b"IDAT", zlib.compress(bytes(65 * 16)))


def _zeros(size: int) -> bytes:
    """So many zeros, a multiple of 16 MiB, compressed to a thousandth."""
    packer = zlib.compressobj(9, wbits=-15)
    part = packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\xda" + part * (size >> 24) + b"\3\0" + struct.pack(">HH", size % 65_521, 1)


def _picture(width: int, height: int, depth: int = 8, kind: int = 6, lace: int = 0) -> bytes:
    """A picture of zeros, whose rows are predicted in the slowest way."""
    passes = ADAM7 if lace else ((0, 0, 1, 1),)
    packer, data = zlib.compressobj(9), b""
    for left, top, right, down in passes:
        row = b"\4" + bytes(-(-(width - left) // right) * {0: 1, 2: 3, 6: 4}[kind] * depth // 8)
        for _ in range(top, height, down):
            data += packer.compress(row)
    data += packer.flush()
    return START + header(width, height, depth, kind, lace) + chunk(b"IDAT", data) + END


def pictures() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Files that are no picture."""

    def around(before: bytes, after: bytes = b"", pixels: bytes = PIXELS) -> Callable[[], bytes]:
        return lambda: START + before + pixels + after + END

    immense = {"9,000 x 9,000": header(9000, 9000), "30,000 x 30,000": header(30_000, 30_000)}
    for name, second in immense.items():
        yield f"a second header of {name}", around(header() + second)
        yield f"a header of {name} after the pixels", around(header(), second)
        yield f"only a header of {name}", around(second)
        full = chunk(b"IDAT", _zeros(22 * 2**24))
        yield f"a second header of {name} and all pixels", around(header() + second, b"", full)
    yield "a header behind the pixels", lambda: START + PIXELS + header() + END
    yield "a header of another length", around(chunk(b"IHDR", bytes(14)))
    yield "no size", around(header(0, 0))
    yield "a depth that there is not", around(header(depth=3))
    yield "a kind that there is not", around(header(kind=5))
    yield "two palettes", around(header(kind=3) + chunk(b"PLTE", bytes(3)) * 2)
    yield "a long palette", around(header(kind=3) + chunk(b"PLTE", bytes(3 * 10**6)))
    yield "no pixels", lambda: START + header() + END
    yield "few pixels", around(header(2048, 2048))
    yield "no end", lambda: START + header() + PIXELS
    yield "an unknown essential chunk", around(header() + chunk(b"EVIL"))
    yield "a chunk longer than the file", around(header() + b"\xff\xff\xff\xff" + b"tEXt")
    yield "a wrong checksum", around(header()[:-1] + b"\0")
    yield "damaged pixels", around(header(), b"", chunk(b"IDAT", b"\x78\x9c" + bytes(50)))
    yield "pixels in ten thousand chunks", around(header() + chunk(b"IDAT") * 10_000)
    yield "a chunk for every twelve bytes", around(header() + chunk(b"tEXt") * 300_000)
    yield "too large a file", around(header() + chunk(b"tEXt", bytes(LARGEST_FILE)))
    for kind, start in {b"zTXt": b"a\0\0", b"iTXt": b"a\0\1\0\0\0", b"iCCP": b"a\0\0"}.items():
        bomb = chunk(kind, start + _zeros(2**31))
        yield f"2 GB in {kind.decode()}, and no pixels", around(header() + bomb, b"", b"")
    yield "other files: a signature", lambda: START
    for form in ("GIF", "JPEG", "BMP", "TIFF", "PPM", "WEBP", "ICO", "TGA"):
        yield f"other files: {form}", partial(_other, form)
    yield "other files: PostScript", lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"


def _other(form: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, form)
    return file.getvalue()


def harmless() -> Iterator[tuple[str, bytes]]:
    """What costs nothing, because only pixels are read, or what Pillow tolerates."""
    for name, size in {"missing": 0, "of another length": 4}.items():
        palette = chunk(b"PLTE", bytes(size)) * bool(size)
        yield f"a palette {name}", START + header(kind=3) + palette + PIXELS + END
    bomb = chunk(b"zTXt", b"a\0\0" + _zeros(2**31))
    animated = chunk(b"acTL", struct.pack(">II", 2**31, 0))
    frame = chunk(b"fcTL", struct.pack(">5I2H2B", 0, 60_000, 60_000, 0, 0, 1, 1, 0, 0))
    yield "an animation of immense frames", START + header() + animated + frame + PIXELS + END
    yield "2 GB of text", START + header() + bomb + PIXELS + END
    yield "2 GB of text behind the pixels", START + header() + PIXELS + bomb + END
    yield "2 GB of colours", START + header() + bomb.replace(b"zTXt", b"iCCP") + PIXELS + END
    yield "2 GB of pixels", START + header() + chunk(b"IDAT", _zeros(2**31)) + END


def _all_alike(picture: bytes, folder: Path) -> str:
    """Every picture but the apple is this one, which is on the disk once."""
    _folder(picture, folder)
    for name in ResourcePack(OUR_PACK).names - {"block/dirt", "item/apple"}:
        file = folder / TEXTURES / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        os.link(folder / DIRT, file)
    return str(folder)


def honest(folder: Path) -> str:
    return _folder(START + header() + PIXELS + END, folder)


# ---------------------------------------------------------------- zips


def _zip(folder: Path, method: int = zipfile.ZIP_DEFLATED, dirt: bytes = b"") -> Path:
    with zipfile.ZipFile(folder / "pack.zip", "w", method) as archive:
        archive.writestr(APPLE, _apple(), zipfile.ZIP_DEFLATED)
        archive.writestr(DIRT, dirt or START + header() + PIXELS + END)
    return folder / "pack.zip"


def _damaged(method: int, folder: Path) -> str:
    """The packed bytes of the dirt are others."""
    file = _zip(folder, method)
    content = bytearray(file.read_bytes())
    start = content.rindex(b"PK\3\4") + 30 + len(DIRT)
    content[start + 8 : start + 24] = b"\xff" * 16
    file.write_bytes(content)
    return str(file)


def _edited(place: int, form: str, value: int, folder: Path) -> str:
    """A number in the directory's entry of the dirt is another one."""
    file = _zip(folder)
    content = bytearray(file.read_bytes())
    struct.pack_into(form, content, content.rindex(b"PK\1\2") + place, value)
    file.write_bytes(content)
    return str(file)


def _record(name: bytes, extra: bytes = b"", comment: bytes = b"") -> bytes:
    """An entry of a directory, for an empty file at the beginning of the zip."""
    numbers = (20, 20, *[0] * 7, len(name), len(extra), len(comment), 0, 0, 0, 0)
    return struct.pack("<4s6H3L5H2L", b"PK\1\2", *numbers) + name + extra + comment


def _directory(directory: bytes, count: int | None, folder: Path, length: int = -1) -> str:
    """A zip with only a directory that says it has `count` files; None: a million, in zip64."""
    length = len(directory) if length < 0 else length
    with (folder / "pack.zip").open("wb") as file:
        file.write(directory)
        if count is None:
            many = (44, 45, 45, 0, 0, 10**6, 10**6, length, 0)
            file.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", *many))
            file.write(struct.pack("<4sLQL", b"PK\6\7", 0, len(directory), 1))
            file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, 2**32 - 1, 0, 0))
        else:
            file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, length, 0, 0))
    return str(folder / "pack.zip")


def directories() -> Iterator[tuple[str, Callable[[Path], str]]]:
    """Zips whose directory cannot be read, or takes too much to be."""
    one = _record(DIRT.encode())
    fields = b"\1\0\0\0" * (65_535 // 4)
    yield "750,000 files, and says more", partial(_directory, _record(b"") * 750_000, None)
    yield "750,000 files, and says one", partial(_directory, _record(b"") * 750_000, 1)
    yield "600,000 files, and says one", partial(_directory, _record(b"") * 600_000, 1)
    yield "39 MB of comments", partial(_directory, _record(b"", b"", b"c" * 65_535) * 600, 600)
    yield "33 MB of extra fields", partial(_directory, _record(b"", b"e" * 65_535) * 500, 500)
    yield "many small extra fields", partial(_directory, _record(b"", fields) * 450, 450)
    yield "no file at all", partial(_directory, b"", 0)
    yield "a directory before the file", partial(_directory, one, 1, length=10**6)
    yield "a directory of 4 GB", partial(_directory, one, 1, length=2**32 - 1)
    yield "a directory of 2 ** 64 bytes", partial(_directory, one, None, length=2**64 - 1)
    yield "a directory that begins in the middle", partial(_directory, one, 1, length=len(one) - 3)
    yield "a directory that is cut off", partial(_directory, one[:30], 1)
    yield "a name that is cut off", partial(_directory, one[:60], 1)
    yield "no directory", lambda folder: _file(folder, b"PK\3\4" + bytes(10**6))
    yield "ends without an end", lambda folder: _file(folder, b"PK\5\6" * 20_000)
    yield "nothing", lambda folder: _file(folder, b"")


def _file(folder: Path, content: bytes) -> str:
    (folder / "pack.zip").write_bytes(content)
    return str(folder / "pack.zip")


def entries() -> Iterator[tuple[str, Callable[[Path], str]]]:
    """Zips in which the dirt cannot be unpacked."""
    for name in ("STORED", "DEFLATED", "BZIP2", "LZMA"):
        yield f"{name} is damaged", partial(_damaged, getattr(zipfile, f"ZIP_{name}"))
    for name, place, form, value in (
        ("encrypted", 8, "<H", 1),
        ("strongly encrypted", 8, "<H", 0x41),
        ("an unknown method", 10, "<H", 97),
        ("another method", 10, "<H", zipfile.ZIP_LZMA),
        ("another checksum", 16, "<L", 5),
        ("a smaller packed size", 20, "<L", 9),
        ("a packed size of 4 GB", 20, "<L", 2**32 - 1),
        ("a smaller size", 24, "<L", 9),
        ("a size of 4 GB", 24, "<L", 2**32 - 1),
        ("a place behind the end", 42, "<L", 2**32 - 2),
        ("a place between files", 42, "<L", 7),
    ):
        yield f"a directory that says {name}", partial(_edited, place, form, value)
    bomb = bytes(99 * 2**20)
    for name in ("DEFLATED", "BZIP2", "LZMA"):
        method = getattr(zipfile, f"ZIP_{name}")
        yield f"100 MB of zeros in {name}", partial(_zip_path, method, bomb)


def _zip_path(method: int, dirt: bytes, folder: Path) -> str:
    return str(_zip(folder, method, dirt))


def _overlapping(folder: Path) -> str:
    """All pictures are one file of 4 MB of zeros, packed a hundredfold, with a wrong checksum."""
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(bytes(LARGEST_FILE)) + packer.flush() + bytes(LARGEST_FILE // 100)
    numbers = (8, 0, 0, 1, len(packed), LARGEST_FILE)
    directory = b"".join(
        struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, *numbers, len(name), 0, 0, 0, 0, 0, 0)
        + name
        for name in (f"{TEXTURES}/{name}.png".encode() for name in ResourcePack(OUR_PACK).names)
    )
    file = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, *numbers, 0, 0) + packed
    sizes = (len(directory), len(file), 0)
    return _file(folder, file + directory + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, *sizes))


# ---------------------------------------------------------------- folders and names


DEPTH = 1200


def _deep(folder: Path) -> str:
    _folder(None, folder)
    path = folder / TEXTURES
    for _ in range(DEPTH):
        path = path / "d"
        path.mkdir()
    return str(folder)


def _removed(attack: Callable[[str], str], path: str) -> str:
    """Attack with deep folders, which shutil could not remove."""
    try:
        return attack(path)
    finally:
        for depth in range(DEPTH, 0, -1):
            Path(path, TEXTURES, *["d"] * depth).rmdir()


def _pipe(folder: Path) -> str:
    _folder(None, folder)
    (folder / DIRT).parent.mkdir()
    os.mkfifo(folder / DIRT)
    return str(folder)


def _link(target: str, folder: Path) -> str:
    _folder(None, folder)
    (folder / DIRT).parent.mkdir()
    (folder / DIRT).symlink_to(target)
    return str(folder)


def _pipe_for_a_zip(folder: Path) -> str:
    os.mkfifo(folder / "pack.zip")
    return str(folder / "pack.zip")


def _named(path: str, _: Path) -> str:
    return path


def folders() -> Iterator[tuple[str, Callable[[Path], str]]]:
    """Paths that are no packs."""
    yield "a pipe for a zip", _pipe_for_a_zip
    for name, path in {
        "a name of a million letters": "x" * 10**6,
        "a path of a million folders": "x/" * 10**6,
        "a name with NUL": "a\0b.zip",
        "nobody's home": "~no_such_user/pack.zip",
        "a device": "/dev/zero",
    }.items():
        yield name, partial(_named, path)


def cases() -> Iterator[Case]:
    def case(name: str, prepare: Callable[[Path], Any], attack: Any = use, **ends: str) -> Case:
        return Case(name, prepare, attack, most_bytes=MOST_BYTES, **ends)

    yield case("honest folder", honest, expected=ACCEPTED)
    yield case("honest zip", lambda folder: str(_zip(folder)), expected=ACCEPTED)
    for name, make in pictures():
        yield case(f"picture: {name}", lambda folder, make=make: _folder(make(), folder))
    for name, picture in harmless():
        yield case(f"picture: {name}", partial(_folder, picture), expected=ACCEPTED)
    for name, picture in {
        "of the largest size": _picture(2048, 2048),
        "of the largest size and depth": _picture(2048, 2048, 16),
        "interlaced": _picture(2048, 2048, 16, 6, 1),
        "of 4 MB of text": START + header() + chunk(b"tEXt", bytes(4_000_000)) + PIXELS + END,
        "of 599 chunks": START + header() + chunk(b"tEXt") * 596 + PIXELS + END,
    }.items():
        ends = {"expected": ACCEPTED} if "599" in name else {}
        yield case(f"all pictures: {name}", partial(_all_alike, picture), use_all, **ends)
    for name, prepare in entries():
        yield case(f"zip: {name}", prepare)
    yield case("zip: all pictures are one", _overlapping, use_all)
    for (name, prepare), attack in zip(directories(), cycle((use, check))):
        yield case(f"zip: {name}: {attack.__name__}", prepare, attack)
    for name, prepare in folders():
        yield case(name, prepare)
        yield case(f"checked only: {name}", prepare, check)
    for attack in (use, check):
        deep = f"folders {DEPTH:,} deep: {attack.__name__}"
        yield case(deep, _deep, partial(_removed, attack))
    yield case("a pipe for a picture", _pipe)
    yield case("a device for a picture", partial(_link, "/dev/zero"))
    yield case("a link to itself", partial(_link, "dirt.png"))
    yield case("a link to another file", partial(_link, "/etc/passwd"))
