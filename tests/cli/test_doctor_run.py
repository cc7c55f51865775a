"""`rllib doctor RUN`: from the records on disk to a verdict and an exit status."""

import json
import shutil

import pytest
import yaml

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.algorithms.checkpoint_record import write_record
from rllib_minestudio.checkpoints.record import read_record
from rllib_minestudio.checkpoints.trial_folder import SavedCheckpoint
from rllib_minestudio.cli.main import main
from rllib_minestudio.errata import ERRATA, NUMERICS
from rllib_minestudio.experiments.outputs.trial_checkpoints import keep, note_origin

HARMLESS = {"gradient_accumulation": 8}
"""With the other defaults no erratum concerns this."""


def save(trial, number, iteration, *, old=False, **training):
    """Write a checkpoint with this package's writer; an old one does not name its revision."""
    folder = trial / f"checkpoint_{number:06d}"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(b"123")
    result = {"training_iteration": iteration, "env_runners": {"episode_return_mean": 0.0}}
    config = MineStudioPPOConfig().training(**{**HARMLESS, **training})
    write_record(folder, config, result)
    record = yaml.safe_load((folder / "record.yaml").read_text())
    record["saved_at"] = f"2026-01-01T00:00:{iteration:02d}+00:00"
    del record["digests"]  # they came with the same version, and would tell that this was edited
    if old:
        del record["numerics"]
    (folder / "record.yaml").write_text(yaml.safe_dump(record))
    return folder


@pytest.fixture
def trial(tmp_path):
    return tmp_path / "cow" / "2026-01-01_00-00-00" / "trial_a"


def examined(path, capsys):
    """Run the command; return its status and the findings of each trial by erratum."""
    status = main(["doctor", str(path), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] == (status == 0)
    assert report["numerics"] == NUMERICS
    trials = [
        ({found["id"]: found for found in entry["errata"]}, entry["revisions"])
        for entry in report["trials"]
    ]
    return status, trials


def affected(findings):
    return [name for name, found in findings.items() if found["affected"]]


def test_a_run_of_today_is_not_affected_whatever_its_options(trial, capsys):
    save(trial, 0, 10, vf_warmup_iterations=5, entropy_coeff=0.1, gradient_accumulation=10)
    assert read_record(trial / "checkpoint_000000").numerics == NUMERICS
    for path in (trial, trial.parent, trial.parents[1], trial / "checkpoint_000000"):
        status, [(findings, revisions)] = examined(path, capsys)
        assert status == 0 and revisions == [NUMERICS]
        assert list(findings) == [erratum.id for erratum in ERRATA]
        assert affected(findings) == []


def test_a_run_of_before_is_judged_by_its_options(trial, capsys):
    save(trial, 0, 10, old=True)
    assert examined(trial, capsys)[0] == 0
    save(trial.with_name("trial_b"), 0, 10, old=True, vf_warmup_iterations=5)
    status, [(first, _), (second, revisions)] = examined(trial.parent, capsys)
    assert status == 1 and revisions == [0]
    assert affected(first) == [] and affected(second) == ["bootstrap-values-aged"]
    assert second["bootstrap-values-aged"]["means"]


def test_the_table_names_option_and_value_and_explains_what_was_wrong(trial, capsys):
    save(trial, 0, 10, old=True, gradient_accumulation=10)
    save(trial, 1, 20, gradient_accumulation=10)
    assert main(["doctor", str(trial)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert str(trial) in shown
    for erratum in ERRATA:
        assert erratum.id in shown
    assert "gradient_accumulation=10 make" in shown and "(checkpoint_000000)" in shown
    assert "revision 0 and 1 of the learner's numerics" in shown
    assert "remainder-weights, fixed 2026-11-22" in shown
    assert "those in the smaller remainder weighed more" in shown
    shutil.rmtree(trial / "checkpoint_000000")
    assert main(["doctor", str(trial)]) == 0
    assert "Not affected by any defect that was fixed." in capsys.readouterr().out


def test_a_checkpoint_is_judged_by_those_on_its_way_and_no_others(trial, capsys):
    for number, (iteration, old) in enumerate([(10, False), (20, True), (30, False)]):
        save(trial, number, iteration, old=old, gradient_accumulation=10)
    for number, expected in enumerate([0, 1, 1]):
        assert examined(trial / f"checkpoint_{number:06d}", capsys)[0] == expected
    alone = trial.parent / "copied"
    shutil.copytree(trial / "checkpoint_000002", alone)
    assert examined(alone, capsys)[0] == 0


def test_kept_checkpoints_count_once_and_the_best_is_one_of_them(trial, capsys):
    first = save(trial, 0, 10, old=True)
    keep(trial, first, None)
    keep(trial, save(trial, 1, 20, old=True, weight_decay=0.5), 20)
    shutil.rmtree(first)  # as Tune does
    status, [(findings, _)] = examined(trial, capsys)
    found = findings["optimizer-options-kept"]
    assert status == 1 and affected(findings) == ["optimizer-options-kept"]
    assert found["why"] == "weight_decay was 0.04 in kept/iteration_000010 and is 0.5"
    assert found["where"] == "kept/iteration_000020"
    assert examined(trial / "best", capsys)[0] == 0, "that of iteration 10"


def test_what_a_trial_was_resumed_from_is_known_when_tune_has_deleted_it(trial, capsys):
    old = save(trial, 0, 10, old=True, gradient_accumulation=10)
    note_origin(trial, SavedCheckpoint(old, read_record(old)))
    note_origin(trial, SavedCheckpoint(old, read_record(old)))
    shutil.rmtree(old)
    new = save(trial, 1, 20, gradient_accumulation=10)
    for path in (trial, new):
        status, [(findings, revisions)] = examined(path, capsys)
        assert status == 1 and revisions == [0, NUMERICS]
        assert findings["remainder-weights"]["where"] == "resumed_from/iteration_000010.yaml"


def test_a_checkpoint_that_is_not_whole_does_not_count(trial, capsys):
    save(trial, 0, 10)
    broken = save(trial, 1, 20, old=True, gradient_accumulation=10)
    (broken / "weights").unlink()
    assert examined(trial, capsys)[0] == 0
    assert main(["doctor", str(broken)]) == 2
    assert "weights is missing" in capsys.readouterr().err


def test_what_is_no_run_is_refused(trial, capsys):
    assert main(["doctor", str(trial)]) == 2
    assert "is no folder: give a run's folder" in capsys.readouterr().err
    trial.mkdir(parents=True)
    assert main(["doctor", str(trial)]) == 2
    assert "holds no whole checkpoint" in capsys.readouterr().err
    assert main(["doctor", str(trial), "--engine", "minecraft"]) == 2
    assert "leave one of them out" in capsys.readouterr().err
