"""MineStudio's released package, unmodified, on the embedded engine: no Java, no display.

Its programs run in processes of their own: importing MineStudio replaces parts of other packages.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rllib_minestudio.demonstrations import WindowOptions, find_episodes, open_episode, windows
from rllib_minestudio.env.backends.voxel import VoxelBackend
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.env.voxel import kernel_cache
from rllib_minestudio.env.voxel.server import launcher

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE = 300
FACTS = "facts: "

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("minestudio") is None, reason="MineStudio is not installed"
)


def processes_of(directory):
    """Process ids and command lines of whatever runs with MineStudio's directory."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes()
            command = (process / "cmdline").read_bytes().decode().replace("\0", " ")
        except OSError:
            continue
        if f"MINESTUDIO_DIR={directory}\0".encode() in environ:
            found[int(process.name)] = command
    return found


@pytest.fixture
def run(tmp_path):
    """A function that runs a program on the embedded engine and returns what it found out."""
    kernel_cache.warmup()
    directory = tmp_path / "minestudio"
    launcher.install(directory)
    environ = {
        **os.environ,
        **launcher.environment(directory),
        "OMP_NUM_THREADS": "1",
        "MALMO_MINECRAFT_OUTPUT_LOGDIR": str(tmp_path / "logs"),
    }
    environ.pop("DISPLAY", None)
    output = tmp_path / "output"

    def run_program(name, *arguments):
        # No pipes: MineStudio's daemon outlives its program for some seconds and holds them open.
        with output.open("w") as file:
            done = subprocess.run(
                [sys.executable, PROGRAMS / name, *map(str, arguments)],
                env=environ,
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=PATIENCE,
            )
        text = output.read_text()
        assert done.returncode == 0, text[-3000:]
        assert not [line for line in processes_of(directory).values() if "voxel.server" in line]
        (facts,) = (line for line in text.splitlines() if line.startswith(FACTS))
        return json.loads(facts.removeprefix(FACTS))

    yield run_program
    for pid in processes_of(directory):  # MineStudio's daemon; or what a failed test left
        os.kill(pid, signal.SIGKILL)


def test_the_quick_start_plays_two_episodes(run):
    first, second = run("quick_start.py")["episodes"]
    for episode in (first, second):
        assert episode["steps"] == 40
        assert episode["image"] == [128, 128, 3]
        assert episode["frame"] == [360, 640, 3]
        assert 20 < episode["brightness"] < 235
        assert episode["held"][0] == "iron_sword"
    assert first["place"] != second["place"]


def test_every_callback_that_needs_no_human_works(run, tmp_path):
    seen = run("callbacks.py", tmp_path / "record")
    assert seen["unused"] == []
    assert seen["given"] == {"type": "dirt", "quantity": 3}
    assert seen["walked"] > 0
    assert seen["mobs_after_hard_reset"] == 0
    assert seen["fast_reset_counts_on"] == 1
    assert seen["hard_reset_place"] == [100, 7]
    assert seen["init_inventory"] == [{"type": "stone", "quantity": 2}, "dirt"]
    assert seen["rewards"] == [0.0, 0.0, 0.0]
    assert seen["judged"]
    assert seen["voxels"] == 15**3
    assert seen["gate_rewards"][0] == pytest.approx(4 - 0.1 * 4)
    assert seen["gate_rewards"][1] == 0.0
    assert seen["previous"] == 1
    assert seen["demonstration"].endswith("reference_videos/dig/human/0.mp4")
    assert {"episode_1.mp4", "episode_1_action.json", "episode_1_info.json"} <= set(
        seen["recorded"]
    )
    for name in ("Commands", "FastReset", "InitInventory", "PrevAction", "SummonMobs"):
        assert f"{name}Callback" in seen["loaded"]


def test_vpt_plays_through_the_inference_pipeline(run, tmp_path):
    found = run("inference.py", tmp_path / "episodes")
    assert found["summary"] == {"num_yes": 2, "num_episodes": 2, "yes_rate": "100.00%"}
    assert found["files"] == [".mp4"] * 2 + [".pkl"] * 4


COURSE = (
    *("/give @p minecraft:iron_sword 1", "/give @p minecraft:dirt 3", "/effect @p 5 9999 255 true"),
    *("/replaceitem entity @p armor.head minecraft:iron_helmet 1", "/summon cow ~ ~ ~2"),
    *("/tp @p ~ ~ ~ 0 20", {"attack": 1}, {"camera": [3.0, -2.0]}, {"forward": 1, "sprint": 1}),
    *({"jump": 1, "forward": 1}, {"hotbar.2": 1, "use": 1}, {"sneak": 1, "forward": 1}),
    *({"voxels": [-1, 1, -1, 1, -1, 1]}, {"mobs": [-9, 9, -9, 9, -9, 9]}, {"chat": "/clear"}),
    *("/weather rain", "/time set 13000", "/fill ~-1 ~3 ~-1 ~1 ~3 ~1 minecraft:stone"),
    *("/teleportbiome @p desert 0 ~0 0", {"inventory": 1}, {}, {"inventory": 1}, {}),
    # Logs from the first slot to the grid, and four planks out of it.
    *("/give @p minecraft:oak_log 2", {"inventory": 1}, {"camera": [10.05, -10.8]}, {"attack": 1}),
    *({"camera": [-18.6, 13.5]}, {"attack": 1}, {}, {"camera": [1.5, 8.4]}, {"attack": 1}, {}),
    *({"camera": [9.0, -9.0]}, {"attack": 1}, {}, {"inventory": 1}, {}),
)
"""Commands and actions; whatever MineStudio tells changes on the way."""


def test_the_embedded_engine_tells_what_minestudio_tells_over_the_wire(run):
    """Raw observation and info, entry by entry, in process as through MineStudio's own client."""
    backend = VoxelBackend(
        EnvOptions.from_mapping({"obs_size": [64, 64], "preferred_spawn_biome": "plains"})
    )
    backend.seed(3)
    expected = [["reset", backend.reset(), {}]]
    for what in COURSE:
        if isinstance(what, str):
            obs, _, _, info = backend.execute_cmd(what)
        else:
            obs, _, _, info = backend.step({**backend.noop_action(), **what})
        expected.append([what, obs, info])
    for _, obs, _ in expected:
        del obs["pov"]
    told = run("contract.py", json.dumps(COURSE))["told"]
    for ours, theirs in zip(json.loads(json.dumps(expected)), told, strict=True):
        assert ours == theirs, ours[0]


def test_recordings_of_minestudio_can_be_imitated(run, tmp_path):
    found = run("generate.py", tmp_path / "episodes", "jpeg")
    (path,) = find_episodes(tmp_path / "episodes")
    episode = open_episode(path)
    assert len(episode) == found["steps"]
    (window,) = windows(episode, WindowOptions(found["steps"], 0, size=(64, 64)))
    assert window.weight.all()
    assert len(set(window.buttons.tolist())) > 1


def test_the_tasks_of_the_benchmark_load_and_can_be_played(run):
    found = run("benchmark.py")
    assert found["loaded"] == {"simple": 76, "hard": 77}
    assert found["played"] == 16
    assert found["commands"] == 672
    assert found["executed"] > 600
