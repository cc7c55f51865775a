"""A learner's hooks are called when docs/rllib.md says, and what they return counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_minestudio.algorithms.learner import MineStudioPPOLearner
from rllib_minestudio.models.vpt.network import NULL_CAMERA
from rllib_minestudio.recordings import EpisodeWriter
from tests.algorithms.toy_envs import ATTACK_STRIDE, IMAGE_SIZE, AttackOnRed, tiny_model
from tests.correctness.harness import Harness, config_of

PENALTY = 0.03


class Watching(MineStudioPPOLearner):
    """Notes every call, and what the optimizer is given."""

    def build(self):
        self.calls = []
        self.applied = []
        super().build()

    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
        self.calls.append("loss")
        return super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )

    def compute_gradients(self, loss_per_module, **kwargs):
        self.calls.append("gradients")
        return super().compute_gradients(loss_per_module, **kwargs)

    def postprocess_gradients(self, gradients_dict):
        self.calls.append("postprocess")
        return super().postprocess_gradients(gradients_dict)

    def apply_gradients(self, gradients_dict):
        self.calls.append("apply")
        self.applied.append({p: gradient.clone() for p, gradient in gradients_dict.items()})
        super().apply_gradients(gradients_dict)


class Penalised(Watching):
    """Half of all squared weights, times PENALTY: its gradient is PENALTY times the weight."""

    first_step = 0

    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
        loss = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        if len(self.applied) < self.first_step:
            return loss
        squares = sum(p.square().sum() for p in self._params.values())
        return loss + PENALTY * 0.5 * squares * batch.share.sum()


@pytest.fixture
def harness_with():
    """A harness with a learner class; the gradient is not clipped."""
    made = []

    def make(learner_class, **options):
        config = config_of(AttackOnRed, **{"grad_clip": None, **options})
        made.append(Harness(config.learners(learner_class=learner_class)))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


def test_losses_and_gradients_per_chunk_and_the_rest_per_step(harness_with):
    harness = harness_with(Watching, fragments_per_minibatch=1, gradient_accumulation=2)
    harness.update(harness.play())
    # 4 fragments of 16 steps, in chunks of 8, two fragments to a step.
    step = ["loss", "gradients"] * 4 + ["postprocess", "apply"]
    assert harness.learner.calls == step * 2


@pytest.mark.parametrize(
    "per_minibatch, accumulation",
    [
        (1, 4),
        pytest.param(4, 1, marks=pytest.mark.slow),
        pytest.param(2, 2, marks=pytest.mark.slow),
    ],
)
def test_an_auxiliary_loss_has_the_same_gradient_however_a_step_is_cut(
    harness_with, per_minibatch, accumulation
):
    options = {"fragments_per_minibatch": per_minibatch, "gradient_accumulation": accumulation}
    plain = harness_with(Watching, **options)
    penalised = harness_with(Penalised, **options)
    weights = {p: p.detach().clone() for p in penalised.learner._params.values()}
    fragments = plain.play()
    plain.update(fragments)
    penalised.update(fragments)
    (without,), (with_it,) = plain.learner.applied, penalised.learner.applied
    compared = 0
    for p, q in zip(
        plain.learner._params.values(), penalised.learner._params.values(), strict=True
    ):
        if p in without:
            compared += 1
            torch.testing.assert_close(
                with_it[q] - without[p], PENALTY * weights[q], rtol=1e-3, atol=1e-5
            )
    assert compared > 20


class PenalisedLater(Penalised):
    """The first step is everybody's."""

    first_step = 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": tiny_model(precision="bfloat16")},
        {"behaviour_cloning": {"coeff": 1.0, "fragment_length": 20}},
    ],
    ids=["reused", "reused, bfloat16", "reused, with behaviour cloning"],
)
def test_an_auxiliary_loss_counts_the_same_in_every_mode(harness_with, demonstrations, options):
    """The second update takes the fragments of the first, which are stale by then."""
    if "behaviour_cloning" in options:
        cloning = {**options["behaviour_cloning"], "recordings": str(demonstrations)}
        options = {**options, "behaviour_cloning": cloning}
    plain = harness_with(Watching, **options)
    penalised = harness_with(PenalisedLater, **options)
    fragments = plain.play()
    plain.update(fragments)
    penalised.update(fragments)
    weights = {p: p.detach().clone() for p in penalised.learner._params.values()}
    metrics = plain.update(fragments)
    assert metrics.get("behaviour_cloning_loss", 1.0) > 0
    penalised.update(fragments)
    (first, without), (first_again, with_it) = plain.learner.applied, penalised.learner.applied
    pairs = list(
        zip(plain.learner._params.values(), penalised.learner._params.values(), strict=True)
    )
    compared = [(p, q) for p, q in pairs if p in without]
    for p, q in compared:
        torch.testing.assert_close(first_again[q], first[p])
        torch.testing.assert_close(
            with_it[q] - without[p], PENALTY * weights[q], rtol=1e-3, atol=1e-5
        )
    assert len(compared) > 20


@pytest.fixture(scope="module")
def demonstrations(tmp_path_factory):
    """One episode of `AttackOnRed`, played at random."""
    root = tmp_path_factory.mktemp("demonstrations")
    rng = np.random.default_rng(0)
    frames = rng.integers(256, size=(41, IMAGE_SIZE, IMAGE_SIZE, 3), dtype=np.uint8)
    writer = EpisodeWriter(root / "episode-0")
    writer.begin(frames[0], {})
    for t in range(40):
        action = {"buttons": ATTACK_STRIDE * int(rng.integers(2)), "camera": NULL_CAMERA}
        writer.add(action, 1.0, False, t == 39, frame=frames[t + 1], info={})
    writer.finish({})
    return root


def test_what_is_returned_by_a_gradient_hook_is_applied(harness_with):
    class OnlyTheValueHead(Watching):
        def postprocess_gradients(self, gradients_dict):
            kept = set(self.policy.network.value_head.parameters())
            gradients = super().postprocess_gradients(gradients_dict)
            return {p: torch.ones_like(gradient) for p, gradient in gradients.items() if p in kept}

    harness = harness_with(OnlyTheValueHead)
    before = harness.weights()
    metrics = harness.update(harness.play())
    moved = {name for name, array in harness.weights().items() if (array != before[name]).any()}
    learnt = {name for name in moved if "normalizer" not in name}
    assert learnt == {f"value_head.{name}" for name, _ in _named(harness)}
    assert metrics["gradient_norm"] > 0  # as found before the hook


def _named(harness):
    return list(harness.network.value_head.named_parameters())


def test_gradients_of_a_chunk_can_be_replaced(harness_with):
    class Halved(Watching):
        def compute_gradients(self, loss_per_module, **kwargs):
            accumulated = super().compute_gradients(loss_per_module, **kwargs)
            return {p: gradient * 0.5 for p, gradient in accumulated.items()}

    options = {"context_length": 16, "fragments_per_minibatch": 4}
    plain, halved = harness_with(Watching, **options), harness_with(Halved, **options)
    fragments = plain.play()
    plain.update(fragments)
    halved.update(fragments)
    (whole,), (half,) = plain.learner.applied, halved.learner.applied
    for a, b in zip(whole.values(), half.values(), strict=True):
        torch.testing.assert_close(b, a * 0.5)


def test_a_hook_that_spoils_a_gradient_costs_the_step_and_nothing_else(harness_with):
    class Spoiling(Watching):
        def postprocess_gradients(self, gradients_dict):
            gradients = super().postprocess_gradients(gradients_dict)
            next(iter(gradients.values())).fill_(float("inf"))
            return gradients

    harness = harness_with(Spoiling)
    before = harness.weights()
    metrics = harness.update(harness.play())
    assert metrics["skipped_minibatches"] == 1
    assert "apply" not in harness.learner.calls
    after = harness.weights()
    assert all((after[n] == a).all() for n, a in before.items() if "normalizer" not in n)


def test_grad_clip_bounds_the_norm_that_is_applied(harness_with):
    harness = harness_with(Watching, grad_clip=0.01)
    metrics = harness.update(harness.play())
    (applied,) = harness.learner.applied
    norm = torch.nn.utils.get_total_norm(list(applied.values()))
    assert metrics["gradient_norm"] > 0.05
    assert float(norm) == pytest.approx(0.01, rel=1e-3)


def test_every_epoch_goes_through_all_fragments(harness_with):
    harness = harness_with(Watching, num_epochs=3)
    harness.update(harness.play())
    assert harness.learner.calls.count("apply") == 3


def test_numbers_of_rllib_stand_beside_ours(harness_with):
    harness = harness_with(Watching, entropy_coeff=0.01)
    found = harness.update(harness.play())
    assert found["gradients_default_optimizer_global_norm"] == found["gradient_norm"] > 0
    assert found["vf_explained_var"] == found["explained_variance"]
    assert found["curr_entropy_coeff"] == 0.01
    assert found["mean_kl_loss"] == found["approximate_kl"]
    expected = (
        found["policy_loss"]
        + harness.config.vf_coeff * found["value_loss"]
        + found["kl_coeff"] * found["kl_to_prior"]
        - 0.01 * found["entropy"]
    )
    assert found["total_loss"] == pytest.approx(expected, rel=1e-4)
