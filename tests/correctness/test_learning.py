"""Problems whose best policy is known, learned by the real learner."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.algorithms.toy_envs import tiny_model
from tests.correctness.problems import Bandit, Problem, Recall


def attack_rate(fragments):
    """How often the attack key was pressed."""
    tokens = np.concatenate([fragment.action["buttons"] for fragment in fragments])
    return np.mean([Problem.attacks({"buttons": token}) for token in tokens])


def tilted_rate(kl_coeff):
    """The attack rate p of the policy that PPO with a KL term ends at, by bisection.

    Its gradient is zero where pi ~ prior * exp(A / kl_coeff). PPO divides advantages by their
    standard deviation, which is sqrt(p (1 - p)) for a reward of 0 or 1, and the prior attacks half
    of the time: logit(p) = 1 / (kl_coeff * sqrt(p (1 - p))).
    """
    low, high = 0.5, 1 - 1e-9
    for _ in range(60):
        p = (low + high) / 2
        if math.log(p / (1 - p)) * kl_coeff * math.sqrt(p * (1 - p)) < 1.0:
            low = p
        else:
            high = p
    return low


@pytest.mark.slow
def test_a_bandit_ends_at_the_tilted_prior(make_harness, kl_coeff=2.0):
    """Neither at the prior (0.5) nor at the arm that pays (1.0)."""
    harness = make_harness(
        Bandit,
        num_envs=16,
        fragment_length=32,
        context_length=32,
        kl_coeff=kl_coeff,
        kl_decay=1.0,
        lr=3e-3,
        num_epochs=2,
    )
    rates = []
    for iteration in range(36):
        fragments = harness.play()
        harness.update(fragments)
        harness.publish()
        rates += [attack_rate(fragments)] * (iteration >= 12)  # it is there by the eighth
    assert np.mean(rates) == pytest.approx(tilted_rate(kl_coeff), abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "solves"), [(4, True), (3, False)])
def test_what_was_seen_three_steps_ago_takes_a_memory_of_four_frames(make_harness, memory, solves):
    """The present frame counts. With one frame less nothing can be learned at all.

    Otherwise it is learned after 14 iterations.
    """
    harness = make_harness(
        Recall,
        {"distance": 3},
        num_envs=16,
        fragment_length=32,
        context_length=16,
        model=tiny_model(attention_memory_size=16 + memory),
        prior=None,
        kl_coeff=0.0,
        gamma=0.99,
        num_epochs=2,
        lr=3e-3,
    )
    rewards = []
    for _ in range(32):
        fragments = harness.play()
        harness.update(fragments)
        harness.publish()
        ends = np.concatenate([f.terminated for f in fragments])
        rewards.append(np.concatenate([f.reward for f in fragments])[ends].mean())
    reached = np.mean(rewards[-8:])
    assert (reached > 0.85) if solves else (0.4 < reached < 0.6)
