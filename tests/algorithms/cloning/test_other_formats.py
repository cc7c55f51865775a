"""A clone does not depend on the format: the same play gives the same windows, losses, weights."""

from itertools import islice

import numpy as np
import pytest
import torch
from ray.rllib.core.learner.training_data import TrainingData

from rllib_minestudio.algorithms.demonstration_data import split, window_options
from rllib_minestudio.demonstrations import find_episodes, open_episode, stack, stream
from rllib_minestudio.recordings import EpisodeWriter
from rllib_minestudio.recordings.minestudio_dataset import DatasetLayout
from rllib_minestudio.recordings.video import VideoOptions
from tests.recordings.contractor_files import played, write

NAMES = ("alex", "kim", "sam", "toni")


def rewritten(episode, folder, layout=None):
    """Write an episode again, from its decoded frames and its actions, lossless."""
    layouts = () if layout is None else (layout,)
    writer = EpisodeWriter(folder / episode.path.stem, *layouts, video=VideoOptions(crf=0))
    frames = list(episode.frames())
    writer.begin(frames[0], {})
    keys = episode.meta["keys"]
    rows = zip(episode.steps["keys"], episode.steps["degrees"], strict=True)
    for t, (pressed, degrees) in enumerate(rows):
        action = {**dict(zip(keys, pressed.tolist(), strict=True)), "camera": degrees}
        last = t == len(frames) - 1
        shown = frames[min(t + 1, len(frames) - 1)]
        writer.add(action, 0.0, False, last, frame=shown, info={})
    writer.finish({})


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    for number, name in enumerate(NAMES):
        write(folder, name, played(30 + number, number), size=(64, 36))
    return folder


@pytest.fixture
def clone(make_config, local_ray):
    """A function that clones from a folder in three optimizer steps."""

    def learn(folder):
        config = make_config(max_null_run=0).offline_data(input_=str(folder))
        algorithm = config.build_algo()
        episodes = [open_episode(path) for path in find_episodes(folder)]
        windows = stream(
            episodes, window_options(config), seed=0, shuffle_among=4, windows_per_read=2
        )
        batches = (stack(list(islice(windows, 4))) for _ in range(9))
        told = [next(batches) for _ in range(3)]
        torch.manual_seed(0)
        learner = algorithm.learner_group._learner
        metrics = learner.update(
            training_data=TrainingData(data_iterators=[iter(told)]), timesteps={}, num_iters=3
        )
        losses = {name: value.peek() for name, value in metrics["default_policy"].items()}
        weights = [w.clone() for w in learner.policy.network.state_dict().values()]
        held_out = sorted(path.stem for path in split(str(folder), 0.25, 0).validation)
        algorithm.stop()
        return told, losses, weights, held_out

    return learn


@pytest.mark.parametrize("layout", [None, DatasetLayout], ids=["ours", "dataset"])
def test_a_clone_of_contractors_is_the_clone_of_the_same_play_in_other_formats(
    people, tmp_path, clone, layout
):
    if layout is not None:
        pytest.importorskip("lmdb")
    for path in find_episodes(people):
        rewritten(open_episode(path), tmp_path, layout)
    (windows, losses, weights, held_out), again = clone(people), clone(tmp_path)
    assert len(find_episodes(tmp_path)) == len(NAMES)
    for one, other in zip(windows, again[0], strict=True):
        assert one.keys() == other.keys() and one["weight"].sum() > 0
        for name, array in one.items():
            np.testing.assert_array_equal(other[name], array, err_msg=name)
    assert losses == again[1] and losses["loss"] > 1
    assert all(torch.equal(a, b) for a, b in zip(weights, again[2], strict=True))
    if layout is None:
        assert held_out == again[3] and len(held_out) == 1
