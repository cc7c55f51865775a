"""Optimizer steps of nearly equal size, whatever does not divide or was left out."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.algorithms.learner.plan import num_minibatches, plan_steps


def plans(counts, per_minibatch, accumulation):
    """Every learner's plan; learner k's sequences are called (k, i)."""
    return [
        plan_steps(
            [(rank, i) for i in range(count)],
            counts,
            rank,
            per_minibatch=per_minibatch,
            accumulation=accumulation,
        )
        for rank, count in enumerate(counts)
    ]


def test_the_defaults_make_four_steps_of_eight():
    (steps,) = plans([32], per_minibatch=1, accumulation=10)
    assert [len(step.minibatches) for step in steps] == [8, 8, 8, 8]


def test_what_was_left_out_makes_all_steps_smaller():
    (steps,) = plans([23], per_minibatch=2, accumulation=4)
    assert [step.num_sequences for step in steps] == [8, 8, 7]
    assert [list(map(len, step.minibatches)) for step in steps] == [[2] * 4, [2] * 4, [2, 2, 2, 1]]


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(any),
    per_minibatch=st.integers(1, 6),
    accumulation=st.integers(1, 12),
)
def test_steps_are_even_complete_and_the_same_for_all_learners(counts, per_minibatch, accumulation):
    everyone = plans(counts, per_minibatch, accumulation)
    expected = math.ceil(num_minibatches(counts, per_minibatch) / accumulation)
    assert {len(steps) for steps in everyone} == {expected}
    sizes = [step.num_sequences for step in everyone[0]]
    assert max(sizes) - min(sizes) <= 1 and min(sizes) >= 1
    for shares in zip(*everyone, strict=True):
        assert len({len(share.minibatches) for share in shares}) == 1, "they wait for each other"
        assert len({share.num_sequences for share in shares}) == 1
        rows = [row for share in shares for minibatch in share.minibatches for row in minibatch]
        assert len(rows) == shares[0].num_sequences
    trained = [r for steps in everyone for s in steps for m in s.minibatches for r in m]
    assert sorted(trained) == [(k, i) for k, count in enumerate(counts) for i in range(count)]
    assert all(len(m) <= per_minibatch for steps in everyone for s in steps for m in s.minibatches)
