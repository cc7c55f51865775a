"""GAE against arithmetic done by hand, and against a loop written the obvious way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_minestudio.algorithms.learner.gae import compute_gae

NAN = float("nan")


def gae(reward, value, *, terminated=(), truncated=(), bootstrap=None, last, gamma, lambda_):
    """`compute_gae` for one fragment, ends given as step numbers."""
    steps = len(reward)
    ends = lambda numbers: np.isin(np.arange(steps), list(numbers))[None]  # noqa: E731
    return compute_gae(
        reward_bt=np.array([reward]),
        value_bt=np.array([value]),
        terminated_bt=ends(terminated),
        truncated_bt=ends(truncated),
        bootstrap_value_bt=np.array([bootstrap or [NAN] * steps]),
        last_value_b=np.array([last]),
        gamma=gamma,
        lambda_=lambda_,
    )


def test_fragment_border_bootstraps_from_the_last_value():
    result = gae([1.0, 2.0], [0.5, 0.25], last=4.0, gamma=0.5, lambda_=0.5)
    last = 2.0 + 0.5 * 4.0 - 0.25
    first = (1.0 + 0.5 * 0.25 - 0.5) + 0.25 * last
    np.testing.assert_allclose(result.advantage_bt, [[first, last]])
    np.testing.assert_allclose(result.value_target_bt, [[first + 0.5, last + 0.25]])


def test_termination_is_worth_nothing_and_cuts_the_trace():
    result = gae(
        [1.0, 2.0, 8.0], [0.5, 0.25, 3.0], terminated=[1], last=9.0, gamma=0.5, lambda_=0.5
    )
    assert result.advantage_bt[0, 1] == pytest.approx(2.0 - 0.25)
    assert result.advantage_bt[0, 2] == pytest.approx(8.0 + 0.5 * 9.0 - 3.0)


def test_truncation_is_worth_its_bootstrap_value_and_cuts_the_trace():
    result = gae(
        [1.0, 2.0, 8.0],
        [0.5, 0.25, 3.0],
        truncated=[1],
        bootstrap=[NAN, 7.0, NAN],
        last=9.0,
        gamma=0.5,
        lambda_=0.5,
    )
    assert result.advantage_bt[0, 1] == pytest.approx(2.0 + 0.5 * 7.0 - 0.25)


def test_truncation_at_the_border_ignores_the_next_episode():
    result = gae([2.0], [0.25], truncated=[0], bootstrap=[7.0], last=1e9, gamma=0.5, lambda_=0.5)
    assert result.advantage_bt[0, 0] == pytest.approx(2.0 + 0.5 * 7.0 - 0.25)


def test_termination_wins_over_truncation():
    result = gae(
        [2.0], [0.25], terminated=[0], truncated=[0], bootstrap=[7.0], last=1.0, gamma=1, lambda_=1
    )
    assert result.advantage_bt[0, 0] == pytest.approx(1.75)


def test_lambda_one_is_the_monte_carlo_return():
    result = gae([1.0] * 5, [0.3] * 5, terminated=[4], last=0.0, gamma=0.9, lambda_=1.0)
    returns = [sum(0.9**k for k in range(5 - t)) for t in range(5)]
    np.testing.assert_allclose(result.value_target_bt[0], returns, rtol=1e-6)


def test_a_value_function_that_is_right_leaves_no_advantage():
    gamma = 0.9
    value = [1.0 / (1.0 - gamma)] * 6
    result = gae([1.0] * 6, value, last=value[0], gamma=gamma, lambda_=0.95)
    np.testing.assert_allclose(result.advantage_bt, 0.0, atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 12),
    gamma=st.floats(0, 1),
    lambda_=st.floats(0, 1),
)
def test_equals_the_recursion_step_by_step(seed, steps, gamma, lambda_):
    rng = np.random.default_rng(seed)
    reward, value, bootstrap = rng.normal(size=(3, 2, steps))
    terminated, truncated = rng.random((2, 2, steps)) < 0.2
    last = rng.normal(size=2)
    result = compute_gae(
        reward_bt=reward,
        value_bt=value,
        terminated_bt=terminated,
        truncated_bt=truncated,
        bootstrap_value_bt=np.where(truncated, bootstrap, NAN),
        last_value_b=last,
        gamma=gamma,
        lambda_=lambda_,
    )
    for b in range(2):
        advantage = 0.0
        for t in reversed(range(steps)):
            if terminated[b, t]:
                advantage = reward[b, t] - value[b, t]
            elif truncated[b, t]:
                advantage = reward[b, t] + gamma * bootstrap[b, t] - value[b, t]
            else:
                after = last[b] if t == steps - 1 else value[b, t + 1]
                carried = 0.0 if t == steps - 1 else advantage
                advantage = reward[b, t] + gamma * after - value[b, t] + gamma * lambda_ * carried
            assert result.advantage_bt[b, t] == pytest.approx(advantage, abs=1e-4)
