"""Same seed, same ticks, same commands: the same state, in this process and in others."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from rllib_minestudio.env.voxel.engine import VoxelEngine
from tests.env.voxel.twin import digest, play


def test_twins_agree_and_other_seeds_differ():
    assert digest(play(3)) == digest(play(3))
    assert digest(play(3, 50)) != digest(play(4, 50))


def test_processes_agree():
    script = Path(__file__).with_name("twin.py")
    program = (
        f"import runpy, sys; sys.argv[1:] = ['5']; "
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert other.stdout.strip() == digest(play(5))


def test_a_reset_leaves_nothing_behind():
    used = play(7)
    for engine in (used, fresh := VoxelEngine(frame_size=(32, 32))):
        engine.reset(9, "plains")
        for _ in range(30):
            engine.tick({"forward": 1, "attack": 1})
    assert digest(used) == digest(fresh)


def test_rendering_and_info_change_nothing():
    watched, alone = (VoxelEngine(frame_size=(32, 32)) for _ in range(2))
    for engine in (watched, alone):
        engine.reset(2, "forest")
        engine.execute("/summon cow ~2 ~ ~2")
    for _ in range(40):
        watched.render()
        watched.info(voxels=(-2, 2, -2, 2, -2, 2), mobs=(-20, 20, -20, 20, -20, 20))
        watched.mobs_near(30.0)
        for engine in (watched, alone):
            engine.tick({"forward": 1, "camera": (0.0, 3.0)})
    assert digest(watched) == digest(alone)


def test_info_is_fresh_each_time():
    engine = play(1, 30)
    first = engine.info()
    first["inventory"][0]["type"] = "changed"
    first["kill_entity"]["cow"] = 99
    second = engine.info()
    assert second["inventory"][0]["type"] != "changed"
    assert "cow" not in second["kill_entity"]


def test_global_random_state_is_untouched():
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    play(1, 30)
    assert np.array_equal(before, np.random.get_state()[1])
