"""A config module as MineStudio 1.1.6 ships them, with every key of its online_dict."""

from minestudio.utils import get_compute_device

online_dict = {
    "trainer_name": "PPOTrainer",
    "detach_rollout_manager": True,
    "rollout_config": {
        "num_rollout_workers": 2,
        "num_gpus_per_worker": 0.5,
        "num_cpus_per_worker": 3,
        "fragment_length": 128,
        "to_send_queue_size": 8,
        "worker_config": {
            "num_envs": 16,
            "batch_size": 8,
            "restart_interval": 3600,
            "video_fps": 20,
            "video_output_dir": "output/videos",
        },
        "replay_buffer_config": {
            "max_chunks": 100,
            "max_reuse": 2,
            "max_staleness": 3,
            "fragments_per_report": 40,
            "fragments_per_chunk": 4,
            "database_config": {"path": "output/replay_buffer_cache", "num_shards": 8},
        },
        "episode_statistics_config": {},
    },
    "train_config": {
        "num_workers": 2,
        "num_gpus_per_worker": 1.0,
        "num_iterations": 4000,
        "vf_warmup": 5,
        "learning_rate": 0.00002,
        "anneal_lr_linearly": False,
        "weight_decay": 0.03,
        "adam_eps": 1e-8,
        "batch_size_per_gpu": 4,
        "batches_per_iteration": 10,
        "gradient_accumulation": 5,
        "epochs_per_iteration": 2,
        "context_length": 64,
        "discount": 0.99,
        "gae_lambda": 0.9,
        "ppo_clip": 0.1,
        "clip_vloss": False,
        "max_grad_norm": 4,
        "zero_initial_vf": False,
        "ppo_policy_coef": 1.0,
        "ppo_vf_coef": 0.4,
        "kl_divergence_coef_rho": 0.3,
        "entropy_bonus_coef": 0.01,
        "coef_rho_decay": 0.999,
        "log_ratio_range": 40,
        "normalize_advantage_full_batch": True,
        "use_normalized_vf": True,
        "num_readers": 4,
        "num_cpus_per_reader": 0.1,
        "prefetch_batches": 2,
        "save_interval": 10,
        "keep_interval": 40,
        "record_video_interval": 2,
        "enable_ref_update": False,
        "resume": None,
        "resume_optimizer": True,
        "save_path": "output",
    },
    "logger_config": {"project": "minestudio_online", "name": "cow"},
}


def env_generator():
    from minestudio.simulator import MinecraftSim
    from minestudio.simulator.callbacks import (
        CommandsCallback,
        FastResetCallback,
        GateRewardsCallback,
        JudgeResetCallback,
        MaskActionsCallback,
        SummonMobsCallback,
        VoxelsCallback,
    )
    from minestudio.simulator.entry import CameraConfig

    return MinecraftSim(
        "agent",
        (128, 128),
        preferred_spawn_biome="plains",
        camera_config=CameraConfig(2, camera_maxval=10),
        callbacks=[
            SummonMobsCallback(
                [{"name": "cow", "number": 10, "range_x": [-5, 5], "range_z": [-5, 5]}]
            ),
            MaskActionsCallback(inventory=0),
            GateRewardsCallback(),
            VoxelsCallback([-3, 3, -3, 3, -3, 3]),
            CommandsCallback(commands=["/give @p minecraft:iron_sword 1"]),
            FastResetCallback(["plains"], 1000, start_time=6000),
            JudgeResetCallback(600),
        ],
    )


def policy_generator():
    from minestudio.models import load_vpt_policy

    return load_vpt_policy(model_path="2x.model", weights_path="rl.weights").to(
        get_compute_device()
    )
