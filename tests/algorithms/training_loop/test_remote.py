"""Env runners and learner in processes of their own."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import ray
import safetensors.numpy

from rllib_minestudio.algorithms.fragment import CompressedFragment, Fragment
from rllib_minestudio.algorithms.training_loop.fragment_source import LOOK_EVERY, MUCH, Lead, Waste
from rllib_minestudio.algorithms.training_loop.replay_buffer import BufferCounts
from tests.algorithms.actors import kill, process_of


def accounted_for(counts: dict[str, float]) -> bool:
    ends = ("evicted", "used_up", "dropped_stale", "dropped_unreadable", "dropped_incomplete")
    return counts["added"] == counts["occupancy"] + sum(counts[end] for end in ends)


def test_without_staleness_runners_and_learner_take_turns(local_ray, make_config):
    config = make_config(replay_buffer={"max_fragments": 64, "max_staleness": 0})
    config = config.env_runners(num_env_runners=2, num_envs_per_env_runner=4)
    algorithm = config.learners(num_learners=1, num_cpus_per_learner=1).build_algo()
    for _ in range(3):
        result = algorithm.train()
    steps = 3 * config.env_steps_per_iteration
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] == steps
    counts = result["replay_buffer"]
    assert counts["added"] == counts["used_up"] == 3 * config.fragments_per_iteration
    assert result["learners"]["default_policy"]["weights_version"] == 3
    assert counts["staleness_max"] == 0
    versions = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: (runner._collector.env_ids[0], runner._weights_seq_no),
        local_env_runner=False,
    )
    assert sorted(versions) == [("1-0", 2), ("2-0", 2)]  # the third awaits their next rollout
    algorithm.stop()


@pytest.mark.parametrize("remote", [0, 1])
def test_weights_are_published_at_intervals_and_staleness_counts_these(
    local_ray, make_config, remote
):
    config = make_config(publication_interval=2)
    config = config.env_runners(num_env_runners=remote)
    config = config.learners(num_learners=remote, num_cpus_per_learner=1)
    algorithm = config.build_algo()
    versions, acting = [], []
    for _ in range(4):
        result = algorithm.train()["learners"]["default_policy"]
        versions.append(result["weights_version"])
        acting.append(weights_of(algorithm.get_module().get_state()))
        assert result["staleness_max"] <= 1
    assert versions == [0, 1, 1, 2]
    same = [np.array_equal(one, other) for one, other in pairwise(acting)]
    assert same == [False, True, False]
    trained = algorithm.learners.publication()[1]
    trained = ray.get(trained) if remote else trained
    found = trained["rl_module"]["default_policy"]
    np.testing.assert_array_equal(weights_of(found), acting[-1])
    algorithm.stop()


def test_weights_are_published_no_sooner_than_the_seconds_say(local_ray, make_config):
    algorithm = make_config(publication_interval_s=1e6).build_algo()
    assert not algorithm._is_to_publish()
    algorithm._published_at -= 1e6
    assert algorithm._is_to_publish()
    assert algorithm.train()["learners"]["default_policy"]["weights_version"] == 1
    assert algorithm.train()["learners"]["default_policy"]["weights_version"] == 1
    algorithm.stop()


@pytest.mark.parametrize(
    ("runners", "learners"),
    [
        pytest.param(1, 1),
        pytest.param(0, 1, marks=pytest.mark.slow),
        pytest.param(1, 0, marks=pytest.mark.slow),
    ],
)
def test_compressed_fragments_train_to_the_same_bits(local_ray, make_config, runners, learners):
    trained = []
    for compress_observations in (False, True):
        config = make_config(replay_buffer={"max_fragments": 64, "max_staleness": 0})
        config = config.env_runners(
            num_env_runners=runners, compress_observations=compress_observations
        )
        algorithm = config.learners(num_learners=learners, num_cpus_per_learner=1).build_algo()
        add, kinds = algorithm.replay_buffer.add, set()

        def watched(payload, *, add=add, kinds=kinds, **facts):
            kinds.add(type(ray.get(payload)))
            add(payload, **facts)

        algorithm.replay_buffer.add = watched
        for _ in range(2):
            algorithm.train()
        assert kinds == {CompressedFragment if compress_observations else Fragment}
        trained.append(weights_of(algorithm.get_module().get_state()))
        trained.append(weights_of(learner_states(algorithm)[0]["rl_module"]["default_policy"]))
        algorithm.stop()
    np.testing.assert_array_equal(trained[:2], trained[2:])


def test_a_learners_state_is_saved_no_sooner_than_the_seconds_say(local_ray, make_config):
    config = make_config(learner_state_interval_s=1e6)
    algorithm = config.learners(num_learners=1, num_cpus_per_learner=1).build_algo()
    start = steps_of(algorithm)
    for _ in range(2):
        algorithm.train()
    in_one = (steps_of(algorithm) - start) / 2
    kill(process_of(algorithm.learner_group._workers[0]))
    algorithm.train()
    assert steps_of(algorithm) == start + in_one  # two are lost
    algorithm.learners._state_at -= 1e6
    algorithm.train()
    kill(process_of(algorithm.learner_group._workers[0]))
    algorithm.train()
    assert steps_of(algorithm) == start + 3 * in_one
    algorithm.stop()


def steps_of(algorithm):
    """Steps that the optimizer has done."""
    (state,) = learner_states(algorithm)
    moments = state["optimizer"]["default_policy_default_optimizer"]["state"]["state"].values()
    return max((float(moment["step"]) for moment in moments), default=0.0)


def weights_of(module_state):
    """All weights in one row."""
    return np.concatenate([np.asarray(part).ravel() for _, part in sorted(module_state.items())])


@pytest.mark.slow
def test_quick_runners_wait_instead_of_playing_never_sampled(local_ray, make_config):
    """The buffer is as large as it is by default, and the learner slow."""
    config = make_config(fragments_per_iteration=32, num_epochs=4)
    config.training(replay_buffer={"max_fragments": None})
    config = config.env_runners(
        num_env_runners=1, num_envs_per_env_runner=8, rollout_fragment_length=16
    )
    algorithm = config.build_algo()
    for _ in range(12):
        counts = algorithm.train()["replay_buffer"]
        assert accounted_for(counts)
    algorithm.stop()
    assert counts["added"] >= 12 * 32
    assert counts["never_sampled"] <= 0.1 * counts["added"]


@pytest.mark.parametrize(("max_staleness", "most"), [(0, 8), (1, 8), (2, 16), (3, 24)])
def test_runners_get_ahead_of_a_learner_that_has_to_wait(max_staleness, most):
    lead = Lead(8, max_staleness, step=4)
    assert lead.allowed(learner_waits=False) == 8
    for iteration in range(1, 8):
        assert lead.allowed(learner_waits=True) == most + 8 + 4  # an iteration, and a rollout more
        lead.follow()
        assert lead.allowed(learner_waits=False) == min(8 + 4 * iteration, most)
    for iteration in range(1, 8):
        lead.follow()  # it did not wait
        assert lead.allowed(learner_waits=False) == max(most - 4 * iteration, 8)


def test_waste_is_told_once(caplog):
    waste, counts = Waste(), BufferCounts()
    for step in range(4):
        counts.added += LOOK_EVERY
        counts.never_sampled += int((MUCH if step < 2 else 2 * MUCH) * LOOK_EVERY)
        with caplog.at_level(logging.WARNING):
            waste.look_at(counts)
        assert len(caplog.records) == (step >= 2)
    assert f"Of the last {LOOK_EVERY} fragments" in caplog.text


@pytest.mark.slow
def test_runners_play_on_while_the_learner_in_this_process_trains(local_ray, make_config, tmp_path):
    config = make_config(replay_buffer={"max_fragments": 64, "max_staleness": 2, "max_reuse": 2})
    config = config.env_runners(num_env_runners=2, num_envs_per_env_runner=4)
    algorithm = config.build_algo()
    prefetched = 0
    for iteration in range(10):
        if iteration == 3:
            checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
        result = algorithm.train()
        counts = result["replay_buffer"]
        assert accounted_for(counts)
        assert counts["staleness_max"] <= 2
        assert counts["occupancy"] + counts["fragments_under_way"] <= 64
        assert sum(counts["staleness"].values()) == pytest.approx(1)
        assert sum(counts["reuse"].values()) == pytest.approx(1)
        prefetched += result["learners"]["default_policy"]["prefetched"]
    assert prefetched > 0
    # Runners that waited play with the newest weights as soon as there is something to play.
    for _ in range(100):
        algorithm.replay_buffer.clear()
        algorithm.experience.meanwhile(0.1)
        if 10 in acting_versions(algorithm):
            break
    else:
        pytest.fail("no runner has the newest weights")

    # After a rollback, the runners get older weights, and what they played before is not used.
    while algorithm.experience.requests.fragments_under_way == 0:  # the buffer was full
        algorithm.train()
    algorithm.restore_from_path(checkpoint)
    assert algorithm.weights_version == 3
    assert len(algorithm.replay_buffer) == 0
    result = algorithm.train()
    assert result["replay_buffer"]["rollouts_void"] > 0
    assert 0 <= result["replay_buffer"]["staleness_max"] <= 1
    assert set(acting_versions(algorithm)) <= {3, 4}
    algorithm.stop()


def acting_versions(algorithm):
    return algorithm.env_runner_group.foreach_env_runner(
        lambda runner: runner._weights_seq_no, local_env_runner=False
    )


@pytest.mark.slow
def test_several_learners_train_on_joined_reused_and_stale_fragments_and_lose_one(
    local_ray, make_config, tmp_path
):
    config = make_config(
        fragments_per_minibatch=1,
        gradient_accumulation=2,
        ema_decay=0.9,
        replay_buffer={
            "max_fragments": 64, "max_reuse": 2, "max_staleness": 3, "fragments_per_chunk": 2
        },
    )  # fmt: skip
    config = config.env_runners(num_env_runners=1).learners(num_learners=2, num_cpus_per_learner=1)
    algorithm = config.build_algo()
    for _ in range(4):
        result = algorithm.train()["learners"]
    assert result["default_policy"]["weights_version"] == 4
    assert result["default_policy"]["staleness_max"] <= 3
    trained = result["__all_modules__"]["num_env_steps_trained_lifetime"]
    assert trained == 4 * config.env_steps_per_iteration
    first, second = learner_states(algorithm)
    for name, array in first["rl_module"]["default_policy"].items():
        np.testing.assert_array_equal(second["rl_module"]["default_policy"][name], array)

    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    average = safetensors.numpy.load_file(Path(checkpoint, "policy_average", "model.safetensors"))
    assert average.keys() == first["weight_average"].keys()
    for name, array in first["weight_average"].items():
        np.testing.assert_array_equal(average[name], array, err_msg=name)
    algorithm.train()
    algorithm.restore_from_path(checkpoint)
    for state in learner_states(algorithm):
        for part in ("rl_module", "weight_average"):
            expected, found = first[part], state[part]
            if part == "rl_module":
                expected, found = expected["default_policy"], found["default_policy"]
            for name, array in expected.items():
                np.testing.assert_array_equal(found[name], array, err_msg=f"{part}/{name}")
    assert algorithm.train()["learners"]["default_policy"]["weights_version"] == 5

    # One is killed: both are built anew, and do the update again that it was missing from.
    kill(process_of(algorithm.learner_group._workers[1]))
    result = algorithm.train()
    assert result["restarts"]["learner_died"] == 1
    assert result["learners"]["default_policy"]["weights_version"] == 6
    first, second = (state["rl_module"]["default_policy"] for state in learner_states(algorithm))
    for name, array in first.items():
        np.testing.assert_array_equal(second[name], array)
    algorithm.stop()


def learner_states(algorithm):
    results = algorithm.learner_group.foreach_learner(lambda learner: learner.get_state())
    return [result.get() for result in results]
