"""Clones do what was demonstrated, also where that depends on what was seen long before."""

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from ray.rllib.core.learner.training_data import TrainingData

from rllib_minestudio.algorithms import MineStudioBC
from rllib_minestudio.algorithms.demonstration_data import split, window_options
from rllib_minestudio.checkpoints.record import read_record
from rllib_minestudio.demonstrations import (
    WindowOptions,
    open_episode,
    stack,
    stream,
    windows,
)
from rllib_minestudio.errors import InvalidOptionsError, RecordingError
from rllib_minestudio.evaluation.during_training import FOLDER
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.models.vpt.network import log_prob
from rllib_minestudio.recordings import EpisodeWriter, find_recordings
from rllib_minestudio.recordings.video import VideoOptions
from tests.algorithms.optimizer_steps import check_restored_with_other_options

from .conftest import DELAY, EPISODES, LENGTH, NULL_CAMERA


def learner_of(algorithm):
    return algorithm.learner_group._learner


def test_an_epoch_holds_every_step_of_the_training_episodes_once(local_ray, make_config):
    algorithm = make_config().build_algo()
    data = algorithm.offline_data
    assert (data.num_training, data.num_validation) == (8, 2)
    batches = list(islice(data.sample(10), 2 * 8 * LENGTH // 8 // 10))
    for epoch in (batches[: len(batches) // 2], batches[len(batches) // 2 :]):
        seen = [w.tobytes() for batch in epoch for w in batch["image"]]
        assert len(set(seen)) == len(seen) == 8 * LENGTH // 8
        assert sum(batch["weight"].sum() for batch in epoch) == 8 * LENGTH
    held_out = sum(batch["weight"].sum() for batch in data.validation(10))
    assert held_out == 2 * LENGTH
    algorithm.stop()


def test_a_resumed_clone_does_not_shuffle_as_the_run_did_at_first(local_ray, make_config, tmp_path):
    """What is compared are the numbers to shuffle with: Ray Data's readers do not keep an order."""
    algorithm = make_config().build_algo()
    data = algorithm.offline_data
    held_out, first = data._validation, copy.deepcopy(data._random).integers(2**31, size=9)
    algorithm.train()
    under_way = data.sample(10)
    algorithm.restore_from_path(algorithm.save_to_path(tmp_path / "checkpoint"))
    assert data._validation == held_out
    again = copy.deepcopy(data._random).integers(2**31, size=9)
    assert (again != first).any()
    assert data.sample(10) is not under_way
    algorithm.restore_from_path(tmp_path / "checkpoint")
    assert (data._random.integers(2**31, size=9) == again).all()
    algorithm.stop()


def test_episodes_are_held_out_whole_and_by_the_seed(demonstrations):
    training, validation, found = split(str(demonstrations), 0.2, seed=0)
    assert len(validation) == 2 and len({*training, *validation}) == EPISODES
    assert found.steps == LENGTH * EPISODES and not found.broken
    assert split(str(demonstrations), 0.2, seed=0)[:2] == (training, validation)
    assert split(str(demonstrations), 0.2, seed=1)[:2] != (training, validation)
    with pytest.raises(RecordingError, match="none to learn from"):
        split(str(next(iter(training))), 0.5, seed=0)
    alone = next(iter(training))
    assert list(split(str(alone), 0.0, seed=0).training) == [alone]


def test_the_same_names_are_held_out_wherever_the_folder_is(demonstrations, tmp_path):
    (tmp_path / "moved").symlink_to(demonstrations)
    for seed in range(3):
        places = [str(demonstrations), str(tmp_path / "moved")]
        names = [[path.name for path in split(place, 0.2, seed).validation] for place in places]
        assert names[0] == names[1]


def test_windows_give_the_loss_of_whole_episodes(local_ray, make_config):
    """With one layer, burning in the memory's length is exact."""
    config = make_config(window_length=10, context_length=5)
    algorithm = config.build_algo()
    learner, recording = learner_of(algorithm), next(find_recordings(config.input_))
    pieces = [stack([window]) for window in windows(recording, window_options(config))]
    (whole,) = windows(recording, WindowOptions(LENGTH, 0))
    network = learner.policy.network
    with torch.no_grad():
        output = network(
            torch.from_numpy(whole.image)[None],
            torch.from_numpy(whole.first)[None],
            network.initial_state(1),
        )
    tokens = {"buttons": whole.buttons, "camera": whole.camera}
    actions = {name: torch.from_numpy(array)[None, :, None] for name, array in tokens.items()}
    expected = -log_prob(output.logits, actions).mean()
    measured = learner.validate(pieces)
    assert measured["validation_loss"] == pytest.approx(float(expected), rel=1e-5)
    parts = measured["validation_buttons"] + measured["validation_camera"]
    assert parts == pytest.approx(float(expected), rel=1e-5)
    algorithm.stop()


def signatures(image):
    """(episode, step) of each frame [..., H, W, 3]."""
    return image[..., 0, 0, :2].astype(int)


def test_with_carried_memory_each_window_continues_the_one_before(local_ray, make_config):
    config = make_config(carry_memory=True, windows_per_batch=3, shuffle_among=64)
    algorithm = config.build_algo()
    data = algorithm.offline_data
    batches = list(islice(data.sample(3), 30))
    seen = np.stack([signatures(batch["image"]) for batch in batches])  # [N, lane, T, 2]
    begins = np.stack([batch["first"] for batch in batches])
    for lane in range(3):
        steps = seen[:, lane].reshape(-1, 2)
        continues = (steps[1:, 0] == steps[:-1, 0]) & (steps[1:, 1] == steps[:-1, 1] + 1)
        begin = begins[:, lane].ravel()[1:]
        assert (continues ^ begin).all()
        assert (steps[1:][begin, 1] == 0).all() and (steps[:-1][begin, 1] == LENGTH - 1).all()
    assert len({tuple(step) for step in seen[:, :, 0].reshape(-1, 2)}) == 8 * LENGTH // 8
    held_out = list(data.validation(3))
    assert sum(batch["weight"].sum() for batch in held_out) == 2 * LENGTH
    assert {batch["weight"].shape for batch in held_out} == {(3, 8)}
    algorithm.stop()


@pytest.mark.parametrize("changes", [{}, {"carry_memory": True, "shuffle_among": 64}])
def test_a_validation_leaves_no_thread_behind(local_ray, make_config, changes):
    """A long run has thousands of them."""
    algorithm = make_config(**changes).build_algo()
    before = set(threading.enumerate())
    assert list(algorithm.offline_data.validation(3))
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(30)
    assert not [thread.name for thread in left if thread.is_alive()]
    algorithm.stop()


def test_carried_memory_gives_the_loss_of_whole_episodes(local_ray, make_config):
    config = make_config(
        carry_memory=True, windows_per_batch=3, context_length=3, shuffle_among=64, lr=1e-12
    )
    algorithm = config.build_algo()
    learner = learner_of(algorithm)
    recordings = list(find_recordings(config.input_))[:3]
    cut = [[stack([w]) for w in windows(r, window_options(config))] for r in recordings]
    pieces = [
        {name: np.concatenate([window[name] for window in side]) for name in side[0]}
        for side in zip(*cut, strict=True)
    ]
    whole = stack([next(windows(r, WindowOptions(LENGTH, 0))) for r in recordings])
    network = learner.policy.network
    with torch.no_grad():
        image, first = torch.from_numpy(whole["image"]), torch.from_numpy(whole["first"])
        output = network(image, first, network.initial_state(3))
    tokens = {name: torch.from_numpy(whole[name])[..., None] for name in ("buttons", "camera")}
    expected = float(-log_prob(output.logits, tokens).mean())
    assert learner.validate(pieces)["validation_loss"] == pytest.approx(expected, rel=3e-6)
    for _ in range(2):  # the second time, what was carried is forgotten where an episode begins
        metrics = learner.update(
            training_data=TrainingData(data_iterators=[iter(pieces)]),
            timesteps={},
            num_iters=len(pieces),
        )
        loss = metrics["default_policy"]["loss"]
        assert float(loss.peek()) == pytest.approx(expected, rel=3e-6)
    spoilt = {k: t * np.nan if t.is_floating_point() else t for k, t in learner._memory.items()}
    learner._memory = spoilt
    learner.update(
        training_data=TrainingData(data_iterators=[iter(pieces[1:2])]), timesteps={}, num_iters=1
    )
    assert learner._memory is None  # nothing of a step that was not taken is remembered
    learner.config = config.copy(copy_frozen=False).training(carry_memory=False)
    forgetful = learner.validate(pieces)["validation_loss"]
    assert abs(forgetful - expected) > 2e-4  # the network's weights are random
    algorithm.stop()


@pytest.mark.slow
@pytest.mark.parametrize("carry_memory", [False, True])
def test_null_actions_left_out_are_neither_read_nor_imitated(local_ray, make_config, carry_memory):
    """The demonstrator attacks, for one step each time, or does nothing."""
    order = {"carry_memory": True, "shuffle_among": 64} if carry_memory else {}
    algorithm = make_config(burn_in=0, max_null_run=0, **order).build_algo()
    held_out = split(algorithm.config.input_, 0.2, seed=0)[1]
    attacks = sum((open_episode(path).steps["buttons"] > 0).sum() for path in held_out)
    batches = list(algorithm.offline_data.validation(10))
    assert 0 < attacks == sum(batch["weight"].sum() for batch in batches)
    assert all((batch["buttons"][batch["weight"] > 0] > 0).all() for batch in batches)
    assert np.isfinite(algorithm.train()["learners"]["default_policy"]["loss"])
    algorithm.stop()


def test_recordings_of_null_actions_alone_are_refused(local_ray, make_config, tmp_path):
    for index in range(3):
        writer = EpisodeWriter(tmp_path / f"episode-{index}", video=VideoOptions(media="jpeg"))
        writer.begin(np.zeros((16, 16, 3), np.uint8), {})
        action = {"buttons": 0, "camera": NULL_CAMERA}
        writer.add(action, 0.0, False, True, frame=np.zeros((16, 16, 3), np.uint8), info={})
        writer.finish({})
    config = make_config(max_null_run=0, validation_fraction=0.0)
    algorithm = config.offline_data(input_=str(tmp_path)).build_algo()
    with pytest.raises(RecordingError, match="all their actions are null"):
        algorithm.train()
    algorithm.stop()


def test_a_still_camera_counts_if_it_is_to(local_ray, make_config):
    """In these demonstrations the camera never turns."""
    for still_camera in (True, False):
        algorithm = make_config(still_camera=still_camera).build_algo()
        learner = learner_of(algorithm)
        losses = learner.validate(algorithm.offline_data.validation(10))
        assert (losses["validation_camera"] > 0) == still_camera
        whole = losses["validation_buttons"] + losses["validation_camera"]
        assert losses["validation_loss"] == pytest.approx(whole, rel=1e-6)
        algorithm.stop()


def test_a_batch_with_nothing_to_imitate_has_no_loss(local_ray, make_config):
    config = make_config(window_length=LENGTH, burn_in=0)
    algorithm = config.build_algo()
    learner, recording = learner_of(algorithm), next(find_recordings(config.input_))
    (window,) = windows(recording, window_options(config))
    nothing = stack([replace(window, weight=np.zeros_like(window.weight))])
    assert learner.validate([nothing]) == {}
    for batch, has_loss in ((nothing, False), (stack([window]), True)):
        data = TrainingData(data_iterators=[iter([batch])])
        metrics = learner.update(training_data=data, timesteps={}, num_iters=1)
        assert ("loss" in metrics["default_policy"]) == has_loss
    algorithm.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("burn_in", "remembers"), [(None, True), (0, False)])
def test_the_memory_reaches_back_before_the_window(local_ray, make_config, burn_in, remembers):
    """Windows of 2 steps rarely hold the colour that is acted by: it is shown every 6th step."""
    config = make_config(burn_in=burn_in, window_length=2, context_length=1)
    algorithm = config.build_algo()
    learner = learner_of(algorithm)
    recordings = list(find_recordings(config.input_))
    endless = stream(recordings, window_options(config), seed=0, shuffle_among=100)
    batches = (stack(list(islice(endless, 40))) for _ in iter(int, 1))
    chunks = learner._chunks(learner._on_device(next(batches)), None)
    assert [chunk["weight"].shape for chunk, _ in chunks] == [(40, 1), (40, 1)], "the window's own"
    for _ in range(4):
        learner.update(
            training_data=TrainingData(data_iterators=[batches]), timesteps={}, num_iters=25
        )
        loss = learner.validate(islice(batches, 10))["validation_buttons"]
        if loss < 0.1:
            break
    if remembers:
        assert loss < 0.1
    else:
        unseen = (DELAY - 2) / DELAY
        assert loss > 0.5 * unseen * np.log(2)
    algorithm.stop()


@pytest.mark.slow
@pytest.mark.parametrize("windows_are", [{}, {"carry_memory": True, "shuffle_among": 64}])
def test_training_validates_plays_and_goes_on_from_a_checkpoint(
    local_ray, make_config, windows_are, tmp_path
):
    algorithm = make_config(**windows_are).build_algo()
    first, second = algorithm.train(), algorithm.train()
    before, after = (r["learners"]["default_policy"] for r in (first, second))
    assert after["loss"] < before["loss"]
    assert after["validation_loss"] < before["validation_loss"]
    assert second["num_env_steps_sampled_lifetime"] == 2 * 4 * 10 * 8
    for result in (second["evaluation"]["env_runners"], second["env_runners"]):
        assert 0 <= result["episode_return_mean"] <= LENGTH
        assert result["episode_len_mean"] == LENGTH
    episodes = Summary.load(f"{algorithm.logdir}/{FOLDER}/iteration_000002").episodes
    successes = [episode.undiscounted_return >= LENGTH // 2 for episode in episodes]
    assert second["evaluation"]["env_runners"]["success_rate"] == sum(successes) / 4
    for result in (first, second):  # and not what the evaluation before came to
        assert result["env_runners"]["seconds"] == result["evaluation"]["env_runners"]["seconds"]
    assert [r["env_runners"]["num_episodes_lifetime"] for r in (first, second)] == [4, 8]
    path = algorithm.save_to_path(str(tmp_path / "checkpoint"))
    assert read_record(path).iteration == 2
    weights = learner_of(algorithm).policy.get_state()
    assert learner_of(algorithm).get_state()["weights_seq_no"] == 2
    batches = algorithm.offline_data.sample(8)
    algorithm.stop()
    assert next(batches, None) is None, "what is being read would be left to the end of Ray"

    restored = MineStudioBC.from_checkpoint(path)
    for name, array in learner_of(restored).policy.get_state().items():
        np.testing.assert_array_equal(array, weights[name], err_msg=name)
    assert restored.train()["training_iteration"] == 3
    restored.stop()


@pytest.mark.slow
def test_a_recording_by_minestudios_own_code_is_learnt_by_heart(local_ray, make_config):
    """Twelve steps of a policy with random weights: chance explains them with 13.9 nats a step."""
    recorded = Path(__file__).parents[2] / "demonstrations" / "minestudio"
    config = make_config(windows_per_batch=2, validation_fraction=0.0)
    config.offline_data(input_=str(recorded), dataset_num_iters_per_learner=40)
    config.evaluation(evaluation_interval=None)
    algorithm = config.build_algo()
    losses = [algorithm.train()["learners"]["default_policy"]["loss"] for _ in range(3)]
    algorithm.stop()
    assert losses[0] > 5 and losses[-1] < 1


def test_a_restored_learner_takes_its_steps_with_the_configs_options(
    local_ray, make_config, tmp_path
):
    def train(algorithm):
        config = algorithm.config
        recording = next(find_recordings(config.input_))
        batch = stack(list(windows(recording, window_options(config))))
        data = TrainingData(data_iterators=[iter([batch])])
        learner_of(algorithm).update(training_data=data, timesteps={}, num_iters=1)

    check_restored_with_other_options(make_config, train, tmp_path)


def test_all_problems_are_told_at_once(make_config):
    config = make_config(window_length=0, validation_fraction=1.5, burn_in=-1)
    config.input_ = "sampler"
    config.learners(num_learners=2)
    with pytest.raises(InvalidOptionsError) as caught:
        config.validate()
    wrong = [
        *("window_length must be", "validation_fraction must be", "burn_in must be"),
        *("input_ must be", "num_learners is 2"),
    ]
    for beginning in wrong:
        assert any(problem.startswith(beginning) for problem in caught.value.problems), beginning


@pytest.mark.parametrize(
    "files, message",
    [
        ([], "holds no files"),
        (["a.mp4", "a.jsonl", "b.jsonl"], r"2 \.jsonl, 1 \.mp4\).*2 recordings cannot be read"),
        (["part-1/data.mdb", "part-1/lock.mdb"], r"2 \.mdb\)"),
        (["README"], "1 other"),
    ],
)
def test_a_folder_without_recordings_is_found_by_the_check(make_config, tmp_path, files, message):
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    config = make_config()
    config.input_ = str(tmp_path)
    with pytest.raises(InvalidOptionsError, match=f"input_ is .*{message}.*MineGenerator"):
        config.validate()


def test_what_carried_memory_leaves_no_room_for_is_refused(make_config):
    with pytest.raises(InvalidOptionsError) as caught:
        make_config(carry_memory=True, burn_in=16).validate()
    burn_in, among = caught.value.problems
    assert burn_in.startswith("burn_in is 16: with carry_memory")
    assert among.startswith("shuffle_among is 20: with carry_memory")
    make_config(carry_memory=True, burn_in=0, shuffle_among=64).validate()
