"""Writing where there is no room: one sentence, and nothing half-written in the way."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hostile_command_lines import run
from hostile_experiments import HONEST
from judging import REFUSED, judge

from rllib_minestudio.foundation.files import save_whole, write_whole
from tests.processes import run_rllib


def full(given):
    """A disk that takes 64 KB of any file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    sys.dont_write_bytecode = True  # CPython would keep the half of a .pyc that fits
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


class SmallDisk:
    """A disk of its own, in memory, which takes so many bytes."""

    def __init__(self, folder: Path, size: str) -> None:
        folder.mkdir()
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("mounting a disk is not allowed here")

    def grow(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", self.folder], check=True)

    def remove(self) -> None:
        subprocess.run(["umount", "-l", self.folder], check=True)


@pytest.fixture
def disk_of(tmp_path):
    disks = []

    def make(size):
        disks.append(SmallDisk(tmp_path / "disk", size))
        return disks[0]

    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(HONEST))
    yield make
    for disk in disks:
        disk.remove()


def test_an_evaluation_does_not_begin_where_its_summary_has_no_room(disk_of, tmp_path):
    disk = disk_of("64k")
    verdict = judge(run, (str(tmp_path), ["evaluate", "tiny.yaml", "--out", str(disk.folder)]))
    assert verdict.kind == REFUSED and "No space left" in verdict.message, verdict
    assert not list(disk.folder.iterdir())


@pytest.mark.slow
def test_an_evaluation_whose_recordings_fill_the_disk_keeps_its_numbers(disk_of, tmp_path):
    disk = disk_of("280k")
    status, text = run_rllib(
        tmp_path,
        *("evaluate", "tiny.yaml", "--episodes", "12", "--record", str(disk.folder)),
        *("--crf", "0"),
    )
    assert status in (1, 2) and "bug of ours" not in text and "Traceback" not in text, text
    assert "cannot be recorded: No space left" in text
    if status == 1:
        assert json.loads((disk.folder / "summary.json").read_text())
    else:
        assert "Its numbers are above" in text
    assert not list(disk.folder.rglob("*partial*"))


@pytest.mark.slow
def test_a_recording_of_play_that_has_no_room_is_no_success(disk_of, tmp_path):
    disk = disk_of("16k")
    status, text = run_rllib(tmp_path, "play", "tiny.yaml", "--out", str(disk.folder))
    assert status == 2 and "No space left" in text and "recordings:" not in text, text
    assert not list(disk.folder.rglob("*partial*"))


@pytest.mark.slow
@pytest.mark.parametrize("size, resumable", [("1m", False), ("2m", False), ("12m", True)])
def test_training_on_a_full_disk_says_so_and_goes_on_when_there_is_room(
    disk_of, tmp_path, size, resumable
):
    experiment = {**HONEST["tiny"], "checkpoint_config": {"save_interval": 5}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump({"tiny": experiment}))
    disk = disk_of(size)
    words = ("train", "file", "tiny.yaml", "--out", str(disk.folder), "--stop")
    status, text = run_rllib(tmp_path, *words, "training_iteration=100")
    assert status == 2 and "cannot be written to any more (No space left on device)" in text, text
    assert "bug of ours" not in text and "Traceback" not in text
    if resumable:
        disk.grow("100m")
        status, text = run_rllib(tmp_path, *words, "training_iteration=30", "--resume")
        assert status == 0 and "\n   30 " in text, text
