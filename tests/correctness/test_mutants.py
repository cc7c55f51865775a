"""The suite finds the defects that it was written for: each is put back, and a test must fail.

A defect is put back by replacing the code that mends it. The table says which test kills it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rllib_minestudio.algorithms.learner import learner, objective, policy_learner, training_pass
from rllib_minestudio.algorithms.learner.objective import LossCoefficients
from rllib_minestudio.algorithms.learner.training_pass import PlannedStep
from rllib_minestudio.algorithms.prior import PriorLatents
from tests.correctness import test_accounting, test_gradients, test_prior, test_values


def zeroed_prior_memory(monkeypatch):
    """The prior begins every fragment with an empty memory."""
    advance = PriorLatents.advance

    def forgetful(self, *arguments):
        for tensor in self._memory.values():
            tensor.zero_()
        return advance(self, *arguments)

    monkeypatch.setattr(PriorLatents, "advance", forgetful)


def prior_memory_of_another(monkeypatch):
    """Every environment gets the memory that its neighbour left."""
    advance = PriorLatents.advance

    def confused(self, *arguments):
        for tensor in self._memory.values():
            tensor.copy_(tensor.roll(1, dims=0))
        return advance(self, *arguments)

    monkeypatch.setattr(PriorLatents, "advance", confused)


def stale_bootstrap(monkeypatch):
    """Truncated episodes keep the behaviour policy's bootstrap values."""
    fresh = policy_learner.evaluate

    def evaluate(module, sequences, **options):
        recorded = sequences.bootstrap_value
        return fresh(module, sequences, **options)._replace(bootstrap_value_bt=recorded)

    monkeypatch.setattr(learner, "evaluate", evaluate)


def bootstrap_without_memory(monkeypatch):
    """The final observation is evaluated as if it began an episode."""
    observe = policy_learner._all_observations

    def forgetful(sequences):
        minibatch = observe(sequences)
        for i, places in enumerate(policy_learner._all_places(sequences)):
            minibatch.first[i, places.finals] = True
        return minibatch

    monkeypatch.setattr(policy_learner, "_all_observations", forgetful)


def unweighted_remainder(monkeypatch):
    """Minibatches of a full group each, and what is left over in a step of its own."""

    def plan_steps(order, num_learners, rank, *, per_minibatch, accumulation):
        own = [i for learner, i in order if learner == rank]
        minibatches = [own[i : i + per_minibatch] for i in range(0, len(own), per_minibatch)]
        groups = [
            minibatches[i : i + accumulation] for i in range(0, len(minibatches), accumulation)
        ]
        return [PlannedStep(group, sum(map(len, group))) for group in groups]

    monkeypatch.setattr(training_pass, "plan_steps", plan_steps)


def minibatches_weighed_alike(monkeypatch):
    """Every minibatch counts the same, however many fragments it holds."""
    prepare = training_pass.TrainingPass._minibatch

    def alike(self, prepared, step, rows):
        batch = prepare(self, prepared, step, rows)
        even = step.num_sequences / (len(step.minibatches) * len(rows))
        for share in (batch.share, batch.kl_share):
            share.mul_(even)
        return batch

    monkeypatch.setattr(training_pass.TrainingPass, "_minibatch", alike)


def entropy_in_warmup(monkeypatch):
    """The bonus moves the policy while only the value function is to learn."""
    monkeypatch.setattr(
        learner, "loss_coefficients", lambda _, options, **__: LossCoefficients(
            policy=0.0, kl=1.0, entropy=options.entropy_coeff, publish=False
        )
    )  # fmt: skip


def policy_term_in_warmup(monkeypatch):
    """PPO's term counts in the warmup, too."""
    compute = objective.objective

    def impatient(*, coefficients, **rest):
        return compute(coefficients=coefficients._replace(policy=1.0), **rest)

    monkeypatch.setattr(learner, "objective", impatient)


def versions_that_count_updates(monkeypatch):
    """Unpublished updates make what is played meanwhile look old."""
    update = learner.MineStudioPPOLearner._update_prior

    def count(self, iterations):
        update(self, iterations)
        if not self._is_published:
            self._weights_seq_no += 1

    monkeypatch.setattr(learner.MineStudioPPOLearner, "_update_prior", count)


@dataclass(frozen=True)
class Mutant:
    """A defect, and the test that finds it.

    Attributes:
        mutate: Puts it back.
        test: Fails then.
        arguments: Of the test, besides the fixtures.
    """

    mutate: Any
    test: Any
    arguments: dict[str, Any]


MUTANTS = [
    Mutant(
        zeroed_prior_memory,
        test_prior.test_the_kl_to_itself_is_zero_in_any_order,
        {"order": test_prior.in_order},
    ),
    Mutant(
        prior_memory_of_another,
        test_prior.test_the_kl_to_itself_is_zero_in_any_order,
        {"order": test_prior.one_by_one_at_random},
    ),
    Mutant(
        stale_bootstrap,
        test_values.test_a_value_function_that_warms_up_bootstraps_from_itself,
        {},
    ),
    Mutant(
        bootstrap_without_memory,
        test_values.test_bootstrap_values_are_made_with_the_memory_of_their_step,
        {},
    ),
    Mutant(
        unweighted_remainder,
        test_gradients.test_no_step_weighs_its_fragments_more_than_another,
        {},
    ),
    Mutant(
        minibatches_weighed_alike,
        test_gradients.test_one_step_per_iteration_has_the_gradient_of_one_batch,
        {"drops": {}, "per_minibatch": 2},
    ),
    Mutant(
        entropy_in_warmup,
        test_gradients.test_nothing_but_the_kl_term_moves_the_policy_while_values_warm_up,
        {},
    ),
    Mutant(
        policy_term_in_warmup,
        test_gradients.test_nothing_but_the_kl_term_moves_the_policy_while_values_warm_up,
        {},
    ),
    Mutant(
        versions_that_count_updates,
        test_accounting.test_the_end_of_a_warmup_makes_nothing_stale,
        {},
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mutate.__name__)
def test_a_defect_is_found(mutant, make_harness, monkeypatch):
    mutant.mutate(monkeypatch)
    of_gradients = mutant.test.__module__ == test_gradients.__name__
    make = test_gradients.make_frozen(make_harness) if of_gradients else make_harness
    with pytest.raises(AssertionError):
        mutant.test(make, **mutant.arguments)
