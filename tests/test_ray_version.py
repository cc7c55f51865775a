"""A Ray that this package was not written for is named before anything of it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rllib_minestudio import registration
from rllib_minestudio.errors import DependencyError

IMPORT = """
import importlib.metadata
real = importlib.metadata.version
importlib.metadata.version = lambda name: "2.59.0" if name == "ray" else real(name)
import rllib_minestudio
import ray  # whoever uses no RLlib may have any version
from rllib_minestudio import MineStudioPPOConfig
"""


@pytest.mark.slow
def test_it_is_refused_when_rllib_is_first_imported():
    """In a process of its own, as everything is imported where tests run."""
    result = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)
    (last,) = result.stderr.splitlines()[-1:]
    assert last.startswith("rllib_minestudio.errors.DependencyError: Ray 2.59.0 is installed")


@pytest.mark.parametrize("found", ["2.59.0", "2.61.0", "3.0.0"])
def test_another_version_of_ray_is_refused(monkeypatch, found):
    monkeypatch.setattr(registration, "version", lambda name: found)
    expected = rf"^Ray {found} is installed.* pip install 'ray\[rllib\]"
    with pytest.raises(DependencyError, match=expected):
        registration._check(None)


@pytest.mark.parametrize("found", ["2.60.0", "2.60.3"])
def test_the_version_it_was_written_for_is_accepted(monkeypatch, found):
    monkeypatch.setattr(registration, "version", lambda name: found)
    registration._check(None)
