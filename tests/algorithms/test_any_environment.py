"""MineStudioPPO in environments of gymnasium's and of users' own."""

from __future__ import annotations

import sys
import textwrap

import gymnasium as gym
import numpy as np
import pytest
from ray import tune
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig
from rllib_minestudio.algorithms.environments import known_spaces
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.t_maze import TMaze
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation import Policy
from rllib_minestudio.foundation.observations import ObservationPart
from rllib_minestudio.models.rl_modules import ConvGRURLModule, VPTRLModule
from tests.algorithms.any_envs import Mixed, Pictures, Steering, Talking
from tests.correctness.harness import Harness

CARTPOLE = "CartPole-v1"


def config_of(env=CARTPOLE, env_config=None, **training):
    """A config whose iterations take a moment, without a policy's name."""
    config = MineStudioPPOConfig().environment(env, env_config=env_config or {})
    config.env_runners(num_envs_per_env_runner=4, rollout_fragment_length=16)
    options = {
        "model": {"hidden_size": 16},
        "fragments_per_iteration": 4,
        "fragments_per_minibatch": 2,
        "gradient_accumulation": 1,
        "context_length": 16,
        "env_pool": {"mode": "inline"},
        "lr": 1e-3,
    }
    return config.training(**{**options, **training}).debugging(seed=0)


def problems_of(config):
    with pytest.raises(InvalidOptionsError) as caught:
        config.validate()
    return caught.value.problems


# ------------------------------------------------------------------------- it trains, in every mode


@pytest.mark.parametrize(
    "env", [CARTPOLE, Pictures, Mixed], ids=["vector", "frames", "several parts"]
)
def test_one_iteration_trains(local_ray, env):
    algorithm = config_of(env).build_algo()
    try:
        module = algorithm.get_module()
        before = {name: value.copy() for name, value in module.get_state().items()}
        result = algorithm.train()
        assert isinstance(module, ConvGRURLModule)
        assert np.isfinite(result["learners"]["default_policy"]["total_loss"])
        assert result["env_runners"]["num_env_steps_sampled_lifetime"] == 64
        changed = [
            name for name, v in module.get_state().items() if not np.array_equal(v, before[name])
        ]
        assert {name.split(".")[0] for name in changed} >= {"gru", "action_head", "value_head"}
    finally:
        algorithm.stop()


def test_a_process_of_its_own_changes_nothing():
    """With the most probable actions: which random number is whose depends on who is faster."""
    played = []
    for mode in ("inline", "process"):
        config = config_of(Mixed, env_pool={"mode": mode}, replay_buffer={"max_staleness": 0})
        config.env_runners(num_envs_per_env_runner=2, explore=False)
        config.training(fragments_per_iteration=2)
        config.validate()
        harness = Harness(config)
        played.append(harness.play(2))
        harness.close()
    for inline, process in zip(*played, strict=True):
        for name, part in inline.obs.items():
            np.testing.assert_array_equal(part, process.obs[name])
        for name, tokens in inline.action.items():
            np.testing.assert_array_equal(tokens, process.action[name])
        np.testing.assert_array_equal(inline.reward, process.reward)
        np.testing.assert_array_equal(inline.truncated, process.truncated)


def test_what_gymnasiums_time_limit_cuts_off_is_bootstrapped():
    """And only that: a pole that has fallen has no future."""
    config = config_of(env_config={"max_episode_steps": 5}).env_runners(rollout_fragment_length=60)
    config.validate()
    harness = Harness(config)
    fragments = harness.play()
    harness.close()
    for fragment in fragments:
        np.testing.assert_array_equal(np.flatnonzero(fragment.truncated), np.arange(4, 60, 5))
        assert not fragment.terminated.any()
        assert fragment.final_obs["observation"].shape == (12, 4)
        np.testing.assert_array_equal(np.isfinite(fragment.bootstrap_value), fragment.truncated)
        begins = fragment.obs["observation"][fragment.first]
        assert (abs(begins) <= 0.05).all() and not (
            abs(fragment.final_obs["observation"]) <= 0.05
        ).all()


def test_a_checkpoint_restores_evaluates_and_plays(local_ray, tmp_path):
    """In the environment's own observations and actions, one at a time and in a batch."""
    config = config_of().evaluation(evaluation_duration=3)
    algorithm = config.build_algo()
    algorithm.train()
    told = [algorithm.evaluate()["env_runners"] for _ in range(2)]
    assert told[0]["num_episodes"] == 3
    assert told[0]["episode_return_mean"] == told[1]["episode_return_mean"] > 0
    path = algorithm.save_to_path(str(tmp_path / "checkpoint"))
    expected = algorithm.get_module().get_state()
    algorithm.stop()

    restored = MineStudioPPO.from_checkpoint(path)
    assert restored.config.module_class == "ConvGRU"
    for name, value in restored.get_module().get_state().items():
        np.testing.assert_array_equal(value, expected[name])
    restored.train()
    restored.stop()

    env = gym.make(CARTPOLE)
    observation, _ = env.reset(seed=0)
    actions = []
    for given in (env, None):  # without one, the checkpoint says which it is
        policy = Policy.load(path, given, deterministic=True)
        actions.append(policy.act(observation))
        assert env.action_space.contains(actions[-1]) and policy.value.shape == ()
    assert actions[0] == actions[1]
    several = gym.make_vec(CARTPOLE, 3, vectorization_mode="sync")
    batch = Policy.load(path, several).act(several.reset(seed=0)[0])
    assert several.action_space.contains(batch)


@pytest.mark.slow
def test_remote_env_runners_and_two_learners_train(local_ray):
    config = config_of(Mixed, {"length": 5}).env_runners(num_env_runners=1)
    config.learners(num_learners=2).training(
        gradient_accumulation=2, replay_buffer={"max_reuse": 2, "max_staleness": 2}
    )
    config.evaluation(evaluation_num_env_runners=1, evaluation_duration=2)
    algorithm = config.build_algo()
    try:
        result = [algorithm.train() for _ in range(2)][-1]
        assert np.isfinite(result["learners"]["default_policy"]["total_loss"])
        assert result["env_runners"]["episode_len_mean"] == 5
        assert algorithm.evaluate()["env_runners"]["episode_len_mean"] == 5
    finally:
        algorithm.stop()


def returns_in_t_maze(policy, iterations):
    """Mean return of the last 200 episodes after each iteration, up to the first above 0.9."""
    config = config_of(TMaze, {"length": 4}, module_class=policy, prior=None, kl_coeff=0.0)
    config.training(num_epochs=4, gamma=0.95, entropy_coeff=0.01, lr=3e-3, weight_decay=0.0)
    config.training(fragments_per_iteration=16, fragments_per_minibatch=4)
    config.env_runners(num_envs_per_env_runner=16, rollout_fragment_length=32)
    config.reporting(metrics_num_episodes_for_smoothing=200)
    algorithm = config.build_algo()
    returns = [0.0]
    while len(returns) <= iterations and returns[-1] <= 0.9:
        returns.append(algorithm.train()["env_runners"]["episode_return_mean"])
    algorithm.stop()
    return returns[1:]


@pytest.mark.slow
def test_a_t_maze_is_learned_by_who_remembers_and_not_by_who_forgets(local_ray):
    """A policy without a memory can be right in half of the mazes only, however long it learns."""
    remembering = returns_in_t_maze(ConvGRURLModule, 60)
    assert remembering[-1] > 0.9
    forgetting = returns_in_t_maze(Forgetful, len(remembering))
    assert max(forgetting) < 0.65  # four standard deviations of a coin


class Forgetful(ConvGRURLModule):
    """The same network, for which every observation begins an episode."""

    def latent(self, obs, first_bt, state):
        return super().latent(obs, first_bt | True, state)


# ----------------------------------------------------------------- names, and the policy they bring


def test_every_name_of_minestudios_environment_is_the_same():
    expected = MineStudioEnv.spaces_of({"obs_size": [64, 64]})
    for name in ("MineStudio", "MineStudioEnv", "MineStudio-v0"):
        assert known_spaces(name, {"obs_size": [64, 64]}) == expected
        config = MineStudioPPOConfig().environment(name, env_config={"obs_size": [64, 64]})
        config.training(model={"preset": "nano"}).validate()
        assert config.module_class == "VPT" and config.policy_class is VPTRLModule


def test_names_are_rllibs(tmp_path, monkeypatch):
    """Ids of gymnasium, also with their module, names registered with Tune, classes, functions."""
    (tmp_path / "a_module_with_an_id.py").write_text(
        textwrap.dedent(
            """
            import gymnasium as gym
            from tests.algorithms.any_envs import Pictures
            class Made(Pictures):
                def __init__(self, length):
                    super().__init__({"length": length})
            gym.register("OnlyThere-v0", Made)
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    tune.register_env("a name of Tune's", lambda config: Mixed(config))
    cases = [
        (CARTPOLE, {"max_episode_steps": 7}, "observation"),
        ("a_module_with_an_id:OnlyThere-v0", {"length": 3}, "observation"),
        ("a name of Tune's", {"length": 3}, "room"),
        ("tests.algorithms.any_envs.Mixed", {}, "room"),
        (Mixed, {}, "room"),
        (lambda config: gym.make(CARTPOLE), {}, "observation"),
    ]
    for env, env_config, part in cases:
        config = config_of(env, env_config)
        config.validate()
        assert (
            config.module_class == "ConvGRU"
            and part in config.known_spaces()["observation_space"].spaces
        )
    sys.modules.pop("a_module_with_an_id")


def test_the_choice_of_the_policy_is_told_once(caplog):
    class Another(Pictures):
        pass

    for _ in range(2):
        config_of(Another).validate()
    (told,) = [
        r.getMessage() for r in caplog.records if "module_class is not given" in r.getMessage()
    ]
    assert "Another" in told and "ConvGRU" in told


# ------------------------------------------------------------------------------- what is refused


class TwoAgents(MultiAgentEnv):
    pass


@pytest.mark.parametrize(
    ("env", "env_config", "message"),
    [
        ("Pendulum-v1", {}, "DiscretizeAction; got Box(-2.0, 2.0, (1,), float32)"),
        ("Blackjack-v1", {}, "observation space must be a Box"),
        (Steering, {}, "DiscretizeAction; got Box(-1.0, 1.0, (1,), float32)"),
        (Talking, {}, "'said' of the environment's observation space"),
        (TwoAgents, {}, "one agent"),
        (lambda config: TwoAgents(), {}, "one agent"),
        (gym.vector.SyncVectorEnv, {}, "num_envs_per_env_runner"),
        (lambda config: gym.make_vec(CARTPOLE, 2), {}, "num_envs_per_env_runner"),
        (CARTPOLE, {"lenght": 3}, "unexpected keyword argument 'lenght'"),
        ("CartPole-v7", {}, "Gymnasium says"),
        ("MineStudioEnvv", {}, "Did you mean 'MineStudioEnv'"),
        ("no_such_module:Id-v0", {}, "cannot be imported"),
        (7, {}, "env must be"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_named_in_the_check(env, env_config, message):
    (problem,) = problems_of(config_of(env, env_config))
    assert message in problem and "Traceback" not in problem


@pytest.mark.parametrize("env", [CARTPOLE, Pictures])
def test_vpt_is_refused_by_name_where_it_has_nothing_to_see(env):
    (problem,) = problems_of(config_of(env, module_class="VPT", model={"preset": "nano"}))
    assert (
        "The policy is VPT, which reads frames" in problem and "leave module_class out" in problem
    )


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            ObservationPart((2,), np.dtype(np.int64)),
            "reads 'speed', which the environment does not",
        ),
        (ObservationPart((5,), np.dtype(np.float32)), "reads 'observation' as float32 (5,), but"),
    ],
)
def test_parts_that_a_policy_of_the_users_reads_and_nobody_shows_are_named(part, message):
    name = "speed" if part.shape == (2,) else "observation"

    class Reader(ConvGRURLModule):
        observation_parts = property(lambda self: {name: part})

    (problem,) = problems_of(config_of(module_class=Reader))
    assert message in problem and "Reader" in problem


def test_a_class_of_the_users_that_cannot_be_built_here_is_left_to_its_machine():
    class ElsewhereOnly(Pictures):
        def __init__(self, config=None):
            raise OSError("no such device on this machine")

    config_of(ElsewhereOnly, module_class="ConvGRU").validate()


def test_recordings_of_it_are_refused_before_it_is_played():
    config = config_of().evaluation(evaluation_interval=1, evaluation_options={"record": True})
    (problem,) = problems_of(config)
    assert "Recordings hold frames with MineStudio's keys" in problem
