"""The moving picture at the top of README: a policy hunts cows, and an agent crafts a pickaxe.

    python docs/moving_picture.py [--out docs/images/play.gif]

Run it again when the game's looks change. Both are played from fixed seeds; shown is how the hunt
begins, and what comes before the other has its first pickaxe, at half the game's frame rate and
with the keys that are pressed beneath it.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console

from rllib_minestudio.experiments.evaluate_checkpoint import PlayRequest, play_task
from rllib_minestudio.recordings import find_recordings

EXAMPLES = Path(__file__).parents[1] / "tuned_examples"
SIZE = [384, 216]
"""Of the view, without the keys."""
EVERY, COLOURS = 2, 96
MILLISECONDS = 50 * EVERY
"""A tick of the game is 50 ms."""

SCENES = (
    ("cow.yaml", "package:hunter_nano", 110, None),
    ("stone_pickaxe.yaml", "toolmaker", 150, "wooden_pickaxe"),
)
"""Task, player, how many of its steps are shown, and what is crafted in them."""

AFTERWARDS = 30
"""Steps that are shown after that."""


def main() -> None:
    """Play, cut, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "images" / "play.gif")
    arguments = parser.parse_args()
    frames = list(itertools.chain.from_iterable(scene(*each) for each in SCENES))
    # One palette for all, so that what stands still is the same in every frame, and costs nothing;
    # an octree's, because a median cut gives the few yellow keys another colour.
    sample = np.concatenate([np.asarray(frame) for frame in frames[:: len(frames) // 8]])
    palette = Image.fromarray(sample).quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    first, *others = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    first.save(
        arguments.out,
        save_all=True,
        append_images=others,
        duration=MILLISECONDS,
        loop=0,
        optimize=True,
    )
    size = arguments.out.stat().st_size / 2**20
    Console().print(f"{arguments.out}: {len(frames)} frames, {size:.1f} MiB")


def scene(task: str, player: str, steps: int, crafted: str | None) -> Iterator[Image.Image]:
    """Play an episode, and return a stretch of it."""
    with tempfile.TemporaryDirectory() as folder:
        size = f"env_config.render_size={SIZE}"
        play_task(PlayRequest(task=EXAMPLES / task, agent=player, out=folder, overrides=(size,)))
        (recording,) = find_recordings(folder)
        start = 0
        if crafted is not None:
            counts = (info["craft_item"].get(crafted, 0) for info in recording.infos())
            start = next(i for i, count in enumerate(counts) if count) + AFTERWARDS - steps
        shown = itertools.islice(recording.frames(), start, start + steps, EVERY)
        yield from map(Image.fromarray, shown)


if __name__ == "__main__":
    main()
