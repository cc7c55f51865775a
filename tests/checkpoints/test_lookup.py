"""Which checkpoint a path, `latest`, `best` or a prior's name means, and what is said of others."""

import os
import shutil
from pathlib import Path

import pytest

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.checkpoints.lookup import PRIORS, locate, pinned
from rllib_minestudio.checkpoints.record import NUMERICS, CheckpointRecord, digest_of, save_record
from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.experiments.experiment_file import Experiment, pin_weights
from rllib_minestudio.experiments.trial_checkpoints import keep

FIRST, SECOND = "results/cow/2026-01-01_00-00-00/trial_a", "results/cow/2026-01-02_00-00-00/trial_b"


def save(trial, iteration, mean_return, day):
    """Save a checkpoint as Tune does, and keep it if it is the best."""
    folder = Path(trial) / f"checkpoint_{iteration:06d}"
    folder.mkdir(parents=True)
    (folder / "weights").write_text("weights")
    result = {"training_iteration": iteration, "env_runners": {"episode_return_mean": mean_return}}
    record = CheckpointRecord(
        saved_at=f"2026-01-{day:02d}T00:00:00+00:00",
        result=result,
        versions={},
        code={},
        numerics=NUMERICS,
        config={},
        files={"weights": 7},
        digests={"weights": digest_of(folder / "weights")},
    )
    save_record(folder, record)
    keep(Path(trial), folder, None)
    return folder


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two runs of an experiment; the first has the best checkpoint, the second the latest."""
    monkeypatch.chdir(tmp_path)
    save(FIRST, 10, 8.0, day=1)
    save(FIRST, 20, 7.0, day=2)
    save(SECOND, 5, 3.0, day=3)
    save(SECOND, 10, 5.0, day=4)
    save(SECOND, 15, float("nan"), day=5)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        (f"{FIRST}/checkpoint_000020", f"{FIRST}/checkpoint_000020"),
        (FIRST, f"{FIRST}/kept/iteration_000010"),
        (f"{FIRST}/best", f"{FIRST}/kept/iteration_000010"),
        (f"{FIRST}/latest", f"{FIRST}/checkpoint_000020"),
        (Path(SECOND).parent, f"{SECOND}/kept/iteration_000010"),
        (f"{Path(SECOND).parent}/best", f"{SECOND}/kept/iteration_000010"),
        ("results/cow", f"{FIRST}/kept/iteration_000010"),
        ("results/cow/", f"{FIRST}/kept/iteration_000010"),
        ("results/cow/best", f"{FIRST}/kept/iteration_000010"),
        ("results/cow/latest", f"{SECOND}/checkpoint_000015"),
        ("results/latest", f"{SECOND}/checkpoint_000015"),
        ("latest", f"{SECOND}/checkpoint_000015"),
        ("best", f"{FIRST}/kept/iteration_000010"),
        ("package:hunter_nano", PRIORS / "hunter_nano"),
        ("somebody/model", "somebody/model"),
        (f"{FIRST}/checkpoint_000020/weights", f"{FIRST}/checkpoint_000020/weights"),
    ],
)
def test_what_is_meant(results, source, meant):
    assert locate(source) == Path(meant)


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("results/cow/latest", f"{SECOND}/checkpoint_000015"),
        ("results/cow/best", f"{FIRST}/kept/iteration_000010"),
        (SECOND, f"{SECOND}/kept/iteration_000010"),
        (f"{SECOND}/checkpoint_000010", f"{SECOND}/checkpoint_000010"),
    ],
)
def test_averaged_weights_are_those_of_what_is_named_before_them(results, source, meant):
    with pytest.raises(CheckpointMismatchError, match=r"has no averaged weights: .* ema_decay"):
        locate(f"{source}/policy_average")
    Path(meant, "policy_average").mkdir()
    assert locate(f"{source}/policy_average") == Path(meant, "policy_average")


def test_the_latest_is_whole(results):
    os.truncate(f"{SECOND}/checkpoint_000015/weights", 3)
    assert locate("results/cow/latest") == Path(SECOND, "checkpoint_000010")


def test_a_copy_without_links_is_understood(results):
    copy = Path("copy", *Path(FIRST).parts[1:])
    shutil.copytree(FIRST, copy)  # follows links
    assert locate("copy/cow/best") == locate(copy) == copy / "best"


def test_a_damaged_best_is_not_replaced_in_silence(results):
    os.truncate(f"{FIRST}/best/weights", 3)
    with pytest.raises(CheckpointMismatchError, match=r"no complete one .* has a mean return"):
        locate(FIRST)


def test_one_that_tune_deleted_is_still_the_latest_where_it_was_kept(results):
    for folder in Path(FIRST).glob("checkpoint_*"):
        shutil.rmtree(folder)
    assert locate(f"{FIRST}/latest") == Path(FIRST, "kept/iteration_000010")


def test_without_returns_the_newest_is_taken_and_none_is_the_best(tmp_path):
    """As with clones, which play no episodes."""
    save(tmp_path / "trial", 4, None, day=1)
    newest = save(tmp_path / "trial", 8, None, day=2)
    assert locate(tmp_path) == newest
    with pytest.raises(CheckpointMismatchError, match=r"has a mean return.*Give \S+/latest"):
        locate(tmp_path / "best")


@pytest.mark.parametrize("source", ["results", "best", "results/best"])
def test_returns_of_several_experiments_are_not_compared(results, source):
    save("results/sheep/2026-01-03_00-00-00/trial_c", 10, 99.0, day=6)
    message = r"several experiments.*: cow, sheep. Name one of them, such as results/cow,"
    with pytest.raises(CheckpointMismatchError, match=message):
        locate(source)
    assert locate("latest").parts[1] == "sheep"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("results/cwo/latest", r"'results' has no 'cwo', and holds cow\. Did you mean 'cow'\?"),
        ("nothing/best", "names no checkpoint: '.' has no 'nothing', and holds empty, results,"),
        ("empty/best", "names no checkpoint: 'empty' holds nothing. Append /best to the folder"),
        ("https://a.b/x/best", r"'https://a\.b/x/best' is an address, and nothing is read from"),
        ("task.yaml", "'task.yaml' is an experiment file, not a checkpoint. Give a checkpoint,"),
    ],
)
def test_what_leads_nowhere_says_what_was_found(results, source, said):
    Path("empty").mkdir()
    Path("task.yaml").write_text("{}")
    with pytest.raises(CheckpointMismatchError, match=said):
        locate(source)


def test_none_may_be_whole(results):
    for file in results.rglob("weights"):
        file.unlink()
    with pytest.raises(CheckpointMismatchError, match=r"No checkpoint .* is complete: `rllib"):
        locate("results/cow/latest")


def test_folders_far_above_are_not_searched(results):
    """`/` would be searched for hours."""
    assert list(results.glob("*/*/*/*/checkpoint_*")), "four levels down"
    assert locate(results) == results


def test_what_is_pinned_stays_whatever_is_trained_later(results):
    given = ["results/cow/best", "package:hunter_nano", "results/cow/bst", f"{FIRST}/latest", None]
    before = [pinned(source) for source in given]
    assert before[0] == f"{FIRST}/kept/iteration_000010"
    assert before[1:3] == given[1:3]
    assert before[3:] == [f"{FIRST}/checkpoint_000020", None]
    save(SECOND, 20, 50.0, day=7)
    assert pinned("results/cow/best") == f"{SECOND}/kept/iteration_000020"
    assert [pinned(source) for source in before] == before


def test_a_config_names_the_checkpoint_itself(results):
    model = {"weights": "results/cow/latest", "preset": "nano"}
    config = MineStudioPPOConfig().training(model=model, prior="results/cow")
    assert config.model_config["weights"] == f"{SECOND}/checkpoint_000015"
    assert config.prior == f"{FIRST}/kept/iteration_000010"
    assert MineStudioPPOConfig().training(prior="initial").prior == "initial"


def test_an_experiment_writes_down_what_it_starts_from(results):
    searched = {"grid_search": ["results/cow/best", "package:hunter_nano"]}
    experiment = Experiment("x", config={"model": {"weights": searched}, "prior": "results/cow"})
    pin_weights(experiment)
    best = f"{FIRST}/kept/iteration_000010"
    assert experiment.config["model"]["weights"] == {"grid_search": [best, "package:hunter_nano"]}
    assert experiment.config["prior"] == best
    initial = Experiment("x", config={"prior": "initial"})
    Path("initial").symlink_to("results/cow")
    pin_weights(initial)
    assert initial.config["prior"] == "initial"
