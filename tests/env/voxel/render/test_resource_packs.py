"""Resource packs of the user's: what they replace, and what hostile ones cannot do."""

from __future__ import annotations

import io
import logging
import shutil
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rllib_minestudio.env import EnvOptions
from rllib_minestudio.env.voxel.player.player import STANDING_EYES
from rllib_minestudio.env.voxel.render import resource_pack
from rllib_minestudio.env.voxel.render.gui import bare_window, panel, veil
from rllib_minestudio.env.voxel.render.mob_textures import mob_face
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.resource_pack import (
    MOST_PIXELS_IN_ALL,
    OUR_PACK,
    TEXTURES,
    PackError,
    PictureError,
    ResourcePack,
)
from rllib_minestudio.env.voxel.render.textures import (
    FACE_SOUTH,
    FACE_TOP,
    FACE_WEST,
    Textures,
    resized,
    textures_of,
)
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.errors import InvalidOptionsError
from tests.env.voxel.render.render_stage import FLOOR, Stage

RED, GREEN, BLUE, GREY = (250, 10, 10), (10, 250, 10), (10, 10, 250), (128, 128, 128)


def png(picture: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()


def plain(colour: tuple[int, int, int], width: int = 16, height: int = 16) -> bytes:
    return png(np.full((height, width, 4), (*colour, 255), np.uint8))


def folder(path: Path, files: dict[str, bytes]) -> str:
    for name, data in files.items():
        file = path / TEXTURES / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return str(path)


def archive(path: Path, files: dict[str, bytes]) -> str:
    with zipfile.ZipFile(path / "pack.zip", "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("pack.mcmeta", "{}")
        for name, data in files.items():
            target.writestr(f"{TEXTURES}/{name}.png", data)
    return str(path / "pack.zip")


@pytest.mark.parametrize("packed", [folder, archive])
def test_a_pack_replaces_pictures_of_every_kind(tmp_path: Path, packed) -> None:
    cow = np.zeros((32, 64, 4), np.uint8)
    cow[..., 3] = 255
    cow[6:14, 6:14, :3] = RED  # the head's front
    cow[14:32, 50:62, :3] = GREEN  # the body's back, which is on top
    path = packed(
        tmp_path,
        {
            "item/iron_sword": plain(RED),
            "block/oak_planks": plain(GREEN),
            "block/grass_block_top": plain(GREY),
            "entity/cow/cow": png(cow),
            "gui/container/furnace": plain(BLUE, 256, 256),
        },
    )
    textures, ours = Textures(path), textures_of(None)
    assert (textures.icon("iron_sword")[..., :3] == RED).all()
    assert all((face[..., :3] == GREEN).all() for face in textures.block_faces("oak_planks"))
    green = textures.icon("oak_planks")
    assert (green[green[..., 3] > 0][:, 0] < green[green[..., 3] > 0][:, 1]).all()
    top = textures.block_faces("grass_block")[FACE_TOP][0, 0]
    assert top[1] > top[0] > top[2], "grey grass is coloured"
    assert (mob_face(textures, "cow", "head", FACE_SOUTH) == RED).all()
    assert (mob_face(textures, "cow", "body", FACE_TOP) == GREEN).all()
    assert (mob_face(textures, "cow", "body", FACE_WEST) == 0).all()
    assert (panel(textures, "furnace")[0, 0, :3] == BLUE).all()
    # What it lacks is ours.
    np.testing.assert_array_equal(textures.icon("apple"), ours.icon("apple"))
    np.testing.assert_array_equal(panel(textures, "chest"), panel(ours, "chest"))


def test_a_see_through_panel_lies_over_the_veil(tmp_path: Path) -> None:
    half = np.full((256, 256, 4), (*BLUE, 100), np.uint8)
    textures = Textures(folder(tmp_path, {"gui/container/furnace": png(half)}))
    layout, shade = LAYOUTS["furnace"], veil(640, 360)
    x, y = layout.left + 1, layout.top + 1
    expected = (np.array((*BLUE, 255)) * 100 + shade[y, x].astype(int) * 155) / 255
    window = bare_window(textures, "furnace", 640)
    np.testing.assert_allclose(window[y, x], expected, atol=1)
    np.testing.assert_array_equal(window[:, : layout.left], shade[:, : layout.left])


def test_finer_pictures_are_averaged_and_animations_stand_still() -> None:
    fine = np.zeros((32, 32, 4), np.uint8)
    fine[::2] = (200, 100, 0, 255)
    assert (resized(fine, (16, 16, 4)) == (200, 100, 0, 128)).all(), "see-through has no colour"
    frames = np.concatenate([np.full((16, 16, 4), tone, np.uint8) for tone in (7, 9)])
    assert (resized(frames, (16, 16, 4)) == 7).all()
    odd = np.arange(24 * 24 * 4, dtype=np.uint32).astype(np.uint8).reshape(24, 24, 4)
    assert resized(odd, (16, 16, 4)).shape == (16, 16, 4)


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def size_chunk(width: int, height: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))


def header(width: int, height: int) -> bytes:
    """A PNG that promises many pixels and has few."""
    data = zlib.compress(b"\0" * 1000)
    start = b"\x89PNG\r\n\x1a\n" + size_chunk(width, height)
    return start + chunk(b"IDAT", data) + chunk(b"IEND")


def with_chunks(picture: bytes, chunks: bytes) -> bytes:
    """Put chunks behind a PNG's header."""
    return picture[:33] + chunks + picture[33:]


HOSTILE = {
    "block/dirt": header(60_000, 60_000),
    "block/stone": header(0, 16),
    "block/sand": plain(RED)[:60],
    "block/gravel": b"",
    "block/cobblestone": b"GIF89a" + b"\0" * 100,
    "block/oak_log": header(16, 16),
    "item/stick": plain(RED).replace(b"IDAT", b"IDAT"[::-1]),
    "item/coal": plain(RED) + b"\0" * 5_000_000,
    "block/granite": with_chunks(plain(RED), size_chunk(9000, 9000)),
    "block/diorite": with_chunks(plain(RED), size_chunk(30_000, 30_000)),
    "block/bricks": with_chunks(plain(RED), size_chunk(16, 16)),
    "block/clay": with_chunks(plain(RED), chunk(b"IDAT") * 1000),
    "block/ice": plain(RED)[:-12],
}


@pytest.mark.parametrize("packed", [folder, archive])
def test_damaged_pictures_are_ours_and_one_warning_names_them(
    tmp_path: Path, packed, caplog: pytest.LogCaptureFixture
) -> None:
    path = packed(tmp_path, {**HOSTILE, "item/apple": plain(BLUE)})
    with caplog.at_level(logging.WARNING):
        textures = Textures(path)
    assert len(caplog.records) == 1
    message = caplog.text
    assert f"{len(HOSTILE)} cannot be used" in message
    named = sorted(HOSTILE)[:8]
    assert all(f"{name} (" in message for name in named)
    assert "60,000 x 60,000 pixels" in message
    for name in HOSTILE:
        np.testing.assert_array_equal(textures.picture(name), textures_of(None).picture(name))
    assert (textures.icon("apple")[..., :3] == BLUE).all()


def test_a_zip_bomb_is_not_unpacked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = header(16, 16) + b"\0" * 4_000_000
    path = archive(tmp_path, {"block/dirt": bomb, "item/apple": plain(BLUE)})
    opened = []
    read_packed = resource_pack._Archive._packed

    def spy(self, entry):
        opened.append(entry.size)
        return read_packed(self, entry)

    monkeypatch.setattr(resource_pack._Archive, "_packed", spy)
    textures = Textures(path)
    assert opened == [len(plain(BLUE))]
    assert "more than 100 times its size" in caplog.text
    assert (textures.icon("apple")[..., :3] == BLUE).all()


def lying_archive(path: Path) -> str:
    """A zip whose directory says that a picture has 100 bytes, and that is larger."""
    file = Path(archive(path, {"block/dirt": plain(RED, 900, 900), "item/apple": plain(BLUE)}))
    data = bytearray(file.read_bytes())
    entry = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    data[entry + 24 : entry + 28] = struct.pack("<I", 100)
    file.write_bytes(data)
    return str(file)


def test_a_lying_directory_costs_a_picture(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    textures = Textures(lying_archive(tmp_path))
    assert "1 cannot be used: block/dirt" in caplog.text
    assert (textures.icon("apple")[..., :3] == BLUE).all()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_cannot_be_unpacked_costs_a_picture(
    tmp_path: Path, method: int, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "pack.zip"
    with zipfile.ZipFile(file, "w", method) as target:
        target.writestr(f"{TEXTURES}/item/apple.png", plain(BLUE), zipfile.ZIP_DEFLATED)
        target.writestr(f"{TEXTURES}/block/dirt.png", plain(RED))
    data = bytearray(file.read_bytes())
    start = data.rindex(b"PK\3\4")
    data[start + 60 : start + 80] = b"\xff" * 20
    file.write_bytes(data)
    textures = Textures(str(file))
    assert "1 cannot be used: block/dirt" in caplog.text
    assert (textures.icon("apple")[..., :3] == BLUE).all()


def test_only_pixels_are_read_of_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    open_image = Image.open

    def spy(file, **options):
        given.append(file.getvalue())
        return open_image(file, **options)

    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(10**6)))
    profile = chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(10**6)))
    frames = chunk(b"acTL", struct.pack(">II", 2**31, 0)) + chunk(b"fdAT", bytes(4))
    path = folder(tmp_path, {"item/apple": with_chunks(plain(BLUE), text + profile + frames)})
    monkeypatch.setattr(resource_pack.Image, "open", spy)
    picture = ResourcePack(path).picture("item/apple")
    assert given == [plain(BLUE)]
    assert (picture[..., :3] == BLUE).all()


@pytest.mark.parametrize("kind", ["before", "behind", "zip64"])
def test_a_zip_may_have_something_around_it_and_many_files(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "zip64":
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    file = Path(archive(tmp_path, {"item/apple": plain(BLUE), "block/dirt": plain(RED)}))
    data = file.read_bytes()
    assert (b"PK\6\6" in data) == (kind == "zip64")
    file.write_bytes(b"#!/bin/sh\n" * (kind == "before") + data + b"end" * (kind == "behind"))
    pack = ResourcePack(file)
    assert pack.names == {"item/apple", "block/dirt"}
    assert (pack.picture("item/apple")[..., :3] == BLUE).all()


@pytest.mark.parametrize("packed", [folder, archive])
def test_what_has_too_many_files_is_no_pack(
    tmp_path: Path, packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path, {f"item/{name}": plain(RED) for name in "abcde"})
    monkeypatch.setattr(resource_pack, "MOST_ENTRIES", 5)  # and a folder, or pack.mcmeta
    with pytest.raises(PackError, match=r"\(it(s directory lists 6| has more than 5) files"):
        ResourcePack(path)
    if packed is archive:  # the directory says that it has fewer
        data = bytearray(Path(path).read_bytes())
        data[-12:-10] = struct.pack("<H", 1)
        Path(path).write_bytes(data)
        with pytest.raises(PackError, match="more than 5 files"):
            ResourcePack(path)
        monkeypatch.setattr(resource_pack, "LARGEST_DIRECTORY", 100)
        with pytest.raises(PackError, match="at most 5 in 100 are read"):
            ResourcePack(path)


def test_folders_deep_within_each_other_are_no_pack(tmp_path: Path) -> None:
    path = folder(tmp_path, {"/".join("d" * 16): plain(RED)})
    assert ResourcePack(path).names == {"/".join("d" * 16)}
    folder(tmp_path, {"/".join("d" * 18): plain(RED)})
    with pytest.raises(PackError, match="nested more than 16 deep"):
        ResourcePack(path)


@pytest.mark.parametrize(
    ("limit", "most", "said"), [("MOST_BYTES", 200, "bytes"), ("MOST_PIXELS_IN_ALL", 600, "pixels")]
)
def test_of_a_large_pack_the_first_pictures_are_taken(
    tmp_path: Path, limit: str, most: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 200 / 3 < len(plain(RED)) < 200 / 2 and 600 / 3 < 16 * 16 < 600 / 2
    names = ("block/clay", "block/dirt", "block/ice")
    path = folder(tmp_path, {name: plain(RED) for name in names})
    monkeypatch.setattr(resource_pack, limit, most)
    pack = ResourcePack(path)
    for name in names[:2]:
        assert (pack.picture(name)[..., :3] == RED).all()
    with pytest.raises(PictureError, match=f"those before it more than {most} {said}"):
        pack.picture(names[2])


def test_packs_with_64_texels_per_block_are_within_bounds() -> None:
    """And leave nearly half of the pixels to animations, which ours lacks."""
    sizes = []
    for file in (OUR_PACK / TEXTURES).rglob("*.png"):
        with Image.open(file) as picture:
            sizes.append(picture.size)
    assert max(map(max, sizes)) * 4 <= resource_pack.LONGEST_SIDE / 8
    assert sum(width * height for width, height in sizes) * 4**2 < MOST_PIXELS_IN_ALL / 2


@pytest.fixture
def not_packs(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "text.zip").write_text("no zip")
    (tmp_path / "empty").mkdir()
    (tmp_path / "sounds").mkdir()
    (tmp_path / "sounds" / "a.ogg").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "bare.zip", "w") as target:
        target.writestr("assets/minecraft/lang/en_us.json", "{}")
    damaged = bytearray(Path(archive(tmp_path, {"item/apple": plain(BLUE)})).read_bytes())
    (tmp_path / "cut.zip").write_bytes(damaged[:-30])
    names = {
        "nowhere": "there is no such file",
        "text.zip": "neither a folder nor a zip",
        "cut.zip": "neither a folder nor a zip",
        "empty": "has no picture",
        "sounds": "has no picture",
        "bare.zip": "has no picture",
        "x" * 300: "File name too long",
    }
    return {
        **{str(tmp_path / name): reason for name, reason in names.items()},
        "~no_such_user/pack.zip": "home directory",
    }


def test_what_is_no_pack_is_refused_in_one_sentence(not_packs: dict[str, str]) -> None:
    for path, reason in not_packs.items():
        for use in (Textures, lambda path: EnvOptions.from_mapping({"resource_pack": path})):
            with pytest.raises(InvalidOptionsError) as refused:
                use(path)
            message = str(refused.value)
            assert (
                path[:200] in message
                and reason in message
                and "give a folder, zip or jar" in message
            )
            assert len(refused.value.problems) == 1
    with pytest.raises(InvalidOptionsError, match=r"resource_pack must be the path .* got 3\."):
        EnvOptions.from_mapping({"resource_pack": 3})


def test_a_pack_that_has_all_of_the_games_pictures_is_taken_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(OUR_PACK / TEXTURES, tmp_path / TEXTURES)
    for name in ("gui/cursor", "item/shield", "block/lantern_block", "block/creeper_head_side"):
        (tmp_path / TEXTURES / f"{name}.png").unlink()  # the game has none of this name
    with caplog.at_level(logging.WARNING):
        Textures(str(tmp_path))
        assert not caplog.records
        (tmp_path / TEXTURES / "block/stone.png").unlink()
        Textures(str(tmp_path))
    assert "1 missing: block/stone." in caplog.text


@pytest.mark.parametrize(
    ("side", "eye", "yaw", "pitch"),
    [
        ("south", (0.5, 0.5, 3.0), 180, 0),
        ("north", (0.5, 0.5, -2.0), 0, 0),
        ("east", (3.0, 0.5, 0.5), 90, 0),
        ("west", (-2.0, 0.5, 0.5), -90, 0),
        ("top", (0.5, 3.0, 0.5), 180, 90),
        ("bottom", (0.5, -2.0, 0.5), 180, -90),
    ],
)
def test_pictures_stand_upright_on_every_side_of_a_block(
    tmp_path: Path, side: str, eye: tuple[float, float, float], yaw: float, pitch: float
) -> None:
    """As in the game, where top and bottom are upright for one who faces north."""
    quarters = np.zeros((16, 16, 4), np.uint8)
    quarters[..., 3] = 255
    quarters[:8, :8, :3], quarters[:8, 8:, :3] = RED, GREEN
    quarters[8:, :8, :3], quarters[8:, 8:, :3] = BLUE, GREY
    pack = folder(tmp_path, {"block/bricks": png(quarters)})
    renderer, stage = Renderer((64, 64), aspect=1.0, resource_pack=pack), Stage()
    above = 20
    stage.fill((0, 1), (above, above + 1), (0, 1), "bricks")
    stage.stand(yaw, pitch)
    x, y, z = eye
    stage.player.position[:] = stage.x + x, FLOOR + above + y - STANDING_EYES, stage.z + z
    frame = stage.draw(renderer)
    near, far = 26, 37  # a quarter of the block from the middle, 2 blocks away
    seen = frame[np.ix_([near, far], [near, far])].astype(int)
    assert seen[0, 0].argmax() == 0 and seen[0, 1].argmax() == 1 and seen[1, 0].argmax() == 2, side
    assert np.ptp(seen[1, 1]) < 30, side
