"""Policies that read more than frames learn from recordings that hold it."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.training_data import TrainingData

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.algorithms import MineStudioBCConfig
from rllib_minestudio.algorithms.demonstration_data import DemonstrationData, window_options
from rllib_minestudio.demonstrations import find_episodes, open_episode, stack, stream
from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions
from rllib_minestudio.errors import InvalidOptionsError, RecordingError
from tests.correctness.harness import Harness, config_of
from tests.policies.kinds import policy_options

STEPS = 12
ACTIONS = {"dig": {"buttons": 0, "camera": 60}, "look": {"buttons": 8640, "camera": 3}}
"""What is demonstrated for each task."""

TASK = {"Task": [{"name": name, "text": name} for name in ACTIONS]}


def env_config(*callbacks):
    return {
        "obs_size": [36, 36],
        "num_empty_frames": 1,
        "callbacks": [*callbacks, {"JudgeReset": STEPS}],
    }


def record(folder, *callbacks, seeds=(0, 1)):
    """Episodes in which the task alone decides what is done."""
    env = MineStudioEnv(env_config(*callbacks))
    recorder = EpisodeRecorder(env, RecorderOptions(str(folder)))
    for seed in seeds:
        _, info = recorder.reset(seed=seed)
        done = False
        while not done:
            *_, done, _ = recorder.step(ACTIONS[info.get("task", "dig")])
    assert not recorder.failures
    return folder


@pytest.fixture(scope="module")
def with_tasks(tmp_path_factory):
    """Two episodes, one of each task."""
    folder = record(tmp_path_factory.mktemp("tasks"), TASK, seeds=(0, 1, 2, 3))
    texts = {
        bytes(open_episode(path).observations["task_text"][0]).rstrip(b"\0")
        for path in find_episodes(folder)
    }
    assert texts == {b"dig", b"look"}
    return folder


@pytest.fixture(scope="module")
def without_tasks(tmp_path_factory):
    """One episode of a game without a task."""
    return record(tmp_path_factory.mktemp("frames"), seeds=(0,))


def cloning_config(folder, **training):
    config = MineStudioBCConfig().environment(env_config=env_config(TASK))
    config.offline_data(input_=folder, dataset_num_iters_per_learner=4)
    options = {"lr": 1e-2, "window_length": 6, "context_length": 4, "windows_per_batch": 4}
    options |= {"validation_fraction": 0, **policy_options("ConvGRU", hidden_size=16)}
    return config.debugging(seed=0).training(**{**options, **training})


def test_the_loss_goes_down_by_what_the_text_says(with_tasks):
    config = cloning_config(str(with_tasks))
    config.validate()
    options = window_options(config)
    assert options.observation_names == ("task_text",)
    assert options.burn_in == 64, "ConvGRU's memory_length"
    recordings = [open_episode(path) for path in find_episodes(with_tasks)]
    endless = stream(recordings, options, seed=0, shuffle_among=8)
    batches = (stack(list(islice(endless, 4))) for _ in iter(int, 1))
    batch = next(batches)
    assert batch["task_text"].shape == (4, 70, 64) and batch["task_text"].any()
    spaces = {DEFAULT_MODULE_ID: (config.observation_space, config.action_space)}
    learner = config.build_learner(spaces=spaces)
    learner.build()
    losses = []
    for _ in range(4):
        data = TrainingData(data_iterators=[batches])
        learner.update(training_data=data, timesteps={}, num_iters=8)
        losses.append(learner.validate([batch])["validation_loss"])
    assert losses[0] > 3 * losses[-1] and losses[-1] < 1.0
    blind = {**batch, "task_text": np.zeros_like(batch["task_text"])}
    assert learner.validate([blind])["validation_loss"] > 2 * losses[-1]
    learner.shutdown()


def test_any_device_clones_the_same(local_ray, with_tasks, device):
    config = cloning_config(str(with_tasks), adam_eps=1e-4)  # what is but rounding moves nothing
    config.validate()
    recordings = [open_episode(path) for path in find_episodes(with_tasks)]
    endless = stream(recordings, window_options(config), seed=0, shuffle_among=8)
    batches = [stack(list(islice(endless, 4))) for _ in range(4)]
    spaces = {DEFAULT_MODULE_ID: (config.observation_space, config.action_space)}
    losses, learned = [], []
    for where in ("cpu", device):
        torch.manual_seed(0)
        learner = (
            config.copy()
            .learners(num_gpus_per_learner=int(where == "cuda"))
            .build_learner(spaces=spaces)
        )
        learner.build()
        assert learner.policy.device.type == where
        losses.append(learner.validate(batches)["validation_loss"])
        data = TrainingData(data_iterators=[iter(batches)])
        learner.update(training_data=data, timesteps={}, num_iters=len(batches))
        losses.append(learner.validate(batches)["validation_loss"])
        learned.append(learner.policy.get_state())
        learner.shutdown()
    np.testing.assert_allclose(losses[2:], losses[:2], rtol=1e-4)
    assert losses[1] < losses[0] - 0.1
    for name, weights in learned[0].items():
        np.testing.assert_allclose(learned[1][name], weights, rtol=1e-3, atol=2e-5, err_msg=name)


def test_burn_in_can_be_chosen(with_tasks):
    config = cloning_config(str(with_tasks), burn_in=3)
    config.validate()
    assert window_options(config).burn_in == 3


def test_a_recording_without_what_is_read_is_refused(with_tasks, without_tasks):
    """By name, before Ray starts, and where they are read, in case they were changed meanwhile."""
    config = cloning_config([str(with_tasks), str(without_tasks)])
    with pytest.raises(InvalidOptionsError, match="the policy reads 'task_text'") as caught:
        config.validate()
    assert str(without_tasks) in str(caught.value)
    valid = cloning_config(str(with_tasks))
    valid.validate()
    valid.input_ = str(without_tasks)
    with pytest.raises(RecordingError, match="the policy reads 'task_text'"):
        DemonstrationData(valid)


def ppo_config(folder):
    return config_of(
        "MineStudio",
        env_config(TASK),
        num_envs=2,
        fragment_length=6,
        lr=1e-2,
        behaviour_cloning={"recordings": str(folder), "coeff": 1.0, "fragment_length": 6},
        **policy_options("ConvGRU"),
    )


def test_it_is_held_to_demonstrations_beside_ppo(with_tasks):
    harness = Harness(ppo_config(with_tasks))
    losses = []
    for _ in range(8):
        losses.append(harness.update(harness.play())["behaviour_cloning_loss"])
        harness.publish()
    harness.close()
    assert losses[0] > 8, "a uniform choice among 8641 tokens costs 9.06"
    assert losses[-1] < 0.8 * losses[0]


def test_beside_ppo_the_recording_is_refused_as_well(without_tasks):
    with pytest.raises(InvalidOptionsError, match="the policy reads 'task_text'"):
        Harness(ppo_config(without_tasks))


@pytest.mark.slow
def test_a_whole_algorithm_clones(local_ray, with_tasks, tmp_path):
    """Ray Data reads the recordings; the checkpoint is evaluated."""
    from rllib_minestudio.evaluation.policy_loading import load_policy

    algorithm = cloning_config(str(with_tasks), validation_fraction=0.25).build_algo()
    losses = [algorithm.train()["learners"]["default_policy"]["loss"] for _ in range(3)]
    assert losses[-1] < losses[0]
    checkpoint = algorithm.save_to_path(str(tmp_path / "checkpoint"))
    loaded = load_policy(checkpoint)
    assert loaded.config.module_class == "ConvGRU"
    for name, array in algorithm.get_module().get_state().items():
        np.testing.assert_array_equal(loaded.weights[name], array)
    assert algorithm.evaluate()["env_runners"]["num_episodes"] == 20
    algorithm.stop()
