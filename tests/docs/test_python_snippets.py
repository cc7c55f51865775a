"""Every piece of Python in the docs runs, as it stands or with the lengths that are named here.

What a page leaves to its reader (an environment, a config, a checkpoint) is set up before.
"""

import ast
import importlib
import re

import numpy as np
import pytest
import torch

from rllib_minestudio import MineStudioEnv, MineStudioPPOConfig
from rllib_minestudio.algorithms.learner import MineStudioPPOLearner
from rllib_minestudio.recordings import find_recordings
from tests.docs.snippets import snippets

pytestmark = pytest.mark.usefixtures("local_ray")

ELSEWHERE = {
    "agents-0": "tests/evaluation/test_inference.py",
    "policies-0": "tests/policies/test_the_page.py",
    "policies-1": "tests/policies/test_the_page.py",
    "callbacks-0": "tests/docs/test_tutorials.py",
    "data-0": "tests/recordings/test_minestudio_dataset.py",
}
"""What other tests run."""

PACKAGED = "package:hunter_nano"
TINY_MODEL = {
    "preset": "nano",
    "hidsize": 16,
    "attention_heads": 2,
    "n_recurrence_layers": 1,
    "attention_memory_size": 24,
    "timesteps": 16,
}
SMALL = {
    "num_envs_per_env_runner": 1,
    "rollout_fragment_length": 16,
    "context_length": 16,
    "fragments_per_iteration": 2,
    "fragments_per_minibatch": 2,
}
ITERATION = SMALL["fragments_per_iteration"] * SMALL["rollout_fragment_length"]
"""Environment steps of a small config's iteration."""
SHORT_ENV = {"obs_size": [64, 64], "callbacks": [{"JudgeReset": {"time_limit": 5}}]}

CODE = {str(snippet): snippet.text for snippet in snippets("python")}


def run(name, changes=(), **given):
    """Execute a piece of a page with names given, some of its text replaced; return its names."""
    text = CODE[name]
    for old, new in changes:
        assert text.count(old) == 1, f"{name} no longer has {old!r} once"
        text = text.replace(old, new)
    names = {"__name__": f"docs_{name}", **given}
    exec(compile(text, f"docs: {name}", "exec"), names)
    return names


def small_config():
    """A config whose iterations take a moment."""
    config = MineStudioPPOConfig().environment(env_config=SHORT_ENV)
    return config.training(model=TINY_MODEL, prior=None, kl_coeff=0.0, **_training()).env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=SMALL["num_envs_per_env_runner"],
        rollout_fragment_length=SMALL["rollout_fragment_length"],
    )


def _training():
    of_runners = ("num_envs_per_env_runner", "rollout_fragment_length")
    return {name: value for name, value in SMALL.items() if name not in of_runners}


SMALLER = (
    f".training(**{_training()}, decorrelation_steps=0).env_runners("
    "num_env_runners=0, num_envs_per_env_runner=1, rollout_fragment_length=16)"
)
"""Added to the config of an example."""


def test_every_piece_is_run_by_a_test_here_or_elsewhere():
    here = {name for test in HERE for name in test.snippets}
    assert sorted([*here, *ELSEWHERE]) == sorted(CODE)


def test_names_are_imported_from_packages():
    imported = {
        node.module
        for text in CODE.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rllib_minestudio")
    }
    assert len(imported) > 5
    public_modules = {"rllib_minestudio.errors", "rllib_minestudio.minestudio"}
    for name in imported - public_modules:
        assert hasattr(importlib.import_module(name), "__path__"), f"{name} is not a package"


def shows(*names):
    """Say which pieces a test runs."""

    def note(test):
        test.snippets = names
        return test

    return note


@shows("README-1", "callbacks-1")
def test_a_policy_acts_and_a_callback_adds_to_observations():
    altitude = run("callbacks-1")["Altitude"]()
    env = MineStudioEnv(**{**SHORT_ENV, "callbacks": [altitude]})
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation) and observation["altitude"] > 0
    found = run("README-1", [('"results/cow/best"', repr(PACKAGED))], observation=observation)
    env.step(found["action"])
    env.close()


@shows("agents-2")
def test_an_agent_of_ones_own_digs():
    from rllib_minestudio.env.agents.user_agents import AgentMaker, AgentPlays

    agent = AgentPlays(AgentMaker.of(run("agents-2")["make_agent"]))
    env = MineStudioEnv(**SHORT_ENV)
    observation, _ = env.reset(seed=0)
    agent.begin(env, seed=1)
    pressed = [env.sim.to_env_action(agent.act(observation)) for _ in range(40)]
    assert all(keys["attack"] and keys["forward"] for keys in pressed)
    assert {bool(keys["camera"][1]) for keys in pressed} == {False, True}
    env.close()


@pytest.mark.slow  # its worker is a process of Ray's
@shows("agents-3")
def test_it_goes_through_the_pipeline(local_ray, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    changes = [("num_workers=2", "num_workers=1"), ("num_max_steps=600", "num_max_steps=5")]
    summary = run("agents-3", changes, MyAgent=run("agents-2")["Digger"])["summary"]
    assert summary["num_episodes"] == 5 and summary["num_yes"] == 0
    assert [episode["length"] for episode in summary["episodes"]] == [5] * 5
    assert len(list((tmp_path / "output").glob("video_*.mp4"))) == 5


@shows("benchmark-0")
def test_a_task_is_trained_on(capsys):
    run("benchmark-0")["env"].close()
    assert "False 0.0" in capsys.readouterr().out


@shows("evaluation-0", "evaluation-1")
def test_evaluation_is_configured_and_filtered():
    config = small_config()
    changes = [("interval=50", "interval=1"), ("duration=20", "duration=1")]
    run("evaluation-0", changes, config=config)
    config.validate()
    assert config.evaluation_options["record"] is True
    run("evaluation-1", episodes=[])


@shows("rllib-2")
def test_a_function_of_ones_own_evaluates():
    config = small_config()
    config.evaluation(custom_evaluation_function=run("rllib-2")["evaluate"], evaluation_duration=1)
    algorithm = config.evaluation(evaluation_interval=1).build_algo()
    assert algorithm.evaluate()["env_runners"]["episode_len_mean"] == 5
    algorithm.stop()


@shows("evaluation-2", "evaluation-3")
def test_an_episode_is_recorded_and_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = run("evaluation-2", [("MineStudioEnv()", f"MineStudioEnv(**{SHORT_ENV})")])["env"]
    env.reset(seed=0)
    while not any(env.step(env.action_space.sample())[2:4]):
        pass
    env.close()
    (recording,) = find_recordings("out")
    assert recording.meta["length"] == 5
    assert run("evaluation-3")["last_info"] is not None


@pytest.mark.slow
@shows("rllib-0")
def test_an_algorithm_trains_and_tune_searches(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # where RLlib and Tune keep results
    changes = [
        ('from_example("cow")', f'from_example("cow"){SMALLER}'),
        ('stop={"training_iteration": 20}', 'stop={"training_iteration": 1}'),
    ]
    run("rllib-0", changes)
    assert int(float(capsys.readouterr().out.splitlines()[0])) == ITERATION


@shows("README-0")
def test_an_example_is_trained_on_and_two_numbers_are_printed(capsys):
    changes = [
        ('from_example("cow")', f'from_example("cow"){SMALLER}'),
        ("num_env_runners=0, num_envs_per_env_runner=32", "num_env_runners=0"),
        ('"time_limit": 100', '"time_limit": 5'),
        ("decorrelation_steps=100", "decorrelation_steps=0"),
        ("range(20)", "range(2)"),
        ("ray.shutdown()", "assert ray.is_initialized()"),  # the session's
    ]
    run("README-0", changes)
    assert re.fullmatch(r"\d\.\d \d\.\d", capsys.readouterr().out.splitlines()[-1])


@pytest.mark.slow
@shows("rllib-3")
def test_rllibs_own_ppo_trains_on_flat_spaces(capsys):
    changes = [
        ("num_env_runners=2, num_envs_per_env_runner=8", "num_env_runners=0"),
        (
            "train_batch_size_per_learner=2048, minibatch_size=256",
            "train_batch_size_per_learner=32, minibatch_size=32",
        ),
    ]
    run("rllib-3", changes, task={"callbacks": SHORT_ENV["callbacks"]})
    assert int(float(capsys.readouterr().out)) >= 32


@pytest.mark.slow
@shows("rllib-4")
def test_stable_baselines_trains_on_flat_spaces():
    short = "n_steps=16, batch_size=16"
    changes = [
        ("n_envs=8", "n_envs=2"),
        ('"CnnPolicy", envs, n_steps=128, batch_size=256', f'"CnnPolicy", envs, {short}'),
        ('"CnnLstmPolicy", envs, n_steps=128, batch_size=256', f'"CnnLstmPolicy", envs, {short}'),
        ("model.learn(total_timesteps=100_000)", "model.learn(total_timesteps=32)"),
        ("recurrent.learn(total_timesteps=100_000)", "recurrent.learn(total_timesteps=32)"),
    ]
    names = run("rllib-4", changes, task=SHORT_ENV)
    for model in (names["model"], names["recurrent"]):
        assert model.num_timesteps == 32
        assert [episode["l"] for episode in model.ep_info_buffer] == [5] * 6
        assert np.isfinite(model.logger.name_to_value["train/loss"])
    names["envs"].close()


class Twice:
    """True twice: a loop's condition that the page leaves to its reader."""

    left = 3

    def __bool__(self):
        self.left -= 1
        return self.left > 0


@shows("rllib-1", "agents-1")
def test_modules_act_one_of_an_algorithm_and_one_of_its_checkpoint(tmp_path):
    algorithm = small_config().build_algo()
    checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    obs = {"image": torch.zeros(64, 64, 3, dtype=torch.uint8)}
    played = run("rllib-1", algorithm=algorithm, playing=Twice(), obs=obs)
    assert set(played["action"]) == {"buttons", "camera"}
    restored = run("agents-1", checkpoint=checkpoint)["module"].get_state()
    for name, array in played["module"].get_state().items():
        np.testing.assert_array_equal(restored[name], array, err_msg=name)
    algorithm.stop()


@shows("gymnasium-0", "gymnasium-1")
def test_an_environment_of_gymnasiums_is_trained_in_and_played():
    few = ", ".join(f"{name}={value}" for name, value in _training().items())
    few += "), config.env_runners(num_envs_per_env_runner=2, rollout_fragment_length=16"
    trained = run("gymnasium-0", [("num_epochs=4)", f"{few})")])
    played = run("gymnasium-1", algorithm=trained["algorithm"])
    assert played["env"].observation_space.contains(played["observation"])
    trained["algorithm"].stop()


@shows("correctness-0")
def test_a_harness_plays_and_trains_by_hand(capsys):
    run("correctness-0", MyLearner=MineStudioPPOLearner)
    assert capsys.readouterr().out.startswith("tensor(")


HERE = [test for test in list(globals().values()) if hasattr(test, "snippets")]
