"""Batches come from the thread only when they are the ones announced, and its errors come along."""

from __future__ import annotations

import gc
import itertools
import pickle
import threading
import time
import weakref
from dataclasses import fields, replace

import numpy as np
import pytest
import ray
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from ray.rllib.core.learner.training_data import TrainingData

from rllib_minestudio.algorithms.fragment import Fragment, compress, decompress
from rllib_minestudio.algorithms.learner import batch as fragment_loader
from rllib_minestudio.algorithms.learner.batch import FragmentLoader
from rllib_minestudio.errors import FragmentsLostError
from tests.algorithms.actors import wait_until

STEPS = 4


def make_fragment(number, size=2):
    floats, flags = np.full(STEPS, number, np.float32), np.zeros(STEPS, bool)
    return Fragment(
        obs={"image": np.full((STEPS, size, size, 3), number, np.uint8)},
        action={"buttons": np.zeros(STEPS, np.int64), "camera": np.zeros(STEPS, np.int64)},
        reward=floats,
        first=flags,
        terminated=flags,
        truncated=flags,
        logp=floats,
        value=floats,
        bootstrap_value=floats,
        final_obs={"image": np.empty((0, size, size, 3), np.uint8)},
        state_in={"keys": np.full(3, number, np.float32)},
        last_obs={"image": np.zeros((2, 2, 3), np.uint8)},
        last_first=False,
        last_value=0.0,
        weights_version_min=number,
        weights_version_max=number,
        env_id="a",
        index=number,
    )


PARTS = st.sampled_from(["u1", "i8", "f4", "f8", "?"]).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
)


@given(st.dictionaries(st.text(max_size=3), PARTS, max_size=3), st.booleans())
def test_a_compressed_fragment_is_the_same_again_in_every_bit(parts, transposed):
    parts = {name: part.T if transposed else part for name, part in parts.items()}
    fragment = replace(make_fragment(3), obs=parts, final_obs=parts)
    found = decompress(pickle.loads(pickle.dumps(compress(fragment))))
    for field in fields(Fragment):
        before, after = getattr(fragment, field.name), getattr(found, field.name)
        if not isinstance(before, dict):
            before, after = {"": before}, {"": after}
        assert before.keys() == after.keys()
        for name, part in before.items():
            assert np.asarray(part).dtype == np.asarray(after[name]).dtype
            assert np.shape(part) == np.shape(after[name])
            assert np.asarray(part).tobytes() == np.asarray(after[name]).tobytes()


def test_frames_take_less_room_and_noise_no_more():
    frames = np.repeat(np.arange(STEPS, dtype=np.uint8), 64 * 64 * 3).reshape(STEPS, 64, 64, 3)
    noise = np.random.default_rng(0).random((STEPS, 100))
    fragment = replace(make_fragment(0), obs={"image": frames, "noise": noise})
    assert decompress(fragment) is fragment
    sent = compress(fragment)
    assert sent.obs["image"].data.nbytes < frames.nbytes / 20
    assert sent.obs["noise"] is noise


class Owner:
    """Owns an object, which is lost when it dies (small ones Ray would copy into the answer)."""

    def put(self, number):
        return [ray.put(make_fragment(number, size=200))]


def wait_until_lost(reference):
    """Ray drops an object some moments after its owner's death."""
    for _ in range(200):
        try:
            ray.get(reference)
        except ray.exceptions.ObjectLostError:
            return
        time.sleep(0.05)
    pytest.fail("Ray still has the object")


@pytest.fixture
def loader():
    loader = FragmentLoader(join=2)
    yield loader
    loader.close()


@pytest.fixture
def threads(monkeypatch):
    """Names of the threads in which fragments were fetched."""
    names = []
    sequences_of = fragment_loader.sequences_of

    def watched(*args, **kwargs):
        names.append(threading.current_thread().name)
        return sequences_of(*args, **kwargs)

    monkeypatch.setattr(fragment_loader, "sequences_of", watched)
    return names


def numbers(loaded):
    return loaded.sequences.weights_version_min[:, 0].tolist()


def test_an_announced_batch_is_loaded_in_the_thread(loader, threads):
    fragments = [make_fragment(i) for i in range(4)]
    loader.prefetch(TrainingData(episodes=fragments))
    loaded = loader.load(TrainingData(episodes=list(fragments)))
    assert threads == ["prefetch_0"]
    assert numbers(loaded) == [0, 2]
    assert loaded.sequences.num_steps == 2 * STEPS
    states = [state["keys"][0] for state in loaded.sequences.state_in]
    assert states == [0, 2], "only the first one's counts"
    assert loaded.sequences.staleness(5).tolist() == [[5, 4], [3, 2]]


def test_the_next_batch_may_be_announced_before_the_present_one_is_asked_for(loader, threads):
    """As the training loop does: it looks ahead, then has the learner train."""
    batches = [
        TrainingData(episodes=[make_fragment(i), make_fragment(i + 1)]) for i in (0, 2, 4, 6)
    ]
    ahead = []
    for present, following in itertools.pairwise(batches):
        loader.prefetch(following)
        loaded = loader.load(present)
        assert numbers(loaded) == [present.episodes[0].index]
        (pieces,) = loaded.sequences.obs
        assert pieces == {"image": tuple(f.obs["image"] for f in present.episodes)}, "not copied"
        ahead.append(loaded.prefetched)
    assert ahead == [False, True, True]
    assert threads.count(threading.current_thread().name) == 1


def test_a_batch_that_was_handed_over_is_not_kept(loader):
    """Nor one that was announced before it, and is not asked for any more."""
    batches = [[make_fragment(i), make_fragment(i + 1)] for i in (0, 2)]
    kept = [weakref.ref(fragment.obs["image"]) for batch in batches for fragment in batch]
    for batch in batches:
        loader.prefetch(TrainingData(episodes=batch))
    loaded = loader.load(TrainingData(episodes=batches[1]))
    assert (numbers(loaded), loaded.prefetched) == ([2], True)
    loader.load(TrainingData(episodes=[make_fragment(4), make_fragment(5)]))  # the thread is done
    del batches, batch, loaded
    assert wait_until(lambda: gc.collect() >= 0 and not any(image() for image in kept), seconds=10)


def test_another_batch_is_loaded_at_once(loader, threads):
    fragments = [make_fragment(i) for i in range(4)]
    loader.prefetch(TrainingData(episodes=fragments))
    other = [make_fragment(i) for i in range(4, 8)]
    loaded = loader.load(TrainingData(episodes=other))
    assert (numbers(loaded), loaded.prefetched) == ([4, 6], False)
    assert threading.current_thread().name in threads
    assert numbers(loader.load(TrainingData(episodes=fragments))) == [0, 2]


@pytest.mark.slow
def test_references_are_recognised_and_lost_ones_replaced(loader, local_ray, threads):
    references = [ray.put(make_fragment(i)) for i in range(4)]
    loader.prefetch(TrainingData(episodes_refs=references))
    loaded = loader.load(TrainingData(episodes_refs=list(references)))
    assert (numbers(loaded), loaded.lost) == ([0, 2], [False, False])
    assert threads == ["prefetch_0"]

    owner = ray.remote(num_cpus=0)(Owner).remote()
    short_lived = ray.get(owner.put.remote(4))
    ray.kill(owner)
    wait_until_lost(*short_lived)
    loaded = loader.load(TrainingData(episodes_refs=[*short_lived, *references[1:]]))
    assert (numbers(loaded), loaded.lost) == ([2, 2], [True, False])
    with pytest.raises(FragmentsLostError, match="all 2 fragments"):
        loader.load(TrainingData(episodes_refs=[*short_lived, references[0]]))


def test_what_goes_wrong_in_the_thread_is_raised_by_load(loader, local_ray):
    @ray.remote(num_cpus=0)
    def fails():
        raise ZeroDivisionError

    references = [fails.remote(), ray.put(make_fragment(1))]
    loader.prefetch(TrainingData(episodes_refs=references))
    with pytest.raises(ZeroDivisionError):
        loader.load(TrainingData(episodes_refs=references))
