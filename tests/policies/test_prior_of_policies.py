"""The KL term against a prior of any class."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio import checkpoints
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.policy import copy_policy
from rllib_minestudio.models.policy_registry import find_policy
from tests.correctness.harness import config_of
from tests.policies.kinds import FOREIGN, MODELS, policy_options
from tests.policies.parts_env import PartsEnv


def saved(harness, folder, policy):
    """The policy of a harness as a checkpoint that other runs start from."""
    from safetensors.torch import save_file

    state = {name: tensor.clone() for name, tensor in harness.network.state_dict().items()}
    save_file(state, str(folder / "state.safetensors"))
    copy_policy(
        checkpoints.open(folder / "state.safetensors"), folder / "policy", policy, MODELS[policy]
    )
    return str(folder / "policy")


def expected_kl(harness, fragments):
    """Between the learner's policy and the prior over whole fragments, from their memories."""
    import torch

    from rllib_minestudio.foundation.observations import nested

    numbers = []
    for fragment in fragments:
        obs = {name: torch.from_numpy(part)[None] for name, part in fragment.obs.items()}
        first = torch.from_numpy(fragment.first)[None]
        state = {n: torch.from_numpy(a)[None] for n, a in fragment.state_in.items()}
        with torch.no_grad():
            latent, _ = harness.learner.policy.latent(nested(obs), first, state)
            own = harness.learner.policy.action_head(latent)
            other = harness.learner._prior.module.action_head(
                torch.from_numpy(fragment.prior_latent)[None]
            )
            numbers.append(own.kl_divergence(other).mean().item())
    return float(np.mean(numbers))


def test_the_initial_prior(make_harness, policy):
    """No divergence at first, and one when the policy has moved."""
    harness = make_harness(policy, prior="initial", kl_coeff=0.1, lr=1e-2, context_length=5)
    fragments = harness.play()
    assert abs(harness.update(fragments)["kl_to_prior"]) < 1e-6
    harness.publish()
    later = harness.play()
    expected = expected_kl(harness, later)
    assert expected > 1e-5
    assert harness.update(later)["kl_to_prior"] == pytest.approx(expected, rel=1e-3)


def test_a_checkpoint_of_the_same_class(make_harness, policy, tmp_path):
    """Played with other weights than the policy's, and never changed."""
    other = make_harness(policy, lr=3e-2)
    for _ in range(2):
        other.update(other.play())
        other.publish()
    source = saved(other, tmp_path, policy)
    harness = make_harness(policy, prior=source, kl_coeff=0.1, lr=1e-2, context_length=5)
    before = harness.learner.prior_weights().state
    for name, array in other.weights().items():
        np.testing.assert_array_equal(before[name], array)
    fragments = harness.play()
    expected = expected_kl(harness, fragments)
    assert expected > 1e-5
    assert harness.update(fragments)["kl_to_prior"] == pytest.approx(expected, rel=1e-3)
    for name, array in harness.learner.prior_weights().state.items():
        np.testing.assert_array_equal(before[name], array)


@pytest.mark.parametrize("option", ["prior", "weights"])
def test_a_checkpoint_of_another_class_is_refused(make_harness, policy, tmp_path, option):
    """In one sentence, before anything starts, though only the environment knows its spaces."""
    other = {"ConvGRU": FOREIGN, FOREIGN: "ConvGRU"}[policy]
    source = saved(make_harness(other), tmp_path, other)
    model = {"weights": source} if option == "weights" else {}
    options = {"prior": source, "kl_coeff": 0.1} if option == "prior" else {}
    with pytest.raises(InvalidOptionsError) as caught:
        config_of(PartsEnv, **policy_options(policy, **model), **options)
    (problem,) = caught.value.problems
    wanted = find_policy(policy).__name__
    assert source in problem and other.rpartition(".")[2] in problem and wanted in problem
    vpt = {"preset": "nano", **({"weights": source} if option == "weights" else {})}
    with pytest.raises(InvalidOptionsError, match="VPT") as caught:
        config_of(PartsEnv, module_class="VPT", model=vpt, **options)
    assert len(caught.value.problems) == 1


def test_weights_of_vpt_are_refused(policy):
    """Those that come with the package."""
    with pytest.raises(InvalidOptionsError, match="VPT") as caught:
        config_of(PartsEnv, **policy_options(policy, weights="package:hunter_nano"))
    assert len(caught.value.problems) == 1


def test_a_prior_that_follows_the_policy(make_harness, policy):
    """Every second iteration; fragments of the prior before are still understood."""
    harness = make_harness(
        policy,
        prior="initial",
        kl_coeff=0.1,
        prior_update_interval=2,
        lr=1e-2,
        replay_buffer={"max_staleness": 3},
    )
    first = harness.play()
    harness.update(first)
    harness.publish()
    assert harness.update(harness.play())["kl_to_prior"] > 1e-6
    harness.publish()
    assert harness.learner.prior_weights().version == 2
    for name, array in harness.learner.prior_weights().state.items():
        np.testing.assert_array_equal(array, harness.weights()[name])
    metrics = harness.update(first)
    assert metrics["kl_masked_fragments"] == 0 and metrics["kl_to_prior"] > 1e-6
    harness.publish_prior()
    again = make_harness(policy, prior="initial", kl_coeff=0.1, prior_update_interval=1)
    again.update(again.play())
    again.publish()
    again.publish_prior()
    fresh = again.play(2)[1::2]  # the prior's own memory is of its former weights at first
    assert {f.prior_version for f in fresh} == {1}
