"""MineStudioEnv's contract: gymnasium's, MineStudio's, and what learners rely on."""

import copy
import pickle
import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_minestudio.algorithms.env_pool import InlineEnvs, ProcessEnvs
from rllib_minestudio.env import MineStudioEnv, make_env
from rllib_minestudio.errors import InvalidActionError
from rllib_minestudio.foundation.episode_seeds import EpisodeCounts, derived_seed
from rllib_minestudio.foundation.names import INVENTORY_TOKEN

SMALL = {"obs_size": [64, 64], "num_empty_frames": 3}


class EnvContext(dict):
    """RLlib's EnvContext, without RLlib: a dict with two attributes."""

    def __init__(self, config, worker_index, vector_index):
        super().__init__(config)
        self.worker_index, self.vector_index = worker_index, vector_index


def fingerprint(env, steps=5):
    """What the next episode begins like: its first frame, place, and some random steps."""
    obs, info = env.reset()
    frames = [obs["image"]]
    for i in range(steps):
        obs, *_ = env.step({"buttons": 1000 + i, "camera": i})
        frames.append(obs["image"])
    return np.stack(frames), info["player_pos"]


@pytest.fixture
def cow_env(cow_task):
    env = MineStudioEnv({**cow_task, **SMALL})
    yield env
    env.close()


@pytest.mark.parametrize("with_task", [False, True])
def test_gymnasiums_checker_is_silent(cow_task, with_task):
    options = {**(cow_task if with_task else {}), **SMALL, "render_size": [64, 36]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(MineStudioEnv(options))


def test_observations_and_frames_have_their_sizes(cow_task):
    env = MineStudioEnv(cow_task, obs_size=[96, 48], num_empty_frames=0)
    obs, _ = env.reset(seed=1)
    assert obs["image"].shape == (48, 96, 3)
    assert obs in env.observation_space
    assert env.render().shape == (360, 640, 3)
    assert MineStudioEnv(SMALL, render_mode=None).render() is None


def test_twins_agree_step_by_step_across_resets(cow_task):
    cow_task["callbacks"][-1] = {"JudgeReset": 25}
    twins = [MineStudioEnv({**cow_task, **SMALL}) for _ in range(2)]
    actions = np.random.default_rng(0)
    results = [twin.reset() for twin in twins]
    for _ in range(80):
        action = {"buttons": actions.integers(8641), "camera": actions.integers(121)}
        results = [twin.step(action) for twin in twins]
        (obs, *rest), (other_obs, *other_rest) = results
        np.testing.assert_array_equal(obs["image"], other_obs["image"])
        assert rest == other_rest
        if rest[1] or rest[2]:
            (obs, info), (other_obs, other_info) = (twin.reset() for twin in twins)
            np.testing.assert_array_equal(obs["image"], other_obs["image"])
            assert info == other_info


def test_a_seed_reproduces_an_episode_whatever_happened_before(cow_task):
    fresh, used = (MineStudioEnv({**cow_task, **SMALL}) for _ in range(2))
    used.reset(seed=5)
    for _ in range(30):
        used.step(used.action_space.sample())
    used.reset()
    used.step({"buttons": 0, "camera": 60})
    first, first_info = fresh.reset(seed=7)
    second, second_info = used.reset(seed=7)
    np.testing.assert_array_equal(first["image"], second["image"])
    assert first_info == second_info
    np.testing.assert_array_equal(fingerprint(fresh)[0], fingerprint(used)[0])


def test_an_episode_seed_reproduces_an_episode_whatever_happened_before(cow_task):
    cow_task["callbacks"] = [one for one in cow_task["callbacks"] if "FastReset" not in one]
    fresh, used = (MineStudioEnv({**cow_task, **SMALL}) for _ in range(2))
    used.reset()
    used.step({"buttons": 0, "camera": 60})
    for seed in (7, 8):
        seen = []
        for env in (fresh, used):
            obs, info = env.reset(options={"episode_seed": seed})
            seen.append((obs["image"].tobytes(), info["player_pos"]))
        assert seen[0] == seen[1]
    assert used.reset(options={"episode_seed": 7})[1]["player_pos"] != seen[1][1]


def test_an_episode_seed_leaves_it_to_callbacks_whether_the_world_is_new(cow_task):
    assert any("FastReset" in one for one in cow_task["callbacks"])
    env = MineStudioEnv({**cow_task, **SMALL})
    worlds = []
    reset = env.backend.reset
    env.backend.reset = lambda: worlds.append(1) or reset()
    env.reset(options={"episode_seed": 1})
    env.reset(options={"episode_seed": 2})
    assert len(worlds) == 1
    env.reset(seed=2)
    assert len(worlds) == 2


@pytest.mark.parametrize("kind", [InlineEnvs, pytest.param(ProcessEnvs, marks=pytest.mark.slow)])
def test_a_pool_that_goes_on_plays_the_next_episodes(cow_task, kind):
    makers = [partial(MineStudioEnv, {**cow_task, **SMALL})]
    first = {}
    for number in (0, 1):
        pool = kind(makers, gamma=0.9)
        pool.reset(EpisodeCounts(5, (number,)))
        first[number] = pool.recv().obs["image"].copy()
        pool.close()
        env = MineStudioEnv({**cow_task, **SMALL})
        obs, _ = env.reset(options={"episode_seed": derived_seed(5, 0, number)})
        np.testing.assert_array_equal(obs["image"], first[number][0])
    assert (first[0] != first[1]).any()


def test_every_worker_and_vector_index_has_episodes_of_its_own(cow_task):
    options = {**cow_task, **SMALL}
    places = [
        fingerprint(MineStudioEnv(EnvContext(options, worker, vector)))[0].tobytes()
        for worker, vector in [(0, 0), (1, 0), (0, 1), (1, 1)]
    ]
    assert len(set(places)) == 4
    again = fingerprint(make_env(EnvContext(options, 1, 0)))[0].tobytes()
    assert again == places[1]
    assert fingerprint(MineStudioEnv(options, seed=1))[0].tobytes() != places[0]


def test_environments_of_one_rllib_config_share_no_callback(cow_task):
    class Counter:
        calls = 0

        def after_step(self, sim, *result):
            self.calls += 1
            return result

    counter = Counter()
    options = {**SMALL, "callbacks": [counter]}
    own = MineStudioEnv(options)
    assert own.sim.callbacks[0] is counter
    copied = MineStudioEnv(EnvContext(options, 1, 1))
    assert copied.sim.callbacks[0] is not counter


def test_consecutive_episodes_differ(cow_env):
    frames = [cow_env.reset()[0]["image"].tobytes() for _ in range(3)]
    assert len(set(frames)) == 3


def test_the_time_limit_truncates_and_never_terminates(cow_task):
    cow_task["callbacks"][-1] = {"JudgeReset": {"time_limit": 4}}
    env = MineStudioEnv({**cow_task, **SMALL})
    for _ in range(2):
        env.reset()
        ends = [env.step({"buttons": 0, "camera": 60})[2:4] for _ in range(4)]
        assert ends == [(False, False)] * 3 + [(False, True)]


def test_death_terminates_and_the_next_episode_starts_alive(cow_task):
    cow_task["callbacks"][3] = {"Commands": ["/time set 0"]}
    env = MineStudioEnv({**cow_task, **SMALL})
    env.reset()
    place = env.sim.info["player_pos"]
    env.backend.execute_cmd(f"/tp @p {place['x']} {place['y'] + 60} {place['z']}")
    for _ in range(200):
        *_, terminated, truncated, info = env.step({"buttons": 0, "camera": 60})
        if terminated:
            break
    assert terminated and not truncated
    assert info["health"] <= 0
    _, info = env.reset()
    assert info["health"] == 20
    assert env.step({"buttons": 0, "camera": 60})[2:4] == (False, False)


def test_the_callers_action_is_left_alone(cow_env):
    cow_env.reset()
    action = {"buttons": np.array([4321]), "camera": np.array([3])}
    before = copy.deepcopy(action)
    cow_env.step(action)
    assert action == before


def test_env_actions_are_left_alone_and_may_be_partial(cow_task):
    env = MineStudioEnv({**cow_task, **SMALL}, action_type="env")
    env.reset(seed=0)
    action = {"forward": 1, "inventory": 1, "camera": np.array([1.0, 90.0])}
    before = copy.deepcopy(action)
    start = env.sim.info["player_pos"]
    for _ in range(10):
        env.step(action)
    np.testing.assert_equal(action, before)
    assert not env.sim.info["is_gui_open"], "MaskActions let the inventory open"
    assert env.sim.info["player_pos"]["pitch"] == pytest.approx(start["pitch"] + 10, abs=1e-3)
    assert env.action_space.contains(env.action_space.sample())
    env.step(env.action_space.sample())
    with pytest.raises(InvalidActionError, match="Did you mean 'forward'"):
        env.step({"forwards": 1})


def test_both_action_types_do_the_same(cow_task):
    by_token = MineStudioEnv({**cow_task, **SMALL})
    by_key = MineStudioEnv({**cow_task, **SMALL}, action_type="env")
    by_token.reset(seed=3), by_key.reset(seed=3)
    mapper = by_token.sim.mapper
    for buttons, camera in [(1 + 2 * 40, 13), (8000, 5), (INVENTORY_TOKEN, 60), (17, 119)]:
        keys = mapper.to_env(buttons, camera)
        keys.pop("drop")
        obs, *rest = by_token.step({"buttons": buttons, "camera": camera})
        other_obs, *other_rest = by_key.step(keys)
        np.testing.assert_array_equal(obs["image"], other_obs["image"])
        assert rest == other_rest


def test_a_wrong_action_is_the_callers_error_and_costs_nothing(cow_env):
    cow_env.reset()
    with pytest.raises(InvalidActionError, match="got 9999"):
        cow_env.step({"buttons": 9999, "camera": 0})
    assert cow_env.step({"buttons": 0, "camera": 60})[2:4] == (False, False)


def test_infos_are_small_plain_and_never_change(cow_env):
    _, info = cow_env.reset()
    infos, copies = [info], [copy.deepcopy(info)]
    for _ in range(20):
        info = cow_env.step(cow_env.action_space.sample())[-1]
        infos.append(info)
        copies.append(copy.deepcopy(info))
    assert infos == copies
    assert "pov" not in info
    assert set(infos[0]) == set(infos[-1])
    assert len(pickle.dumps(info)) < 2048


def test_observations_are_never_overwritten(cow_env):
    obs, _ = cow_env.reset()
    before = obs["image"].copy()
    cow_env.step({"buttons": 0, "camera": 0})
    cow_env.step({"buttons": 1, "camera": 0})
    np.testing.assert_array_equal(obs["image"], before)


def test_drop_is_never_sent(cow_env):
    _, info = cow_env.reset()
    assert info["inventory"][0]["type"] == "iron_sword"
    drop_only = cow_env.sim.mapper.from_env({"drop": 1})
    for _ in range(3):
        *_, info = cow_env.step(drop_only)
    assert info["inventory"][0]["type"] == "iron_sword"


def test_the_initial_inventory_is_there():
    inventory = {0: {"type": "iron_sword"}, 5: {"type": "dirt", "quantity": 3}}
    env = MineStudioEnv(SMALL, inventory=inventory)
    _, info = env.reset()
    assert info["inventory"][0] == {"type": "iron_sword", "quantity": 1}
    assert info["inventory"][5] == {"type": "dirt", "quantity": 3}


def test_steps_out_of_order_raise_gymnasiums_errors(cow_task):
    env = MineStudioEnv(cow_task)
    with pytest.raises(gym.error.ResetNeeded, match=r"call reset\(\) before step"):
        env.step(env.action_space.sample())
    env.reset(seed=0)
    env.close()
    for call in (env.reset, lambda: env.step(env.action_space.sample())):
        with pytest.raises(gym.error.ClosedEnvironmentError, match="is closed"):
            call()


def test_closing_twice_is_fine(cow_env):
    cow_env.reset()
    cow_env.close()
    cow_env.close()
