"""Which checkpoints of a trial are kept, and which count."""

import os
import shutil
from types import SimpleNamespace

import pytest

from rllib_minestudio.checkpoints.lookup import best_checkpoint, complete_checkpoints
from rllib_minestudio.checkpoints.record import (
    NUMERICS,
    CheckpointRecord,
    digest_of,
    read_record,
    save_record,
    versions,
)
from rllib_minestudio.experiments.trial_checkpoints import KeepCheckpoints


def save(trial, number, iteration, mean_return):
    """Write what Tune would: a numbered folder with a file and its record."""
    folder = trial / f"checkpoint_{number:06d}"
    folder.mkdir(parents=True)
    (folder / "weights").write_text(f"weights of {iteration}")
    result = {"training_iteration": iteration, "env_runners": {"episode_return_mean": mean_return}}
    record = CheckpointRecord(
        saved_at="2026-01-01T00:00:00+00:00",
        result=result,
        versions=versions(),
        code={},
        numerics=NUMERICS,
        config={},
        files={"weights": (folder / "weights").stat().st_size},
        digests={"weights": digest_of(folder / "weights")},
    )
    save_record(folder, record)
    return folder


def tell(callback, trial, folder):
    callback.on_checkpoint(
        0, [], SimpleNamespace(path=str(trial)), SimpleNamespace(path=str(folder))
    )


def kept(trial):
    return [read_record(folder).iteration for folder in sorted((trial / "kept").iterdir())]


def test_every_so_many_are_kept_and_the_best_one(tmp_path):
    callback = KeepCheckpoints(keep_interval=20)
    returns = {5: 1.0, 10: float("nan"), 15: 3.0, 20: 2.0, 25: 2.5, 30: 4.0, 35: 1.0, 40: 0.5}
    for number, (iteration, mean_return) in enumerate(returns.items()):
        folder = save(tmp_path, number, iteration, mean_return)
        tell(callback, tmp_path, folder)
        shutil.rmtree(folder)  # Tune deletes its own
    assert kept(tmp_path) == [20, 30, 40]
    best = best_checkpoint(tmp_path)
    assert best.record.iteration == 30 and best.mean_return == 4.0
    assert (tmp_path / "best" / "weights").read_text() == "weights of 30"
    assert complete_checkpoints(tmp_path) == []


def test_a_best_one_stays_best_after_a_restart_and_a_worse_repetition(tmp_path):
    tell(KeepCheckpoints(), tmp_path, save(tmp_path, 0, 5, 3.0))
    again = save(tmp_path, 1, 5, 1.0)
    tell(KeepCheckpoints(keep_interval=5), tmp_path, again)
    assert best_checkpoint(tmp_path).mean_return == 3.0
    tell(KeepCheckpoints(), tmp_path, save(tmp_path, 2, 5, 3.5))
    assert best_checkpoint(tmp_path).mean_return == 3.5
    assert kept(tmp_path) == [5]


def test_no_return_no_best(tmp_path):
    tell(KeepCheckpoints(), tmp_path, save(tmp_path, 0, 5, None))
    assert best_checkpoint(tmp_path) is None
    assert not (tmp_path / "best").is_symlink()


def test_files_are_shared_and_not_copied(tmp_path):
    folder = save(tmp_path, 0, 5, 1.0)
    tell(KeepCheckpoints(), tmp_path, folder)
    assert os.path.samefile(folder / "weights", tmp_path / "best" / "weights")


def test_leftovers_of_a_crash_are_cleared(tmp_path):
    """The end came after a former best lost its link, and while a folder was linked."""
    tell(KeepCheckpoints(), tmp_path, save(tmp_path, 0, 5, 1.0))
    orphan = tmp_path / "kept" / "iteration_000003"
    shutil.copytree(tmp_path / "kept" / "iteration_000005", orphan)
    (tmp_path / "kept" / ".iteration_000010.partial").mkdir()
    (tmp_path / ".best.partial").symlink_to("nowhere")
    tell(KeepCheckpoints(), tmp_path, save(tmp_path, 1, 10, 2.0))
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["iteration_000010"]
    assert best_checkpoint(tmp_path).record.iteration == 10


@pytest.mark.parametrize("damage", ["record.yaml", "weights"])
def test_an_incomplete_checkpoint_never_counts(tmp_path, damage, caplog):
    whole, broken = save(tmp_path, 0, 5, 1.0), save(tmp_path, 1, 10, 9.0)
    os.truncate(broken / damage, 3)
    assert [found.folder for found in complete_checkpoints(tmp_path)] == [whole]
    tell(KeepCheckpoints(), tmp_path, broken)
    assert best_checkpoint(tmp_path) is None
    assert "could not be kept" in caplog.text
