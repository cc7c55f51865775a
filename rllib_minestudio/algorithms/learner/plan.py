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


def num_minibatches(counts: Sequence[int], per_minibatch: int) -> int:
    """Minibatches of all learners, given how many sequences each of them has."""
    return sum(math.ceil(count / per_minibatch) for count in counts)


def plan_steps(
    order: Sequence[int],
    counts: Sequence[int],
    rank: int,
    *,
    per_minibatch: int,
    accumulation: int,
) -> list[PlannedStep]:
    """Split the sequences that can be trained on into optimizer steps.

    Args:
        order: This learner's, by index, in random order; `counts[rank]` of them.
        counts: How many each learner has.
        rank: Which of the learners this is.
        per_minibatch: Sequences side by side in a forward pass, at most.
        accumulation: Minibatches per step, of all learners together, at most.

    Returns:
        ceil(minibatches / accumulation) steps, whose sizes differ by one sequence at most. Step s
        takes every n-th sequence of all learners, beginning with the s-th, for n steps.
    """
    num_steps = math.ceil(num_minibatches(counts, per_minibatch) / accumulation)
    offsets = [sum(counts[:i]) for i in range(len(counts))]
    steps = []
    for s in range(num_steps):
        firsts = [(s - offset) % num_steps for offset in offsets]
        sizes = [
            len(range(first, count, num_steps)) for first, count in zip(firsts, counts, strict=True)
        ]
        own = list(order[firsts[rank] :: num_steps])
        minibatches = [
            own[i * per_minibatch : (i + 1) * per_minibatch]
            for i in range(math.ceil(max(sizes) / per_minibatch))
        ]
        steps.append(PlannedStep(minibatches, sum(sizes)))
    return steps
