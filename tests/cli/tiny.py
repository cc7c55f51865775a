"""The smallest experiment that a command can train on."""

TINY = {
    "tiny": {
        "run": "MineStudioPPO",
        "env": "MineStudioEnv",
        "stop": {"training_iteration": 4},
        "checkpoint_config": {"save_interval": 1, "keep_interval": 3, "num_to_keep": 2},
        "summary": {"random_policy_episodes": 2, "video_episodes": 1},
        "config": {
            "seed": 1,
            "env_config": {
                "obs_size": [64, 64],
                "render_size": [64, 36],
                "num_empty_frames": 1,
                "callbacks": [{"JudgeReset": {"time_limit": 20}}],
            },
            "model": {
                "preset": "nano",
                "hidsize": 16,
                "attention_heads": 2,
                "n_recurrence_layers": 1,
                "attention_memory_size": 24,
                "timesteps": 16,
            },
            "num_env_runners": 0,
            "num_envs_per_env_runner": 2,
            "rollout_fragment_length": 32,
            "context_length": 16,
            "fragments_per_iteration": 2,
            "fragments_per_minibatch": 2,
            "prior": None,
            "kl_coeff": 0.0,
            "lr": 1e-3,
        },
    }
}
