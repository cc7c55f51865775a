"""A resumed run goes on: with the episodes that come next, and exactly where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ray

from rllib_minestudio.algorithms import MineStudioPPO
from rllib_minestudio.algorithms.fragment import RunnerProgress
from rllib_minestudio.algorithms.training_loop.rollout_requests import RolloutStarts, trial_number
from rllib_minestudio.foundation.episode_seeds import derived_seed
from tests.algorithms.test_checkpoint import fingerprint
from tests.algorithms.toy_envs import AttackOnRed

EPISODE, NUM_ENVS = 20, 8


class TellsItsSeed(AttackOnRed):
    """Says in its last info what seed the episode had."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        self._episode_seed = seed
        return super().reset(seed=seed, options=options)

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        *rest, info = super().step(action)
        return *rest, {**info, "seed": self._episode_seed}


@pytest.fixture
def make(make_config):
    def make(fragment_length=2 * EPISODE, **options):
        config = make_config(
            **{"kl_coeff": 0.2, "fragments_per_iteration": NUM_ENVS, **options}
        ).environment(TellsItsSeed)
        return config.env_runners(rollout_fragment_length=fragment_length)

    return make


def watch(algorithm):
    """Lists the seeds of episodes, in the order in which they end, as (worker, environment, it)."""
    seeds = []
    note = algorithm.experience._on_report

    def on_report(report):
        seeds.extend((report.worker_index, e.env_index, e.info["seed"]) for e in report.episodes)
        note(report)

    algorithm.experience._on_report = on_report
    return seeds


def number_of(worker, env_index, seed):
    """Which of an environment's episodes has this seed."""
    return next(
        k for k in range(1000) if derived_seed(derived_seed(0, worker), env_index, k) == seed
    )


def train(algorithm, iterations):
    for _ in range(iterations):
        result = algorithm.train()
    return result


@pytest.mark.slow
def test_three_and_three_iterations_are_six_to_the_last_bit(local_ray, make, tmp_path):
    """Episodes end at the checkpoint, and nothing is left in the buffer."""
    config = make(num_epochs=2, prior_update_interval=2, ema_decay=0.9)
    whole = config.build_algo()
    played = watch(whole)
    train(whole, 3)
    checkpoint = whole.save_to_path(tmp_path / "checkpoint")
    half = len(played)
    train(whole, 3)
    expected = fingerprint(whole)
    whole.stop()
    resumed = MineStudioPPO.from_checkpoint(checkpoint)
    again = watch(resumed)
    train(resumed, 3)
    assert again == played[half:]
    assert not set(again) & set(played[:half])
    for name, array in fingerprint(resumed).items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    resumed.stop()


def test_one_checkpoint_resumed_twice_gives_the_same_run(local_ray, make, tmp_path):
    """Episodes are cut by the checkpoint, fragments are left over, demonstrations none."""
    config = make(32, fragments_per_iteration=6, replay_buffer={"max_reuse": 2})
    algorithm = config.build_algo()
    first = watch(algorithm)
    train(algorithm, 3)
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    seen = []
    for _ in range(2):
        algorithm.restore_from_path(checkpoint)
        del first[:]
        train(algorithm, 2)
        seen.append((list(first), fingerprint(algorithm)))
    algorithm.stop()
    assert seen[0][0] == seen[1][0]
    for name, array in seen[0][1].items():
        np.testing.assert_array_equal(array, seen[1][1][name], err_msg=name)


@pytest.mark.slow
def test_remote_runners_go_on_after_a_restore_and_after_their_death(local_ray, make, tmp_path):
    config = make(32).env_runners(num_env_runners=2, num_envs_per_env_runner=2)
    algorithm = config.build_algo()
    played = watch(algorithm)
    train(algorithm, 4)
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    before = {(worker, env): number_of(worker, env, seed) for worker, env, seed in played}
    algorithm.stop()

    resumed = MineStudioPPO.from_checkpoint(checkpoint)
    again = watch(resumed)
    train(resumed, 4)
    assert {one[0] for one in again} == {1, 2}
    assert not set(again) & set(played)
    for worker, env, seed in again:
        assert number_of(worker, env, seed) > before[worker, env]

    ray.kill(resumed.env_runner_group._worker_manager.actors()[1], no_restart=False)
    restored = len(again)
    while not any(worker == 1 for worker, _, _ in again[restored:]):
        resumed.train()
    numbers = [number_of(*one) for one in again if one[:2] == (1, 0)]
    # What it was playing when it died may come once more; nothing was trained on that.
    assert numbers == sorted(numbers) and numbers[-1] > before[1, 0] + 1
    resumed.stop()


def test_a_trial_that_copies_another_plays_worlds_of_its_own():
    donor = RolloutStarts(7, trial=0)
    donor._progress[1] = RunnerProgress(3, (5, 6))
    copy = RolloutStarts(7, trial=4)
    copy.set_state(donor.get_state())
    start = copy.of(1)
    assert start.progress == RunnerProgress(3, (5, 6))
    assert (start.restores, start.seed) == (1, derived_seed(7, 4))
    # It stays so when it is itself resumed, whatever happens to it in between.
    resumed = RolloutStarts(7, trial=4)
    resumed.set_state(copy.get_state())
    assert resumed.of(1).seed == start.seed
    own = RolloutStarts(7, trial=0)
    own.set_state(donor.get_state())
    assert own.of(1).seed == 7
    in_python = RolloutStarts(7)
    in_python.set_state(copy.get_state())
    assert in_python.of(1).seed == 7


@pytest.mark.parametrize(
    ("trial_id", "number"), [("4b2a1_00002", 2), ("default", None), (None, None), ("a_b", None)]
)
def test_the_number_of_a_trial(trial_id, number):
    assert trial_number(trial_id) == number
