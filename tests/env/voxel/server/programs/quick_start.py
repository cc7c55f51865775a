"""MineStudio's online quick start, its episodes shortened, played with random actions."""

import report
from minestudio.simulator import MinecraftSim
from minestudio.simulator.callbacks import (
    CommandsCallback,
    FastResetCallback,
    JudgeResetCallback,
    MaskActionsCallback,
    RewardsCallback,
    SummonMobsCallback,
)

TIME_LIMIT = 40

sim = MinecraftSim(
    obs_size=(128, 128),
    preferred_spawn_biome="plains",
    action_type="agent",
    camera_config=None,
    callbacks=[
        SummonMobsCallback([{"name": "cow", "number": 10, "range_x": [-5, 5], "range_z": [-5, 5]}]),
        MaskActionsCallback(inventory=0),
        RewardsCallback(
            [
                {
                    "event": "kill_entity",
                    "objects": ["cow", "sheep"],
                    "reward": 1.0,
                    "identity": "kill entity",
                    "max_reward_times": 30,
                }
            ]
        ),
        CommandsCallback(["/give @p minecraft:iron_sword 1", "/effect @p 5 9999 255 True"]),
        FastResetCallback(biomes=["plains"], random_tp_range=1000),
        JudgeResetCallback(TIME_LIMIT),
    ],
)
episodes = []
for _ in range(2):
    obs, info = sim.reset()
    held = [stack["type"] for stack in info["inventory"].values()]  # an action may drop it
    steps, finished = 0, False
    while not finished:
        obs, reward, terminated, truncated, info = sim.step(sim.action_space.sample())
        steps += 1
        finished = terminated or truncated
    episodes.append(
        {
            "steps": steps,
            "image": list(obs["image"].shape),
            "frame": list(info["pov"].shape),
            "brightness": float(obs["image"].mean()),
            "held": held,
            "place": info["player_pos"],
        }
    )
sim.close()
report.facts(episodes=episodes)
