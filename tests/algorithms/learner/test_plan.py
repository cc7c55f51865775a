"""Optimizer steps of nearly equal size, whatever does not divide or was left out."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.algorithms.learner.training_pass import plan_steps


def plans(counts, per_minibatch, accumulation, seed=0):
    """Every learner's plan, and the order: learner k has the sequences (k, i)."""
    order = [(k, i) for k, count in enumerate(counts) for i in range(count)]
    random.Random(seed).shuffle(order)
    limits = {"per_minibatch": per_minibatch, "accumulation": accumulation}
    return [plan_steps(order, len(counts), rank, **limits) for rank in range(len(counts))], order


def test_the_defaults_make_four_steps_of_eight():
    (steps,), _ = plans([32], per_minibatch=1, accumulation=10)
    assert [len(step.minibatches) for step in steps] == [8, 8, 8, 8]


def test_what_was_left_out_makes_all_steps_smaller():
    (steps,), _ = plans([23], per_minibatch=2, accumulation=4)
    assert [step.num_sequences for step in steps] == [8, 8, 7]
    assert [list(map(len, step.minibatches)) for step in steps] == [[2] * 4, [2] * 4, [2, 2, 2, 1]]


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(any),
    per_minibatch=st.integers(1, 6),
    accumulation=st.integers(1, 12),
    seed=st.integers(0, 3),
)
def test_steps_are_even_complete_and_hold_what_one_learners_would(
    counts, per_minibatch, accumulation, seed
):
    everyone, order = plans(counts, per_minibatch, accumulation, seed)
    expected = math.ceil(math.ceil(sum(counts) / per_minibatch) / accumulation)
    assert {len(steps) for steps in everyone} == {expected}
    sizes = [step.num_sequences for step in everyone[0]]
    assert max(sizes) - min(sizes) <= 1 and min(sizes) >= 1
    alone = plan_steps(
        [(0, place) for place in range(len(order))],
        1,
        0,
        per_minibatch=per_minibatch,
        accumulation=accumulation,
    )
    for shares, of_one in zip(zip(*everyone, strict=True), alone, strict=True):
        assert len({len(share.minibatches) for share in shares}) == 1, "they wait for each other"
        assert {share.num_sequences for share in shares} == {of_one.num_sequences}
        held = [
            (rank, row)
            for rank, share in enumerate(shares)
            for minibatch in share.minibatches
            for row in minibatch
        ]
        assert sorted(held) == sorted(order[place] for m in of_one.minibatches for place in m)
    assert all(len(m) <= per_minibatch for steps in everyone for s in steps for m in s.minibatches)
