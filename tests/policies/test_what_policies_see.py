"""Every part of every observation reaches the policy as the environment showed it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.policies.kinds import recomputed, recorded
from tests.policies.parts_env import Shown

ENVS, LENGTH = 3, 12


def keys_of(shown, calls, names):
    """Which observations a policy was given, row by row: padding left out."""
    rows = []
    for flat, first, _ in calls:
        for b in range(first.shape[0]):
            keys = [shown.check(names, flat, (b, t)) for t in range(first.shape[1])]
            for key, begins in zip(keys, first[b], strict=True):
                if key[0]:
                    assert begins == (shown.kinds[key] == "reset"), key
            rows.append([key for key in keys if key[0]])
    return rows


def after(shown, key, count):
    """The keys of `count` observations of an environment from `key` on, finals left out."""
    own = [k for k in shown.kinds if k[0] == key[0]]
    acted_on = [k for k in own if shown.kinds[k] in ("reset", "step")]
    start = acted_on.index(key)
    return acted_on[start : start + count]


@pytest.mark.parametrize("mode", ["inline", "process"])
def test_acting_and_fragments(make_harness, policy, tmp_path, mode):
    """Steps, final observations and the last ones; those of terminated episodes never."""
    harness = make_harness(policy, {"log": str(tmp_path)}, env_pool={"mode": mode})
    module = harness.runner.module
    names = set(module.observation_parts)
    with recorded(module) as calls:
        fragments = harness.play(2)
    shown = Shown(tmp_path)
    given = {key for row in keys_of(shown, calls, names) for key in row}
    assert {shown.kinds[key] for key in given} == {"reset", "step", "final"}
    counted = {"steps": 0, "finals": 0}
    for fragment in fragments:
        steps = [shown.check(names, fragment.obs, (t,)) for t in range(LENGTH)]
        assert steps == after(shown, steps[0], LENGTH)
        assert [shown.kinds[key] == "reset" for key in steps] == fragment.first.tolist()
        last = shown.check(names, fragment.last_obs, ())
        assert last == after(shown, steps[-1], 2)[1]
        assert fragment.last_first == (shown.kinds[last] == "reset")
        cut = np.flatnonzero(fragment.truncated & ~fragment.terminated)
        finals = [shown.check(names, fragment.final_obs, (i,)) for i in range(len(cut))]
        assert len(fragment.final_obs["vector"]) == len(cut)
        for t, (number, episode, step) in zip(cut.tolist(), finals, strict=True):
            assert shown.kinds[number, episode, step] == "final"
            assert steps[t] == (number, episode, step - 1)
        assert given >= {*steps, *finals, last}
        counted["steps"] += len(steps)
        counted["finals"] += len(finals)
    assert counted["steps"] == 2 * ENVS * LENGTH and counted["finals"] >= ENVS
    assert any((f.truncated[:-1] & ~f.terminated[:-1]).any() for f in fragments)
    assert any(f.terminated.any() for f in fragments)


@pytest.mark.parametrize("join", [1, 2])
def test_training(make_harness, policy, tmp_path, join):
    """Chunks hold the steps in order, and nothing else."""
    harness = make_harness(
        policy,
        {"log": str(tmp_path)},
        context_length=5,
        fragments_per_minibatch=2,
        fragments_per_iteration=ENVS * join,
        replay_buffer={"fragments_per_chunk": join},
    )
    fragments = harness.play(join)
    module = harness.learner.policy
    with recorded(module) as calls:
        harness.update(fragments)
    assert all(with_gradient for _, _, with_gradient in calls)
    shown = Shown(tmp_path)
    rows = keys_of(shown, calls, module.observation_parts)
    for row in rows:
        assert row == after(shown, row[0], len(row))
    trained = sorted(key for row in rows for key in row)
    expected = {
        shown.check(module.observation_parts, f.obs, (t,)) for f in fragments for t in range(LENGTH)
    }
    assert trained == sorted(expected)
    assert len(trained) == ENVS * LENGTH * join


@pytest.mark.parametrize("join", [1, 2])
def test_evaluation_of_stale_fragments(make_harness, policy, tmp_path, join):
    """Final observations come behind the steps that they end, the last one at the end."""
    harness = make_harness(
        policy, {"log": str(tmp_path)}, context_length=5, fragments_per_minibatch=2
    )
    fragments = harness.play(2)
    module = harness.learner.policy
    with recorded(module) as calls:
        recomputed(harness, fragments, join)
    shown = Shown(tmp_path)
    found = {key for row in keys_of(shown, calls, module.observation_parts) for key in row}
    expected = set()
    for f in fragments:
        names = module.observation_parts
        expected |= {shown.check(names, f.obs, (t,)) for t in range(LENGTH)}
        finals = len(f.final_obs["vector"])
        expected |= {shown.check(names, f.final_obs, (i,)) for i in range(finals)}
    for f in fragments[join - 1 :: join]:
        expected.add(shown.check(names, f.last_obs, ()))
    assert found == expected
    assert {shown.kinds[key] for key in found} == {"reset", "step", "final"}


def test_the_prior(make_harness, policy, tmp_path):
    """It looks at every step once, in the order in which they were played."""
    harness = make_harness(
        policy, {"log": str(tmp_path)}, prior="initial", kl_coeff=0.1, context_length=5
    )
    prior = harness.runner._prior._module
    with recorded(prior) as calls:
        fragments = harness.play(3)
    shown = Shown(tmp_path)
    rows = keys_of(shown, calls, prior.observation_parts)
    for row in rows:
        assert row == after(shown, row[0], len(row))
    seen = [key for row in rows for key in row]
    expected = [
        shown.check(prior.observation_parts, f.obs, (t,)) for f in fragments for t in range(LENGTH)
    ]
    assert sorted(seen) == sorted(expected) and len(set(seen)) == len(seen)
    for f in fragments:
        assert f.prior_latent.shape == (LENGTH, 8) and np.isfinite(f.prior_latent).all()


def test_a_policy_records_only_what_it_reads(make_harness, tmp_path):
    """The environment shows frames, but fragments of a policy that reads numbers have none."""
    harness = make_harness("tests.policies.foreign.VectorLSTM", {"log": str(tmp_path)})
    for fragment in harness.play():
        assert set(fragment.obs) == set(fragment.final_obs) == set(fragment.last_obs) == {"vector"}
