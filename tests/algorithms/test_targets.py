"""Which evaluations are trusted, which are made anew, and what becomes of the behaviour policy."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rllib_minestudio.algorithms.fragment import FragmentRows
from rllib_minestudio.algorithms.learner.batch import stack_fragments
from rllib_minestudio.algorithms.learner.targets import Evaluation, add_targets

STEPS = 4


def make_fragment(version, value, logp, *, env_id=None, index=0, reward=1.0):
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
        rows.write_outcome(
            only, reward=np.full(1, reward), terminated=no, truncated=no, bootstrap_value={}
        )
    return rows.take(
        0,
        state_in={"mask": np.zeros(1, bool)},
        last_obs=image[0],
        last_first=False,
        last_value=value,
        env_id=env_id or str(version),
        index=index,
    )


def evaluate_as(logp, value):
    """Today's weights say the same of every step; remembers how many fragments it was asked."""
    asked = []

    def evaluate(batch, last_image, last_first):
        asked.append(len(batch))
        full = torch.full((len(batch), STEPS), 1.0)
        return Evaluation(full * logp, full * value, full[:, 0] * value)

    return evaluate, asked


def targets(fragments, evaluate, correction="decoupled", *, excluded=None, join=1, **options):
    return add_targets(
        stack_fragments(fragments, "cpu", join=join),
        fragments,
        excluded=excluded or [False] * (len(fragments) // join),
        prior_latent=None,
        evaluate=evaluate,
        weights_version=5,
        options=SimpleNamespace(
            off_policy_correction=correction,
            importance_weight_truncation=2.0,
            **{"reuse_stored_values": False, "gamma": 0.0, "lambda_": 0.0, **options},
        ),
    )


def test_only_stale_fragments_are_evaluated_again():
    fresh, stale = make_fragment(5, value=1.0, logp=-1.0), make_fragment(3, value=1.0, logp=-1.0)
    evaluate, asked = evaluate_as(logp=-2.0, value=9.0)
    batch, statistics = targets([fresh, stale], evaluate)
    assert asked == [1]
    assert statistics.evaluated_rows == 1
    assert batch.proximal_logp[:, 0].tolist() == [-1.0, -2.0]
    assert statistics.value[:, 0].tolist() == [1.0, 9.0]


def test_fresh_fragments_need_no_forward_pass():
    evaluate, asked = evaluate_as(logp=0.0, value=0.0)
    batch, _ = targets([make_fragment(5, value=1.0, logp=-1.0)], evaluate)
    assert asked == []
    assert torch.all(batch.weight == 1.0)


@pytest.mark.parametrize(
    ("correction", "logp", "weight"),
    [
        ("decoupled", -2.0, np.exp(-1.0)),
        ("decoupled", 3.0, 2.0),
        ("recompute", -2.0, 1.0),
        ("none", -2.0, 1.0),
    ],
    ids=["weighted", "truncated", "forgotten", "left alone"],
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


def test_without_correction_the_ratio_is_to_the_behaviour_policy():
    evaluate, _ = evaluate_as(logp=-2.0, value=9.0)
    batch, statistics = targets([make_fragment(3, value=1.0, logp=-1.0)], evaluate, "none")
    assert torch.all(batch.proximal_logp == -1.0)
    assert torch.all(statistics.value == 9.0), "the values are those of today"


def test_stored_values_can_be_reused_however_stale():
    evaluate, asked = evaluate_as(logp=-2.0, value=9.0)
    fragments = [make_fragment(3, value=1.0, logp=-1.0)]
    _, statistics = targets(fragments, evaluate, "none", reuse_stored_values=True)
    assert asked == []
    assert torch.all(statistics.value == 1.0)


def test_joined_fragments_are_one_row_through_which_advantages_run():
    fragments = [make_fragment(5, 0.0, 0.0, env_id="a", index=i, reward=i) for i in (1, 2)]
    batch, _ = targets(fragments, None, join=2, gamma=0.5, lambda_=1.0)
    assert batch.value_target.shape == (1, 2 * STEPS)
    first = sum(0.5**k for k in range(STEPS)) + 2.0 * sum(0.5**k for k in range(STEPS, 2 * STEPS))
    assert batch.value_target[0, 0].item() == pytest.approx(first)


def test_one_stale_fragment_makes_its_row_stale():
    fragments = [make_fragment(version, 1.0, -1.0, env_id="a") for version in (4, 5)]

    def evaluate(batch, last_image, last_first):
        ones = torch.ones(1, 2 * STEPS)
        return Evaluation(-2.0 * ones, 9.0 * ones, ones[:, 0])

    batch, statistics = targets(fragments, evaluate, join=2)
    assert statistics.evaluated_rows == 1
    assert torch.all(batch.proximal_logp == -2.0)


@pytest.mark.parametrize("spoilt", ["reward", "value", "logp", "bootstrap_value", "state_in"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_row_with_a_number_that_is_not_finite_is_masked(spoilt, number):
    fragments = [make_fragment(5, value=1.0, logp=-1.0, env_id=name) for name in "abc"]
    if spoilt == "state_in":
        fragments = [
            replace(f, state_in={"keys": np.full(2, number if f.env_id == "b" else 0, np.float32)})
            for f in fragments
        ]
    else:
        getattr(fragments[1], spoilt)[2] = number
        fragments[1].truncated[2] = True  # without it nobody reads the bootstrap value
    batch, statistics = targets(fragments, None)
    assert statistics.nonfinite.tolist() == [False, True, False]
    assert batch.mask[:, 0].tolist() == [1.5, 0.0, 1.5], "means are over the others"
    for tensor in batch.tensors():
        assert torch.isfinite(tensor).all()
    assert torch.isfinite(statistics.value).all()


def test_an_excluded_row_has_no_part_in_anything():
    fragments = [
        make_fragment(5, value, logp=-1.0, env_id=str(i)) for i, value in enumerate((0, 1, 7))
    ]
    batch, _ = targets(fragments, None, excluded=[False, False, True])
    two, _ = targets(fragments[:2], None)
    assert torch.all(batch.mask[2] == 0.0)
    torch.testing.assert_close(batch.advantage[:2], two.advantage)
