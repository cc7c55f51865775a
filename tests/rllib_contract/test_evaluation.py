"""Evaluation by hand, by a user's function, and with a user's callbacks."""

from __future__ import annotations

import pytest
from ray.rllib.callbacks.callbacks import RLlibCallback

from rllib_minestudio.errors import InvalidOptionsError


class Counting(RLlibCallback):
    """Counts the episodes of evaluations apart from those of training."""

    def on_episode_end(self, *, episode, env_runner, metrics_logger, **_):
        name = "evaluated" if env_runner.config.in_evaluation else "trained"
        metrics_logger.log_value(name, len(episode), reduce="sum")

    def on_evaluate_start(self, *, algorithm, **_):
        algorithm.evaluations_begun = getattr(algorithm, "evaluations_begun", 0) + 1


@pytest.mark.slow
def test_at_any_time_and_again_after_a_restore(local_ray, make_config, tmp_path):
    config = make_config(num_epochs=1).callbacks(Counting)
    algorithm = config.evaluation(evaluation_duration=3).build_algo()
    before = algorithm.evaluate()["env_runners"]
    assert before["num_episodes"] == 3 and before["weights_version"] == 0
    assert before["evaluated"] == 3 * 20
    algorithm.train()
    after = algorithm.evaluate()["env_runners"]
    assert after["weights_version"] == 1
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.train()
    algorithm.restore_from_path(checkpoint)
    again = algorithm.evaluate()["env_runners"]
    for name in ("episode_return_mean", "episode_len_mean", "weights_version"):
        assert again[name] == after[name]
    assert algorithm.evaluations_begun == 3
    algorithm.stop()


@pytest.mark.slow
def test_options_of_evaluation_alone_count_there(local_ray, make_config):
    config = make_config(num_epochs=1).evaluation(
        evaluation_duration=2, evaluation_config={"explore": False, "env_config": {"length": 7}}
    )
    algorithm = config.build_algo()
    first, second = (algorithm.evaluate()["env_runners"] for _ in range(2))
    assert first["episode_len_mean"] == 7
    assert first["episode_return_mean"] == second["episode_return_mean"]
    assert algorithm.evaluation_config.explore is False and algorithm.config.explore is True
    assert algorithm.train()["env_runners"]["episode_len_mean"] == 20
    algorithm.stop()


def play_five(algorithm, group):
    """A user's function, as RLlib's examples write it."""
    rollouts = group.foreach_env_runner(lambda runner: runner.sample(num_episodes=5))
    metrics = group.foreach_env_runner(lambda runner: runner.get_metrics())
    algorithm.metrics.aggregate(metrics, key=("evaluation", "env_runners"))
    steps = sum(episode.length for episodes in rollouts for episode in episodes)
    return {}, steps, steps


def test_a_users_function_evaluates_in_training_and_by_hand(local_ray, make_config):
    config = make_config(num_epochs=1).evaluation(
        custom_evaluation_function=play_five, evaluation_interval=1
    )
    algorithm = config.build_algo()
    found = algorithm.train()["evaluation"]
    assert found["env_runners"]["num_episodes"] == 5
    assert found["env_runners"]["episode_len_mean"] == 20
    assert algorithm.evaluate()["env_runners"]["num_episodes"] == 5
    with pytest.raises(InvalidOptionsError, match=r"sample\(num_timesteps\)"):
        algorithm.eval_env_runner.sample(num_timesteps=10)
    algorithm.stop()


def test_a_users_function_leaves_no_use_for_our_options(make_config):
    config = make_config().evaluation(
        custom_evaluation_function=play_five,
        evaluation_interval=1,
        evaluation_options={"filter": "length<10"},
    )
    with pytest.raises(InvalidOptionsError, match="beside a custom_evaluation_function"):
        config.validate()
