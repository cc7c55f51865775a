"""`rllib engine`: messages and exit status; what it installs is tested in tests/server."""

from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.env.voxel.server import launcher


def test_install_says_what_to_do_next(tmp_path, capsys):
    assert main(["engine", "install", "--embedded", "--dir", str(tmp_path)]) == 0
    assert launcher.is_installed(tmp_path)
    assert f". {tmp_path / launcher.ACTIVATE}" in capsys.readouterr().out


def test_the_folder_is_minestudios_by_default(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MINESTUDIO_DIR", str(tmp_path))
    assert main(["engine", "install", "--embedded"]) == 0
    assert launcher.is_installed(tmp_path)


def test_minestudios_own_engine_is_minestudios_business(tmp_path, capsys):
    assert main(["engine", "install", "--dir", str(tmp_path)]) == BAD_INPUT
    assert "minestudio.simulator.entry -y" in capsys.readouterr().err


def test_a_folder_with_minestudios_own_engine_is_refused(tmp_path, capsys):
    jar = tmp_path / launcher.JAR
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"PK")
    assert main(["engine", "install", "--embedded", "--dir", str(tmp_path)]) == BAD_INPUT
    assert "--dir" in capsys.readouterr().err
