"""Paint all pictures into a resource pack: ours, or the given folder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from rllib_minestudio.env.voxel.render.resource_pack import OUR_PACK, TEXTURES
from tools.painting.art import Rgba
from tools.painting.blocks import paint_blocks
from tools.painting.chests import paint_chests
from tools.painting.cracks import paint_cracks
from tools.painting.font import paint_font
from tools.painting.gui import paint_effects, paint_gui
from tools.painting.items import paint_items
from tools.painting.mobs import paint_mobs
from tools.painting.player import paint_player
from tools.painting.sky import paint_sky


def paint() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of everything."""
    yield from paint_gui()
    yield from paint_effects()
    yield from paint_font()
    yield from paint_player()
    yield from paint_mobs()
    yield from paint_items()
    yield from paint_blocks()
    yield from paint_chests()
    yield from paint_cracks()
    yield from paint_sky()


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=OUR_PACK)
    textures = parser.parse_args().folder / TEXTURES
    count = 0
    for name, picture in paint():
        path = textures / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(path, optimize=True)
        count += 1
    print(f"{count} pictures in {textures}")


if __name__ == "__main__":
    main()
