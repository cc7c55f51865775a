"""Running `rllib` in a process of its own, on a tiny experiment where it needs one."""

import subprocess
import sys

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


def rllib(folder, *arguments):
    """Start `rllib train file` in `folder`, which holds a tiny.yaml."""
    return start(folder, "train", "file", "tiny.yaml", *arguments)


def start(folder, *arguments):
    """Start `rllib` in `folder`."""
    return subprocess.Popen(
        [sys.executable, "-m", "rllib_minestudio.cli.main", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(process):
    """Wait for the end; return the exit status and what was printed."""
    output, _ = process.communicate()
    return process.returncode, output
