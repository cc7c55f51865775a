"""A researcher's script does what RLlib says it does, in other processes and after a restore."""

from __future__ import annotations

import numpy as np
import pytest
from ray import tune

import rllib_minestudio  # noqa: F401  (makes the algorithms' names known to Tune)
from rllib_minestudio import MineStudioPPO
from rllib_minestudio.algorithms.reporting import activity_of, key_of_trial
from tests.rllib_contract.researcher import AuxiliaryLearner, as_a_researcher, population

MODULE = "default_policy"


def weights_of_learners(algorithm):
    found = algorithm.learner_group.foreach_learner(lambda learner: learner.policy.get_state())
    return [getattr(state, "get", lambda state=state: state)() for state in found]


def assert_has_the_learners_weights(algorithm):
    module = algorithm.get_module().get_state()
    for weights in weights_of_learners(algorithm):
        assert weights.keys() == module.keys()
        for name, array in weights.items():
            np.testing.assert_array_equal(module[name], array, err_msg=name)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    "num_learners",
    [0, 2],
    ids=["learns_here", "two_learners"],
)
def test_callbacks_a_learner_and_the_policy_of_a_remote_run(
    local_ray, make_config, tmp_path, num_learners
):
    """An env runner in another process, and with two learners those as well."""
    config = as_a_researcher(make_config(num_epochs=1, gradient_accumulation=2))
    config.training(fragments_per_minibatch=1, replay_buffer={"max_staleness": 0})
    config.env_runners(num_env_runners=1).learners(num_learners=num_learners)
    algorithm = config.build_algo()
    try:
        untrained = assert_has_the_learners_weights(algorithm)
        for _ in range(2):
            result = algorithm.train()
        trained = assert_has_the_learners_weights(algorithm)
        assert any((trained[name] != array).any() for name, array in untrained.items())
        here = algorithm.env_runner.module.get_state()
        assert all((here[name] == array).all() for name, array in trained.items())

        played, learnt = result["env_runners"], result["learners"][MODULE]
        # 2 x 8 fragments of 32 steps in episodes of 20.
        assert played["episodes_counted"] == played["num_episodes_lifetime"] == 8 * (64 // 20)
        assert played["rewarded_share"] == pytest.approx(
            played["episode_return_mean"] / 20, abs=0.1
        )
        assert played["fragments"] == 8
        steps = config.fragments_per_iteration // config.gradient_accumulation
        assert learnt["gradient_hooks"] == max(1, num_learners) * steps
        assert learnt["value_penalty"] > 0

        assert algorithm.evaluate()["env_runners"]["num_episodes"] == 10
        assert algorithm.last_evaluated == 10
        checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
        if num_learners:  # the algorithm's own tests roll a remote run back as well
            algorithm.train()
        algorithm.restore_from_path(checkpoint)
        again = assert_has_the_learners_weights(algorithm)
        for name, array in trained.items():
            np.testing.assert_array_equal(again[name], array, err_msg=name)
    finally:
        algorithm.stop()


def test_a_checkpoint_brings_back_callbacks_learner_and_policy(local_ray, make_config, tmp_path):
    algorithm = as_a_researcher(make_config()).build_algo()
    counted = algorithm.train()["env_runners"]["episodes_counted"]
    trained = algorithm.get_module().get_state()
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()
    restored = MineStudioPPO.from_checkpoint(checkpoint)
    assert restored.config.learner_class is AuxiliaryLearner
    again = assert_has_the_learners_weights(restored)
    for name, array in trained.items():
        np.testing.assert_array_equal(again[name], array, err_msg=name)
    result = restored.train()
    restored.stop()
    assert result["env_runners"]["episodes_counted"] > counted
    assert result["learners"][MODULE]["weights_version"] == 2


class Watch(tune.Callback):
    """Notes what the trials of a search tell of themselves, as the progress lines show it."""

    def __init__(self):
        self.seen = set()

    def on_step_begin(self, iteration, trials, **info):
        self.seen |= {activity_of(key_of_trial(trial)).partition(" (")[0] for trial in trials}


@pytest.mark.slow
def test_a_population_changes_the_optimizers_options_and_goes_on_from_checkpoints(
    local_ray, make_config, tmp_path
):
    config = as_a_researcher(make_config(kl_decay=1.0, num_epochs=1, lr=2e-3, kl_coeff=0.003))
    config.training(weight_decay=0.0, fragments_per_iteration=8)
    config.debugging(seed=tune.grid_search([1, 2]))
    watch = Watch()
    results = tune.Tuner(
        "MineStudioPPO",
        param_space=config,
        tune_config=tune.TuneConfig(scheduler=population(interval=1), reuse_actors=False),
        run_config=tune.RunConfig(
            stop={"training_iteration": 2},
            storage_path=str(tmp_path),
            name="search",
            verbose=0,
            callbacks=[watch],
        ),
    ).fit()
    assert not results.errors
    assert "starting env runners and learners" in watch.seen
    changed = 0
    for result in results:
        history = result.metrics_dataframe.sort_values("training_iteration")
        for _, row in history.iterrows():
            options = {name: row[f"config/{name}"] for name in ("lr", "kl_coeff", "weight_decay")}
            in_use = {
                "lr": row["lr_in_use"],
                "kl_coeff": row[f"learners/{MODULE}/kl_coeff"],
                "weight_decay": row["weight_decay_in_use"],
            }
            assert in_use == pytest.approx(options)
            changed += options["lr"] in (1e-3, 3e-3)
            assert row[f"learners/{MODULE}/weights_version"] == row["training_iteration"]
        assert history["training_iteration"].max() == 2
    assert changed
