"""Which evaluations are trusted, which are made anew, and what becomes of the behaviour policy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_minestudio.algorithms.batch import stack_fragments
from rllib_minestudio.algorithms.fragment import FragmentRows
from rllib_minestudio.algorithms.targets import Evaluation, add_targets

STEPS = 4


def make_fragment(version, value, logp):
    rows, only, no = FragmentRows(1, STEPS, (8, 8, 3)), np.zeros(1, np.int64), np.zeros(1, bool)
    action = {"buttons": only, "camera": only}
    image = np.zeros((1, 8, 8, 3), np.uint8)
    for _ in range(STEPS):
        rows.write_decision(
            only,
            obs=image,
            first=no,
            action=action,
            logp=logp,
            value=value,
            weights_version=version,
        )
        rows.write_outcome(only, reward=np.ones(1), terminated=no, truncated=no, bootstrap_value={})
    return rows.take(
        0,
        state_in={"mask": np.zeros(1, bool)},
        last_obs=image[0],
        last_first=False,
        last_value=value,
        env_id=str(version),
        index=0,
    )


def evaluate_as(logp, value):
    """Today's weights say the same of every step; remembers how many fragments it was asked."""
    asked = []

    def evaluate(batch, last_image, last_first):
        asked.append(len(batch))
        full = torch.full((len(batch), STEPS), 1.0)
        return Evaluation(full * logp, full * value, full[:, 0] * value)

    return evaluate, asked


def targets(fragments, evaluate, correction="decoupled"):
    return add_targets(
        stack_fragments(fragments, "cpu"),
        fragments,
        prior_latent=None,
        evaluate=evaluate,
        weights_version=5,
        correction=correction,
        truncation=2.0,
        gamma=0.0,
        lambda_=0.0,
    )


def test_only_stale_fragments_are_evaluated_again():
    fresh, stale = make_fragment(5, value=1.0, logp=-1.0), make_fragment(3, value=1.0, logp=-1.0)
    evaluate, asked = evaluate_as(logp=-2.0, value=9.0)
    batch, statistics = targets([fresh, stale], evaluate)
    assert asked == [1]
    assert statistics.recomputed_fragments == 1
    assert batch.proximal_logp[:, 0].tolist() == [-1.0, -2.0]
    assert statistics.value[:, 0].tolist() == [1.0, 9.0]


def test_fresh_fragments_need_no_forward_pass():
    evaluate, asked = evaluate_as(logp=0.0, value=0.0)
    batch, _ = targets([make_fragment(5, value=1.0, logp=-1.0)], evaluate)
    assert asked == []
    assert torch.all(batch.weight == 1.0)


@pytest.mark.parametrize(
    ("correction", "logp", "weight"),
    [("decoupled", -2.0, np.exp(-1.0)), ("decoupled", 3.0, 2.0), ("recompute", -2.0, 1.0)],
    ids=["weighted", "truncated", "forgotten"],
)
def test_the_behaviour_policy_is_weighed_or_forgotten(correction, logp, weight):
    evaluate, _ = evaluate_as(logp=logp, value=0.0)
    batch, _ = targets([make_fragment(4, value=0.0, logp=-1.0)], evaluate, correction)
    np.testing.assert_allclose(batch.weight, weight, rtol=1e-6)
    assert torch.all(batch.logp == -1.0)


def test_value_targets_are_in_units_of_return():
    evaluate, _ = evaluate_as(logp=0.0, value=0.0)
    batch, _ = targets([make_fragment(5, value=0.25, logp=0.0)], evaluate)
    np.testing.assert_allclose(batch.value_target, 1.0)
