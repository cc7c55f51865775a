"""Every callback that MineStudio ships and that needs no human, one after the other."""

import sys
from pathlib import Path

import report
import yaml
from minestudio.simulator import MinecraftSim
from minestudio.simulator import callbacks as shipped
from minestudio.utils import get_mine_studio_dir

NEEDS_A_HUMAN = {"PlayCallback", "PointCallback", "PlaySegmentCallback"}

output = Path(sys.argv[1])
reference = Path(get_mine_studio_dir()) / "reference_videos/dig/human"
reference.mkdir(parents=True)
(reference / "0.mp4").touch()

kill = {
    "event": "kill_entity",
    "objects": ["cow"],
    "reward": 2.0,
    "identity": "cow",
    "max_reward_times": 1,
}
used, seen = set(), {}
sim = MinecraftSim(action_type="env", obs_size=(64, 64), render_size=(64, 64), num_empty_frames=2)


def play(*callbacks, steps=2, **keys):
    """Reset with these callbacks, play, and return the last observation, rewards and info."""
    used.update(type(callback).__name__ for callback in callbacks)
    sim.callbacks = list(callbacks)
    obs, info = sim.reset()
    rewards = []
    for _ in range(steps):
        obs, reward, terminated, _, info = sim.step({**sim.noop_action(), **keys})
        rewards.append(reward)
    return obs, rewards, info, terminated


_, _, info, _ = play(
    shipped.CommandsCallback(["/give @p dirt 3", "/time set 6000"]),
    shipped.SummonMobsCallback(
        [{"name": "cow", "number": 2, "range_x": [2, 3], "range_z": [2, 3]}]
    ),
    shipped.SpeedTestCallback(1),
)
seen["given"] = info["inventory"][0]
_, _, info, _ = play(shipped.MaskActionsCallback(mobs=[-9, 9, -9, 9, -9, 9], forward=1))
seen["walked"] = int(info["custom"]["walk_one_cm"])
seen["mobs_after_hard_reset"] = len(info["mobs"])
_, _, info, _ = play(shipped.FastResetCallback(biomes=["forest"], random_tp_range=500))
seen["fast_reset_counts_on"] = int(info["custom"]["deaths"])
_, _, info, _ = play(shipped.HardResetCallback([{"seed": 5, "position": [100, 80, 7]}]))
seen["hard_reset_place"] = [info["player_pos"][name] // 1 for name in "xz"]
init = [{"slot": 0, "type": "stone", "quantity": 2}, {"slot": 40, "type": "dirt", "quantity": 1}]
_, _, info, _ = play(shipped.InitInventoryCallback([*init, {**init[0], "slot": "random"}]))
seen["init_inventory"] = [info["inventory"][0], info["equipped_items"]["offhand"]["type"]]
_, rewards, _, terminated = play(
    shipped.RewardsCallback([kill]), shipped.JudgeResetCallback(3), steps=3
)
seen["rewards"], seen["judged"] = rewards, terminated
obsidian = [f"/setblock ~{2 + x} ~ ~2 minecraft:obsidian" for x in range(4)]
_, rewards, info, _ = play(
    shipped.CommandsCallback(obsidian), shipped.VoxelsCallback(), shipped.GateRewardsCallback()
)
seen["voxels"], seen["gate_rewards"] = len(info["voxels"]), rewards
obs, _, _, _ = play(
    shipped.TaskCallback([{"name": "dig", "text": "dig a hole"}]),
    shipped.PrevActionCallback(),
    shipped.DemonstrationCallback("dig"),
    steps=1,
    jump=1,
)
seen["previous"] = int(obs["env_prev_action"]["jump"])
seen["demonstration"] = obs["ref_video_path"]
recorded = shipped.RecordCallback(
    str(output), frame_type="pov", record_actions=True, record_infos=True
)
_, _, info, _ = play(shipped.Compose([recorded, shipped.SpeedTestCallback()]), steps=3)
sim.close()
seen["recorded"] = sorted(path.name for path in output.iterdir())

task = {
    "custom_init_commands": ["/give @p dirt 1"],
    "summon_mobs": [{"name": "pig", "number": 1, "range_x": [1, 2], "range_z": [1, 2]}],
    "biomes": ["plains"],
    "random_tp_range": 100,
    "use_prev_action": True,
    "init_inventory": init,
}
(output / "task.yaml").write_text(yaml.safe_dump(task))
loaded = shipped.load_callbacks_from_config(task)

names = {
    name for name in vars(shipped) if name.endswith("Callback") and name != "MinecraftCallback"
}
report.facts(
    unused=sorted(names - used - NEEDS_A_HUMAN - {type(recorded).__name__}),
    loaded=sorted(type(callback).__name__ for callback in loaded),
    **seen,
)
