"""`rllib engine`: messages and exit status; tests/env/voxel/server tests what it installs."""

import os
import subprocess
import sys

import pytest

from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.env.backends.minecraft import prerequisites
from rllib_minestudio.env.voxel.server import launcher


def test_install_says_what_to_do_next(tmp_path, capsys):
    assert main(["engine", "install", "--embedded", "--dir", str(tmp_path)]) == 0
    assert launcher.is_installed(tmp_path)
    assert f". {tmp_path / launcher.ACTIVATE}" in capsys.readouterr().out


def test_the_folder_is_minestudios_by_default(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MINESTUDIO_DIR", str(tmp_path))
    assert main(["engine", "install", "--embedded"]) == 0
    assert launcher.is_installed(tmp_path)


def test_one_says_which_engine(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["engine", "install", "--dir", str(tmp_path)])
    assert "one of the arguments --embedded --minestudio is required" in capsys.readouterr().err


@pytest.mark.skipif(not prerequisites.is_installed(), reason="MineStudio is not installed")
def test_minestudios_own_engine_is_downloaded_by_minestudio(tmp_path):
    """As far as that goes without network; MineStudio is imported in a process of its own."""
    command = [sys.executable, "-m", "rllib_minestudio.cli.main", "engine", "install"]
    done = subprocess.run(
        [*command, "--minestudio", "--dir", str(tmp_path)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == BAD_INPUT
    assert f"MineStudio's engine cannot be downloaded to {tmp_path}" in done.stderr
    assert "rllib doctor" in done.stderr


def test_a_folder_with_the_embedded_engine_is_refused_too(tmp_path, capsys):
    launcher.install(tmp_path)
    assert main(["engine", "install", "--minestudio", "--dir", str(tmp_path)]) == BAD_INPUT
    assert "The embedded engine is in" in capsys.readouterr().err


def test_a_folder_with_minestudios_own_engine_is_refused(tmp_path, capsys):
    jar = tmp_path / launcher.JAR
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"PK")
    assert main(["engine", "install", "--embedded", "--dir", str(tmp_path)]) == BAD_INPUT
    assert "--dir" in capsys.readouterr().err
