"""The site builds without a warning; dead references and broken docstrings are warnings."""

import subprocess
import sys

import pytest

from tests.docs.pages import DOCS


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
    assert "kl_coeff" in (tmp_path / "site" / "options.html").read_text()
