"""Settings of RLlib that no other test shows: each changes what it is said to change."""

from __future__ import annotations

import logging
import time

import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics.metrics_logger import DEFAULT_STATS_CLS_LOOKUP
from ray.rllib.utils.metrics.stats.max import MaxStats

from rllib_minestudio import MineStudioPPO
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.errors import EnvRunnersLostError
from rllib_minestudio.models.rl_modules import VPTRLModule
from tests.algorithms.actors import kill, process_of
from tests.algorithms.toy_envs import AttackOnRed, tiny_model


class OwnEnv(AttackOnRed):
    """Another class."""


class OwnRunner(MineStudioEnvRunner):
    """Another class."""


class OwnModule(VPTRLModule):
    """Another class."""


class LargestEver(MaxStats):
    """Another reduction."""


@pytest.fixture
def make_runner():
    made = []

    def make(config, **arguments):
        made.append(MineStudioEnvRunner(config=config, **{"worker_index": 0, **arguments}))
        return made[-1]

    yield make
    for runner in made:
        runner.stop()


def test_a_runner_is_built_and_plays_as_the_config_says(make_config, make_runner):
    config = make_config(gamma=0.5).environment(OwnEnv, env_config={"length": 7})
    config.env_runners(num_envs_per_env_runner=3, rollout_fragment_length=15)
    runner = make_runner(config, num_workers=0)
    assert all(isinstance(env, OwnEnv) for env in runner.env.envs)
    report, fragments = runner.sample(aligned=True)
    assert [len(fragment) for fragment in fragments] == [15] * 3
    assert {episode.length for episode in report.episodes} == {7}
    first = next(e for e in report.episodes if e.env_index == 0)
    expected = (fragments[0].reward[:7] * 0.5 ** np.arange(7)).sum()
    assert first.discounted_return == pytest.approx(expected)


def test_without_exploring_the_most_probable_actions_are_taken(make_config, make_runner):
    config = make_config().env_runners(num_envs_per_env_runner=1, explore=False)
    runner = make_runner(config, num_workers=0)
    (fragment,) = runner.sample().fragments
    batch = {
        Columns.OBS: {"image": fragment.obs["image"][None]},
        "first": fragment.first[None],
        Columns.STATE_IN: {name: part[None] for name, part in fragment.state_in.items()},
    }
    actions = runner.module.forward_inference(batch)[Columns.ACTIONS]
    for name, tokens in fragment.action.items():
        np.testing.assert_array_equal(actions[name][0, :, 0].numpy(), tokens)


@pytest.mark.slow
def test_the_driver_has_environments_beside_others_only_if_asked(make_config, make_runner):
    spaces = make_runner(make_config(), num_workers=0).get_spaces()
    config = make_config().env_runners(num_env_runners=1)
    without = make_runner(config, num_workers=1, spaces=spaces)
    config.env_runners(create_env_on_local_worker=True)
    with_envs = make_runner(config, num_workers=1, spaces=spaces)
    assert without.env is None and with_envs.env.num_envs == 8


def test_resources_are_asked_of_ray(make_config):
    config = make_config(gradient_accumulation=2).env_runners(
        num_env_runners=2, num_cpus_per_env_runner=3, num_gpus_per_env_runner=0.5,
        custom_resources_per_env_runner={"game": 1},
    )  # fmt: skip
    config.learners(
        num_learners=2, num_cpus_per_learner=4, num_gpus_per_learner=0,
        custom_resources_per_learner={"fast": 2},
    )  # fmt: skip
    config.resources(
        num_cpus_for_main_process=5,
        custom_resources_for_main_process={"driver": 1},
        placement_strategy="SPREAD",
    )
    request = MineStudioPPO.default_resource_request(config)
    assert request.strategy == "SPREAD"
    runner = {"CPU": 3, "GPU": 0.5, "game": 1}
    learner = {"CPU": 4, "fast": 2}
    found = [{k: v for k, v in bundle.items() if v} for bundle in request.bundles]
    assert found[0] == {"CPU": 5, "driver": 1}
    assert found.count(runner) == 2 and found.count(learner) == 2
    config.learners(num_gpus_per_learner=1, num_cpus_per_learner="auto")
    bundles = MineStudioPPO.default_resource_request(config).bundles
    assert sum(bundle.get("GPU", 0) == 1 for bundle in bundles) == 2


@pytest.mark.slow
def test_classes_functions_and_levels_of_ones_own(local_ray, make_config, tmp_path):
    calls = []
    returns = []

    def note_end(*, episode, metrics_logger, **_):
        returns.append(episode.get_return())
        metrics_logger.log_value("largest", episode.get_return(), reduce="largest_ever", window=99)

    config = (
        make_config(num_epochs=1)
        .env_runners(env_runner_cls=OwnRunner)
        .rl_module(
            model_config=tiny_model(hidsize=64), rl_module_spec=RLModuleSpec(module_class=OwnModule)
        )
        .callbacks(
            on_algorithm_init=lambda *, algorithm, **_: calls.append("init"),
            on_checkpoint_loaded=lambda *, algorithm, **_: calls.append("loaded"),
            on_train_result=lambda *, algorithm, result, **_: result.update(added=1),
            on_episode_end=note_end,
        )
        .reporting(
            metrics_num_episodes_for_smoothing=3,
            custom_stats_cls_lookup={**DEFAULT_STATS_CLS_LOOKUP, "largest_ever": LargestEver},
        )
        .debugging(log_level="ERROR")
    )
    algorithm = config.build_algo()
    assert type(algorithm.env_runner) is OwnRunner
    assert type(algorithm.get_module()) is OwnModule
    assert algorithm.get_module().network.config.hidsize == 64
    assert logging.getLogger("ray.rllib").level == logging.ERROR
    result = algorithm.train()
    played = result["env_runners"]
    assert played["episode_return_mean"] == pytest.approx(np.mean(returns[-3:]))
    assert played["largest"] == max(returns)
    assert result["added"] == 1
    algorithm.restore(algorithm.save(str(tmp_path)))
    algorithm.stop()
    assert calls == ["init", "loaded"]


@pytest.mark.parametrize(
    "least, batches",
    [
        ({"min_sample_timesteps_per_iteration": 500}, 2),
        pytest.param({"min_train_timesteps_per_iteration": 600}, 3, marks=pytest.mark.slow),
        pytest.param({"min_time_s_per_iteration": 0.01}, 1, marks=pytest.mark.slow),
    ],
)
def test_an_iteration_trains_on_as_many_batches_as_it_takes(local_ray, make_config, least, batches):
    algorithm = make_config(num_epochs=1).reporting(**least).build_algo()
    result = algorithm.train()
    algorithm.stop()
    trained = result["learners"]["__all_modules__"]["num_env_steps_trained_lifetime"]
    assert trained == batches * 256
    assert result["time_this_iter_s"] >= least.get("min_time_s_per_iteration", 0)


@pytest.mark.slow
def test_without_a_runner_in_the_driver_there_is_still_the_policy(local_ray, make_config):
    config = make_config(
        num_epochs=1, fragments_per_iteration=32, replay_buffer={"max_fragments": 400}
    )
    config.env_runners(
        num_env_runners=1, create_local_env_runner=False, max_requests_in_flight_per_env_runner=3
    )
    algorithm = config.build_algo()
    assert algorithm.env_runner is None
    algorithm.train()
    algorithm.replay_buffer.clear()  # so that there is something to play for
    algorithm.experience.meanwhile(0.0)
    assert 16 < algorithm.experience.requests.fragments_under_way <= 24
    module = algorithm.get_module().get_state()
    for name, tensor in algorithm.learner_group._learner.policy.get_state().items():
        np.testing.assert_array_equal(module[name], tensor)
    assert torch.is_tensor(algorithm.get_module().get_initial_state()["mask"])
    algorithm.stop()


@pytest.mark.slow
def test_lost_env_runners_come_back_or_do_not_as_the_config_says(local_ray, make_config):
    recreated = []
    config = make_config(num_epochs=1).env_runners(num_env_runners=1)
    config.callbacks(
        on_env_runners_recreated=lambda *, env_runner_indices, **_: recreated.append(
            env_runner_indices
        )
    )
    algorithm = config.build_algo()
    algorithm.train()
    kill(process_of(algorithm.env_runner_group._worker_manager.actors()[1]))
    while not recreated:
        algorithm.train()
    algorithm.stop()
    assert recreated == [[1]]
    for never in (
        {"restart_failed_env_runners": False},
        {"max_num_env_runner_restarts": 0},
    ):
        algorithm = make_config(num_epochs=1).env_runners(num_env_runners=1)
        algorithm = algorithm.fault_tolerance(**never).build_algo()
        algorithm.train()
        kill(process_of(algorithm.env_runner_group._worker_manager.actors()[1]))
        with pytest.raises(EnvRunnersLostError):
            for _ in range(20):
                algorithm.train()
        algorithm.stop()


class SlowToStart(AttackOnRed):
    """Takes longer than three times the hundredth of a second that it is given."""

    def __init__(self, config):
        time.sleep(0.5)
        super().__init__(config)


@pytest.mark.slow
def test_a_runner_that_does_not_come_back_in_time_ends_the_run(local_ray, make_config):
    config = make_config(num_epochs=1).environment(SlowToStart).env_runners(num_env_runners=1)
    algorithm = config.fault_tolerance(env_runner_restore_timeout_s=0.01).build_algo()
    algorithm.train()
    kill(process_of(algorithm.env_runner_group._worker_manager.actors()[1]))
    with pytest.raises(EnvRunnersLostError, match=r"env_runner_restore_timeout_s=0\.01"):
        for _ in range(20):
            algorithm.train()
    algorithm.stop()
