"""One episode, played and written by MineStudio's own MineGenerator: what our reader has to read.

    generate.py FOLDER h264|jpeg

It made tests/demonstrations/minestudio/, whose README.md has the whole command.
"""

import sys
from pathlib import Path

import ray
from inference import HERE, make_agent

FOLDER, MEDIA = sys.argv[1:]
STEPS = 12


def make_env():
    sys.path.insert(0, str(HERE))
    from minestudio.simulator import MinecraftSim
    from minestudio.simulator.callbacks import CommandsCallback

    return MinecraftSim(
        obs_size=(128, 128),
        render_size=(128, 72),
        num_empty_frames=1,
        preferred_spawn_biome="plains",
        callbacks=[CommandsCallback(["/give @p minecraft:iron_sword 1"])],
    )


if __name__ == "__main__":
    import report
    from minestudio.inference import MineGenerator

    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        object_store_memory=10**8,
        log_to_driver=False,
    )
    generator = MineGenerator(
        num_workers=1,
        num_gpus=0,
        max_restarts=0,
        env_generator=make_env,
        agent_generator=make_agent,
        num_max_steps=STEPS,
        num_episodes=1,
        tmpdir=FOLDER,
        image_media=MEDIA,
    )
    for _ in generator.generate():
        pass
    ray.shutdown()
    report.facts(steps=STEPS, files=sorted(path.suffix for path in Path(FOLDER).iterdir()))
