"""What a run says early about whether the agent learns."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from rllib_minestudio.experiments.progress import (
    CONFIDENCE,
    LearningSigns,
    Returns,
    margin,
    what_to_look_at,
)

RANDOM_RETURNS = [2.0, 1.0, 3.0, 2.0, 2.0, 0.0, 4.0, 2.0, 3.0, 1.0]  # mean 2
STOP = {"time_total_s": 720.0}


def result_of(mean, *, seconds=60.0, episodes=40, entropy=13.8, least=0.0, most=5.0, iteration=50):
    return {
        "training_iteration": iteration,
        "time_total_s": seconds,
        "num_env_steps_sampled_lifetime": 30_000,
        "env_runners": {
            "episode_return_mean": mean,
            "episode_return_min": least,
            "episode_return_max": most,
            "episode_count": episodes,
        },
        "learners": {"default_policy": {"entropy": entropy}},
    }


@pytest.fixture
def told(capsys):
    """Feeds results to the callback, one list per call, and returns what it printed."""
    signs = LearningSigns(STOP, [], RANDOM_RETURNS, window=20)
    trial = SimpleNamespace(path="nowhere", trial_id="one", config={})

    def tell(*results):
        for number, result in enumerate(results):
            signs.on_trial_result(number, [trial], trial, result)
        return capsys.readouterr().out.splitlines()

    return tell


def test_policies_that_are_no_better_differ_by_more_than_the_margin_as_rarely_as_it_says():
    rng = np.random.default_rng(0)
    beyond = 0
    for _ in range(1000):
        random, agent = rng.poisson(1.0, 20).astype(float), rng.poisson(1.0, 20).astype(float)
        known = Returns(agent.mean(), agent.min(), agent.max(), 20)
        beyond += abs(agent.mean() - random.mean()) > margin(known, random.tolist())
    assert beyond / 1000 <= 1 - CONFIDENCE


def test_the_margin_shrinks_with_the_number_of_episodes():
    few, many = (margin(Returns(2.0, 0.0, 4.0, n), RANDOM_RETURNS * (n // 10)) for n in (10, 100))
    assert 0 < many < few / 3


def test_one_success_proves_nothing_beside_a_random_policy_that_has_none():
    assert margin(Returns(0.05, 0.0, 1.0, 20), [0.0] * 20) > 0.05
    assert margin(Returns(0.5, 0.0, 1.0, 20), [0.0] * 20) < 0.5


def test_an_agent_that_learns_is_told_of_once(told):
    (line,) = told(result_of(2.1), result_of(4.9, seconds=125), result_of(5.0, seconds=130))
    assert line.startswith("It learns: a return of 4.90 in the last 20 episodes")
    assert "2:05 and 30,000 steps" in line


def test_a_few_updates_are_no_evidence(told):
    assert told(result_of(2.1, seconds=700, iteration=19)) == []
    (line,) = told(result_of(2.1, seconds=710, iteration=20))
    assert line.startswith("It does not learn yet")


def test_one_that_does_not_is_told_of_at_a_quarter_of_the_run_with_advice(told):
    assert told(result_of(2.1, seconds=170)) == []
    (line,) = told(result_of(2.1, seconds=190), result_of(2.2, seconds=200))
    assert line.startswith("It does not learn yet: a return of 2.10")
    assert "hardly moved" in line
    assert "docs/learning.md" in line
    (late,) = told(result_of(4.9, seconds=400))
    assert late.startswith("It learns")


def test_nothing_is_said_after_too_few_episodes(told):
    assert told(result_of(9.0, episodes=9), result_of(None, seconds=500)) == []


def test_nothing_is_said_without_a_random_policy_to_compare_with(capsys):
    signs, trial = (
        LearningSigns(STOP, [], [2.0], window=20),
        SimpleNamespace(path="nowhere", trial_id="one"),
    )
    signs.on_trial_result(0, [trial], trial, result_of(9.0))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("returns", "entropy", "advice"),
    [
        ((0.0, 0.0, 0.0), 11.0, "no episode had any reward"),
        ((0.4, 0.0, 5.0), 11.0, "worse than random"),
        ((2.0, 0.0, 5.0), 13.7, "hardly moved"),
        ((2.0, 0.0, 5.0), 11.0, "does not improve yet"),
        ((2.0, 0.0, 5.0), None, "metrics of the learner"),
    ],
)
def test_the_advice_fits_the_numbers(returns, entropy, advice):
    agent = Returns(*returns, episodes=20)
    assert advice in what_to_look_at(agent, 1.0, entropy, first_entropy=13.8)


def test_trials_of_a_search_are_told_apart(capsys):
    signs = LearningSigns(STOP, [("lr",)], RANDOM_RETURNS, window=20)
    for name, lr in (("one", 1e-4), ("two", 1e-3)):
        trial = SimpleNamespace(path="nowhere", trial_id=name, config={"lr": lr})
        signs.on_trial_result(0, [trial], trial, result_of(4.9))
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("[lr=0.0001] It learns")
    assert second.startswith("[lr=0.001] It learns")


def test_a_resumed_trial_has_moved_since_its_first_iteration_not_since_it_was_resumed(
    capsys, tmp_path
):
    earlier = [{**result_of(2.0), "training_iteration": 1, "learners": {}}]
    earlier += [
        {**result_of(2.0, entropy=e), "training_iteration": n} for n, e in ((2, 13.8), (3, 12.0))
    ]
    (tmp_path / "result.json").write_text("".join(json.dumps(r) + "\n" for r in earlier))
    signs = LearningSigns(STOP, [], RANDOM_RETURNS, window=20)
    trial = SimpleNamespace(trial_id="one", config={}, path=str(tmp_path))
    result = {**result_of(2.0, seconds=400, entropy=12.0), "training_iteration": 24}
    signs.on_trial_result(0, [trial], trial, result)
    assert "policy changes (its entropy is 12.00 nats, 13.80 at first)" in capsys.readouterr().out


def test_it_survives_the_pickling_that_resume_relies_on(capsys):
    signs = pickle.loads(pickle.dumps(LearningSigns(STOP, [], RANDOM_RETURNS, window=20)))
    signs.on_trial_result(
        0, [], SimpleNamespace(path="nowhere", trial_id="one", config={}), result_of(4.9)
    )
    assert "It learns" in capsys.readouterr().out
