"""MineStudio's names of options that exist here under others.

`rllib convert` translates by this table, and a key that is MineStudio's is told what it is here.
"""

from __future__ import annotations

RENAMED = {
    "rollout_config.num_rollout_workers": "config.num_env_runners",
    "rollout_config.num_gpus_per_worker": "config.num_gpus_per_env_runner",
    "rollout_config.num_cpus_per_worker": "config.num_cpus_per_env_runner",
    "rollout_config.fragment_length": "config.rollout_fragment_length",
    "rollout_config.worker_config.num_envs": "config.num_envs_per_env_runner",
    "rollout_config.worker_config.batch_size": "config.env_pool.inference_batch_size",
    "rollout_config.worker_config.restart_interval": "config.env_pool.restart_interval",
    "rollout_config.replay_buffer_config.max_reuse": "config.replay_buffer.max_reuse",
    "rollout_config.replay_buffer_config.max_staleness": "config.replay_buffer.max_staleness",
    "rollout_config.replay_buffer_config.fragments_per_chunk": (
        "config.replay_buffer.fragments_per_chunk"
    ),
    "train_config.num_workers": "config.num_learners",
    "train_config.num_gpus_per_worker": "config.num_gpus_per_learner",
    "train_config.num_cpus_per_worker": "config.num_cpus_per_learner",
    "train_config.num_iterations": "stop.training_iteration",
    "train_config.vf_warmup": "config.vf_warmup_iterations",
    "train_config.learning_rate": "config.lr",
    "train_config.weight_decay": "config.weight_decay",
    "train_config.adam_eps": "config.adam_eps",
    "train_config.batch_size_per_gpu": "config.fragments_per_minibatch",
    "train_config.epochs_per_iteration": "config.num_epochs",
    "train_config.context_length": "config.context_length",
    "train_config.discount": "config.gamma",
    "train_config.gae_lambda": "config.lambda_",
    "train_config.ppo_clip": "config.clip_param",
    "train_config.max_grad_norm": "config.grad_clip",
    "train_config.zero_initial_vf": "config.zero_init_value_head",
    "train_config.ppo_vf_coef": "config.vf_coeff",
    "train_config.kl_divergence_coef_rho": "config.kl_coeff",
    "train_config.coef_rho_decay": "config.kl_decay",
    "train_config.entropy_bonus_coef": "config.entropy_coeff",
    "train_config.log_ratio_range": "config.log_ratio_clamp",
    "train_config.save_interval": "checkpoint_config.save_interval",
    "train_config.keep_interval": "checkpoint_config.keep_interval",
    "logger_config.project": "trackers.wandb.project",
    "logger_config.name": "trackers.wandb.name",
}
"""Key of MineStudio 1.1.6's `online_dict` -> option of an experiment, by dotted paths."""


def name_here(key: str) -> str | None:
    """Say where an option of MineStudio's is found here; None if it has no option of this name.

    Args:
        key: Its name alone, without the sections that it is in.
    """
    targets = {target for path, target in RENAMED.items() if path.rpartition(".")[2] == key}
    if len(targets) != 1:  # several sections may have options of one name
        return None
    (target,) = targets
    section, _, name = target.partition(".")
    return name if section == "config" else f"{target}, beside config"
