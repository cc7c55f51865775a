"""The site builds without a warning; dead references and broken docstrings are warnings."""

import subprocess
import sys

import pytest

from tests.docs.pages import DOCS

BUILT = ("options", "first_task", "cloning", "index")


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path):
    for package in ("sphinx", "sphinx_design", "sphinx_copybutton"):
        pytest.importorskip(package, reason="needs pip install rllib-minestudio[docs]")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", DOCS, tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "api.html").read_text()
    for name in ("MineStudioEnv", "RecurrentRLModule", "check_policy", "EpisodeFilter"):
        assert f"{name}</span>" in page or f"{name}<" in page, name
    read = {name: (tmp_path / "site" / f"{name}.html").read_text() for name in BUILT}
    assert "kl_coeff" in read["options"] and 'class="stacked' in read["options"]
    assert 'href="options.html"><span class="std std-doc">the reference' in read["first_task"]
    assert (
        'src="toolmaker.mp4"' in read["cloning"] and (tmp_path / "site" / "toolmaker.mp4").is_file()
    )
    assert "sd-card" in read["index"] and "copybutton" in read["index"]
