"""A policy is told, once, that it sees frames of other looks than it was trained on."""

import logging
import shutil
from dataclasses import replace

import pytest
import yaml

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms import MineStudioPPOConfig, environments
from rllib_minestudio.algorithms.policy_config import model_problems
from rllib_minestudio.algorithms.saving import check_if_local, write_record
from rllib_minestudio.checkpoints.lookup import PRIORS, shipped_names
from rllib_minestudio.checkpoints.record import read_record, save_record, with_own_digest
from rllib_minestudio.env.env_options import MINECRAFT
from rllib_minestudio.env.voxel import LOOKS
from rllib_minestudio.env.voxel.contract import described, looks_of
from rllib_minestudio.env.voxel.render.resource_pack import OUR_PACK
from rllib_minestudio.evaluation.inference import Policy
from rllib_minestudio.experiments.played_policy import load_policy_of

PRIOR = "package:hunter_nano"
OLD = {"revision": 1, "pictures": "0cc7463a8500"}


@pytest.fixture
def told(caplog):
    """The warnings about looks."""
    environments._tell_other_looks.cache_clear()
    with caplog.at_level(logging.WARNING, logger=environments.__name__):
        yield lambda: [message for message in caplog.messages if "looks" in message]
    environments._tell_other_looks.cache_clear()


@pytest.fixture
def old_prior(tmp_path):
    """The folder of a prior that was made when the engine drew otherwise."""
    folder = shutil.copytree(PRIORS / "hunter_nano", tmp_path / "old_prior")
    playing = folder / "playing.yaml"
    facts = yaml.safe_load(playing.read_text())
    playing.write_text(with_own_digest(yaml.safe_dump({**facts, "looks": OLD})))
    return str(folder)


def config(**env_config):
    return MineStudioPPOConfig().environment("MineStudio", env_config=env_config)


def record_of(folder, **env_config):
    folder.mkdir(exist_ok=True)
    write_record(folder, config(**env_config), {})
    return read_record(folder)


def test_a_record_names_the_looks_of_the_embedded_engine_alone(tmp_path):
    assert record_of(tmp_path).looks == looks_of()
    pack = str(OUR_PACK)
    assert record_of(tmp_path, resource_pack=pack).looks == looks_of(pack) != looks_of()
    assert record_of(tmp_path, engine=MINECRAFT).looks is None
    write_record(tmp_path, MineStudioPPOConfig().environment("CartPole-v1"), {})
    assert read_record(tmp_path).looks is None


def test_training_that_goes_on_under_other_looks_is_told(tmp_path, told):
    record = record_of(tmp_path)
    check_if_local(tmp_path, config())
    assert not told()
    save_record(tmp_path, replace(record, looks=OLD))
    check_if_local(tmp_path, config(engine=MINECRAFT))
    assert not told()
    for _ in range(2):
        check_if_local(tmp_path, config())
    (message,) = told()
    assert described(OLD) in message and described(looks_of()) in message


@pytest.mark.parametrize(
    "use",
    [
        Policy.load,
        load_policy_of,
        lambda prior: model_problems(config().training(model={"weights": prior})),
        lambda prior: model_problems(config(), prior=prior),
    ],
    ids=["Policy.load", "evaluate", "weights", "prior"],
)
def test_who_plays_or_trains_with_a_prior_of_other_looks_is_told_once(told, use, old_prior):
    use(old_prior)
    use(old_prior)
    (message,) = told()
    assert message.startswith(f"{old_prior} was trained on frames of other looks ({described(OLD)}")
    assert f"(revision {LOOKS}, " in message


def test_the_looks_of_the_environment_at_hand_count(told):
    load_policy_of(PRIOR, ["env_config.engine=minecraft"])
    assert not told()
    load_policy_of(PRIOR, [f"env_config.resource_pack={OUR_PACK}"])
    (message,) = told()
    assert "resource pack" in message


def test_shipped_priors_name_their_looks():
    for name in shipped_names():
        looks = checkpoints.open(f"package:{name}").looks
        assert looks is not None and looks["revision"] <= LOOKS
