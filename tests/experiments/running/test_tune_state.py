"""Tune's notes, which it does not write atomically, are restored from their copies."""

import json
import os
import pickle

import pytest
from ray.train._internal.storage import StorageContext
from ray.tune.experiment import Trial

from rllib_minestudio.errors import UntrustedError
from rllib_minestudio.experiments import tune_state
from rllib_minestudio.experiments.summary import read_history
from rllib_minestudio.experiments.tune_state import (
    ContinueTrials,
    back_up_state,
    backups,
    can_resume,
    repair_state,
    take_own_state,
)
from rllib_minestudio.foundation import files
from tests.experiments.outputs.test_trial_checkpoints import save

TRIALS, SEARCH = "experiment_state-2026-01-01.json", "basic-variant-state-2026-01-01.json"


@pytest.fixture
def run_folder(tmp_path):
    """What Tune leaves: its notes of the trials, and a pickle that it calls `.json`."""
    write_notes(tmp_path, "first")
    return tmp_path


def write_notes(folder, text):
    (folder / TRIALS).write_text(json.dumps({"trial_data": [text]}))
    (folder / SEARCH).write_bytes(pickle.dumps({"search": text}))
    (folder / "tuner.pkl").write_bytes(b"not looked at")


def notes(folder):
    trials = json.loads((folder / TRIALS).read_text())["trial_data"][0]
    return trials, pickle.loads((folder / SEARCH).read_bytes())["search"]


@pytest.mark.parametrize("torn", [TRIALS, SEARCH])
@pytest.mark.parametrize("size", [0, 5])
def test_torn_notes_are_replaced_by_their_copy(run_folder, torn, size):
    back_up_state(run_folder)
    write_notes(run_folder, "second")
    os.truncate(run_folder / torn, size)
    assert can_resume(run_folder)
    repair_state(run_folder)
    expected = {TRIALS: ("first", "second"), SEARCH: ("second", "first")}
    assert notes(run_folder) == expected[torn]


def test_torn_notes_are_not_copied_over_whole_ones(run_folder):
    back_up_state(run_folder)
    os.truncate(run_folder / TRIALS, 5)
    back_up_state(run_folder)
    repair_state(run_folder)
    assert notes(run_folder) == ("first", "first")


@pytest.mark.parametrize("step", range(8))
def test_whoever_dies_while_copying_leaves_copies_of_one_moment(run_folder, monkeypatch, step):
    """Killed after any number of steps of its second backup, a run is still its user's own."""
    back_up_state(run_folder)
    write_notes(run_folder, "second")
    steps = iter(range(100))

    def deadly(function):
        def call(*arguments, **options):
            if next(steps) == step:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patched:
        for module, name in (
            (tune_state.shutil, "copy2"),
            (tune_state.shutil, "rmtree"),
            (tune_state, "seal"),
            (files, "put_in_place"),
        ):
            patched.setattr(module, name, deadly(getattr(module, name)))
        with pytest.raises(KeyboardInterrupt):
            back_up_state(run_folder)
    text = "second" if step == 7 else "first"  # in the last one, the copies before are removed
    take_own_state(run_folder)
    assert notes(run_folder) == (text, text)
    write_notes(run_folder, "third")
    back_up_state(run_folder)
    assert len(backups(run_folder)) == 1
    take_own_state(run_folder)
    assert notes(run_folder) == ("third", "third")


def test_whole_notes_stay_as_they_are(run_folder):
    back_up_state(run_folder)
    write_notes(run_folder, "second")
    repair_state(run_folder)
    assert notes(run_folder) == ("second", "second")


def test_without_a_copy_what_is_torn_is_put_out_of_the_way(run_folder):
    os.truncate(run_folder / SEARCH, 3)
    repair_state(run_folder)
    assert (run_folder / TRIALS).is_file() and not (run_folder / SEARCH).exists()
    os.truncate(run_folder / TRIALS, 3)
    assert not can_resume(run_folder)


def test_a_folder_that_is_no_run_cannot_be_resumed(tmp_path):
    assert not can_resume(tmp_path)
    back_up_state(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def trial(tmp_path):
    """Tune's own trial, with two checkpoints on disk of which it does not know."""
    storage = StorageContext(str(tmp_path), "run", trial_dir_name="trial")
    trial = Trial("any", stub=True, storage=storage)
    for number, iteration in ((0, 5), (1, 10)):
        save(tmp_path / "run" / "trial", number, iteration, 1.0)
    return trial


@pytest.mark.parametrize("logged", ["", '{"training_iteration": 5, "x": 1}\n{"training_iter'])
def test_a_result_that_was_saved_but_not_logged_is_logged(trial, tmp_path, logged):
    file = tmp_path / "run" / "trial" / "result.json"
    file.write_text(logged)
    for _ in range(2):
        ContinueTrials().on_step_begin(0, [trial])
        results = read_history(file.parent)
        assert [result["training_iteration"] for result in results] == [5, 10]
    assert results[0].get("x") == (1 if logged else None)
    assert results[1]["env_runners"]["episode_return_mean"] == 1.0


def test_a_result_that_was_cut_short_does_not_take_the_next_one_with_it(trial, tmp_path):
    file = tmp_path / "run" / "trial" / "result.json"
    whole = [json.dumps({"training_iteration": iteration}) for iteration in (5, 10, 11)]
    file.write_text("\n".join([*whole[:2], whole[2][:9]]))
    ContinueTrials().on_step_begin(0, [trial])
    with file.open("a") as appended:  # as Tune does
        appended.write(f"{whole[2]}\n")
    results = read_history(file.parent)
    assert [result["training_iteration"] for result in results] == [5, 10, 11]


def test_a_trial_goes_on_from_its_newest_checkpoint(trial, tmp_path):
    (tmp_path / "run" / "trial" / "checkpoint_000002").mkdir()  # cut short
    ContinueTrials().on_step_begin(0, [trial])
    assert trial.checkpoint.path.endswith("checkpoint_000001")
    folder = tmp_path / "run" / "trial"
    assert sorted(path.name for path in folder.glob("checkpoint_*")) == [
        "checkpoint_000000",
        "checkpoint_000001",
    ]


def test_only_state_that_this_user_has_sealed_is_read(run_folder):
    """Tune's files are pickles; those saved after the last copy are as good as a stranger's."""
    with pytest.raises(UntrustedError, match="Tune's state files"):
        take_own_state(run_folder)
    back_up_state(run_folder)
    write_notes(run_folder, "second")
    (run_folder / "experiment_state-2027-01-01.json").write_text("{}")
    take_own_state(run_folder)
    assert notes(run_folder) == ("first", "first")
    assert len(list(run_folder.glob("*state-*"))) == 2
    (backups(run_folder)[0] / SEARCH).write_bytes(pickle.dumps({"search": "evil"}))
    with pytest.raises(UntrustedError, match="was not saved by you, or has changed since"):
        take_own_state(run_folder)
    assert notes(run_folder) == ("first", "first")
