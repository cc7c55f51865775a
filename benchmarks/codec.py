"""What compressing the frames of fragments costs and saves: `python benchmarks/codec.py`.

A codec is worth its place in the data path if it halves fragments of cow.yaml's plains in less than
a tenth of the processor time in which they are played. `compress_observations` takes lz4.

A player walks and looks around among ten cows. The frames of each fragment are compressed and
restored by fast lossless codecs, as they are or as differences to the frame before or to the pixel
at the left; what is restored is compared. Times are CPU time of the thread, medians over fragments,
as shares of the time in which the embedded engine plays the fragment, without a policy.

zstd is measured if the package `zstandard` is installed.
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

import lz4.block
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel import AVERAGE, SAMPLES
from rllib_minestudio.env.voxel.engine import VoxelEngine

Frames = NDArray[np.uint8]
"""uint8 (steps, height, width, 3)."""

STEPS, SEED, COWS = 64, 7, 10
SHAPES = ((64, AVERAGE), (128, SAMPLES))
"""Size and sampling of frames: those of cow.yaml, and those of VPT."""
FACTOR, SHARE = 2.0, 0.1


class Codec(NamedTuple):
    """A codec: how bytes are compressed, and restored."""

    compress: Callable[[bytes], bytes]
    restore: Callable[[bytes], bytes]


def codecs() -> dict[str, Codec]:
    """Return what is installed, by name."""
    found = {
        "lz4": Codec(lz4.block.compress, lz4.block.decompress),
        "zlib, level 1": Codec(lambda data: zlib.compress(data, 1), zlib.decompress),
    }
    try:
        import zstandard
    except ImportError:
        return found
    restore = zstandard.ZstdDecompressor().decompress
    for level in (-5, 1):
        found[f"zstd, level {level}"] = Codec(
            zstandard.ZstdCompressor(level=level).compress, restore
        )
    return found


def difference(frames: Frames, axis: int) -> Frames:
    """Return differences along an axis, modulo 256; the first entry stays."""
    out = frames.copy()
    later = [slice(None)] * 4
    later[axis] = slice(1, None)
    before = [slice(None)] * 4
    before[axis] = slice(None, -1)
    out[tuple(later)] -= frames[tuple(before)]
    return out


FILTERS: dict[str, tuple[Callable[[Frames], Frames], Callable[[Frames], Frames]]] = {
    "frames": (lambda frames: frames, lambda data: data),
    "difference to the frame before": (
        lambda frames: difference(frames, 0),
        lambda data: np.cumsum(data, 0, np.uint8),
    ),
    "difference to the left": (
        lambda frames: difference(frames, 2),
        lambda data: np.cumsum(data, 2, np.uint8),
    ),
}
"""What is compressed: made from frames, and how frames come back."""


def fragments(size: int, sampling: str, count: int) -> Iterator[tuple[Frames, float]]:
    """Play fragments, each with the seconds of CPU time that this took."""
    engine = VoxelEngine(frame_size=(size, size), sampling=sampling)
    engine.reset(SEED, biome="plains")
    engine.execute("/give @p iron_sword")
    for cow in range(COWS):
        angle = cow / COWS * 2 * math.pi
        x, z = 6 * math.sin(angle), 6 * math.cos(angle)
        engine.execute(f"/execute as @p at @p run summon cow ~{x:.2f} ~ ~{z:.2f}")
    step = 0
    for _ in range(count):
        frames = np.empty((STEPS, size, size, 3), np.uint8)
        start = time.thread_time()
        for frame in frames:
            walk = {"forward": int(step % 40 < 25), "jump": int(step % 23 == 0)}
            camera = 2 * math.cos(step / 9), 6.0 * math.sin(step / 40)
            engine.tick({**walk, "camera": camera})
            engine.render(frame)
            step += 1
        yield frames, time.thread_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fragments", type=int, default=12, help="played per size of frames")
    options = parser.parse_args()
    print(f"{'size':>4} {'codec':16} {'of':32} {'factor':>6} {'compress':>9} {'restore':>8}")
    for size, sampling in SHAPES:
        played = list(fragments(size, sampling, options.fragments + 1))[1:]
        for name, codec in codecs().items():
            for kind, (prepare, recover) in FILTERS.items():
                factors, packing, unpacking = [], [], []
                for frames, seconds in played:
                    start = time.thread_time()
                    data = codec.compress(prepare(frames).tobytes())
                    middle = time.thread_time()
                    plain = np.frombuffer(codec.restore(data), np.uint8).reshape(frames.shape)
                    back = recover(plain)
                    end = time.thread_time()
                    if not np.array_equal(back, frames):
                        raise SystemExit(f"{name} of {kind} does not restore the frames.")
                    factors.append(frames.nbytes / len(data))
                    packing.append((middle - start) / seconds)
                    unpacking.append((end - middle) / seconds)
                factor, spent = median(factors), median(packing)
                worth = factor >= FACTOR and spent <= SHARE
                print(
                    f"{size:4} {name:16} {kind:32} {factor:6.2f} {spent:9.0%}"
                    f" {median(unpacking):8.0%}{'  worth it' if worth else ''}"
                )


if __name__ == "__main__":
    main()
