"""Cursor: what the hand knows of the cursor is where the game has it."""

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv

SMALL = {"obs_size": [32, 32], "num_empty_frames": 1, "preferred_spawn_biome": "plains"}
CLOSED = [0.0, 0.0, 0.0]


def playing(*callbacks):
    """A game whose actions are keys and degrees, and its first observation."""
    env = MineStudioEnv(SMALL, callbacks=[*callbacks, "Cursor"], action_type="env")
    return env, env.reset(seed=1)[0]


def in_the_game(env):
    """What the callback should tell, from the engine's own cursor."""
    screen = env.sim.env.engine._game.state.screen
    if screen is None:
        return CLOSED
    return [1.0, screen.cursor.x / 320 - 1, screen.cursor.y / 180 - 1]


def test_the_hand_knows_where_the_cursor_is():
    env, obs = playing()
    random = np.random.default_rng(0)
    opened = touched = 0
    for _ in range(600):
        assert obs in env.observation_space
        np.testing.assert_allclose(obs["cursor"], in_the_game(env), atol=1e-6)
        opened += obs["cursor"][0]
        touched += bool((np.abs(obs["cursor"][1:]) == 1).any())
        keys = {"inventory": random.random() < 0.05, "attack": random.random() < 0.1}
        keys = {key: np.int64(down) for key, down in keys.items()}
        obs, *_ = env.step({**keys, "camera": random.normal(0, 12, 2)})
    assert 100 < opened < 500 and touched > 20


def test_an_episode_begins_without_a_screen():
    env, _ = playing()
    obs, *_ = env.step({"inventory": 1})
    assert obs["cursor"].tolist() == [1.0, 0.0, 0.0]
    obs, *_ = env.step({"camera": np.array([-9.0, 12.0])})
    np.testing.assert_allclose(obs["cursor"], [1.0, 0.25, -1 / 3], rtol=1e-6)
    obs, _ = env.reset()
    assert obs["cursor"].tolist() == CLOSED
    obs, *_ = env.step({"inventory": 1, "camera": np.array([5.0, 5.0])})
    assert obs["cursor"].tolist() == [1.0, 0.0, 0.0]  # the camera turned the head


def test_it_follows_what_callbacks_before_it_made_of_the_action():
    env, _ = playing({"MaskActions": {"camera": np.array([0.0, 3.2])}})
    env.step({"inventory": 1})
    obs, *_ = env.step({"camera": np.array([50.0, 50.0])})
    assert obs["cursor"] == pytest.approx([1.0, 3.2 / 48, 0.0])
    np.testing.assert_allclose(obs["cursor"], in_the_game(env), atol=1e-6)
