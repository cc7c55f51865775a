"""Programs that were written for MineStudio's inference, as they are run here.

Their import lines name this package, the weights are a small network's, and they play less.
"""

from __future__ import annotations

import ast
import os
import pickle
import re
from pathlib import Path
from typing import Any

import av
import torch

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.weights import export_network
from tests.processes import run_python

WEIGHTS = "pretrained/small"
STEPS = 20
WIDE = {**os.environ, "COLUMNS": "100000"}
"""Some print with rich, which breaks lines at a terminal's width."""
_IMPORT = re.compile(r"from minestudio[\w.]* import\b")
_WEIGHTS = re.compile(r'(?<=from_pretrained\(")[^"]+')


def changed(program: str, **numbers: int) -> str:
    """A program with other import lines, weights and numbers.

    Args:
        program: Of MineStudio.
        **numbers: By the names of the program's arguments.
    """
    lines = []
    for line in program.splitlines():
        line = _IMPORT.sub("from rllib_minestudio.minestudio import", line)
        line = _WEIGHTS.sub(WEIGHTS, line)
        for name, value in numbers.items():
            line = re.sub(rf"\b({name} ?= ?)[\d.]+", rf"\g<1>{value}", line)
        lines.append(line)
    return "\n".join(lines)


def differences(program: str, ours: str) -> list[tuple[str, str]]:
    """The lines in which two programs of equally many lines differ, without their indentation."""
    pairs = zip(program.splitlines(), ours.splitlines(), strict=True)
    return [(one.strip(), other.strip()) for one, other in pairs if one != other]


def small_weights(folder: Path) -> None:
    """A random network of the smallest size, as `VPTPolicy.from_pretrained` reads it."""
    torch.manual_seed(0)
    options = {"preset": "nano", "img_shape": [128, 128, 3]}
    export_network(VPTNetwork(VPTConfig.from_options(options)), folder / WEIGHTS)


def run(program: str, folder: Path) -> str:
    """Run a program in a process and a folder of its own; returns what it printed."""
    small_weights(folder)
    (folder / "program.py").write_text(program)
    status, printed = run_python("program.py", cwd=folder, env=WIDE)
    assert status == 0, printed
    return printed


def printed_summary(printed: str) -> dict[str, Any]:
    """The summary among what a program printed."""
    (line,) = (line for line in printed.splitlines() if line.startswith("{'num_yes'"))
    summary: dict[str, Any] = ast.literal_eval(line)
    return summary


def check_recordings(folder: Path, episodes: int) -> None:
    """There is one of each of MineStudio's files per episode, of STEPS steps, and nothing else."""
    names = sorted(path.name for path in folder.iterdir())
    ids = [name.removeprefix("info_")[:-4] for name in names if name.startswith("info_")]
    assert len(ids) == episodes
    expected = [(f"action_{i}.pkl", f"info_{i}.pkl", f"video_{i}.mp4") for i in ids]
    assert names == sorted(name for three in expected for name in three)
    for action_file, info_file, video_file in expected:
        infos = pickle.loads((folder / info_file).read_bytes())
        actions = pickle.loads((folder / action_file).read_bytes())
        assert (len(infos), len(actions)) == (STEPS + 1, STEPS)
        assert all("pov" not in info and type(info["mine_block"]) is dict for info in infos)
        assert all({"attack", "camera"} < set(action) for action in actions)  # keys, not tokens
        with av.open(str(folder / video_file)) as video:
            frames = [(frame.height, frame.width) for frame in video.decode(video=0)]
        assert frames == [(360, 640)] * (STEPS + 1)
