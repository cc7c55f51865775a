"""Writing where there is no room: one sentence, and nothing half-written in the way."""

import os
import resource
import signal
from pathlib import Path

import pytest
from hostile_command_lines import run
from judging import REFUSED, judge

from rllib_minestudio.whole_file import save_whole, write_whole


def full(given):
    """A disk that takes 64 KB of any file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    return run(given)


@pytest.mark.parametrize("options", [[], ["--own"]])
def test_an_export_leaves_no_half_of_a_model(tmp_path, options):
    words = ["model", "export", "package:hunter_nano", "out", *options]
    verdict = judge(full, (str(tmp_path), words))
    assert verdict.kind == REFUSED and "cannot be written" in verdict.message, verdict
    assert not list((tmp_path / "out").iterdir())
    assert "status 0" in judge(run, (str(tmp_path), words)).message


def test_what_was_there_stays_when_there_is_no_room(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    write_whole(file, "before")

    def fail(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, "after")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    def half(folder: Path) -> None:
        folder.mkdir()
        (folder / "a").write_text("half")
        raise OSError(28, os.strerror(28))

    save_whole(tmp_path / "x", lambda folder: folder.mkdir())
    with pytest.raises(OSError, match="No space"):
        save_whole(tmp_path / "x", half)
    assert [path.name for path in tmp_path.rglob("*")] == ["x"]
