"""Reading experiment files and laying the command line's overrides over them."""

import pytest

from rllib_minestudio.errors import ExperimentFileError, InvalidOptionsError
from rllib_minestudio.experiments.experiment_file import (
    SECTIONS,
    load_experiments,
    parse_assignments,
)

YAML = """
cow:
  run: MineStudioPPO
  stop: {training_iteration: 2}
  config:
    lr: 1e-5
    env_config:
      obs_size: [64, 64]
      callbacks:
        - JudgeReset: {time_limit: 600}
"""


@pytest.fixture
def cow(tmp_path):
    path = tmp_path / "cow.yaml"
    path.write_text(YAML)
    return path


def write(tmp_path, text, name="file.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_scientific_notation_without_a_dot_is_a_number(cow):
    (experiment,) = load_experiments(cow)
    assert experiment.config["lr"] == 1e-5
    assert isinstance(experiment.config["lr"], float)


@pytest.mark.parametrize("key", ["lr", "config.lr"])
def test_set_reaches_the_config_with_and_without_its_prefix(cow, key):
    (experiment,) = load_experiments(cow, [f"{key}=3e-4"])
    assert experiment.config["lr"] == 3e-4


def test_set_merges_into_what_the_file_says(cow):
    overrides = [
        "env_config.callbacks.0.JudgeReset.time_limit=30",
        "env_config.seed=7",
        "model={preset: nano, hidsize: 64}",
        "model.hidsize=32",
        "checkpoint_config.num_to_keep=1",
        "lr={grid_search: [1e-4, 3e-4]}",
    ]
    (experiment,) = load_experiments(cow, overrides)
    assert experiment.config["env_config"] == {
        "obs_size": [64, 64],
        "callbacks": [{"JudgeReset": {"time_limit": 30}}],
        "seed": 7,
    }
    assert experiment.config["model"] == {"preset": "nano", "hidsize": 32}
    assert experiment.config["lr"] == {"grid_search": [1e-4, 3e-4]}
    assert experiment.checkpoint_config == {"num_to_keep": 1}
    assert experiment.stop == {"training_iteration": 2}


@pytest.mark.parametrize(
    ("overrides", "lr"),
    [
        (["lr=[[0, 1e-3], [9, 1e-4]]"], [[0, 1e-3], [9, 1e-4]]),
        (["lr=[[0, 1e-3]]", "lr={grid_search: [1e-4, 3e-4]}"], {"grid_search": [1e-4, 3e-4]}),
        (["lr={grid_search: [1e-4]}", "lr=[[0, 1e-3]]"], [[0, 1e-3]]),
        (["lr=[[0, 1e-3]]", "lr=2e-4"], 2e-4),
    ],
)
def test_a_schedule_becomes_a_search_and_a_search_a_schedule(cow, overrides, lr):
    (experiment,) = load_experiments(cow, overrides)
    assert experiment.config["lr"] == lr


def test_setting_an_element_of_a_list_replaces_it(cow):
    overrides = [
        "lr=[[0, 1e-3], [1000, 1e-4]]",
        "lr.1.0=2000",
        "config.lr.0=[0, 5e-4]",
        "env_config.callbacks.0={FastReset: {biomes: [plains]}}",
    ]
    (experiment,) = load_experiments(cow, overrides)
    assert experiment.config["lr"] == [[0, 5e-4], [2000, 1e-4]]
    callbacks = experiment.config["env_config"]["callbacks"]
    assert callbacks == [{"FastReset": {"biomes": ["plains"]}}]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_is_null_is_empty(tmp_path, cow, section):
    in_file = write(tmp_path, f"cow: {{{section}: null}}")
    for path, overrides in ((in_file, []), (cow, [f"{section}=null"])):
        (experiment,) = load_experiments(path, overrides)
        assert getattr(experiment, section) == {}


def test_stop_assignments_are_numbers_and_may_have_slashes():
    parsed = parse_assignments(["env_runners/episode_return_mean=5", "time_total_s=1e2"], "--stop")
    assert parsed == {"env_runners/episode_return_mean": 5, "time_total_s": 100.0}


@pytest.mark.parametrize("assignment", ["lr", "=3", ""])
def test_an_assignment_without_key_or_value_is_refused(cow, assignment):
    with pytest.raises(InvalidOptionsError, match="key=value"):
        load_experiments(cow, [assignment])


def test_a_list_index_out_of_range_is_refused(cow):
    with pytest.raises(InvalidOptionsError, match="cannot be applied: list index out of range"):
        load_experiments(cow, ["env_config.callbacks.7.JudgeReset.time_limit=3"])


def test_a_missing_file_names_its_neighbour(cow):
    with pytest.raises(ExperimentFileError, match=r"cow.yml'\. Did you mean 'cow.yaml'\?"):
        load_experiments(cow.with_suffix(".yml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found nothing"),
        ("- a", "found list"),
        ("a: [1", "not readable as YAML"),
        ("a: {}\na: {}", "it has the key 'a' twice"),
        ("a: {config: {lr: '${nope}'}}", "not readable as YAML"),
    ],
)
def test_a_file_that_is_no_experiment_is_refused(tmp_path, text, message):
    with pytest.raises(ExperimentFileError, match=message):
        load_experiments(write(tmp_path, text))


def test_the_layout_is_judged_as_a_whole(tmp_path):
    text = "cow: {confg: {}, stop: 3, checkpoint_freq: 3, run: 7}\nrun: MineStudioPPO"
    with pytest.raises(InvalidOptionsError) as caught:
        load_experiments(write(tmp_path, text))
    problems = "\n".join(caught.value.problems)
    assert "cow: unknown key 'confg'" in problems
    assert "Did you mean 'config'?" in problems
    assert "cow.stop must be a mapping; got 3." in problems
    assert "use checkpoint_config.save_interval" in problems
    assert "cow.run must be a name; got 7." in problems
    assert "The experiment's name is missing above it." in problems


def test_a_python_file_gives_its_config_and_takes_overrides(tmp_path):
    text = """
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
config = AlgorithmConfig().training(lr=1e-3)
stop = {"training_iteration": 3}
"""
    path = write(tmp_path, text, "mine.py")
    (experiment,) = load_experiments(path, ["lr=1e-5", "stop.training_iteration=4"])
    assert experiment.name == "mine"
    assert experiment.algorithm_config.lr == 1e-3
    assert experiment.config == {"lr": 1e-5}
    assert experiment.stop == {"training_iteration": 4}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "must define `config`"),
        ("1 / 0", "ZeroDivisionError"),
        ("import nonexistent_module", "ModuleNotFoundError"),
    ],
)
def test_a_python_file_that_defines_nothing_to_train_is_refused(tmp_path, text, message):
    with pytest.raises(ExperimentFileError, match=message):
        load_experiments(write(tmp_path, text, "bad.py"))
