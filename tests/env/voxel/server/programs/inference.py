"""VPTPolicy plays through MineStudio's own inference pipeline: Ray worker, files, filter."""

import sys
from pathlib import Path

import ray

HERE = Path(__file__).parent
OUTPUT = sys.argv[1]


def make_env():
    sys.path.insert(0, str(HERE))
    from minestudio.simulator import MinecraftSim
    from minestudio.simulator.callbacks import CommandsCallback, SpeedTestCallback

    return MinecraftSim(
        obs_size=(128, 128),
        preferred_spawn_biome="plains",
        callbacks=[SpeedTestCallback(50), CommandsCallback(["/give @p minecraft:obsidian 64"])],
    )


def make_agent():
    """A tiny VPTPolicy with random weights, as MineStudio builds it from a checkpoint."""
    import importlib.machinery
    import types

    import minestudio

    # minestudio.models itself also imports its other agents and with them gigabytes of packages.
    root = Path(minestudio.__path__[0])
    for name in ("models", "models.vpt", "online"):
        package = types.ModuleType(f"minestudio.{name}")
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        package.__spec__ = importlib.machinery.ModuleSpec(package.__name__, None, is_package=True)
        sys.modules[package.__name__] = package
    from minestudio.models.vpt.body import VPTPolicy

    sizes = {
        "attention_heads": 2,
        "attention_memory_size": 40,
        "hidsize": 16,
        "img_shape": (128, 128, 3),
        "impala_chans": (4, 8, 8),
        "impala_width": 1,
        "n_recurrence_layers": 1,
        "pointwise_ratio": 4,
        "timesteps": 16,
    }
    published = {
        "attention_mask_style": "clipped_causal",
        "impala_kwargs": {"post_pool_groups": 1},
        "init_norm_kwargs": {"batch_norm": False, "group_norm_groups": 1},
        "recurrence_is_residual": True,
        "recurrence_type": "transformer",
        "single_output": False,
        "use_pointwise_layer": True,
        "use_pre_lstm_ln": False,
    }
    return VPTPolicy(policy_kwargs=sizes | published, temperature=2.0)


if __name__ == "__main__":
    import report
    from minestudio.inference import EpisodePipeline, InfoBaseFilter, MineGenerator

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
        num_max_steps=20,
        num_episodes=2,
        tmpdir=OUTPUT,
        image_media="h264",
    )
    summary = EpisodePipeline(
        episode_generator=generator,
        episode_filter=InfoBaseFilter(key="custom", regex=".*", num=0, label="status"),
    ).run()
    ray.shutdown()
    report.facts(summary=summary, files=sorted(path.suffix for path in Path(OUTPUT).iterdir()))
