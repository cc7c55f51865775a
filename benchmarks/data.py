"""Windows per second and core from a dataset of MineStudio's: its `RawDataset`, and ours.

    python benchmarks/data.py [--steps 1024] [--length 128] [--rounds 7]

The hunter, whose hand moves like a person's, plays on the embedded engine, recorded as contractors
were (640x360); MineStudio's own converters make the dataset, in chunks of 32 frames. Both readers
then read its windows in turns, in one process, at 128x128, with actions and infos. Counted is the
processor's time of all their threads. The last lines are of `MineStudioBC`'s own windows of both
formats, in one thread. Requires MineStudio (requirements-minecraft.txt).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rllib_minestudio.demonstrations import WindowOptions, find_episodes, open_episode, windows
from rllib_minestudio.demonstrations.recording import EPISODES_FOLDER, RecordingOrder
from rllib_minestudio.demonstrations.recording import record as record_episodes
from rllib_minestudio.demonstrations.windows import MineStudioWindows
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.foundation.recording_options import CONTRACTOR

sys.path.append(str(Path(__file__).parents[1] / "tests/recordings/programs"))

CHUNK = 32


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1024, help="steps of the recording")
    parser.add_argument("--length", type=int, default=128, help="frames per window")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), arguments)


def record(root: Path, steps: int) -> None:
    """Record an episode, in the folders that MineStudio's converters expect."""
    cows = {"name": "cow", "number": 8, "range_x": [-9, 9], "range_z": [-9, 9]}
    task = {
        "obs_size": [64, 64],
        "preferred_spawn_biome": "plains",
        "callbacks": [{"SummonMobs": {"mobs": [cows]}}, {"JudgeReset": {"time_limit": steps}}],
    }
    order = RecordingOrder("cows", MineStudioEnv, task, prey=("cow",), format=CONTRACTOR, crf=23)
    list(record_episodes(order, root / "recorded", 1))
    for file in (root / "recorded" / EPISODES_FOLDER).iterdir():
        place = root / file.suffix[1:]
        place.mkdir()
        file.rename(place / file.name)


def compare(root: Path, arguments: argparse.Namespace) -> None:
    """Convert a recording, read it both ways, and print a table."""
    import minestudio_data as theirs

    theirs.bypass_packages()
    theirs.CHUNK = CHUNK
    record(root, arguments.steps)
    theirs.convert(root, root / "data")
    options = {"win_len": arguments.length, "size": (128, 128)}
    readers: dict[str, Callable[[], int]] = {
        "MineStudio's RawDataset": reading(theirs.raw_dataset(root / "data", **options)),
        "MineStudioWindows": reading(MineStudioWindows(root / "data", **options)),
        "cloning, dataset": cloning(root / "data", arguments.length),
        "cloning, contractor": cloning(root / "jsonl", arguments.length),
    }
    speeds: dict[str, list[float]] = {name: [] for name in readers}
    for turn in range(arguments.rounds + 1):
        for name, read in readers.items():
            start = time.process_time()
            count = read()
            if turn:  # the first reading compiles
                speeds[name].append(count / (time.process_time() - start))
    table = Table("reader", "windows per second and core", "times MineStudio's")
    base = speeds["MineStudio's RawDataset"]
    for name, found in speeds.items():
        ratio = statistics.median(f / b for f, b in zip(found, base, strict=True))
        table.add_row(name, f"{statistics.median(found):.2f}", f"{ratio:.2f}")
    Console().print(table)


def reading(dataset: object) -> Callable[[], int]:
    """Return a function that reads all windows, and returns their number."""
    return lambda: len([dataset[i]["image"].shape for i in range(len(dataset))])  # type: ignore


def cloning(folder: Path, length: int) -> Callable[[], int]:
    """Return a function that cuts all windows as cloning does, without burn-in."""

    def read() -> int:
        options = WindowOptions(length, 0, (128, 128))
        return sum(
            1 for path in find_episodes(folder) for _ in windows(open_episode(path), options)
        )

    return read


if __name__ == "__main__":
    main()
