"""Public names are loaded on first use, and what hinders that is told."""

import subprocess
import sys

import pytest

import rllib_minestudio
from rllib_minestudio import algorithms

OTHER_LIBRARY = """
import av
del av.error
from rllib_minestudio import MineStudioPPO
"""


@pytest.mark.parametrize("package", [rllib_minestudio, algorithms])
def test_all_public_names_can_be_had(package):
    assert all(getattr(package, name).__name__ == name for name in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'MineStudioDQN'"):
        package.MineStudioDQN  # noqa: B018


@pytest.mark.slow
def test_a_library_that_lacks_something_is_named():
    done = subprocess.run([sys.executable, "-c", OTHER_LIBRARY], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: rllib_minestudio.algorithms")
    assert "module 'av' has no attribute 'error'" in last
