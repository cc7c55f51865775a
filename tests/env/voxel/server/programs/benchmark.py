"""MineStudio's benchmark: every task file is read and counted, every tenth is played."""

from collections import Counter
from pathlib import Path

import minestudio.benchmark
import report
from minestudio.benchmark.utility.read_conf import convert_yaml_to_callbacks
from minestudio.benchmark.utility.task_call import TaskCallback
from minestudio.simulator import MinecraftSim
from minestudio.simulator.callbacks import CommandsCallback

from rllib_minestudio.env.voxel.engine import VoxelEngine

folder = Path(minestudio.benchmark.__file__).parent / "task_configs"
sim = MinecraftSim(action_type="env", obs_size=(64, 64), render_size=(64, 64), num_empty_frames=1)
loaded, played, commands, executed = Counter(), 0, 0, 0
engine = VoxelEngine()
for number, file in enumerate(sorted(folder.glob("*/*.yaml"))):
    words, task = convert_yaml_to_callbacks(str(file))
    commands += len(words)
    engine.reset(0, "plains")
    executed += sum(engine.execute(command).ok for command in words)
    loaded[file.parent.name] += 1
    if number % 10:
        continue
    sim.callbacks = [CommandsCallback(words), TaskCallback(task)]
    obs, info = sim.reset()
    assert obs["task"] == task
    obs, *_ = sim.step(sim.action_space.sample())
    played += 1
sim.close()
report.facts(loaded=loaded, played=played, commands=commands, executed=executed)
