"""Every step has the same weight in the gradient, whatever does not divide or is dropped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.correctness import naive
from tests.correctness.problems import Noise

T = 12


@pytest.fixture
def harness_of(make_harness):
    """See `make_frozen`."""
    return make_frozen(make_harness)


def make_frozen(make_harness):
    """Makes harnesses of 11 environments whose gradients are kept and whose weights stand still."""

    def make(**options):
        defaults = {
            "num_envs": 11,
            "fragment_length": T,
            "context_length": T,
            "fragments_per_minibatch": 2,
            "lr": 0.0,
            "grad_clip": None,
            "entropy_coeff": 0.01,
            "zero_init_value_head": False,
        }
        buffer = {"max_fragments": 1000, "max_staleness": 2, "max_reuse": 9}
        harness = make_harness(Noise, **{**defaults, "replay_buffer": buffer, **options})
        harness.gradients = []
        step = harness.learner._gradient_step.step

        def keep_and_step(**arguments):
            grads = {n: p.grad.clone() for n, p in harness.network.named_parameters()}
            harness.gradients.append(grads)
            return step(**arguments)

        harness.learner._gradient_step.step = keep_and_step
        return harness

    return make


def moved(harness):
    """Let the policy differ from the one that plays and from the prior, so that no term is 0."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in harness.network.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    harness.learner._is_published = False


def naive_gradient(harness, fragments, targets, rows):
    """The textbook's gradient over some of the fragments."""
    chosen = {
        name: getattr(targets, f"{name}_bt")[rows]
        for name in ("advantage", "value_target", "proximal_logp", "weight")
    }
    harness.network.zero_grad()
    prior = harness.learner._prior.module.network
    kl_coeff = harness.config.kl_coeff * harness.config.kl_decay**harness.iteration
    kept = [fragments[i] for i in rows]
    naive.loss(harness.network, prior, kept, chosen, harness.config, kl_coeff).backward()
    return {name: p.grad.clone() for name, p in harness.network.named_parameters()}


def assert_same(actual, expected):
    for name, gradient in expected.items():
        scale = max(1e-4, float(gradient.abs().max()))
        torch.testing.assert_close(
            actual[name], gradient, rtol=0, atol=2e-4 * scale, msg=lambda m, n=name: f"{n}: {m}"
        )


DROPS = {
    "none": {},
    "stale": {3: {"weights_version_min": -5}},
    "stale and not finite": {0: {"nan": True}, 7: {"weights_version_min": -5}, 8: {"nan": True}},
}


def damaged(fragments, drops):
    """Fragments, some of them unfit to be trained on."""
    fragments = list(fragments)
    for row, change in drops.items():
        if change.get("nan"):
            fragments[row].reward[1] = np.nan
        else:
            fragments[row] = replace(fragments[row], **change)
    return fragments


@pytest.mark.parametrize("drops", DROPS.values(), ids=DROPS)
@pytest.mark.parametrize("per_minibatch", [2, 11])
def test_one_step_per_iteration_has_the_gradient_of_one_batch(harness_of, drops, per_minibatch):
    """Eleven fragments, two in a minibatch: the sixth minibatch holds only one of them."""
    harness = harness_of(gradient_accumulation=11, fragments_per_minibatch=per_minibatch)
    fragments = damaged(harness.play(), drops)
    moved(harness)
    targets = harness.targets(fragments)
    harness.update(fragments)
    (actual,) = harness.gradients
    rows = [row for row in range(11) if row not in drops]
    expected = naive_gradient(harness, fragments, targets, rows)
    assert_same(actual, expected)


def test_no_step_weighs_its_fragments_more_than_another(harness_of):
    """32 fragments, one in a minibatch, ten to a step (the defaults): four steps of eight."""
    harness = harness_of(num_envs=32, fragments_per_minibatch=1, gradient_accumulation=10)
    fragments = harness.play()
    moved(harness)
    targets = harness.targets(fragments)
    harness.update(fragments)
    assert len(harness.gradients) == 4
    everything = naive_gradient(harness, fragments, targets, list(range(32)))
    mean = {
        name: torch.stack([gradient[name] for gradient in harness.gradients]).mean(dim=0)
        for name in everything
    }
    assert_same(mean, everything)


def test_nothing_but_the_kl_term_moves_the_policy_while_values_warm_up(harness_of):
    """With the value loss switched off, a warmup from the prior leaves everything where it is."""
    harness = harness_of(vf_warmup_iterations=2, vf_coeff=0.0, num_envs=4, entropy_coeff=5.0)
    harness.update(harness.play())
    assert harness.gradients
    for gradients in harness.gradients:
        for name, gradient in gradients.items():
            assert gradient.abs().max() < 1e-5, name
