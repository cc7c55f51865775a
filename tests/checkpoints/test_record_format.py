"""A checkpoint of another format is refused in one sentence, wherever one is looked for."""

import re
import shutil

import pytest
import yaml

from rllib_minestudio import __version__
from rllib_minestudio.checkpoints.lookup import loadable_checkpoints, locate, pinned
from rllib_minestudio.checkpoints.record import FORMAT, RECORD_FILE, read_record, with_own_digest
from rllib_minestudio.cli.main import main
from rllib_minestudio.errors import CheckpointFormatError
from tests.experiments.outputs.test_trial_checkpoints import save

DISTRIBUTION = "rllib-minestudio"


@pytest.fixture
def checkpoint(tmp_path):
    return save(tmp_path / "trial", 1, 10, 1.0)


def change(checkpoint, **changes):
    """Change entries of a record, which is whole; None leaves one out."""
    file = checkpoint / RECORD_FILE
    facts = {**yaml.safe_load(file.read_text()), **changes}
    kept = {name: value for name, value in facts.items() if value is not None}
    file.write_text(with_own_digest(yaml.safe_dump(kept)))


def test_a_record_begins_with_its_format_and_names_the_version_that_wrote_it(checkpoint):
    assert (checkpoint / RECORD_FILE).read_text().startswith(f"format: {FORMAT}\n")
    record = read_record(checkpoint)
    assert record.format == FORMAT and record.versions[DISTRIBUTION] == __version__


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (FORMAT - 1, f"is of format {FORMAT - 1}"),
        (FORMAT + 1, f"is of format {FORMAT + 1}"),
        (None, "names no format"),
        (str(FORMAT), f"is of format '{FORMAT}'"),
        (float(FORMAT), f"is of format {float(FORMAT)}"),
        (True, "is of format True"),
        ([FORMAT], rf"is of format [{FORMAT}]"),
    ],
    ids=["older", "newer", "missing", "text", "no whole number", "bool", "list"],
)
def test_another_format_is_refused_with_the_version_that_reads_it(checkpoint, found, said):
    change(checkpoint, format=found, versions={DISTRIBUTION: "9.8.7"}, one_more_entry=1)
    with pytest.raises(CheckpointFormatError) as caught:
        read_record(checkpoint)
    assert str(caught.value) == (
        f"{str(checkpoint / RECORD_FILE)!r} {said}, and {DISTRIBUTION} {__version__} reads format "
        f"{FORMAT} of checkpoints: use {DISTRIBUTION} 9.8.7, which wrote it."
    )


@pytest.mark.parametrize("versions", [None, {}, "9.8.7", {DISTRIBUTION: 9}])
def test_where_no_version_is_named_the_sentence_still_is_one(checkpoint, versions):
    change(checkpoint, format=FORMAT + 1, versions=versions)
    with pytest.raises(
        CheckpointFormatError, match=f"use the version of {DISTRIBUTION}, which wrote it.$"
    ):
        read_record(checkpoint)


def test_it_is_no_broken_checkpoint_that_a_run_would_go_on_without(checkpoint, tmp_path):
    """Those are passed over, and removed where a run is resumed."""
    trial = tmp_path / "trial"
    newest = trial / "checkpoint_000002"
    shutil.copytree(checkpoint, newest)
    change(newest, format=FORMAT + 1)
    for look in (loadable_checkpoints, lambda folder: locate(folder / "latest")):
        with pytest.raises(CheckpointFormatError, match=f"000002.*format {FORMAT + 1}, and"):
            look(trial)
    assert pinned(trial / "latest") == trial / "latest"


def test_the_list_of_a_trial_says_so(checkpoint, tmp_path, capsys):
    assert main(["checkpoint", "info", str(tmp_path)]) == 0
    change(checkpoint, format=FORMAT + 1)
    assert main(["checkpoint", "info", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "of another format" in shown.out
    assert f"format {FORMAT + 1}, and {DISTRIBUTION}" in re.sub(r"\s+", " ", shown.err)
