"""The page of scenes to look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tools import gallery


@pytest.mark.slow
def test_every_scene_is_drawn_in_both_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["gallery", str(tmp_path)])
    gallery.main()
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    for scene in gallery.SCENES:
        for size in (gallery.WINDOW, gallery.OBSERVATION):
            name = f"{scene.name}_{size[0]}.png"
            assert name in page
            picture = Image.open(tmp_path / name)
            assert picture.size == size
            assert len(picture.getcolors(1 << 18) or []) > 50, f"{name} shows something"
