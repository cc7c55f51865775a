"""Which evaluations are trusted, which are made anew, and what becomes of the behaviour policy."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rllib_minestudio.algorithms.fragment import FragmentBuilder
from rllib_minestudio.algorithms.learner.batch import sequences_of
from rllib_minestudio.algorithms.learner.value_targets import Evaluation, compute_targets
from rllib_minestudio.foundation.observations import ObservationPart

STEPS = 4


def make_fragment(version, value, logp, *, env_id=None, index=0, reward=1.0):
    parts = {"image": ObservationPart((8, 8, 3), np.dtype(np.uint8))}
    rows = FragmentBuilder(1, STEPS, parts, ["buttons", "camera"])
    only, no = np.zeros(1, np.int64), np.zeros(1, bool)
    action = {"buttons": only, "camera": only}
    image = np.zeros((1, 8, 8, 3), np.uint8)
    for _ in range(STEPS):
        rows.write_decision(
            only,
            obs={"image": image},
            first=no,
            action=action,
            logp=logp,
            value=value,
            weights_version=version,
            episode=only,
        )
        rows.write_outcome(
            only,
            reward=np.full(1, reward),
            terminated=no,
            truncated=no,
            final_obs={},
            bootstrap_value={},
        )
    return rows.take(
        0,
        state_in={"mask": np.zeros(1, bool)},
        last_obs={"image": image[0]},
        last_first=False,
        last_value=value,
        env_id=env_id or str(version),
        index=index,
    )


def evaluate_as(logp, value, bootstrap_value=np.nan):
    """Today's weights say the same of every step; remembers how many sequences it was asked."""
    asked = []

    def evaluate(sequences):
        asked.append(len(sequences))
        full = np.ones((len(sequences), sequences.num_steps), np.float32)
        return Evaluation(full * logp, full * value, full * bootstrap_value, full[:, 0] * value)

    return evaluate, asked


def targets(fragments, evaluate, correction="decoupled", *, excluded=None, join=1, **options):
    return compute_targets(
        sequences_of(fragments, join),
        excluded=excluded or [False] * (len(fragments) // join),
        evaluate=evaluate,
        current_version=options.pop("current_version", 5),
        options=SimpleNamespace(
            off_policy_correction=correction,
            importance_weight_truncation=2.0,
            **{"gamma": 0.0, "lambda_": 0.0, **options},
        ),
    )


def test_only_stale_fragments_are_evaluated_again():
    fresh, stale = make_fragment(5, value=1.0, logp=-1.0), make_fragment(3, value=1.0, logp=-1.0)
    evaluate, asked = evaluate_as(logp=-2.0, value=9.0)
    result = targets([fresh, stale], evaluate)
    assert asked == [1]
    assert result.num_evaluated == 1
    assert result.proximal_logp_bt[:, 0].tolist() == [-1.0, -2.0]
    assert result.value_bt[:, 0].tolist() == [1.0, 9.0]


def test_fresh_fragments_need_no_forward_pass():
    evaluate, asked = evaluate_as(logp=0.0, value=0.0)
    result = targets([make_fragment(5, value=1.0, logp=-1.0)], evaluate)
    assert asked == []
    assert torch.all(result.weight_bt == 1.0)


@pytest.mark.parametrize(
    ("fragment", "current_version"),
    [
        (make_fragment(5, value=1.0, logp=-1.0), None),
        (replace(make_fragment(5, value=1.0, logp=-1.0), weights_version_max=6), 5),
        (make_fragment(6, value=1.0, logp=-1.0), 5),
    ],
    ids=["the weights moved on unpublished", "two weights acted in it", "of a run rolled back"],
)
def test_whatever_other_weights_played_is_evaluated_again(fragment, current_version):
    evaluate, asked = evaluate_as(logp=-2.0, value=9.0)
    result = targets([fragment], evaluate, current_version=current_version)
    assert asked == [1]
    assert torch.all(result.value_bt == 9.0)


def test_a_truncated_episode_is_worth_what_todays_weights_say():
    """Of the final observation, which has no step of its own."""
    fragment = make_fragment(3, value=1.0, logp=-1.0)
    fragment.truncated[2] = True
    fragment.bootstrap_value[2] = 1.0  # the behaviour policy's, three versions old
    evaluate, _ = evaluate_as(logp=-1.0, value=9.0, bootstrap_value=20.0)
    result = targets([fragment], evaluate, gamma=0.5)
    assert result.value_target_bt[0].tolist() == [5.5, 5.5, 11.0, 5.5]


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
    result = targets([make_fragment(4, value=0.0, logp=-1.0)], evaluate, correction)
    np.testing.assert_allclose(result.weight_bt, weight, rtol=1e-6)


def test_value_targets_are_in_units_of_return():
    evaluate, _ = evaluate_as(logp=0.0, value=0.0)
    result = targets([make_fragment(5, value=0.25, logp=0.0)], evaluate)
    np.testing.assert_allclose(result.value_target_bt, 1.0)


def test_without_correction_the_ratio_is_to_the_behaviour_policy():
    evaluate, _ = evaluate_as(logp=-2.0, value=9.0)
    result = targets([make_fragment(3, value=1.0, logp=-1.0)], evaluate, "none")
    assert torch.all(result.proximal_logp_bt == -1.0)
    assert torch.all(result.value_bt == 9.0), "the values are those of today"


def test_joined_fragments_are_one_sequence_through_which_advantages_run():
    fragments = [make_fragment(5, 0.0, 0.0, env_id="a", index=i, reward=i) for i in (1, 2)]
    result = targets(fragments, None, join=2, gamma=0.5, lambda_=1.0)
    assert result.value_target_bt.shape == (1, 2 * STEPS)
    first = sum(0.5**k for k in range(STEPS)) + 2.0 * sum(0.5**k for k in range(STEPS, 2 * STEPS))
    assert result.value_target_bt[0, 0].item() == pytest.approx(first)


def test_one_stale_fragment_makes_its_sequence_stale():
    fragments = [make_fragment(version, 1.0, -1.0, env_id="a") for version in (4, 5)]
    evaluate, _ = evaluate_as(logp=-2.0, value=9.0)
    result = targets(fragments, evaluate, join=2)
    assert result.num_evaluated == 1
    assert torch.all(result.proximal_logp_bt == -2.0)


@pytest.mark.parametrize(
    "spoilt", ["reward", "value", "logp", "bootstrap_value", "state_in", "prior_latent"]
)
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_sequence_with_a_number_that_is_not_finite_is_left_out(spoilt, number):
    fragments = [make_fragment(5, value=1.0, logp=-1.0, env_id=name) for name in "abc"]
    if spoilt == "state_in":
        fragments[1] = replace(fragments[1], state_in={"mask": np.full(1, number, np.float32)})
    elif spoilt == "prior_latent":
        latent = np.full((STEPS, 2), number, np.float32)
        fragments[1] = replace(fragments[1], prior_latent=latent)
    else:
        getattr(fragments[1], spoilt)[2] = number
        fragments[1].truncated[2] = True  # without it nobody reads the bootstrap value
    result = targets(fragments, None)
    assert result.nonfinite_b.tolist() == [False, True, False]
    assert result.usable_b.tolist() == [True, False, True]
    for tensor in result[2:-1]:
        assert torch.isfinite(tensor).all()


def test_an_excluded_sequence_has_no_part_in_anything():
    fragments = [
        make_fragment(5, value, logp=-1.0, env_id=str(i)) for i, value in enumerate((0, 1, 7))
    ]
    result = targets(fragments, None, excluded=[False, False, True])
    two = targets(fragments[:2], None)
    assert result.usable_b.tolist() == [True, True, False]
    torch.testing.assert_close(result.advantage_bt[:2], two.advantage_bt)
