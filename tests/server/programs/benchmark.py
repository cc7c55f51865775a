"""MineStudio's benchmark: every task file, its commands executed, one random step each."""

from collections import Counter
from pathlib import Path

import minestudio.benchmark
import shim
from minestudio.benchmark.utility.read_conf import convert_yaml_to_callbacks
from minestudio.benchmark.utility.task_call import TaskCallback
from minestudio.simulator import MinecraftSim
from minestudio.simulator.callbacks import CommandsCallback

from rllib_minestudio.env.voxel.engine import VoxelEngine

folder = Path(minestudio.benchmark.__file__).parent / "task_configs"
sim = MinecraftSim(action_type="env", obs_size=(64, 64), render_size=(64, 64), num_empty_frames=1)
played, commands, executed = Counter(), 0, 0
engine = VoxelEngine()
for file in sorted(folder.glob("*/*.yaml")):
    words, task = convert_yaml_to_callbacks(str(file))
    commands += len(words)
    engine.reset(0, "plains")
    executed += sum(engine.execute(command).ok for command in words)
    sim.callbacks = [CommandsCallback(words), TaskCallback(task)]
    obs, info = sim.reset()
    assert obs["task"] == task
    obs, *_ = sim.step(sim.action_space.sample())
    played[file.parent.name] += 1
sim.close()
shim.facts(played=played, commands=commands, executed=executed)
