"""Whole episodes, played one after the other."""

import numpy as np
import pytest

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.env.agents import RandomAgent
from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.evaluation.inference import (
    Policy,
    ScriptedPolicy,
    play_episodes,
    step_messages,
)
from rllib_minestudio.evaluation.policy_loading import load_module
from rllib_minestudio.models.rl_modules import VPTRLModule

STEPS = 15


@pytest.fixture
def env():
    env = MineStudioEnv(
        obs_size=(64, 64), num_empty_frames=1, callbacks=[{"JudgeReset": {"time_limit": STEPS}}]
    )
    yield env
    env.close()


def test_every_action_and_every_step_is_reported(env):
    seen, steps, shown = [], [], []
    tell = step_messages(shown.append, 2)

    def note(done, step):
        steps.append((done, step))
        tell(done, step)
        tell(done, 20 * step)

    policy = ScriptedPolicy(RandomAgent(0), env)
    returns = play_episodes(
        env,
        policy,
        2,
        seed=1,
        on_action=lambda action, total: seen.append((action, total, env.render().shape)),
        on_step=note,
    )
    assert returns == [0.0, 0.0]
    assert steps == [(done, step) for done in range(2) for step in range(1, STEPS + 1)]
    assert shown[STEPS] == "episode 2 of 2, step 20" and len(shown) == 2 * STEPS
    assert [(total, shape) for _, total, shape in seen] == [(0.0, (360, 640, 3))] * (2 * STEPS)
    assert all("buttons" in action for action, _, _ in seen)


def test_a_task_without_a_time_limit_ends_all_the_same():
    env = MineStudioEnv(obs_size=(64, 64))
    policy, steps = ScriptedPolicy(RandomAgent(0), env), []
    returns = play_episodes(
        env, policy, 2, seed=1, on_step=lambda done, step: steps.append((done, step)), max_steps=7
    )
    assert returns == [0.0, 0.0]
    assert steps == [(done, step) for done in (0, 1) for step in range(1, 8)]
    assert play_episodes(env, policy, 2, seed=1, max_seconds=0.0) == []
    env.close()


def test_a_module_plays_with_a_fresh_memory_in_each_episode(env):
    module = VPTRLModule(
        observation_space=env.observation_space,
        action_space=env.action_space,
        model_config={
            "preset": "nano",
            "hidsize": 16,
            "attention_heads": 2,
            "n_recurrence_layers": 1,
        },
    )
    policy = Policy(module, deterministic=True)
    episodes = []
    for _ in range(2):
        observation, _ = env.reset(seed=3)
        policy.reset()
        actions = []
        for _ in range(5):
            # What third-party environments add to an observation is left out.
            action = policy.act({**observation, "task": {"text": "dig a hole"}})
            assert env.action_space.contains(action)
            actions.append([int(action["buttons"][0]), int(action["camera"][0])])
            observation, *_ = env.step(action)
        episodes.append(actions)
    np.testing.assert_array_equal(*episodes)


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path):
    message = r"is a folder without a checkpoint: .* holds nothing\. Give a checkpoint"
    with pytest.raises(CheckpointMismatchError, match=message):
        load_module(tmp_path)
