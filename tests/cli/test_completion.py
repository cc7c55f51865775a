"""`rllib --completion`: the scripts are run by the shells that they are for."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from rllib_minestudio.cli import main

COMPLETE = """\
source "$1"; shift
[[ "$(complete -p rllib)" == *" -F "* ]] || exit 3
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"
_shtab_rllib rllib "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(tmp_path, capsys):
    """Returns the file with a shell's script."""

    def written(shell):
        with pytest.raises(SystemExit, match="0"):
            main.main(["--completion", shell])
        file = tmp_path / shell
        file.write_text(capsys.readouterr().out)
        return file

    return written


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["tr"], ["train"]),
        (["train", "file", "cow_f"], ["cow_from_prior"]),
        (["evaluate", "--epi"], ["--episodes"]),
        (["benchmark", "c"], ["compare"]),
        (["benchmark", "list", "--engine", ""], ["voxel", "minecraft"]),
        (["evaluate", "here.t"], ["here.txt"]),
    ],
    ids=" ".join,
)
def test_bash_completes(script, tmp_path, words, found):
    (tmp_path / "here.txt").touch()
    command = ["bash", "-c", COMPLETE, "bash", script("bash"), "rllib", *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(found) <= set(ended.stdout.split())


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_takes_the_script(script):
    subprocess.run(["zsh", "-n", script("zsh")], check=True)


def test_another_shell_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main.main(["--completion", "fish"])
    assert "invalid choice: 'fish'" in capsys.readouterr().err
