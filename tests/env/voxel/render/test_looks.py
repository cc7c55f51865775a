"""The looks of frames: the declared revision, and digests of pictures."""

import json
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from rllib_minestudio.env.voxel import LOOKS, contract
from rllib_minestudio.env.voxel.contract import described, looks_of
from rllib_minestudio.env.voxel.render.resource_pack import OUR_PACK, TEXTURES, ResourcePack
from tests.env.voxel.render.looks_stage import HEIGHT, SCENES, draw, file

LEAST_DIFFERENCE = 6
"""Levels of a colour; other processors round differently by one or two."""
MOST_PIXELS = 0.004
"""Share of a frame's pixels that may differ: rays along an edge hit what is beside it."""


@pytest.mark.parametrize("number", range(len(SCENES)), ids=list(SCENES))
def test_frames_are_those_of_the_declared_revision(number):
    assert file().is_file(), "LOOKS has changed: python -m tests.env.voxel.render.looks_stage"
    kept = np.asarray(Image.open(file()))[number * HEIGHT : (number + 1) * HEIGHT]
    frame = draw(list(SCENES)[number])
    differ = (np.abs(frame.astype(int) - kept) >= LEAST_DIFFERENCE).any(2)
    assert differ.mean() <= MOST_PIXELS, (
        f"{differ.sum()} pixels look otherwise than under LOOKS = {LOOKS}. If that is meant, raise "
        "it in env/voxel/__init__.py, and run python -m tests.env.voxel.render.looks_stage"
    )


def test_a_changed_picture_or_table_is_another_look(tmp_path, monkeypatch):
    before = looks_of()
    assert before == {"revision": LOOKS, "pictures": contract._own_digest()}
    changed = shutil.copytree(OUR_PACK, tmp_path / "pack")
    picture = changed / TEXTURES / "block" / "stone.png"
    Image.fromarray(np.full((16, 16, 3), 90, np.uint8)).save(picture)
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "tints.csv").write_text("")
    for name, value in (("OUR_PACK", changed), ("_TABLES", tables)):
        with monkeypatch.context() as patch:
            patch.setattr(contract, name, value)
            contract._own_digest.cache_clear()
            assert looks_of()["pictures"] != before["pictures"], name
    contract._own_digest.cache_clear()
    assert looks_of() == before


def test_a_pack_is_known_wherever_it_lies_and_however_it_is_packed(tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(OUR_PACK / TEXTURES / "font", folder / TEXTURES / "font")
    with zipfile.ZipFile(tmp_path / "pack.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*.png"), reverse=True):
            packed.write(path, path.relative_to(folder))
    one, other = (looks_of(str(tmp_path / name)) for name in ("folder", "pack.zip"))
    assert one == other and one["resource_pack"] in described(one)
    first = ResourcePack(folder).digest()
    next(folder.rglob("*.png")).write_bytes(b"damaged")
    assert ResourcePack(folder).digest() != first
    assert looks_of(str(tmp_path / "nowhere"))["resource_pack"] == "unreadable"


def test_knowing_the_looks_compiles_nothing():
    program = (
        "import json, sys\n"
        "from rllib_minestudio.env.voxel.contract import looks_of\n"
        "print(json.dumps([looks_of(), 'numba' in sys.modules]))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert json.loads(told.stdout) == [looks_of(), False]
