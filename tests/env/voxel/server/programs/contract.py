"""What MineStudio's own simulator tells of a fixed course of commands and actions."""

import json
import sys

import numpy as np
import report
from minestudio.simulator import MinecraftSim

SIZE = (64, 64)


def plain(value):
    """As JSON; frames are left out, and arrays without dimensions become numbers."""
    if hasattr(value, "items"):
        return {str(key): plain(each) for key, each in value.items() if str(key) != "pov"}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


course = json.loads(sys.argv[1])
sim = MinecraftSim(
    action_type="env",
    obs_size=SIZE,
    render_size=SIZE,
    num_empty_frames=1,
    preferred_spawn_biome="plains",
)
sim.env.seed(3)
told = [["reset", plain(sim.env.reset()), {}]]
for what in course:
    if isinstance(what, str):
        obs, _, _, info = sim.env.execute_cmd(what)
    else:
        obs, _, _, info = sim.env.step({**sim.env.noop_action(), **what})
    told.append([what, plain(obs), plain(info)])
sim.close()
report.facts(told=told)
