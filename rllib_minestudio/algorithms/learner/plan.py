"""Which sequences make which optimizer step: a pure function, the same for every learner.

An iteration is split into as few steps as `gradient_accumulation` allows, and all of them are of
nearly equal size, whatever does not divide or had to be left out: a last step that averaged over
two sequences instead of ten would give each of them five times the weight of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class PlannedStep(NamedTuple):
    """One learner's part of one optimizer step.

    Attributes:
        minibatches: Sequences by index. Every learner has equally many minibatches; one that has
            run out of sequences has empty ones.
        num_sequences: Of all learners together.
    """

    minibatches: list[list[int]]
    num_sequences: int


def plan_steps(
    order: Sequence[tuple[int, int]],
    num_learners: int,
    rank: int,
    *,
    per_minibatch: int,
    accumulation: int,
) -> list[PlannedStep]:
    """Split the sequences that can be trained on into optimizer steps.

    A step holds the sequences that it would hold if one learner had them all.

    Args:
        order: The sequences of all learners in random order, each as (learner, index there); the
            same for every learner.
        num_learners: How many there are.
        rank: Which of the learners this is.
        per_minibatch: Sequences side by side in a learner's forward pass, at most.
        accumulation: Minibatches per step, of all learners together, at most, if each holds its
            share of the step. Who holds more may need more minibatches; the others get empty ones.

    Returns:
        ceil(minibatches / accumulation) steps, whose sizes differ by one sequence at most. Step s
        takes every n-th sequence, beginning with the s-th, for n steps.
    """
    num_steps = math.ceil(math.ceil(len(order) / per_minibatch) / accumulation)
    steps = []
    for s in range(num_steps):
        members = order[s::num_steps]
        shares: list[list[int]] = [[] for _ in range(num_learners)]
        for learner, index in members:
            shares[learner].append(index)
        count = math.ceil(max(map(len, shares)) / per_minibatch)
        own = shares[rank]
        minibatches = [own[i * per_minibatch : (i + 1) * per_minibatch] for i in range(count)]
        steps.append(PlannedStep(minibatches, len(members)))
    return steps
