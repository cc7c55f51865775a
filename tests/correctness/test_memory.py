"""What the learner keeps on its device, and for how long it keeps what it was given."""

from __future__ import annotations

import gc
import weakref

import torch

from rllib_minestudio.algorithms.learner import training_pass
from rllib_minestudio.algorithms.learner.batch import Minibatch, TrainingBatch
from tests.correctness.problems import Noise


def test_no_more_than_two_minibatches_are_on_the_device(make_harness, monkeypatch):
    """Counted by their images, whenever one more is stacked; the CPU stands in for a device."""
    alive: dict[int, weakref.ref[torch.Tensor]] = {}
    most = []

    class Counted(TrainingBatch):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            image = self.obs["image"]
            alive[id(image)] = weakref.ref(image)
            images = [image for reference in alive.values() if (image := reference()) is not None]
            most.append(len({image.untyped_storage().data_ptr() for image in images}))

    monkeypatch.setattr(training_pass, "TrainingBatch", Counted)
    harness = make_harness(
        Noise, num_envs=12, fragments_per_minibatch=1, gradient_accumulation=3, num_epochs=2
    )
    harness.update(harness.play())
    assert len(most) >= 2 * 12
    assert max(most) == 2


def test_evaluating_stale_fragments_holds_two_minibatches_as_well(make_harness):
    harness = make_harness(Noise, num_envs=12, fragments_per_minibatch=1)
    fragments = harness.play()
    harness.learner._is_published = False
    alive: weakref.WeakSet[Minibatch] = weakref.WeakSet()
    most = []
    send = harness.learner._stream._prepare

    def counted(prepare, key):
        prepared = send(prepare, key)
        alive.add(prepared.minibatch)
        most.append(len(alive))
        return prepared

    harness.learner._stream._prepare = counted
    harness.targets(fragments)
    assert len(most) == 12
    assert max(most) <= 2


def test_nothing_outlives_the_fragments(make_harness):
    """No cache of the prior's: what the buffer has dropped is gone."""
    harness = make_harness(Noise)
    fragments = harness.play()
    harness.update(fragments)
    watched = [weakref.ref(fragment) for fragment in fragments]
    latents = [weakref.ref(fragment.prior_latent) for fragment in fragments]
    del fragments
    harness.update(harness.play())
    gc.collect()
    assert not any(reference() is not None for reference in [*watched, *latents])
