"""What a frame costs beside another commit's: `python benchmarks/renderer.py --before COMMIT`.

Both trees play the same scenes, each in a process of its own. The processes take turns, a block of
frames each, so that whatever else the machine does slows both alike. Times are CPU time of the
thread that draws, medians over all frames; a ratio is the median over the ratios of blocks that
were drawn one after the other. Without `--before`, only this tree is measured.

| scene | what is seen |
|---|---|
| plains | the player walks and looks around among ten cows, with a sword in hand |
| forest | the same between trees |
| mown | the plains without plants, as they were before blocks had shapes |
| hedged | the forest without plants, its leaves replaced by whole cubes |
| village | the same between houses with windows, stairs for roofs, fences and doors |
| night | the forest at midnight |
| underground | the player walks and looks around in unlit tunnels |
| lamplight | the same with lamps let into the floor, ten blocks apart |
| inventory | the cursor wanders over the open inventory, whose hotbar is full |
| mining | the player strikes a wall of obsidian with a pickaxe, which takes 833 ticks |
| unmarked | the same without cracks, outline and dust |

With `--games 16`, as many as an env runner of cow.yaml plays, each frame finds the caches as
training does: full of other games.

The last two take turns as well, and are related to each other. The memory of an engine is what a
process grows by with each engine that has drawn a frame, beyond the first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SIZES = (64, 128)
TURNS = (
    ("plains",),
    ("forest",),
    ("mown",),
    ("hedged",),
    ("village",),
    ("night",),
    ("underground",),
    ("lamplight",),
    ("inventory",),
    ("mining", "unmarked"),
)
"""Scenes that take turns."""
SCENES = tuple(scene for scenes in TURNS for scene in scenes)
SEED, COWS, ENGINES, BLOCK = 7, 10, 4, 20
BOUNDS = {
    **dict.fromkeys(("mown", "hedged", "night", "underground"), 1.25),
    "plains": 1.3,
    **dict.fromkeys(("forest", "village"), 1.6),
    "lamplight": 1.2,
}
MINING_BOUND, MEMORY_BOUND = 1.1, 1.3

# ------------------------------------------------------------------ in the process of one tree
# Uses only what the engine has had for long, so that it runs in trees of other commits.


def new_engine(scene: str, size: int) -> Any:
    """An engine at the beginning of a scene."""
    from rllib_minestudio.env.voxel.engine import VoxelEngine

    engine = VoxelEngine(frame_size=(size, size))
    is_forest = scene in ("forest", "hedged", "night")
    engine.reset(SEED, biome="forest" if is_forest else "plains")
    if scene == "night":
        engine.execute("/time set midnight")
    engine.execute("/give @p iron_sword")
    if scene in ("mown", "hedged"):
        mow(engine)
    if scene in ("plains", "mown"):
        for cow in range(COWS):
            angle = cow / COWS * 2 * math.pi
            x, z = 6 * math.sin(angle), 6 * math.cos(angle)
            engine.execute(f"/execute as @p at @p run summon cow ~{x:.2f} ~ ~{z:.2f}")
    if scene == "village":
        for house in range(9):
            build_house(engine, house % 3 * 14 - 14, house // 3 * 14 - 14)
    if scene in ("underground", "lamplight"):
        engine.execute("/tp @p ~ 20 ~")
        for x in range(-15, 16, 5):
            engine.execute(f"/fill ~{x} ~ ~-15 ~{x + 1} ~2 ~15 air")
            engine.execute(f"/fill ~-15 ~ ~{x} ~15 ~2 ~{x + 1} air")
        engine.execute("/fill ~-1 ~ ~-1 ~1 ~2 ~1 air")
    if scene == "lamplight":  # cubes in the floor, as engines without their light draw them, too
        for x, z in itertools.product(range(-15, 16, 10), repeat=2):
            engine.execute(f"/setblock ~{x} ~-1 ~{z} glowstone")
    if scene == "inventory":
        for item in ("stone", "dirt", "apple", "stick", "coal", "bow", "oak_log", "iron_axe"):
            engine.execute(f"/give @p {item}")
        engine.tick({"inventory": 1})
    if scene in ("mining", "unmarked"):
        engine.execute("/fill ~-6 ~-1 ~3 ~6 ~6 ~3 obsidian")
        engine.execute("/fill ~-6 ~ ~-5 ~6 ~6 ~2 air")
        engine.execute("/tp @p ~ ~ ~ 0 5")
        engine.execute("/clear @p")
        engine.execute("/give @p iron_pickaxe")
    for _ in range(20):
        engine.tick({})
    return engine


PLANTS = (
    *("grass", "tall_grass", "fern", "large_fern", "dandelion", "poppy", "azure_bluet"),
    *("oxeye_daisy", "cornflower", "lily_of_the_valley", "lilac", "rose_bush", "peony"),
    *("red_tulip", "orange_tulip", "white_tulip", "pink_tulip", "sugar_cane", "pumpkin"),
    *("brown_mushroom", "red_mushroom", "allium", "blue_orchid", "sunflower", "dead_bush"),
)


def mow(engine: Any) -> None:
    """Remove all plants around the player, and replace leaves by cubes of their colour."""
    replaced = {**dict.fromkeys(PLANTS, "air"), "oak_leaves": "green_wool"}
    replaced["birch_leaves"] = "green_wool"
    for block, by in replaced.items():
        for layer in range(-16, 24):
            engine.execute(f"/fill ~-80 ~{layer} ~-80 ~80 ~{layer} ~80 {by} replace {block}")


HOUSE = (
    ((-3, 0, -3), (9, 0, 9), "oak_fence"),
    ((-2, 0, -2), (8, 0, 8), "air"),
    ((0, 0, 0), (6, 2, 6), "oak_planks"),
    ((1, 0, 1), (5, 2, 5), "air"),
    ((2, 1, 0), (4, 1, 0), "glass_pane"),
    ((2, 1, 6), (4, 1, 6), "glass"),
    ((0, 1, 2), (0, 1, 4), "red_stained_glass"),
    ((6, 0, 3), (6, 0, 3), "oak_door[facing=west,half=lower]"),
    ((6, 1, 3), (6, 1, 3), "oak_door[facing=west,half=upper]"),
    *(((low, 3 + low, 0), (low, 3 + low, 6), "oak_stairs[facing=east]") for low in range(3)),
    *(
        ((6 - low, 3 + low, 0), (6 - low, 3 + low, 6), "oak_stairs[facing=west]")
        for low in range(3)
    ),
    ((3, 5, 0), (3, 5, 6), "oak_slab"),
)
"""Parts of a house in a garden with a fence: from where to where they reach, and of what."""


def build_house(engine: Any, x: int, z: int) -> None:
    """Build a house this far from the player."""
    for low, high, block in HOUSE:
        corners = " ".join(f"~{i + x} ~{j} ~{k + z}" for i, j, k in (low, high))
        engine.execute(f"/fill {corners} {block}")


def action_at(scene: str, step: int) -> dict[str, Any]:
    """What the player does in a step of a scene."""
    if scene in ("mining", "unmarked"):
        return {"attack": 1}
    if scene == "inventory":  # 18 pixels of the window, along the hotbar and over the figure
        turn = 2.7 if step // 8 % 2 == 0 else -2.7
        return {"camera": (10.0 if step == 0 else -turn / 2, turn)}
    walk = {"forward": int(step % 40 < 25), "jump": int(step % 23 == 0)}
    return {**walk, "camera": (2 * math.cos(step / 9), 6.0 * math.sin(step / 40))}


@contextmanager
def unmarked() -> Iterator[None]:
    """Frames without the marks of mining and aiming, in trees that draw any."""
    try:
        from rllib_minestudio.env.voxel.render.mining_marks import MiningMarks
    except ImportError:
        yield
        return
    draw = MiningMarks.draw
    MiningMarks.draw = lambda *arguments: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        MiningMarks.draw = draw  # type: ignore[method-assign]


def frame_times(scene: str, size: int, games: int) -> Iterator[list[float]]:
    """Play a scene on and on; each item is the CPU microseconds of a block of frames."""
    import numpy as np

    engines = [new_engine(scene, size) for _ in range(games)]
    frame = np.empty((size, size, 3), np.uint8)
    times: list[float] = []
    for step in itertools.count():
        for engine in engines:
            engine.tick(action_at(scene, step))
            with unmarked() if scene == "unmarked" else nullcontext():
                start = time.thread_time_ns()
                engine.render(frame)
                times.append((time.thread_time_ns() - start) / 1e3)
            if len(times) == BLOCK:
                yield times
                times = []


def megabytes_per_engine() -> float:
    """What the resident memory of this process grows by with another engine."""
    engines = [new_engine("plains", 128)]
    engines[0].render()
    before = _resident()
    for _ in range(ENGINES):
        engines.append(new_engine("plains", 128))
        engines[-1].render()
    return (_resident() - before) / ENGINES / 2**20


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def serve(games: int) -> None:
    """Answer one JSON request per line: [scene, size], or ["memory", 0]."""
    from rllib_minestudio.env.voxel import kernel_cache

    kernel_cache.warmup()
    playing: dict[tuple[str, int], Iterator[list[float]]] = {}
    for line in sys.stdin:
        scene, size = json.loads(line)
        if scene == "memory":
            answer: Any = megabytes_per_engine()
        else:
            if (scene, size) not in playing:
                playing = {of: times for of, times in playing.items() if of[1] == size}
                playing[scene, size] = frame_times(scene, size, games)
            answer = next(playing[scene, size])
        print(json.dumps(answer), flush=True)


# ------------------------------------------------------------------------------ both trees in turns


class Tree:
    """A process that plays scenes in one checkout."""

    def __init__(self, root: Path, games: int = 1) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", "--games", str(games)],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, scene: str, size: int = 0) -> Any:
        """Return what `serve` answers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([scene, size]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("The process of a tree has ended; see its error above.")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A worktree of another commit, for as long as it is used."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(root), commit], check=True)
        try:
            yield root
        finally:
            subprocess.run([*git, "remove", "--force", str(root)], check=True)


def print_group(trees: list[Tree], scenes: list[str], size: int, rounds: int) -> None:
    """Measure scenes that take turns, in all trees, and print a line for each."""
    # By scene and tree, the blocks of CPU times.
    blocks: dict[str, list[list[list[float]]]] = {scene: [[] for _ in trees] for scene in scenes}
    for number in range(rounds + 1):
        for scene in scenes:
            for tree, measured in zip(trees, blocks[scene], strict=True):
                times = tree.ask(scene, size)
                if number:  # the first frames prepare what is kept
                    measured.append(times)
    for scene, measured in blocks.items():
        medians = [median(itertools.chain.from_iterable(tree)) for tree in measured]
        line = f"{scene:>12} {size:>5} " + " ".join(f"{value:9.1f}" for value in medians) + " µs"
        if len(trees) > 1:
            line += f"  ratio {ratio_of(*measured):.3f}"
            line += f" (at most {BOUNDS[scene]})" if scene in BOUNDS else ""
        print(line, flush=True)
    if {"mining", "unmarked"} <= blocks.keys():
        ratio = ratio_of(blocks["mining"][0], blocks["unmarked"][0])
        print(f"{'mining to unmarked':>18} {ratio:.3f} (at most {MINING_BOUND})")


def ratio_of(blocks: list[list[float]], others: list[list[float]]) -> float:
    """Median ratio of blocks of times that were measured in turns."""
    return median(median(one) / median(other) for one, other in zip(blocks, others, strict=True))


def compare(trees: list[Tree], scenes: list[str], frames: int) -> None:
    """Print the tables for one tree, or for this one and the one before, in this order."""
    print(f"{'scene':>12} {'size':>5} " + " ".join(f"{name:>9}" for name in ("now", "before")))
    # First, while nothing that was freed could be used again.
    memory = [tree.ask("memory") for tree in trees]
    for turns in TURNS:
        for size in SIZES:
            if chosen := [scene for scene in turns if scene in scenes]:
                print_group(trees, chosen, size, frames // BLOCK)
    line = "memory of an engine: " + ", ".join(f"{value:.1f}" for value in memory) + " MiB"
    if len(memory) > 1:
        line += f"  ratio {memory[0] / memory[1]:.3f} (at most {MEMORY_BOUND})"
    print(line)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="COMMIT", help="commit to compare with")
    parser.add_argument("--frames", type=int, default=600, help="frames per scene and size")
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument(
        "--games", type=int, default=1, help="played in turn by a process, as an env runner does"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.games)
        return
    trees = [Tree(ROOT, options.games)]
    try:
        if options.before is None:
            compare(trees, options.scenes, options.frames)
            return
        with checkout(options.before) as before:
            trees.append(Tree(before, options.games))
            compare(trees, options.scenes, options.frames)
            trees.pop().close()
    finally:
        for tree in trees:
            tree.close()


if __name__ == "__main__":
    main()
