"""RLlib's settings: which are honoured, which are refused, and which have no meaning here.

RLlib accepts any setting for any algorithm, and an algorithm silently ignores those it has no use
for. Here each public setting of RLlib 2.60's `AlgorithmConfig` is in one of three tables, of which
`tools.reference` makes a page. Settings are refused when the config is validated, if their value
differs from the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils import force_list

from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.errors import did_you_mean
from rllib_minestudio.foundation.options import broken_rule, shown, unknown_name
from rllib_minestudio.models.policy import RecurrentRLModule


def _table(*groups: tuple[str, str]) -> dict[str, str]:
    """Turn (sentence, names separated by spaces) into name -> sentence."""
    return {name: sentence for sentence, names in groups for name in names.split()}


HONOURED: dict[str, str] = _table(
    ("The environment and its options.", "env env_config"),
    ("The seed of all random numbers.", "seed"),
    (
        "How many env runners there are, and how many environments each has.",
        "num_env_runners num_envs_per_env_runner",
    ),
    ("False: no env runner in the driver.", "create_local_env_runner"),
    ("True: environments in the driver as well.", "create_env_on_local_worker"),
    ("A subclass of `MineStudioEnvRunner`; others are refused.", "env_runner_cls"),
    ("Steps per fragment.", "rollout_fragment_length"),
    ("Whether actions are sampled in training.", "explore"),
    (
        "Whether fragments are compressed by LZ4, without loss, on their way to remote learners or "
        "from remote env runners: less to send and to store, for some processor time.",
        "compress_observations",
    ),
    (
        "A runner whose rollout takes longer counts as hung, and is replaced; so does one that "
        "evaluates, if it plays no step for as long.",
        "sample_timeout_s",
    ),
    ("How long a lost runner may take to come back.", "env_runner_restore_timeout_s"),
    ("Rollouts under way at each remote runner.", "max_requests_in_flight_per_env_runner"),
    (
        "Whether, and how often, Ray restarts a lost runner.",
        "restart_failed_env_runners max_num_env_runner_restarts",
    ),
    (
        "Ray's resources and their placement.",
        "num_cpus_for_main_process custom_resources_for_main_process placement_strategy "
        "num_cpus_per_env_runner num_gpus_per_env_runner custom_resources_per_env_runner "
        "num_cpus_per_learner num_gpus_per_learner custom_resources_per_learner",
    ),
    ("Learners that train together; cloning has one.", "num_learners"),
    ("A subclass of the algorithm's own learner; others are refused.", "learner_class"),
    ("For a learner of your own, as `self.config.learner_config_dict`.", "learner_config_dict"),
    ("Discount per step.", "gamma"),
    ("A number, or a schedule over environment steps.", "lr"),
    ("Largest global norm of a gradient.", "grad_clip"),
    ("Passes over an iteration's fragments.", "num_epochs"),
    ("The network's options; `model_config` replaces them, `model` adds to them.", "model"),
    ("The same, as `rl_module` takes it.", "model_config"),
    ("`RLModuleSpec(module_class=...)` with a subclass of `RecurrentRLModule`.", "rl_module_spec"),
    (
        "A class or a list of classes (`callbacks_class`), functions or lists of functions.",
        "callbacks_class on_algorithm_init on_train_result on_evaluate_start on_evaluate_end "
        "on_env_runners_recreated on_checkpoint_loaded on_environment_created on_episode_start "
        "on_episode_step on_episode_end on_sample_end",
    ),
    ("Iterations between evaluations; `evaluate()` works without.", "evaluation_interval"),
    ("A number of episodes.", "evaluation_duration"),
    ("Env runners for evaluation, in addition to training's.", "evaluation_num_env_runners"),
    ("Needs remote learners.", "evaluation_parallel_to_training"),
    ("Options that differ in evaluation, such as `explore`.", "evaluation_config"),
    ("Gets the algorithm and a group of `EvaluationEnvRunner`s.", "custom_evaluation_function"),
    ("How many episodes the means cover.", "metrics_num_episodes_for_smoothing"),
    (
        "An iteration trains on as many batches as these require.",
        "min_time_s_per_iteration min_sample_timesteps_per_iteration "
        "min_train_timesteps_per_iteration",
    ),
    ("Your own reductions of logged values.", "custom_stats_cls_lookup"),
    ("The level of RLlib's logger.", "log_level"),
)
"""Name of a setting, as in RLlib's methods -> what it does here."""

REFUSED: dict[str, str] = _table(
    (
        "there are no connectors between environments, VPT and the learner; change observations "
        "and rewards in a wrapper or a callback of the environment",
        "env_to_module_connector module_to_env_connector learner_connector "
        "add_default_connectors_to_env_to_module_pipeline "
        "add_default_connectors_to_module_to_env_pipeline "
        "add_default_connectors_to_learner_pipeline episode_lookback_horizon",
    ),
    (
        "an iteration is fragments_per_iteration fragments of rollout_fragment_length steps",
        "train_batch_size train_batch_size_per_learner",
    ),
    ("use fragments_per_minibatch and gradient_accumulation", "minibatch_size"),
    (
        "fragments are shuffled in each epoch in any case; steps within one must not be",
        "shuffle_batch_per_epoch",
    ),
    ("gradients are clipped by their global norm, grad_clip", "grad_clip_by"),
    ("the optimizer is AdamW; use weight_decay, adam_eps and lr_factors", "optimizer"),
    ("fragments have a fixed length, through which episodes may end", "batch_mode"),
    (
        "learners fetch fragments themselves, one iteration ahead",
        "num_aggregator_actors_per_learner max_requests_in_flight_per_aggregator_actor "
        "max_requests_in_flight_per_learner",
    ),
    (
        "the algorithms are written for the new API stack; leave it switched on",
        "enable_rl_module_and_learner enable_env_runner_and_connector_v2",
    ),
    (
        "there is one agent and one policy per environment",
        "observation_fn count_steps_by policies "
        "policy_map_capacity policy_mapping_fn policies_to_train policy_states_are_swappable "
        "algorithm_config_overrides_per_module",
    ),
    ("VPT is written in torch", "framework"),
    (
        "use the model's option compile: true",
        "torch_compile_learner torch_compile_learner_what_to_compile "
        "torch_compile_learner_dynamo_mode torch_compile_learner_dynamo_backend "
        "torch_compile_worker torch_compile_worker_dynamo_backend torch_compile_worker_dynamo_mode",
    ),
    ("learners keep their buffers equal by themselves", "torch_ddp_kwargs"),
    ("use num_gpus_per_learner and num_gpus_per_env_runner", "num_gpus"),
    ("choose the GPU with CUDA_VISIBLE_DEVICES", "local_gpu_idx"),
    ("use env_config, and callbacks that record, to look at episodes", "render_env"),
    ("change rewards in a callback of the environment", "clip_rewards"),
    ("use env_pool.mode", "gym_env_vectorize_mode remote_worker_envs remote_env_batch_wait_ms"),
    ("VPT scales images itself", "observation_filter preprocessor_pref"),
    ("use explore; the policy's own distribution is what explores", "exploration_config"),
    (
        "env runners pull the newest weights in any case",
        "use_env_runner_state_server env_runner_state_server_max_concurrency",
    ),
    ("fragments are NumPy arrays from the start", "episodes_to_numpy"),
    ("env runners are checked in any case", "validate_env_runners_after_construction"),
    (
        "what is lost is replaced; use max_restarts_per_hour, env_pool.max_restarts_per_hour, "
        "sample_timeout_s and env_runner_restore_timeout_s",
        "ignore_env_runner_failures restart_failed_sub_environments "
        "delay_between_env_runner_restarts_s num_consecutive_env_runner_failures_tolerance "
        "env_runner_health_probe_timeout_s",
    ),
    (
        "evaluation_duration must be a number of episodes; which of them end within a given time "
        "depends on their lengths, and so would the success rate",
        "evaluation_duration_unit",
    ),
    (
        "an evaluation plays a fixed set of whole episodes, evaluation_duration of them, however "
        "long they take; use env_pool's timeouts, sample_timeout_s and "
        "evaluation_options.max_attempts",
        "evaluation_auto_duration_min_env_steps_per_sample "
        "evaluation_auto_duration_max_env_steps_per_sample evaluation_sample_timeout_s "
        "evaluation_unhealthy_workers_timeout_s evaluation_error_after_n_consecutive_skips "
        "evaluation_force_reset_envs_before_iteration",
    ),
    (
        "nothing is evaluated on recorded episodes; MineStudioBC has validation_fraction",
        "off_policy_estimation_methods ope_split_batch_by_episode offline_evaluation_interval "
        "num_offline_eval_runners offline_evaluation_type offline_eval_runner_class "
        "offline_loss_for_module_fn offline_eval_batch_size_per_runner "
        "dataset_num_iters_per_offline_eval_runner offline_eval_rl_module_inference_only "
        "num_cpus_per_offline_eval_runner num_gpus_per_offline_eval_runner "
        "custom_resources_per_offline_eval_runner offline_evaluation_timeout_s "
        "max_requests_in_flight_per_offline_eval_runner broadcast_offline_eval_runner_states "
        "validate_offline_eval_runners_after_construction restart_failed_offline_eval_runners "
        "ignore_offline_eval_runner_failures max_num_offline_eval_runner_restarts "
        "offline_eval_runner_health_probe_timeout_s offline_eval_runner_restore_timeout_s "
        "offline_evaluation_duration offline_evaluation_parallel_to_training "
        "on_evaluate_offline_start on_evaluate_offline_end on_offline_eval_runners_recreated",
    ),
    (
        "an environment has already reset itself when it is reported; use on_episode_start",
        "on_episode_created",
    ),
    (
        "recorded episodes are read by MineStudioBC and by behaviour_cloning, in the layout of "
        "`rllib record`",
        "input_read_method input_read_method_kwargs input_read_schema input_read_episodes "
        "input_read_sample_batches input_read_batch_size input_filesystem input_filesystem_kwargs "
        "input_compress_columns input_spaces_jsonable materialize_data materialize_mapped_data "
        "map_batches_kwargs iter_batches_kwargs ignore_final_observation prelearner_class "
        "prelearner_buffer_class prelearner_buffer_kwargs prelearner_module_synch_period "
        "prelearner_use_recorded_module_states input_config actions_in_input_normalized "
        "postprocess_inputs shuffle_buffer_size offline_sampling input_ offline_data_class "
        "dataset_num_iters_per_learner",
    ),
    (
        "use evaluation_options.record, or `rllib evaluate --record`",
        "output output_config output_compress_columns output_max_file_size "
        "output_max_rows_per_file output_write_remaining_data output_write_method "
        "output_write_method_kwargs output_filesystem output_filesystem_kwargs "
        "output_write_episodes",
    ),
    (
        "a callback's metrics_logger keeps what it is told to keep",
        "keep_per_episode_custom_metrics",
    ),
    (
        "a checkpoint holds everything, and its policy as safetensors; use `rllib model export`",
        "export_native_model_files checkpoint_trainable_policies_only",
    ),
    ("environments are played for real", "fake_sampler"),
    (
        "lr may be a schedule, and precision: bfloat16 needs no scaling",
        "_torch_grad_scaler_class _torch_lr_scheduler_classes",
    ),
    ("use the environment's own spaces", "observation_space action_space"),
)
"""Name of a setting -> the rule and the way out, which follow its name and value in the error."""

MEANINGLESS: dict[str, str] = _table(
    (
        "For TensorFlow only.",
        "eager_tracing eager_max_retraces tf_session_args local_tf_session_args "
        "enable_tf1_exec_eagerly",
    ),
    (
        "For RLlib's old API stack only.",
        "sample_collector sampler_perf_stats_ema_coef use_worker_filter_stats "
        "update_worker_filter_stats metrics_episode_collection_timeout_s "
        "sync_filters_on_rollout_workers_timeout_s replay_sequence_length log_sys_usage "
        "extra_python_environs_for_driver extra_python_environs_for_worker",
    ),
    ("VPT's actions are tokens: nothing is scaled or clipped.", "normalize_actions clip_actions"),
    ("For Atari, and for environments that mask actions.", "is_atari action_mask_key"),
    ("RLlib checks multi-agent environments only.", "disable_env_checking"),
    (
        "The states of connectors, of which there are none.",
        "merge_env_runner_states broadcast_env_runner_states",
    ),
    ("A step that is not finite is left out in any case.", "torch_skip_nan_gradients"),
    ("The gradient's norm is logged in any case.", "log_gradients"),
    (
        "Set by RLlib: whether a config is for evaluation, and the algorithm's class.",
        "in_evaluation algo_class",
    ),
)
"""Name of a setting -> why its value has no effect."""

CLONING_HONOURS = _table(
    ("The folder, or folders, with recordings.", "input_"),
    ("Batches per iteration.", "dataset_num_iters_per_learner"),
)
"""Settings that MineStudioBC honours and MineStudioPPO refuses."""

CLONING_SETS = ("observation_space", "action_space", "offline_data_class")
"""Settings that MineStudioBC's config sets itself."""

CLONING_REFUSES: dict[str, str] = _table(
    (
        "cloning plays no environments; clones are played in the driver when they are evaluated",
        "num_env_runners create_local_env_runner create_env_on_local_worker env_runner_cls "
        "max_requests_in_flight_per_env_runner restart_failed_env_runners "
        "max_num_env_runner_restarts env_runner_restore_timeout_s on_env_runners_recreated "
        "on_environment_created on_episode_start on_episode_step on_episode_end on_sample_end "
        "compress_observations evaluation_parallel_to_training custom_evaluation_function",
    ),
    ("cloning goes through dataset_num_iters_per_learner batches per iteration", "num_epochs"),
)
"""Settings that MineStudioBC refuses and MineStudioPPO honours."""

OTHER_NAMES = {
    "num_workers": "use num_env_runners",
    "num_rollout_workers": "use num_env_runners",
    "num_envs_per_worker": "use num_envs_per_env_runner",
    "num_cpus_per_worker": "use num_cpus_per_env_runner",
    "num_gpus_per_worker": "use num_gpus_per_env_runner",
    "evaluation_num_workers": "use evaluation_num_env_runners",
    "num_gpus": "use num_gpus_per_learner and num_gpus_per_env_runner",
    "num_sgd_iter": "use num_epochs",
    "sgd_minibatch_size": "use fragments_per_minibatch",
    "minibatch_size": "use fragments_per_minibatch",
    "train_batch_size": "use fragments_per_iteration",
    "train_batch_size_per_learner": "use fragments_per_iteration",
    "horizon": "use the JudgeReset callback's time_limit in env_config.callbacks",
    "lr_schedule": "use lr: [[0, 1e-4], [1000000, 0.0]], pairs of environment steps and rate",
    "kl_coef": "use kl_coeff",
    "vf_loss_coeff": "use vf_coeff",
    "vf_share_layers": "VPT's policy and value always share their layers",
    "vf_clip_param": "the value loss is not clipped; its target is normalised",
    "model_config": "use model",
    "exploration_config": "actions are sampled from the policy; use explore",
    "observation_filter": "VPT scales images itself",
    "no_done_at_end": "a time limit truncates, and is bootstrapped",
    "soft_horizon": "a time limit truncates, and is bootstrapped",
    "checkpoint_freq": "use checkpoint_config.save_interval, next to config",
    "checkpoint_at_end": "use checkpoint_config.checkpoint_at_end, next to config",
    "env_task_fn": "Ray removed it",
    "monitor": "Ray removed it",
}
"""Keys that RLlib accepts, or once accepted, without any effect here -> what to do instead."""


def refused_by_cloning() -> dict[str, str]:
    """Return the settings that MineStudioBC refuses."""
    kept = {*CLONING_HONOURS, *CLONING_SETS}
    return {name: rule for name, rule in REFUSED.items() if name not in kept} | CLONING_REFUSES


RLLIBS_MODEL = DefaultModelConfig()
"""The options of RLlib's own networks, with their defaults."""


def foreign_model_problems(options: Mapping[str, Any], policy: type) -> list[str]:
    """Return, in at most one sentence, which of a model's options are those of RLlib's networks.

    Args:
        options: The model's options.
        policy: The policy's class; one of a user's own may have options of the same name.
    """
    given = {name: value for name, value in options.items() if hasattr(RLLIBS_MODEL, name)}
    if not given or not _is_ours(policy):
        return []
    changed = [
        name for name, value in given.items() if not _equal(value, getattr(RLLIBS_MODEL, name))
    ]
    return [
        f"model has {', '.join(changed or given)}, of RLlib's DefaultModelConfig, whose networks "
        "are not used here: every policy has a memory. For a small network with a GRU use "
        "training(module_class='ConvGRU', model={'hidden_size': 256}), or write one of your own "
        "(docs/policies.md)."
    ]


# ------------------------------------------------ refusing settings, and keys that are not settings

_ATTRIBUTES = {
    "framework": "framework_str",
    "custom_stats_cls_lookup": "stats_cls_lookup",
    "dataset_num_iters_per_offline_eval_runner": "dataset_num_iters_per_eval_runner",
    "model": "_model_config",
}
"""Settings whose attribute is not their name, nor their name prefixed by `_` or `callbacks_`."""

_ALIASES = (
    "callbacks", "create_env_on_driver", "custom_eval_function", "exploration_config", "framework",
    "input", "lambda", "learner_class", "model", "multiagent", "num_cpus_for_driver",
    "train_batch_size_per_learner",
)  # fmt: skip
"""Keys that are not attributes, but that RLlib's or our `update_from_dict` accepts."""


def attribute_of(name: str, config: AlgorithmConfig) -> str:
    """Return the name of the attribute that holds a setting."""
    for attribute in (_ATTRIBUTES.get(name, name), f"_{name}", f"callbacks_{name}"):
        if attribute in vars(config):
            return attribute
    raise KeyError(name)


def setting_problems(
    config: AlgorithmConfig, defaults: AlgorithmConfig, refused: Mapping[str, str]
) -> list[str]:
    """Return which settings of a config are refused, one sentence each.

    Args:
        config: The config to check.
        defaults: A config with the defaults of its class.
        refused: `REFUSED`, or the algorithm's own table.
    """
    if config.in_evaluation:  # RLlib derived it from a config that was checked
        return []
    problems = []
    overrides = config.evaluation_config if isinstance(config.evaluation_config, dict) else {}
    for name, rule in refused.items():
        attribute = attribute_of(name, defaults)
        default, value = getattr(defaults, attribute), getattr(config, attribute)
        if name == "policies":  # Tune and checkpoints write the default differently
            default, value = list(default), list(value)
        if not _equal(value, default) and not _is_ours(value):
            problems.append(f"{name} is {shown(value)}: {rule}.")
        if attribute in overrides and not _equal(overrides[attribute], default):
            override = shown(overrides[attribute])
            problems.append(f"evaluation_config.{name} is {override}: {rule}.")
    return [*problems, *_class_problems(config, refused)]


def _class_problems(config: AlgorithmConfig, refused: Mapping[str, str]) -> list[str]:
    """Check the classes that a config refers to."""
    problems = [
        f"callbacks_class has {name}: {refused[name]}."
        for name in refused
        if name.startswith("on_")
        and any(
            getattr(callbacks, name) is not getattr(RLlibCallback, name)
            for callbacks in force_list(config.callbacks_class)
        )
    ]
    default = config.get_default_learner_class()
    for name, given, base in (
        ("env_runner_cls", config.env_runner_cls, MineStudioEnvRunner),
        ("learner_class", config._learner_class, default),
    ):
        if name in refused:
            continue
        if given is not None and not (isinstance(given, type) and issubclass(given, base)):
            problems.append(broken_rule(name, given, f"must be a subclass of {base.__name__}"))
    return [*problems, *_module_problems(config._rl_module_spec)]


def _module_problems(spec: Any) -> list[str]:
    if spec is None:
        return []
    if not isinstance(spec, RLModuleSpec):
        return [f"rl_module_spec is a {type(spec).__name__}: there is one module per policy."]
    problems = []
    found = spec.module_class
    if found is not None and not (isinstance(found, type) and issubclass(found, RecurrentRLModule)):
        problems.append(
            broken_rule(
                "rl_module_spec.module_class",
                found,
                "must be a subclass of RecurrentRLModule (docs/policies.md), since env runner and "
                "learner carry the policy's memory",
            )
        )
    if spec.model_config is not None:
        problems.append("rl_module_spec.model_config is set: use training(model=...).")
    if spec.load_state_path is not None:
        problems.append("rl_module_spec.load_state_path is set: use the model's option weights.")
    return problems


def unknown_key_problems(keys: Iterable[str], config: AlgorithmConfig) -> list[str]:
    """Return which keys are not settings of a config, one sentence each."""
    valid = {*vars(config), *_ALIASES}
    names = sorted(name for name in valid if not name.startswith("_"))
    problems = []
    for key in keys:
        if key not in valid:
            hint = did_you_mean(key, names)
            if key in OTHER_NAMES:
                hint = f" {OTHER_NAMES[key][0].upper()}{OTHER_NAMES[key][1:]}."
            problems.append(unknown_name(f"setting of {type(config).__name__}", key, ()) + hint)
    return problems


def _is_ours(value: Any) -> bool:
    """Whether a value is a function of this package, which the config has set itself."""
    return str(getattr(value, "__module__", "")).startswith("rllib_minestudio.")


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b) or a is b
    except Exception:  # comparing arrays gives no single answer, and no default is an array
        return a is b
