"""A folder of 50 GB is surveyed and read without more memory than a few windows take."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.processes import ROOT
from tests.recordings.contractor_files import played, write
from tests.recordings.test_minestudio_dataset import MADE

PROGRAM = """
import re, sys
from pathlib import Path
import numpy as np
from rllib_minestudio.demonstrations.windows import WindowOptions, stretches, windows
from rllib_minestudio.recordings.episodes import open_episode, survey

options = WindowOptions(16, 8, size=(32, 32))
def most_used():
    told = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+)", told)[1]) / 1024

def read(folder):
    found = survey([folder])
    rng, steps = np.random.default_rng(0), 0
    for i in rng.permutation(len(pieces := stretches(found.lengths, 32))):
        path, start, stop = pieces[i]
        steps += sum(w.weight.sum() for w in windows(open_episode(path), options, start, stop))
    return len(found.lengths), found.steps, int(steps)

read(sys.argv[1])  # what libraries take once
before = most_used()
print(*read(sys.argv[2]), most_used() - before)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_folder(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    write(small, "NAME", played(64))
    shutil.copytree(MADE, small / "data")
    lines = (small / "NAME.jsonl").read_text()
    video = (small / "NAME.mp4").read_bytes()
    for number in range(40):
        large.mkdir(exist_ok=True)
        (large / f"{number}.mp4").write_bytes(video)
        os.truncate(large / f"{number}.mp4", 2**30)  # the rest is a hole
        (large / f"{number}.jsonl").write_text(lines)
        os.truncate(large / f"{number}.jsonl", 2**28)
    shutil.copytree(MADE, large / "data")
    for database in (large / "data").glob("*/*/data.mdb"):
        os.truncate(database, 2**31)
    size = sum(path.stat().st_size for path in large.rglob("*") if path.is_file())
    assert size > 50e9
    command = [sys.executable, "-c", PROGRAM, str(small), str(large)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    episodes, found, steps, grown = map(float, done.stdout.split())
    # Until it is read, each hole in a text counts as a line.
    assert (episodes, found, steps) == (42, 40 * 65 + 64, 40 * 64 + 64)
    assert grown < 200
    print(f"grown by {grown:.0f} MB")
