"""What is written beside its place takes its name at the end, or leaves what was there."""

import os

import pytest

from rllib_minestudio.foundation.files import Unfinished, put_in_place, whole_file


@pytest.mark.parametrize("before", ["nothing", "file", "folder", "link"])
def test_a_finished_folder_replaces_what_was_there(tmp_path, before):
    target = tmp_path / "target"
    (tmp_path / "elsewhere").mkdir()
    if before == "folder":
        target.mkdir()
        (target / "old").touch()
    elif before == "link":
        target.symlink_to("elsewhere")
    elif before == "file":
        target.touch()
    new = Unfinished(target)
    if before in ("file", "link"):  # a folder cannot take the name of these
        new.partial.write_text("new")
    else:
        new.partial.mkdir()
    new.complete()
    assert not target.is_symlink() and not (target / "old").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "target"]


def test_a_folder_that_cannot_be_replaced_stays(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(FileNotFoundError):
        put_in_place(tmp_path / "missing", target)
    assert (target / "old").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_what_killed_processes_left_is_removed(tmp_path):
    kept = tmp_path / ".target_2.1.partial"
    for name in (".target.1.partial", ".target.partial", kept.name):
        (tmp_path / name).mkdir()
    (tmp_path / ".target.2.partial").symlink_to("nowhere")
    Unfinished(tmp_path / "target").remove_abandoned()
    assert list(tmp_path.iterdir()) == [kept]


def test_who_may_read_a_file_is_up_to_the_umask_whoever_writes_it(tmp_path):
    before = os.umask(0o027)
    try:
        with whole_file(tmp_path / "model.safetensors") as partial:
            partial.unlink()
            os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(before)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == 0o640
