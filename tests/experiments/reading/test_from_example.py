"""An experiment file becomes a config that is changed and built in Python."""

from pathlib import Path

import pytest

from rllib_minestudio import MineStudioBCConfig, MineStudioPPOConfig
from rllib_minestudio.errors import ExperimentFileError, InvalidOptionsError
from rllib_minestudio.experiments.experiment_file import load_experiments, packaged_names
from rllib_minestudio.experiments.plan import make_plan


class MyConfig(MineStudioPPOConfig):
    """A config of a user's own."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_it_is_the_config_that_the_command_trains_with():
    config = MineStudioPPOConfig.from_example("cow")
    config.validate()
    trained_with = make_plan(load_experiments(Path("cow"))[0]).example
    assert config.to_dict() == trained_with.to_dict()


def test_it_can_be_changed_and_each_call_returns_another():
    first, second = (MyConfig.from_example("cow") for _ in range(2))
    first.training(lr=1e-5).env_config["callbacks"].clear()
    assert type(first) is MyConfig and first.lr == 1e-5
    assert second.lr != 1e-5 and second.env_config["callbacks"]


def test_examples_without_a_search_have_a_config_of_one_of_both_classes():
    for name in packaged_names():
        if name != "cow_sweep":
            config_class = MineStudioBCConfig if name.endswith("_bc") else MineStudioPPOConfig
            assert type(config_class.from_example(name)) is config_class


def test_a_file_of_the_users_own_works_too_with_its_evaluation():
    file = "walk: {evaluation: {interval: 7, deterministic: true}, config: {gamma: 0.9}}"
    Path("walk.yaml").write_text(file)
    config = MineStudioPPOConfig.from_example("walk.yaml")
    assert config.gamma == 0.9 and config.evaluation_interval == 7
    assert config.evaluation_config == {"explore": False}


@pytest.mark.parametrize(
    ("config_class", "name", "right"),
    [
        (MineStudioPPOConfig, "cow_bc", "MineStudioBCConfig.from_example('cow_bc')"),
        (MineStudioBCConfig, "cow", "MineStudioPPOConfig.from_example('cow')"),
    ],
)
def test_the_wrong_class_is_told_the_right_one(config_class, name, right):
    with pytest.raises(InvalidOptionsError) as error:
        config_class.from_example(name)
    assert right in str(error.value) and len(error.value.problems) == 1


def test_what_is_no_example_is_told_what_is_wrong():
    with pytest.raises(ExperimentFileError, match=r"'cwo'. Did you mean 'cow'"):
        MineStudioPPOConfig.from_example("cwo")
    with pytest.raises(InvalidOptionsError, match="searches over lr, kl_coeff, kl_decay, of which"):
        MineStudioPPOConfig.from_example("cow_sweep")
    Path("two.yaml").write_text("a: {config: {}}\nb: {config: {}}")
    with pytest.raises(InvalidOptionsError, match=r"two.yaml must hold one experiment; got \['a'"):
        MineStudioPPOConfig.from_example("two.yaml")
    Path("typo.yaml").write_text("a: {config: {gama: 0.9, lr: fast, env_config: {obs_sise: 1}}}")
    with pytest.raises(InvalidOptionsError, match=r"'gama'. Did you mean 'gamma'"):
        MineStudioPPOConfig.from_example("typo.yaml")
    Path("stock.yaml").write_text("a: {run: ray.rllib.algorithms.ppo.PPO, config: {}}")
    with pytest.raises(InvalidOptionsError, match=r"an experiment of PPO.*options of a PPOConfig"):
        MineStudioPPOConfig.from_example("stock.yaml")
