"""Examples that come with the package are found by their bare names, wherever a user is."""

from pathlib import Path

import pytest

from rllib_minestudio.errors import ExperimentFileError
from rllib_minestudio.experiments.experiment_file import load_experiments, packaged_names

EXAMPLES = Path(__file__).parents[3] / "tuned_examples"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_all_examples_are_packaged():
    assert packaged_names() == sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("name", ["cow", "cow.yaml"])
def test_a_bare_name_is_enough(name):
    (example,) = load_experiments(Path(name), ["lr=1e-5"])
    (original,) = load_experiments(EXAMPLES / "cow.yaml", ["lr=1e-5"])
    assert example == original and example.config["lr"] == 1e-5


def test_a_file_of_the_users_own_comes_first():
    Path("cow.yaml").write_text("mine: {stop: {training_iteration: 1}}")
    (example,) = load_experiments(Path("cow.yaml"))
    assert example.name == "mine"


@pytest.mark.parametrize("name", ["results/cow", "./no/cow.yaml", "cow.yml", "cow.py", "nothing"])
def test_other_paths_are_never_replaced(name):
    with pytest.raises(ExperimentFileError, match="There is no experiment file"):
        load_experiments(Path(name))


def test_a_mistyped_name_is_told_the_right_one():
    with pytest.raises(ExperimentFileError, match="Did you mean 'cow_sweep'"):
        load_experiments(Path("cow_sweeep"))


def test_a_folder_is_told_from_a_file_that_is_missing():
    Path("checkpoint_000001").mkdir()
    with pytest.raises(ExperimentFileError, match="is a folder, not an experiment file"):
        load_experiments(Path("checkpoint_000001"))
