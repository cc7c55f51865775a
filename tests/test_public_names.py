"""Public names are loaded on first use, and what hinders that is told."""

import subprocess
import sys

import pytest

import rllib_minestudio
from rllib_minestudio import algorithms, benchmark, env, evaluation, models

OTHER_LIBRARY = """
import av
del av.error
from rllib_minestudio import MineStudioPPO
"""


@pytest.mark.parametrize(
    "package", [rllib_minestudio, algorithms, benchmark, env, evaluation, models]
)
def test_all_public_names_can_be_had(package):
    for name in package.__all__:
        found = getattr(package, name)
        assert name.isupper() or found.__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'MineStudioDQN'"):
        package.MineStudioDQN  # noqa: B018


@pytest.mark.slow
def test_a_library_that_lacks_something_is_named():
    done = subprocess.run([sys.executable, "-c", OTHER_LIBRARY], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: rllib_minestudio.algorithms")
    assert "module 'av' has no attribute 'error'" in last
