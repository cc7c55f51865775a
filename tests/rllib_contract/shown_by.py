"""Which test shows that a setting of RLlib is honoured."""

from __future__ import annotations

_HERE = "tests/rllib_contract"
_ALGORITHMS = "tests/algorithms"
_TRAINING = "tests/evaluation/test_training.py"

_GROUPS = {
    f"{_HERE}/test_honoured.py::test_a_runner_is_built_and_plays_as_the_config_says": (
        "env env_config num_envs_per_env_runner rollout_fragment_length gamma"
    ),
    f"{_ALGORITHMS}/training_loop/test_remote.py"
    "::test_compressed_fragments_train_to_the_same_bits": "compress_observations",
    f"{_HERE}/test_honoured.py::test_without_exploring_the_most_probable_actions_are_taken": (
        "explore"
    ),
    f"{_HERE}/test_honoured.py::test_the_driver_has_environments_beside_others_only_if_asked": (
        "create_env_on_local_worker"
    ),
    f"{_HERE}/test_honoured.py::test_resources_are_asked_of_ray": (
        "num_cpus_for_main_process custom_resources_for_main_process placement_strategy "
        "num_cpus_per_env_runner num_gpus_per_env_runner custom_resources_per_env_runner "
        "num_cpus_per_learner num_gpus_per_learner custom_resources_per_learner"
    ),
    f"{_HERE}/test_honoured.py::test_classes_functions_and_levels_of_ones_own": (
        "env_runner_cls model model_config rl_module_spec on_algorithm_init on_checkpoint_loaded "
        "on_train_result metrics_num_episodes_for_smoothing custom_stats_cls_lookup log_level"
    ),
    f"{_HERE}/test_honoured.py::test_an_iteration_trains_on_as_many_batches_as_it_takes": (
        "min_time_s_per_iteration min_sample_timesteps_per_iteration "
        "min_train_timesteps_per_iteration"
    ),
    f"{_HERE}/test_honoured.py::test_without_a_runner_in_the_driver_there_is_still_the_policy": (
        "create_local_env_runner max_requests_in_flight_per_env_runner num_env_runners"
    ),
    f"{_HERE}/test_honoured.py::test_lost_env_runners_come_back_or_do_not_as_the_config_says": (
        "restart_failed_env_runners max_num_env_runner_restarts on_env_runners_recreated"
    ),
    f"{_HERE}/test_callbacks.py::test_every_step_of_every_episode_is_told": (
        "on_environment_created on_episode_start on_episode_step on_episode_end on_sample_end"
    ),
    f"{_HERE}/test_callbacks.py::test_classes_and_functions_come_in_lists_too": "callbacks_class",
    f"{_HERE}/test_researcher.py::test_callbacks_a_learner_and_the_policy_of_a_remote_run": (
        "learner_class learner_config_dict on_evaluate_end"
    ),
    f"{_HERE}/test_evaluation.py::test_at_any_time_and_again_after_a_restore": (
        "evaluation_duration on_evaluate_start"
    ),
    f"{_HERE}/test_evaluation.py::test_options_of_evaluation_alone_count_there": (
        "evaluation_config"
    ),
    f"{_HERE}/test_evaluation.py::test_a_users_function_evaluates_in_training_and_by_hand": (
        "custom_evaluation_function"
    ),
    f"{_HERE}/test_learner_hooks.py::test_grad_clip_bounds_the_norm_that_is_applied": "grad_clip",
    f"{_HERE}/test_learner_hooks.py::test_every_epoch_goes_through_all_fragments": "num_epochs",
    f"{_ALGORITHMS}/test_env_runner.py::test_environments_differ_and_follow_from_the_seed": "seed",
    f"{_ALGORITHMS}/learner/test_distributed.py::test_two_learners_end_with_the_weights_of_one": (
        "num_learners"
    ),
    f"{_ALGORITHMS}/learner/test_restored_options.py"
    "::test_a_restored_learner_takes_its_steps_with_the_configs_options": "lr",
    f"{_ALGORITHMS}/training_loop/test_lost_parts.py::test_training_goes_on_without": (
        "sample_timeout_s"
    ),
    f"{_HERE}/test_honoured.py::test_a_runner_that_does_not_come_back_in_time_ends_the_run": (
        "env_runner_restore_timeout_s"
    ),
    f"{_TRAINING}::test_every_second_iteration_reports_a_rate_and_leaves_a_page": (
        "evaluation_interval"
    ),
    f"{_TRAINING}::test_it_goes_on_beside_training": (
        "evaluation_num_env_runners evaluation_parallel_to_training"
    ),
}

SHOWN_BY = {name: test for test, names in _GROUPS.items() for name in names.split()}
"""Setting -> path of a file, and the test in it."""
